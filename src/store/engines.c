/* SPDX-License-Identifier: MIT
 * The engines by name.  A path is SQLite's; another engine is told by its URL. */
#include "store/engines.h"

#include "base/crypto.h"
#include "store/mem/engine.h"
#include "store/rados/engine.h"
#include "store/sqlite/engine.h"

#include <string.h>

bool store_is_remote(const char *path)
{
	return strncmp(path, "rados:", 6) == 0;
}

#ifndef HAVE_RADOS
static enum err no_rados(struct err_detail *detail)
{
	return err_set(detail, ERR_NOT_SUPPORTED,
		"this rowfs was built without librados (-Drados=enabled)");
}

enum err rados_store_create(const char *url, struct err_detail *detail)
{
	(void)url;
	return no_rados(detail);
}

enum err rados_store_open(
	const char *url, unsigned flags, struct store **ret, struct err_detail *detail)
{
	(void)url;
	(void)flags;
	(void)ret;
	return no_rados(detail);
}

void rados_store_digest(const char *url, uint8_t ret[32])
{
	crypto_sha256(span_of(url), ret);
}

bool rados_store_set_file_limits(struct store *s, uint64_t one, uint64_t all)
{
	(void)s;
	(void)one;
	(void)all;
	return false;
}

bool rados_store_set_row_limit(struct store *s, uint64_t limit)
{
	(void)s;
	(void)limit;
	return false;
}
#endif

void store_remote_digest(const char *path, uint8_t ret[32])
{
	rados_store_digest(path, ret);
}

enum err store_create(const char *path, struct err_detail *detail)
{
	if (store_is_remote(path))
		return rados_store_create(path, detail);
	return sql_store_create(path, detail);
}

enum err store_open(const char *path, unsigned flags, struct store **ret, pid_t *ret_holder,
	struct err_detail *detail)
{
	if (store_is_remote(path)) {
		if (ret_holder)
			*ret_holder = 0;
		return rados_store_open(path, flags, ret, detail);
	}
	return sql_store_open(path, flags, ret, ret_holder, detail);
}

enum err store_salvage(
	const char *from, const char *to, struct store_salvage *s, struct err_detail *detail)
{
	if (store_is_remote(from) || store_is_remote(to))
		return err_set(detail, ERR_NOT_SUPPORTED,
			"salvage reads a file; in a cluster Ceph repairs its copies");
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
	if (!sql_store_set_file_limits(s, one, all) && !rados_store_set_file_limits(s, one, all))
		(void)mem_store_set_file_limits(s, one, all);
}

void store_set_feed_limits(struct store *s, uint64_t lines, int64_t ticks)
{
	(void)sql_store_set_feed_limits(s, lines, ticks);
}

bool store_set_piece_limit(struct store *s, uint64_t all)
{
	return sql_store_set_piece_limit(s, all) || mem_store_set_piece_limit(s, all);
}

void store_set_row_limit(struct store *s, uint64_t limit)
{
	(void)rados_store_set_row_limit(s, limit);
}
