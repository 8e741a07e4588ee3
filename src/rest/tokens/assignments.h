/* SPDX-License-Identifier: MIT
 * Which roles a token has: those of its claim `roles`, and those that the file of keys assigns to
 * its other claims. An assignment is an object of the file's array `assignments`: its `role` is a
 * role or a list of them, each other member is a claim, and the token must have all of them. */
#ifndef REST_TOKENS_ASSIGNMENTS_H
#define REST_TOKENS_ASSIGNMENTS_H

#include "base/err.h"

#include <stdint.h>

#define ASSIGNMENTS_MAX 1000

struct json_t;

/* Checks the assignments of a file of keys.  ERR_INVALID_INPUT with the reason: there are more than
 * ASSIGNMENTS_MAX, one is no object, has no claim, a claim that is no text, or names no known role.
 */
enum err assignments_check(const struct json_t *file, struct err_detail *detail);
/* Returns the roles of a token in a service ('t', 'q', 'b') of an account.  file: NULL for none. */
uint32_t assignments_roles(
	const struct json_t *file, const struct json_t *claims, char service, const char *account);

#endif
