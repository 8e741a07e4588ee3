/* SPDX-License-Identifier: MIT
 * Service properties <-> the StorageServiceProperties document (protocol sections 2.13,
 * 2.14). */
#ifndef CODEC_SERVICE_PROPERTIES_XML_H
#define CODEC_SERVICE_PROPERTIES_XML_H

#include "base/buf.h"
#include "base/err.h"
#include "model/service_properties.h"

/* What a version speaks: before 2013-08-15 Logging and Metrics (which are the hour's); since
 * then Logging, HourMetrics, MinuteMetrics, Cors. */
enum properties_form {
	PROPERTIES_OLD,
	PROPERTIES_NEW,
};

/* Sets in *p, which is valid (service_properties_default()), the sections that the document
 * holds; the others stay.  Each that is there must be complete; the order is free.  After a
 * failure *p may be half changed and is still to be service_properties_fini()ed.
 * ERR_XML_INVALID: no such document, an unknown, missing or repeated element, no section at
 * all, more rules, items or bytes than allowed.  ERR_XML_VALUE: a value that is not one, or an
 * item too long.  ERR_BODY_TOO_LARGE. */
enum err service_properties_from_xml(struct span xml, enum properties_form form,
	struct service_properties *p, struct err_detail *detail);
/* With the XML declaration, on one line. */
void service_properties_to_xml(
	const struct service_properties *p, enum properties_form form, struct buf *out);

/* Of the text that an account keeps: what service_properties_to_xml() wrote as
 * PROPERTIES_NEW, or nothing, which is the default.  service_properties_fini() whatever the
 * answer.  ERR_CORRUPT, ERR_NO_MEMORY. */
enum err service_properties_load(struct span stored, struct service_properties *ret);
/* Whether there are CORS rules in it, without reading it: what every request asks. */
bool service_properties_have_cors(struct span stored);

#endif
