/* SPDX-License-Identifier: MIT
 * Names of accounts, tables, queues and properties: which are valid (protocol section 5.3). */
#ifndef MODEL_NAMES_H
#define MODEL_NAMES_H

#include "base/err.h"
#include "base/span.h"
#include "model/limits.h"

/* Checks an account name: 3 to 24 of a-z and 0-9.  ERR_NAME_INVALID, ERR_NAME_TOO_SHORT,
 * ERR_NAME_TOO_LONG. */
enum err account_name_check(struct span name, struct err_detail *detail);

/* Checks a table name: ^[A-Za-z][A-Za-z0-9]{2,62}$, and not "tables" in any case.
 * ERR_INVALID_INPUT for "tables"; else the errors of account names. */
enum err table_name_check(struct span name, struct err_detail *detail);

/* Writes the name in lower case to out, name.n bytes.  Table names are compared and stored as keys
 * in this form. */
void table_name_fold(struct span name, char *out);

/* Checks a queue name: 3 to 63 of a-z, 0-9 and -, with a letter or digit at both ends and no two -
 * side by side.  The errors of account names. */
enum err queue_name_check(struct span name, struct err_detail *detail);

/* Checks a container name: as a queue's, or $root, $logs or $web.  The errors of account names. */
enum err container_name_check(struct span name, struct err_detail *detail);
/* Checks a blob name: 1 to 1,024 UTF-16 units without control characters, at most 254 segments.
 * ERR_NAME_NOT_UTF8, ERR_NAME_INVALID, ERR_NAME_TOO_SHORT, ERR_NAME_TOO_LONG. */
enum err blob_name_check(struct span name, struct err_detail *detail);

/* Checks a property name: a C# identifier of at most 255 UTF-16 units.  It begins with a letter
 * (Unicode L*, Nl) or _; the rest may also be Mn, Mc, Nd, Pc, Cf.  ERR_PROPERTY_NAME_INVALID,
 * ERR_PROPERTY_NAME_LONG. */
enum err property_name_check(struct span name, struct err_detail *detail);

#endif
