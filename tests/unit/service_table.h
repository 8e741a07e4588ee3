/* SPDX-License-Identifier: MIT
 * A table to begin with, its partition, and rows in it as a mount writes them. */
#ifndef TESTS_SERVICE_TABLE_H
#define TESTS_SERVICE_TABLE_H

#include "base/compiler.h"
#include "service/change/entities.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/tree/tree.h"

#include <stdio.h>

/* Makes the account "acct" with the table "Tab", and sets both ids. */
static inline void service_table(struct service *s, uint64_t *ret_account, uint64_t *ret_table)
{
	struct item it = { 0 };
	BUG_ON(account_create(s, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL, NULL) != ERR_OK);
	BUG_ON(account_find(s, SPAN_LIT("acct"), &it) != ERR_OK);
	*ret_account = it.id;
	item_fini(&it);
	BUG_ON(table_create(s, ORIGIN_COMMAND, *ret_account, SPAN_LIT("Tab"), &it, NULL) != ERR_OK);
	*ret_table = it.id;
	item_fini(&it);
}

/* Makes the partition "p" of the table.  *ret: free it with item_fini(). */
static inline void service_partition(struct service *s, uint64_t table, struct item *ret)
{
	struct item it = { 0 };
	const struct attrs attrs = ATTRS_UNSET;
	const struct dentry at = { .dir = &it, .class = CLASS_KEYED, .key = SPAN_LIT("p") };
	BUG_ON(store_get(service_store(s), NULL, table, WANT_ATTRS, &it) != ERR_OK);
	BUG_ON(tree_mkdir(s, &at, &attrs, ret, NULL) != ERR_OK);
	item_fini(&it);
}

/* Returns the document of the row, or "none".  The next call overwrites it. */
static inline const char *service_row_text(
	struct service *s, uint64_t table, const char *pk, const char *rk)
{
	static char text[4096];
	struct item it = { 0 };
	enum err e = entity_row(s, NULL, table, span_of(pk), span_of(rk), &it);
	(void)snprintf(text, sizeof(text), "%.*s", e == ERR_OK ? (int)it.body.n : 4,
		e == ERR_OK ? it.body.p : "none");
	item_fini(&it);
	return text;
}

/* Puts a row as a file was written. */
static inline void service_put_document(
	struct service *s, uint64_t table, const char *pk, const char *rk, const char *json)
{
	struct entity_op op = { .kind = ENTITY_UPSERT,
		.pk = span_of(pk),
		.rk = span_of(rk),
		.document = span_of(json),
		.attrs = ATTRS_UNSET };
	struct item it = { 0 };
	BUG_ON(entity_commit_document(s, ORIGIN_MOUNT, table, &op, false, &it, NULL, NULL) !=
		ERR_OK);
	item_fini(&it);
}

#endif
