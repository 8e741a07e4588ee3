/* SPDX-License-Identifier: MIT
 * Stored access policies as the SignedIdentifiers document (protocol section 2.11). */
#ifndef CODEC_ACCESS_POLICY_XML_H
#define CODEC_ACCESS_POLICY_XML_H

#include "base/buf.h"
#include "base/err.h"
#include "model/access_policy.h"

/* The permissions that a policy may have. */
#define POLICY_LETTERS_TABLE "raud"
#define POLICY_LETTERS_QUEUE "raup"
#define POLICY_LETTERS_BLOB "racwdxyltmeopi"

/* Parses the document.  ret is zeroed first; call arena_fini(&ret->arena) also after an error.  An
 * empty text means no policies.  There are at most 5, with unique ids of 1 to 64 UTF-16 units.
 * Times are converted to UTC with seven digits.
 *
 * ERR_XML_INVALID if the document has another form.  ERR_XML_VALUE for an invalid time or
 * permission, which has some of `letters`, each once. */
enum err access_policies_from_xml(struct span xml, const char *letters, struct access_policies *ret,
	struct err_detail *detail);
/* Appends the document on one line, with the XML declaration.  Sets out->failed for an id that XML
 * cannot contain. */
void access_policies_to_xml(const struct access_policies *p, struct buf *out);

#endif
