/* SPDX-License-Identifier: MIT
 * Names of accounts, tables and properties: what is allowed (protocol section 5.3). */
#ifndef MODEL_NAMES_H
#define MODEL_NAMES_H

#include "base/err.h"
#include "base/span.h"
#include "model/limits.h"

/* 3 to 24 of a-z 0-9.  ERR_NAME_INVALID, ERR_NAME_TOO_SHORT or ERR_NAME_TOO_LONG. */
enum err account_name_check(struct span name, struct err_detail *detail);

/* ^[A-Za-z][A-Za-z0-9]{2,62}$, and not "tables" in any case. */
enum err table_name_check(struct span name, struct err_detail *detail);

/* Lower-cases ASCII: the form in which table names are compared and stored as keys.
 * out takes name.n bytes. */
void table_name_fold(struct span name, char *out);

/* A C# identifier of at most 255 UTF-16 units: first a letter (Unicode L*, Nl) or _,
 * then also Mn Mc Nd Pc Cf.  ERR_PROPERTY_NAME_INVALID, ERR_PROPERTY_NAME_LONG. */
enum err property_name_check(struct span name, struct err_detail *detail);

#endif
