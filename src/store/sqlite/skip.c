/* SPDX-License-Identifier: MIT */
#include "store/sqlite/skip.h"

#include "store/sqlite/rows.h"

static struct span bytes_of(sqlite3_value *v)
{
	const void *p = sqlite3_value_blob(v);
	return span_make(p != NULL ? p : "", (size_t)sqlite3_value_bytes(v));
}

static void skip(sqlite3_context *context, int n, sqlite3_value **values)
{
	struct sql_conn *c = sqlite3_user_data(context);
	(void)n;
	if (c->skip == NULL || c->skipped == SQL_LIST_MAX) {
		sqlite3_result_int(context, 0);
		return;
	}
	struct item it = {
		.key = bytes_of(values[0]),
		.version = sqlite3_value_int64(values[1]),
		.flags = (uint32_t)sqlite3_value_int64(values[2]) & ITEM_FLAGS_PUBLIC,
		.body = bytes_of(values[3]),
	};
	bool skipped = c->skip(c->skip_arg, &it);
	c->skipped += skipped;
	sqlite3_result_int(context, skipped);
}

enum err sql_skip_register(struct sql_conn *c)
{
	return sql_error(c->db,
		sqlite3_create_function(
			c->db, "skip", 4, SQLITE_UTF8 | SQLITE_DIRECTONLY, c, skip, NULL, NULL));
}
