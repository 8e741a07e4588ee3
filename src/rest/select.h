/* SPDX-License-Identifier: MIT
 * $select (protocol section 6.6). */
#ifndef REST_SELECT_H
#define REST_SELECT_H

#include "rest/context.h"

/* Puts the names of $select into the style; they live in c->arena.  Without one, with "*",
 * and in versions that know no $select, style->all stays.  ERR_INVALID_INPUT for a list
 * that is too long or a name that can be no property's. */
enum err select_read(struct request_context *c, struct odata_style *style);

#endif
