/* SPDX-License-Identifier: MIT
 * Reading an Atom entry for the properties in it (protocol sections 2.2, 2.6).  Namespaces
 * count, prefixes do not; what is not known is passed over, as the service did. */
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
	enum edm_type type; /* by m:type; String without */
	bool is_null;       /* m:null="true"; it may have a text all the same */
	struct span text;   /* as it stands */
};

/* Called for each, in order; everything lives until it returns.  An error ends the reading:
 * the place is put to its detail. */
struct atom_reader {
	enum err (*take)(void *arg, const struct atom_property *p, struct err_detail *detail);
	void *arg;
};

/* ERR_VALUE_INVALID for what is no XML, or no Atom entry; ERR_BODY_TOO_LARGE; ERR_NO_MEMORY;
 * what the reader returned. */
enum err atom_entry_read(
	struct span text, const struct atom_reader *reader, struct err_detail *detail);

#endif
