/* SPDX-License-Identifier: MIT
 * The in-memory engine, for store/engines.c. */
#ifndef STORE_MEM_ENGINE_H
#define STORE_MEM_ENGINE_H

#include "store/store.h"

enum err mem_store_open(unsigned abilities, struct store **ret);
enum err mem_store_open_again(struct store *s, struct store **ret);
/* False: s is not an in-memory store. */
bool mem_store_set_file_limits(struct store *s, uint64_t one, uint64_t all);
/* The same for store_set_piece_limit(). */
bool mem_store_set_piece_limit(struct store *s, uint64_t all);

#endif
