/* SPDX-License-Identifier: MIT
 * The kinds of credential; private to access.c and the files of these functions. */
#ifndef REST_CORE_AUTH_H
#define REST_CORE_AUTH_H

#include "base/err.h"
#include "base/span.h"
#include "rest/core/access.h"
#include "service/sas/sas.h"

/* Checks an Authorization header.  ret is set on ERR_OK. */
enum err auth_shared_key(const struct access_facts *f, struct span header, struct access *ret,
	struct err_detail *detail);
/* Checks a bearer token, which is `token` without its scheme.  ret is set on ERR_OK. */
enum err auth_bearer(const struct access_facts *f, struct span token, struct access *ret,
	struct err_detail *detail);
/* Checks the parameters of a SAS.  The caller zeroes ret. */
enum err auth_sas(const struct access_facts *f, const struct sas *s, struct access *ret,
	struct err_detail *detail);

#endif
