/* SPDX-License-Identifier: MIT
 * The functions of struct rows (rows.h) that work on paths of rows; rows.c gathers them.  Private to
 * daemon/rows. */
#ifndef DAEMON_ROWS_ROW_OPS_H
#define DAEMON_ROWS_ROW_OPS_H

#include "daemon/rows/rows.h"

/* An unmet condition has one error, whatever the row is. */
enum err row_condition_error(const struct row_condition *c, enum err e);

/* ERR_ACCOUNT_NOT_FOUND, ERR_TABLE_NOT_FOUND. */
enum err store_table_find(struct cmd_env *env, const struct rows_at *at, uint64_t *ret_id);
enum err store_table_make(
	struct cmd_env *env, const struct rows_at *at, uint64_t *ret_id, struct err_detail *why);

enum err store_path_list(
	struct cmd_env *env, const char *path, struct rows_listing *l, struct err_detail *why);
enum err cloud_list(
	struct cmd_env *env, const char *path, struct rows_listing *l, struct err_detail *why);

enum err store_row_get(struct cmd_env *env, const char *path, bool keys, struct err_detail *why);
enum err store_row_write(struct cmd_env *env, const char *path, struct span text, bool merge,
	const struct row_condition *c, char etag[CLOUD_ETAG_MAX], struct err_detail *why);
enum err store_row_remove(struct cmd_env *env, const char *path, bool recursive,
	const struct row_condition *c, struct err_detail *why);
enum err store_row_move(struct cmd_env *env, const char *path, const char *new_path,
	char **ret_blamed, struct err_detail *why);

enum err cloud_row_get(struct cmd_env *env, const char *path, bool keys, struct err_detail *why);
enum err cloud_row_write(struct cmd_env *env, const char *path, struct span text, bool merge,
	const struct row_condition *c, char etag[CLOUD_ETAG_MAX], struct err_detail *why);
enum err cloud_row_remove(struct cmd_env *env, const char *path, bool recursive,
	const struct row_condition *c, struct err_detail *why);
enum err cloud_row_move(struct cmd_env *env, const char *path, const char *new_path,
	char **ret_blamed, struct err_detail *why);

/* Sends 1 to LIMIT_BATCH_OPS operations of one partition, none of them a message, all or none.  etags as
 * of cloud_change_group(). */
enum err cloud_apply(struct client *c, struct span table, const struct entity_op *ops, size_t n,
	char (*etags)[CLOUD_ETAG_MAX], struct err_detail *why);
enum err cloud_set_apply(struct cmd_env *env, const struct rows_at *at, struct change_set *set,
	bool checked, struct err_detail *why);

#endif
