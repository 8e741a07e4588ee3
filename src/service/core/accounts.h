/* SPDX-License-Identifier: MIT
 * Accounts and their two secret keys. */
#ifndef SERVICE_CORE_ACCOUNTS_H
#define SERVICE_CORE_ACCOUNTS_H

#include "base/buf.h"
#include "model/limits.h"
#include "service/core/service.h"

struct account_keys {
	unsigned char key[2][LIMIT_ACCOUNT_KEY_BYTES * 2]; /* given keys may be longer: up to 64 */
	size_t len[2];
};

/* Makes an account: fresh 256-bit keys, or `given` as the first one (16 to 64 bytes).
 * ret may be NULL.  ERR_NAME_INVALID, ERR_NAME_TOO_LONG, ERR_ACCOUNT_EXISTS. */
enum err account_create(struct service *s, enum origin origin, struct span name,
	const struct span *given, struct account_keys *ret, struct err_detail *detail);
/* ERR_ACCOUNT_NOT_FOUND. */
enum err account_find(struct service *s, struct span name, struct item *ret);
enum err account_keys_get(struct service *s, struct span name, struct account_keys *ret);
/* which: 0 or 1. */
enum err account_key_regenerate(struct service *s, enum origin origin, struct span name, int which,
	struct account_keys *ret, struct err_detail *detail);
/* With everything in it where recursive; else ERR_NOT_EMPTY. */
enum err account_remove(struct service *s, enum origin origin, struct span name, bool recursive,
	struct err_detail *detail);

/* Everything that an account's item keeps: what a request needs of it, in one read. */
struct account_secrets {
	uint64_t id;
	struct account_keys keys;
	struct buf properties; /* the service properties as XML; empty: never set */
};
/* ERR_ACCOUNT_NOT_FOUND; account_secrets_fini() (which wipes the keys) if ERR_OK. */
enum err account_secrets_get(struct service *s, struct span name, struct account_secrets *ret);
/* Of the body of an account's item: for a check.  ERR_CORRUPT; account_secrets_fini() if ERR_OK. */
enum err account_secrets_read(struct span body, struct account_secrets *ret);
void account_secrets_fini(struct account_secrets *a);
/* Keeps the service properties; the keys stay.  change(arg, old, new) makes the new text of
 * the old one (empty: never set) and may be called again where another change came first;
 * its error ends it.  ERR_ACCOUNT_NOT_FOUND. */
typedef enum err (*account_change_fn)(void *arg, struct span old, struct buf *ret);
enum err account_properties_change(struct service *s, enum origin origin, struct span name,
	account_change_fn change, void *arg, struct err_detail *detail);

/* The body of a fresh account item: for mkdir in the mount. */
enum err account_fresh_body(struct buf *out);

#endif
