/* SPDX-License-Identifier: MIT
 * The built-in roles of Azure Storage, and the rights of each. */
#ifndef REST_TOKENS_ROLES_H
#define REST_TOKENS_ROLES_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

/* Every right that a token can give; also a bit for the roles of a grant. */
#define ROLES_ALL (UINT32_C(1) << 31)

/* The rights that roles give in one service.  Each set has the letters of an account SAS (sas_letters()) for
 * one type of resource: a route that an account SAS with these letters may use may be used. */
struct grants {
	uint32_t roles;   /* the roles themselves, a bit each; 0: no role for the service */
	uint32_t service; /* letters for the type 's' */
	uint32_t containers;
	uint32_t objects;
	bool policies;  /* also public access and stored policies of containers */
	bool delegates; /* also user delegation keys */
};

/* Returns the bit of a role of this service ('t', 'q', 'b'); 0 for another text.  Case, blanks,
 * dots and hyphens do not count: the values of app roles cannot have blanks. */
uint32_t roles_find(struct span name, char service);
/* Returns what these roles allow in the service. */
struct grants roles_grants(uint32_t roles, char service);
/* Returns the set after `roles` among all sets of roles of the service, which begin with 0; the set
 * after the last one is 0. */
uint32_t roles_next(uint32_t roles, char service);

#endif
