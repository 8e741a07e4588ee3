/* SPDX-License-Identifier: MIT
 * Reads the properties of an Atom entry (protocol sections 2.2, 2.6).  It matches namespaces,
 * whatever the prefixes.  It skips unknown elements, as the service did. */
#ifndef CODEC_ATOM_ENTRY_H
#define CODEC_ATOM_ENTRY_H

#include "base/err.h"
#include "base/span.h"
#include "model/value.h"

#include <stdbool.h>

#define ATOM_SPACE "http://www.w3.org/2005/Atom"
#define ATOM_DATA "http://schemas.microsoft.com/ado/2007/08/dataservices"
#define ATOM_METADATA ATOM_DATA "/metadata"

struct atom_property {
	struct span name;
	enum edm_type type; /* from m:type; String by default */
	bool is_null;       /* m:null="true"; text may be set too */
	struct span text;   /* unchanged */
};

/* take() is called for each property, in order.  Its data is valid only during the call.  An error
 * ends the reading; the reader adds the position to the detail. */
struct atom_reader {
	enum err (*take)(void *arg, const struct atom_property *p, struct err_detail *detail);
	void *arg;
};

/* Reads one entry.  ERR_VALUE_INVALID if it is not XML or not an Atom entry; ERR_BODY_TOO_LARGE;
 * ERR_NO_MEMORY; or the error of take(). */
enum err atom_entry_read(
	struct span text, const struct atom_reader *reader, struct err_detail *detail);

#endif
