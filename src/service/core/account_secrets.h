/* SPDX-License-Identifier: MIT
 * The secrets of an account, and the body of its item in which they are kept.  Knows no service:
 * lookup_cache.h keeps secrets, and the service calls it. */
#ifndef SERVICE_CORE_ACCOUNT_SECRETS_H
#define SERVICE_CORE_ACCOUNT_SECRETS_H

#include "base/buf.h"
#include "model/limits.h"

#include <stdint.h>

#define ACCOUNT_PROPERTIES_MAX ((size_t)64 * 1024) /* bytes of XML */

struct account_keys {
	unsigned char key[2][LIMIT_ACCOUNT_KEY_BYTES * 2]; /* a given key can have up to 64 bytes */
	size_t len[2];
};

/* The storage services whose properties an account has. */
enum account_service {
	ACCOUNT_TABLES,
	ACCOUNT_QUEUES,
	ACCOUNT_BLOBS,
	ACCOUNT_SERVICES_
};

/* The contents of an account's item, which a request reads at once. */
struct account_secrets {
	uint64_t id;
	struct account_keys keys;
	/* The properties of each service as XML; empty: never set. */
	struct buf properties[ACCOUNT_SERVICES_];
};
/* Parses the body of an account's item, for a check.  On ERR_OK call account_secrets_fini().
 * ERR_CORRUPT. */
enum err account_secrets_read(struct span body, struct account_secrets *ret);
/* Wipes the keys and frees the rest. */
void account_secrets_fini(struct account_secrets *a);
/* Makes a new key `which`, 0 or 1. */
void account_keys_fresh(struct account_keys *k, int which);
/* Appends the body of an account's item; its id does not matter.  ERR_NO_MEMORY. */
enum err account_secrets_write(const struct account_secrets *a, struct buf *out);
/* Writes the body of a new account's item, for mkdir(2) in the mount. */
enum err account_fresh_body(struct buf *out);

#endif
