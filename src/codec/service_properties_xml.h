/* SPDX-License-Identifier: MIT
 * Service properties as the StorageServiceProperties document (protocol sections 2.13, 2.14). */
#ifndef CODEC_SERVICE_PROPERTIES_XML_H
#define CODEC_SERVICE_PROPERTIES_XML_H

#include "base/buf.h"
#include "base/err.h"
#include "model/service_properties.h"

/* The sections by protocol version.  Before 2013-08-15: Logging and Metrics, which are the hour
 * metrics.  Since then: Logging, HourMetrics, MinuteMetrics, Cors. */
enum properties_form {
	PROPERTIES_OLD,
	PROPERTIES_NEW,
};

/* Sets the sections of the document in *p, which must be valid (service_properties_default()); the
 * others stay.  Sections must be complete; their order is free.  After an error *p may be partly
 * changed and must still be freed.
 *
 * ERR_XML_INVALID: another form, an unknown, missing or repeated element, no section, too many
 * rules, items or bytes.  ERR_XML_VALUE: an invalid value, or an item that is too long.
 * ERR_BODY_TOO_LARGE. */
enum err service_properties_from_xml(struct span xml, enum properties_form form,
	struct service_properties *p, struct err_detail *detail);
/* Appends the document on one line, with the XML declaration. */
void service_properties_to_xml(
	const struct service_properties *p, enum properties_form form, struct buf *out);

/* Loads the stored text of an account.  service_properties_to_xml() wrote it as PROPERTIES_NEW; an
 * empty text means the defaults.  Call service_properties_fini() also after an error.  ERR_CORRUPT,
 * ERR_NO_MEMORY. */
enum err service_properties_load(struct span stored, struct service_properties *ret);
/* Returns true if the stored text has CORS rules.  It does not parse it, since every request
 * asks. */
bool service_properties_have_cors(struct span stored);

#endif
