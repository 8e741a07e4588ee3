/* SPDX-License-Identifier: MIT
 * What access.c shares with the two kinds of credential; for these files alone. */
#ifndef REST_AUTH_H
#define REST_AUTH_H

#include "base/err.h"
#include "base/span.h"
#include "rest/access.h"
#include "service/sas/sas.h"

/* The value of an Authorization header.  ret is filled on ERR_OK. */
enum err auth_shared_key(const struct access_facts *f, struct span header, struct access *ret,
	struct err_detail *detail);
/* The SAS parameters of the query.  ret is zeroed before, access_fini() in any case. */
enum err auth_sas(const struct access_facts *f, const struct sas *s, struct access *ret,
	struct err_detail *detail);

#endif
