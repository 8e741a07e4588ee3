/* SPDX-License-Identifier: MIT
 * A table to begin with, and rows in it as a mount writes them. */
#ifndef TESTS_SERVICE_TABLE_H
#define TESTS_SERVICE_TABLE_H

#include "base/compiler.h"
#include "service/change/entities.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"

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
