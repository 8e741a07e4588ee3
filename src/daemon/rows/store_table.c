/* SPDX-License-Identifier: MIT
 * Tables of the open store. */
#include "daemon/rows/row_ops.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"

enum err store_table_find(struct cmd_env *env, const struct rows_at *at, uint64_t *ret_id)
{
	struct item table = { 0 };
	enum err e = table_find(env->service, at->account, at->table, &table);
	*ret_id = table.id;
	item_fini(&table);
	return e;
}

enum err store_table_make(
	struct cmd_env *env, const struct rows_at *at, uint64_t *ret_id, struct err_detail *why)
{
	enum err e = store_table_find(env, at, ret_id);
	if (e != ERR_TABLE_NOT_FOUND)
		return e;
	struct item account = { 0 }, table = { 0 };
	e = account_find(env->service, at->account, &account);
	if (e == ERR_OK)
		e = table_create(env->service, ORIGIN_COMMAND, account.id, at->table, &table, why);
	*ret_id = table.id;
	item_fini(&account);
	item_fini(&table);
	/* Another process was faster. */
	return e == ERR_TABLE_EXISTS ? store_table_find(env, at, ret_id) : e;
}
