/* SPDX-License-Identifier: MIT
 * User delegation keys: Get User Delegation Key, and the signatures that such a key made.  A key is
 * an HMAC of its own fields by an account key.  So the server keeps no keys, and a new account key
 * ends those of the old one. */
#ifndef REST_CORE_DELEGATION_H
#define REST_CORE_DELEGATION_H

#include "rest/core/access.h"
#include "rest/core/context.h"
#include "rest/core/signature.h"

#define DELEGATION_DAYS 7 /* how long a key is valid at most */

enum err op_get_delegation_key(struct request_context *c, struct response *r);

/* Returns true if the user delegation key that the SAS names signed the text, and the server
 * accepts tokens. *ret_roles is set to the roles that the key was given with. */
bool delegation_signed(const struct access_facts *f, const struct sas *s, struct span text,
	const uint8_t signature[SIGNATURE_BYTES], uint32_t *ret_roles);
/* Returns the permissions (sp) that a SAS of such a key can have. */
uint32_t delegation_letters(uint32_t roles, char service);

#endif
