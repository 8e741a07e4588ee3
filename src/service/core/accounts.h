/* SPDX-License-Identifier: MIT
 * Accounts and their two secret keys. */
#ifndef SERVICE_CORE_ACCOUNTS_H
#define SERVICE_CORE_ACCOUNTS_H

#include "service/core/account_secrets.h"
#include "service/core/service.h"

/* Creates an account with new 256-bit keys, or with `given` as the first key (16 to 64 bytes).  ret
 * may be NULL.  ERR_NAME_INVALID, ERR_NAME_TOO_SHORT, ERR_NAME_TOO_LONG, ERR_ACCOUNT_EXISTS. */
enum err account_create(struct service *s, enum origin origin, struct span name,
	const struct span *given, struct account_keys *ret, struct err_detail *detail);
/* Find an account or its keys by name.  ERR_ACCOUNT_NOT_FOUND. */
enum err account_find(struct service *s, struct span name, struct item *ret);
enum err account_keys_get(struct service *s, struct span name, struct account_keys *ret);
/* Replaces the key `which`, 0 or 1, by a new one. */
enum err account_key_regenerate(struct service *s, enum origin origin, struct span name, int which,
	struct account_keys *ret, struct err_detail *detail);
/* Removes an account; recursive: with everything in it, else ERR_NOT_EMPTY. */
enum err account_remove(struct service *s, enum origin origin, struct span name, bool recursive,
	struct err_detail *detail);

/* Reads the secrets of an account.  On ERR_OK call account_secrets_fini().
 * ERR_ACCOUNT_NOT_FOUND. */
enum err account_secrets_get(struct service *s, struct span name, struct account_secrets *ret);
/* Changes the properties of one service and keeps the rest.  change() makes the new text from the old one,
 * which is empty if it was never set.  change() is called again after a lost race; its error ends
 * the call.  ERR_ACCOUNT_NOT_FOUND. */
typedef enum err (*account_change_fn)(void *arg, struct span old, struct buf *ret);
enum err account_properties_change(struct service *s, enum origin origin, struct span name,
	enum account_service which, account_change_fn change, void *arg, struct err_detail *detail);

#endif
