/* SPDX-License-Identifier: MIT */
#include "service/change/entity_companions.h"

#include "model/filename.h"
#include "model/key.h"
#include "service/change/adoption.h"

static bool makes_row(const struct entity_op *op)
{
	return op->kind == ENTITY_INSERT || op->kind == ENTITY_UPSERT ||
		op->kind == ENTITY_UPSERT_MERGE;
}

/* One byte of a key needs at most three bytes in a name. */
static bool makes_long(const struct entity_op *op, struct span key, enum filename_kind kind)
{
	return key.n > LIMIT_NAME_BYTES / 3 && makes_row(op) && filename_is_long(key, kind);
}

size_t companions_max(const struct entity_op *op)
{
	return makes_long(op, op->pk, FILENAME_PARTITION) ? 2 : 0;
}

static bool looked_before(const struct entity_set *set, size_t i)
{
	for (size_t k = i; k-- > 0;)
		if (set->works[k].long_pk && span_eq(set->ops[k].pk, set->ops[i].pk))
			return true;
	return false;
}

static enum err child(struct service *s, uint64_t dir, enum item_class class, const char *key,
	size_t n, struct item *ret)
{
	return store_child(service_store(s), NULL, dir, class, span_make(key, n), WANT_ATTRS, ret);
}

/* For an operation that makes a partition: the folder under its digest name becomes the partition.
 * Without one, none may be created meanwhile. */
static enum err plan_folder(struct service *s, enum origin origin, uint64_t table_id,
	const struct entity_op *op, struct entity_work *w, bool adopt, bool *ret_waits)
{
	struct item it = { 0 };
	enum err e = child(s, table_id, CLASS_KEYED, w->pk, op->pk.n, &it);
	item_fini(&it);
	if (e != ERR_NOT_FOUND)
		return e;
	w->name_len = filename_encode(op->pk, FILENAME_PARTITION, w->name);
	e = child(s, table_id, CLASS_NAMED, w->name, w->name_len, &it);
	w->no_folder = e == ERR_NOT_FOUND;
	bool waits = e == ERR_OK && it.kind == ITEM_FOLDER;
	*ret_waits |= waits;
	if (waits && adopt)
		e = adopt_folder(s, origin, &it, span_make(w->pk, op->pk.n), NULL, NULL);
	item_fini(&it);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* For an operation that makes a row: the empty file under its digest name becomes the row. */
static enum err plan_file(struct service *s, enum origin origin, uint64_t table_id,
	const struct entity_op *op, struct entity_work *w, bool adopt, bool *ret_waits)
{
	struct item dir = { 0 }, it = { 0 };
	char name[LIMIT_NAME_BYTES + 1];
	enum err e = child(s, table_id, CLASS_KEYED, w->pk, op->pk.n, &dir);
	size_t n = filename_encode(op->rk, FILENAME_ROW, name);
	if (e == ERR_OK)
		e = child(s, dir.id, CLASS_NAMED, name, n, &it);
	bool waits = e == ERR_OK && it.kind == ITEM_FILE && it.size == 0;
	*ret_waits |= waits;
	if (waits && adopt) {
		key_to_order(op->rk.p, op->rk.n, w->rk);
		e = adopt_file(s, origin, &it, dir.id, span_make(w->rk, op->rk.n), NULL);
	}
	item_fini(&dir);
	item_fini(&it);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err look(struct service *s, enum origin origin, uint64_t table_id,
	struct entity_set *set, bool adopt)
{
	enum err e = ERR_OK;
	set->waits = false;
	for (size_t i = 0; e == ERR_OK && i < set->n; i++) {
		const struct entity_op *op = &set->ops[i];
		struct entity_work *w = &set->works[i];
		bool long_rk = makes_long(op, op->rk, FILENAME_ROW);
		w->no_folder = false;
		w->long_pk = makes_long(op, op->pk, FILENAME_PARTITION);
		if ((!w->long_pk && !long_rk) ||
			key_check(op->pk, "PartitionKey", NULL) != ERR_OK ||
			key_check(op->rk, "RowKey", NULL) != ERR_OK)
			continue; /* reported when the change is built */
		key_to_order(op->pk.p, op->pk.n, w->pk);
		if (w->long_pk && !looked_before(set, i))
			e = plan_folder(s, origin, table_id, op, w, adopt, &set->waits);
		if (e == ERR_OK && long_rk)
			e = plan_file(s, origin, table_id, op, w, adopt, &set->waits);
	}
	return e;
}

enum err companions_look(struct service *s, uint64_t table_id, struct entity_set *set)
{
	return look(s, ORIGIN_COMMAND, table_id, set, false);
}

enum err companions_adopt(
	struct service *s, enum origin origin, uint64_t table_id, struct entity_set *set)
{
	enum err e = look(s, origin, table_id, set, true);
	return e == ERR_OK ? ERR_GONE : e;
}

struct change *entity_set_behind(struct entity_set *set)
{
	return &set->changes[set->n + set->behind++];
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

void companions_behind(uint64_t table_id, struct entity_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (set->works[i].no_folder)
			add_no_folder(set, table_id, &set->works[i]);
}
