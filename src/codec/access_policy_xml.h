/* SPDX-License-Identifier: MIT
 * Stored access policies <-> the SignedIdentifiers document (protocol section 2.11). */
#ifndef CODEC_ACCESS_POLICY_XML_H
#define CODEC_ACCESS_POLICY_XML_H

#include "base/buf.h"
#include "base/err.h"
#include "model/access_policy.h"

/* ret is zeroed first; arena_fini(&ret->arena) whatever the answer.  An empty text is no
 * policy.  Rules: at most 5, ids of 1 to 64 units, unique, times and permission letters
 * (raud) well-formed.  Times become UTC with seven digits.  ERR_XML_INVALID for what is not such a document, ERR_XML_VALUE for a
 * bad time or permission; a BOM, any encoding declaration that is UTF-8, comments are fine;
 * a DTD or an entity reference that is not predefined is ERR_XML_INVALID. */
enum err access_policies_from_xml(
	struct span xml, struct access_policies *ret, struct err_detail *detail);
/* With the XML declaration, on one line.  An id that XML cannot carry sets out->failed. */
void access_policies_to_xml(const struct access_policies *p, struct buf *out);

#endif
