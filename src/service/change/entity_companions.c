/* SPDX-License-Identifier: MIT */
#include "service/change/entity_companions.h"

#include "model/filename.h"
#include "model/key.h"

static bool makes_row(const struct entity_op *op)
{
	return op->kind == ENTITY_INSERT || op->kind == ENTITY_UPSERT ||
		op->kind == ENTITY_UPSERT_MERGE;
}

static bool makes_long_partition(const struct entity_op *op)
{
	/* One byte of a key needs at most three bytes in a name. */
	return op->pk.n > LIMIT_NAME_BYTES / 3 && makes_row(op) &&
		filename_is_long(op->pk, FILENAME_PARTITION);
}

size_t companions_max(const struct entity_op *op)
{
	if (op->kind == ENTITY_DELETE)
		return 1;
	return makes_long_partition(op) ? 2 : 0;
}

static bool looked_before(const struct entity_set *set, size_t i)
{
	for (size_t k = i; k-- > 0;)
		if (set->works[k].long_pk && span_eq(set->ops[k].pk, set->ops[i].pk))
			return true;
	return false;
}

static void add_adoption(struct entity_set *set, const struct entity_work *w, size_t pk_len,
	const struct item *folder)
{
	struct change *c = &set->changes[set->before++];
	*c = (struct change){ .op = CHANGE_MOVE, .at = { .id = folder->id }, .attrs = ATTRS_UNSET };
	c->to = (struct item_ref){ .parent = folder->parent, .class = CLASS_KEYED };
	c->to.key = span_make(w->pk, pk_len);
	c->to_kind = ITEM_PARTITION;
	c->flags = CHANGE_NO_REPLACE;
	/* Without a condition, a folder that was renamed meanwhile would be moved from there. */
	c->cond = COND_VERSION;
	c->cond_version = folder->version;
}

/* For an operation that makes a partition: the folder under its digest name becomes the partition.
 * Without one, none may be created meanwhile. */
static enum err plan_folder(struct service *s, uint64_t table_id, struct entity_set *set, size_t i)
{
	const struct entity_op *op = &set->ops[i];
	struct entity_work *w = &set->works[i];
	struct item it = { 0 };
	if (key_check(op->pk, "PartitionKey", NULL) != ERR_OK)
		return ERR_OK; /* reported when the change is built */
	key_to_order(op->pk.p, op->pk.n, w->pk);
	enum err e = store_child(service_store(s), NULL, table_id, CLASS_KEYED,
		span_make(w->pk, op->pk.n), WANT_ATTRS, &it);
	item_fini(&it);
	if (e != ERR_NOT_FOUND)
		return e;
	w->name_len = filename_encode(op->pk, FILENAME_PARTITION, w->name);
	e = store_child(service_store(s), NULL, table_id, CLASS_NAMED,
		span_make(w->name, w->name_len), WANT_ATTRS, &it);
	if (e == ERR_OK && it.kind == ITEM_FOLDER)
		add_adoption(set, w, op->pk.n, &it);
	w->no_folder = e == ERR_NOT_FOUND;
	item_fini(&it);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

enum err companions_before(struct service *s, uint64_t table_id, struct entity_set *set)
{
	enum err e = ERR_OK;
	set->before = 0;
	for (size_t i = 0; e == ERR_OK && i < set->n; i++) {
		set->works[i].no_folder = false;
		set->works[i].long_pk = makes_long_partition(&set->ops[i]);
		if (set->works[i].long_pk && !looked_before(set, i))
			e = plan_folder(s, table_id, set, i);
	}
	return e;
}

struct change *entity_set_behind(struct entity_set *set)
{
	return &set->changes[set->before + set->n + set->behind++];
}

/* The store can check that a name is free only by creating something there. */
static void add_no_folder(struct entity_set *set, uint64_t table_id, const struct entity_work *w)
{
	struct item_ref at = { .parent = table_id, .class = CLASS_NAMED };
	at.key = span_make(w->name, w->name_len);
	*entity_set_behind(set) = (struct change){ .op = CHANGE_PUT,
		.at = at,
		.cond = COND_ABSENT,
		.kind = ITEM_FOLDER,
		.attrs = ATTRS_UNSET };
	*entity_set_behind(set) =
		(struct change){ .op = CHANGE_DELETE, .at = at, .attrs = ATTRS_UNSET };
}

static enum err find_draft_dir(struct service *s, uint64_t table_id, struct entity_set *set,
	const struct entity_op *op, const struct entity_work *w)
{
	struct item it = { 0 };
	if (set->draft_pk.p != NULL && span_eq(set->draft_pk, op->pk))
		return ERR_OK;
	enum err e = store_child(service_store(s), NULL, table_id, CLASS_KEYED,
		span_make(w->pk, op->pk.n), WANT_ATTRS, &it);
	set->draft_pk = op->pk;
	set->draft_dir = e == ERR_OK ? it.id : 0;
	item_fini(&it);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* Removes the empty file under the name of a removed row, which would become visible. */
static enum err add_draft_removal(
	struct service *s, uint64_t table_id, struct entity_set *set, size_t i)
{
	const struct entity_op *op = &set->ops[i];
	struct entity_work *w = &set->works[i];
	struct item file = { 0 };
	enum err e = find_draft_dir(s, table_id, set, op, w);
	if (e != ERR_OK || set->draft_dir == 0)
		return e;
	w->name_len = filename_encode(op->rk, FILENAME_ROW, w->name);
	e = store_child(service_store(s), NULL, set->draft_dir, CLASS_NAMED,
		span_make(w->name, w->name_len), WANT_ATTRS, &file);
	if (e == ERR_OK && file.kind == ITEM_FILE && file.size == 0)
		*entity_set_behind(set) = (struct change){ .op = CHANGE_DELETE,
			.at = { .id = file.id },
			.cond = COND_VERSION,
			.cond_version = file.version,
			.attrs = ATTRS_UNSET };
	item_fini(&file);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

enum err companions_behind(struct service *s, uint64_t table_id, struct entity_set *set)
{
	enum err e = ERR_OK;
	set->behind = 0;
	set->draft_pk = (struct span){ 0 };
	for (size_t i = 0; e == ERR_OK && i < set->n; i++) {
		if (set->works[i].no_folder)
			add_no_folder(set, table_id, &set->works[i]);
		else if (set->ops[i].kind == ENTITY_DELETE)
			e = add_draft_removal(s, table_id, set, i);
	}
	return e;
}
