/* SPDX-License-Identifier: MIT
 * The RADOS engine, for store/engines.c (whose header has the contract). */
#ifndef STORE_RADOS_ENGINE_H
#define STORE_RADOS_ENGINE_H

#include "store/store.h"

enum err rados_store_create(const char *url, struct err_detail *detail);
enum err rados_store_open(
	const char *url, unsigned flags, struct store **ret, struct err_detail *detail);
void rados_store_digest(const char *url, uint8_t ret[32]);
/* False: s is not a RADOS store. */
bool rados_store_set_file_limits(struct store *s, uint64_t one, uint64_t all);
bool rados_store_set_row_limit(struct store *s, uint64_t limit);

#endif
