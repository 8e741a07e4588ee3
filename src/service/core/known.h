/* SPDX-License-Identifier: MIT
 * What every request asks before its own question, remembered: which account has which
 * secrets, which table and which partition has which id.  All of it is forgotten before and
 * after any change that could make it wrong, and what is read meanwhile is not remembered; so
 * it is never older than what the store would answer.  For any number of threads.
 *
 * Surprising: a partition is remembered when its last row and the partition itself are gone.
 * Ids are never used again, so nothing is found in it then, and who finds nothing in what was
 * remembered asks the store. */
#ifndef SERVICE_CORE_KNOWN_H
#define SERVICE_CORE_KNOWN_H

#include "base/span.h"
#include "service/core/accounts.h"
#include "store/store.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct known;

struct known *known_new(void);
void known_free(struct known *k);

/* Whether these changes could make wrong what is remembered; then known_changing() before
 * they are applied and known_changed() when they are, or have failed. */
bool known_is_touched(const struct change *changes, size_t n);
void known_changing(struct known *k);
void known_changed(struct known *k);

/* account_secrets_fini() if true; else *ret_moment is for remembering what is read now. */
bool known_account(
	struct known *k, struct span name, struct account_secrets *ret, uint64_t *ret_moment);
void known_account_is(
	struct known *k, struct span name, const struct account_secrets *a, uint64_t moment);
/* A table of an account, a partition of a table, by the key of its item. */
bool known_child(
	struct known *k, uint64_t parent, struct span key, uint64_t *ret_id, uint64_t *ret_moment);
void known_child_is(
	struct known *k, uint64_t parent, struct span key, uint64_t id, uint64_t moment);

#endif
