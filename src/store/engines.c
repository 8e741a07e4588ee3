/* SPDX-License-Identifier: MIT
 * The engines by name.  A path is SQLite's; another engine would be told by its URL. */
#include "store/engines.h"

#include "store/mem/engine.h"
#include "store/sqlite/engine.h"

enum err store_create(const char *path, struct err_detail *detail)
{
	return sql_store_create(path, detail);
}

enum err store_open(const char *path, unsigned flags, struct store **ret, pid_t *ret_holder,
	struct err_detail *detail)
{
	return sql_store_open(path, flags, ret, ret_holder, detail);
}

enum err store_salvage(
	const char *from, const char *to, struct store_salvage *s, struct err_detail *detail)
{
	return sql_store_salvage(from, to, s, detail);
}

enum err store_open_memory(struct store **ret)
{
	return mem_store_open(STORE_ABILITIES_MEMORY, ret);
}

enum err store_open_memory_with(unsigned abilities, struct store **ret)
{
	return mem_store_open(abilities, ret);
}

enum err store_open_memory_again(struct store *s, struct store **ret)
{
	return mem_store_open_again(s, ret);
}

void store_set_file_limits(struct store *s, uint64_t one, uint64_t all)
{
	if (!sql_store_set_file_limits(s, one, all))
		(void)mem_store_set_file_limits(s, one, all);
}
