/* SPDX-License-Identifier: MIT
 * Operations of a change set or an import as requests to an account elsewhere. */
#include "cloud/change.h"
#include "daemon/rows/row_ops.h"
#include "model/limits.h"

#include <string.h>

static enum cloud_change_kind kind_of(enum entity_op_kind kind)
{
	static const enum cloud_change_kind kinds[] = {
		[ENTITY_INSERT] = CLOUD_INSERT,
		[ENTITY_UPSERT] = CLOUD_UPSERT,
		[ENTITY_UPSERT_MERGE] = CLOUD_UPSERT_MERGE,
		[ENTITY_REPLACE] = CLOUD_REPLACE,
		[ENTITY_MERGE] = CLOUD_MERGE,
		[ENTITY_DELETE] = CLOUD_DELETE,
	};
	return kinds[kind];
}

enum err cloud_apply(struct client *c, struct span table, const struct entity_op *ops, size_t n,
	char (*etags)[CLOUD_ETAG_MAX], struct err_detail *why)
{
	struct cloud_change changes[LIMIT_BATCH_OPS];
	for (size_t i = 0; i < n; i++)
		changes[i] = (struct cloud_change){ .kind = kind_of(ops[i].kind),
			.pk = ops[i].pk,
			.rk = ops[i].rk,
			.entity = ops[i].entity,
			.if_match = ops[i].if_match ? ops[i].if_match_text : (struct span){ 0 } };
	return n == 1 ? cloud_change(c, table, changes, etags != NULL ? etags[0] : NULL, why)
		      : cloud_change_group(c, table, changes, n, etags, why);
}

/* The service names the operation only in these answers. */
static bool is_of_operation(enum err e)
{
	int status = err_http(e);
	return e != ERR_TABLE_NOT_FOUND &&
		(status == 400 || status == 404 || status == 409 || status == 412);
}

/* Without memory an ETag is not known. */
static void keep_etags(struct change_set *set, char (*etags)[CLOUD_ETAG_MAX])
{
	for (size_t i = 0; i < set->n; i++) {
		set->ops[i].etag = arena_copy(&set->arena, span_of(etags[i]));
		if (set->ops[i].etag.p == NULL)
			set->ops[i].etag = SPAN_LIT("");
	}
}

static enum err refuse_messages(struct change_set *set, struct err_detail *why)
{
	for (size_t i = 0; i < set->n; i++) {
		if (set->ops[i].message == NULL)
			continue;
		why->op = i;
		(void)err_set(why, ERR_NOT_SUPPORTED,
			"The Table service puts no messages; put_message needs a store.");
		return change_set_blame(set, ERR_NOT_SUPPORTED, why);
	}
	return ERR_OK;
}

enum err cloud_set_apply(struct cmd_env *env, const struct rows_at *at, struct change_set *set,
	bool checked, struct err_detail *why)
{
	char etags[LIMIT_BATCH_OPS][CLOUD_ETAG_MAX];
	if (checked)
		return err_set(why, ERR_NOT_SUPPORTED,
			"The service can only commit a change set, not check it.");
	enum err e = refuse_messages(set, why);
	if (e != ERR_OK)
		return e;
	*why = (struct err_detail){ 0 };
	e = cloud_apply(env->client, at->table, set->ops, set->n, etags, why);
	if (e == ERR_OK)
		keep_etags(set, etags);
	return is_of_operation(e) ? change_set_blame(set, e, why) : e;
}
