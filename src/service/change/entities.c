/* SPDX-License-Identifier: MIT */
#include "service/change/entities.h"

#include "model/filename.h"
#include "model/key.h"
#include "model/limits.h"
#include "service/change/entity_companions.h"
#include "service/core/admission.h"
#include "service/core/lookup_cache.h"
#include "service/queue/queues.h"

#include <stdlib.h>

/* How often a change without a precondition is repeated after a lost race. */
#define RETRIES 64

#define IMPOSSIBLE (-1) /* no row has this version */

static enum err order_key(
	struct span key, const char *what, char out[LIMIT_KEY_BYTES], struct err_detail *detail)
{
	enum err e = key_check(key, what, detail);
	if (e == ERR_OK)
		key_to_order(key.p, key.n, out);
	return e;
}

static enum err find_partition(struct service *s, struct store_view *v, uint64_t table_id,
	struct span key, uint64_t moment, uint64_t *ret)
{
	struct item it = { 0 };
	enum err e = store_child(service_store(s), v, table_id, CLASS_KEYED, key, WANT_ATTRS, &it);
	if (e != ERR_OK)
		return e;
	*ret = it.id;
	item_fini(&it);
	if (v == NULL)
		lookup_cache_child_is(service_lookup_cache(s), table_id, key, *ret, moment);
	return ERR_OK;
}

enum err entity_row(struct service *s, struct store_view *v, uint64_t table_id, struct span pk,
	struct span rk, struct item *ret)
{
	char pk_order[LIMIT_KEY_BYTES], rk_order[LIMIT_KEY_BYTES];
	enum err e = order_key(pk, "PartitionKey", pk_order, NULL);
	if (e == ERR_OK)
		e = order_key(rk, "RowKey", rk_order, NULL);
	if (e != ERR_OK)
		return e;

	struct span in = span_make(pk_order, pk.n), key = span_make(rk_order, rk.n);
	uint64_t id, moment = 0;
	e = ERR_NOT_FOUND;
	if (v == NULL && lookup_cache_child(service_lookup_cache(s), table_id, in, &id, &moment))
		e = store_child(service_store(s), NULL, id, CLASS_KEYED, key, WANT_BODY, ret);
	if (e == ERR_NOT_FOUND) {
		e = find_partition(s, v, table_id, in, moment, &id);
		if (e == ERR_OK)
			e = store_child(service_store(s), v, id, CLASS_KEYED, key, WANT_BODY, ret);
	}
	if (e == ERR_OK && item_is_empty_row(ret)) {
		item_fini(ret);
		return ERR_NOT_FOUND;
	}
	return e;
}

enum err entity_of_item(const struct item *it, struct span pk, struct entity *ret)
{
	enum err e = entity_json_decode(it->body, ENTITY_JSON_FILE, ret, NULL, NULL);
	if (e != ERR_OK)
		return e == ERR_NO_MEMORY ? e : ERR_CORRUPT;
	char rk[LIMIT_KEY_BYTES];
	key_from_order(it->key.p, it->key.n, rk);
	ret->pk = arena_copy(&ret->arena, pk);
	ret->rk = arena_copy(&ret->arena, span_make(rk, it->key.n));
	if (ret->pk.p == NULL || ret->rk.p == NULL)
		return ERR_NO_MEMORY;
	ret->has_pk = ret->has_rk = true;
	ret->timestamp = it->version;
	return ERR_OK;
}

/* A row whose keys do not fit into file names has them in its document. */
static unsigned keys_flags(struct span pk, struct span rk)
{
	bool inside =
		filename_is_long(pk, FILENAME_PARTITION) || filename_is_long(rk, FILENAME_ROW);
	return inside ? (unsigned)(ENTITY_JSON_PK | ENTITY_JSON_RK) : 0;
}

static enum err render(const struct entity_op *op, const struct entity *entity,
	struct entity_work *w, struct change *c)
{
	struct entity keyed = *entity;
	keyed.pk = op->pk;
	keyed.rk = op->rk;
	keyed.has_pk = keyed.has_rk = true;
	unsigned flags = keys_flags(op->pk, op->rk);
	buf_clear(&w->body);
	entity_json_encode(&keyed, flags | ENTITY_JSON_NEWLINE, &w->body);
	if (!buf_ok(&w->body))
		return buf_full(&w->body);
	c->body = buf_span(&w->body);
	c->item_flags = flags != 0 ? ITEM_KEYS_INSIDE : ITEM_CANONICAL;
	return ERR_OK;
}

/* Merges the entity into the existing row, and makes the change conditional on that row's
 * version. */
static enum err merge_body(struct service *s, uint64_t table_id, const struct entity_op *op,
	struct entity_work *w, struct change *c, struct err_detail *detail)
{
	struct item row = { 0 };
	enum err e = entity_row(s, NULL, table_id, op->pk, op->rk, &row);
	if (e == ERR_NOT_FOUND && op->kind == ENTITY_UPSERT_MERGE) {
		c->cond = COND_ABSENT;
		w->guarded = true;
		return render(op, op->entity, w, c);
	}
	if (e != ERR_OK)
		return e;

	struct entity merged = { 0 };
	if (op->if_match && op->if_match_version != row.version)
		e = ERR_CONDITION_NOT_MET;
	if (e == ERR_OK)
		e = entity_of_item(&row, op->pk, &merged);
	if (e == ERR_OK)
		e = entity_merge(&merged, op->entity);
	if (e == ERR_OK)
		e = entity_check(&merged, detail);
	if (e == ERR_OK)
		e = render(op, &merged, w, c);
	c->cond = COND_VERSION;
	c->cond_version = row.version;
	w->guarded = !op->if_match;
	entity_fini(&merged);
	item_fini(&row);
	return e;
}

static void set_condition(const struct entity_op *op, struct change *c)
{
	if (op->if_match) {
		c->cond = COND_VERSION;
		c->cond_version = op->if_match_version;
	} else if (op->if_id != 0) {
		c->cond = COND_ID;
		c->cond_version = (int64_t)op->if_id;
	} else if (op->kind == ENTITY_INSERT) {
		c->cond = COND_ABSENT;
	} else if (op->kind == ENTITY_REPLACE || op->kind == ENTITY_DELETE) {
		c->cond = COND_PRESENT;
	}
}

static bool is_merge(const struct entity_op *op)
{
	return op->kind == ENTITY_MERGE || op->kind == ENTITY_UPSERT_MERGE;
}

static enum err prepare(struct service *s, uint64_t table_id, struct entity_op *op,
	struct entity_work *w, struct change *c, struct err_detail *detail)
{
	*c = (struct change){ .attrs = op->attrs, .kind = ITEM_ROW };
	w->guarded = false;
	enum err e = order_key(op->pk, "PartitionKey", w->pk, detail);
	if (e == ERR_OK)
		e = order_key(op->rk, "RowKey", w->rk, detail);
	if (e != ERR_OK)
		return e;
	c->at = (struct item_ref){ .parent = table_id, .has_pk = true, .class = CLASS_KEYED };
	c->at.pk = span_make(w->pk, op->pk.n);
	c->at.key = span_make(w->rk, op->rk.n);
	set_condition(op, c);

	if (op->kind == ENTITY_DELETE) {
		c->op = CHANGE_DELETE;
		return ERR_OK;
	}
	c->op = CHANGE_PUT;
	if (is_merge(op))
		return merge_body(s, table_id, op, w, c, detail);
	if (op->document.p != NULL) {
		c->body = op->document;
		c->item_flags = op->document_flags;
		return ERR_OK;
	}
	return render(op, op->entity, w, c);
}

static enum err prepare_message(struct service *s, uint64_t table_id, const struct entity_op *op,
	struct entity_work *w, struct change *c, struct err_detail *detail)
{
	const struct entity_message *m = op->message;
	struct item table = { 0 };
	uint64_t queue;
	enum err e = store_get(service_store(s), NULL, table_id, WANT_ATTRS, &table);
	if (e == ERR_OK)
		e = queue_id(s, table.parent, m->queue, &queue);
	if (e == ERR_OK)
		e = message_prepare(
			s, queue, m->text, m->visibility_s, m->ttl_s, &w->message, detail);
	if (e == ERR_OK)
		*c = w->message.change;
	item_fini(&table);
	return e;
}

/* Checks the rules of a change set (protocol section 7): one partition, each row once.  Messages only
 * count. */
static enum err check_set(const struct entity_op *ops, size_t n, struct err_detail *reterr)
{
	if (n == 0 || n > LIMIT_BATCH_OPS) {
		reterr->op = n == 0 ? 0 : LIMIT_BATCH_OPS - 1;
		return ERR_BATCH_TOO_LARGE;
	}
	for (size_t i = 1; i < n; i++) {
		reterr->op = i;
		for (size_t k = 0; ops[i].message == NULL && k < i; k++) {
			if (ops[k].message != NULL)
				continue;
			if (!span_eq(ops[i].pk, ops[k].pk))
				return ERR_BATCH_PARTITIONS;
			if (span_eq(ops[i].rk, ops[k].rk))
				return ERR_BATCH_DUPLICATE;
		}
	}
	return ERR_OK;
}

static void postpone(
	struct entity_work *w, struct change *c, enum err e, const struct err_detail *detail)
{
	w->pending = e;
	w->why = *detail;
	w->guarded = false;
	c->cond = COND_VERSION;
	c->cond_version = IMPOSSIBLE;
	c->body = SPAN_LIT("{}");
}

/* The store had to refuse this change; its real error is known.  But if the row was missing and now
 * exists, the merge must be repeated. */
static enum err postponed(struct entity_work *w, enum err e, struct err_detail *detail)
{
	if (w->pending == ERR_OK || (e != ERR_CONDITION_NOT_MET && e != ERR_NOT_FOUND))
		return e;
	w->guarded = w->pending == ERR_NOT_FOUND && e == ERR_CONDITION_NOT_MET;
	if (!w->guarded)
		*detail = w->why;
	return w->guarded ? e : w->pending;
}

/* ---- applying ---- */

static bool lost_race(enum err e)
{
	return e == ERR_CONDITION_NOT_MET || e == ERR_ENTITY_EXISTS || e == ERR_NOT_FOUND;
}

static enum err prepare_all(
	struct service *s, uint64_t table_id, struct entity_set *set, struct err_detail *reterr)
{
	struct change *changes = set->changes;
	for (size_t i = 0; i < set->n; i++) {
		struct entity_work *w = &set->works[i];
		reterr->op = i;
		w->pending = ERR_OK;
		enum err e = set->ops[i].message != NULL
			? prepare_message(s, table_id, &set->ops[i], w, &changes[i], reterr)
			: prepare(s, table_id, &set->ops[i], w, &changes[i], reterr);
		if (e != ERR_OK && i > 0 && is_merge(&set->ops[i]) && err_http(e) < 500)
			postpone(w, &changes[i], e, reterr);
		else if (e != ERR_OK)
			return e;
	}
	return ERR_OK;
}

/* Converts reterr->op from the index of a change to that of an operation.  *ret_again: another
 * thread changed what was read before, which is no operation's fault. */
static enum err blame(
	struct entity_set *set, enum err e, struct err_detail *reterr, bool *ret_again)
{
	if (reterr->op >= set->n) {
		reterr->op = 0;
		*ret_again = lost_race(e) || e == ERR_GONE || e == ERR_NAME_EXISTS;
		return e;
	}
	struct entity_work *w = &set->works[reterr->op];
	if (e == ERR_CROSS_DEVICE)
		return err_set(reterr, e,
			"The store's engine cannot change rows and queues in one commit.");
	if (set->ops[reterr->op].message != NULL) {
		*ret_again = e == ERR_NAME_EXISTS; /* another process puts at the same moment */
		return e == ERR_NOT_FOUND || e == ERR_NOT_PERMITTED ? ERR_QUEUE_NOT_FOUND : e;
	}
	e = postponed(w, e, reterr);
	*ret_again = lost_race(e) && w->guarded;
	return e;
}

/* Adds an impossible change at the end.  Errors of the changes before it are reported first, and
 * nothing is committed. */
static enum err apply_to_check(
	struct service *s, enum origin origin, struct entity_set *set, struct err_detail *reterr)
{
	*entity_set_behind(set) = (struct change){ .op = CHANGE_DELETE,
		.at = { .parent = STORE_ROOT, .class = CLASS_KEYED, .key = SPAN_LIT("!") },
		.attrs = ATTRS_UNSET };
	size_t n = set->n + set->behind;
	enum err e = service_apply(s, origin, set->changes, n, false, reterr);
	return e == ERR_NOT_FOUND && reterr->op == n - 1 ? ERR_OK : e;
}

static enum err apply_set(struct service *s, enum origin origin, struct entity_set *set, size_t n,
	unsigned flags, struct err_detail *reterr)
{
	bool several = (flags & ENTITIES_SET) != 0 && set->n > 1;
	uint64_t token = several ? service_set_begins(s, set->changes, set->n) : 0;
	enum err e =
		service_apply(s, origin, set->changes, n, (flags & ENTITIES_DURABLE) != 0, reterr);
	service_set_ended(s, token);
	return e;
}

static enum err try_apply(struct service *s, enum origin origin, uint64_t table_id,
	struct entity_set *set, unsigned flags, struct err_detail *reterr, bool *ret_again)
{
	*ret_again = false;
	reterr->op = 0;
	set->behind = 0;
	enum err e = companions_look(s, table_id, set);
	if (e == ERR_OK)
		e = prepare_all(s, table_id, set, reterr);
	if (e != ERR_OK)
		return e;
	reterr->op = 0;
	companions_behind(table_id, set);
	size_t n = set->n + set->behind;
	bool check = (flags & ENTITIES_CHECK) != 0;
	if (check || set->waits)
		e = apply_to_check(s, origin, set, reterr);
	else
		e = apply_set(s, origin, set, n, flags, reterr);
	if (e == ERR_OK && check)
		return ERR_OK;
	if (e == ERR_OK && set->waits) {
		e = companions_adopt(s, origin, table_id, set);
		*ret_again = e == ERR_GONE;
		return e;
	}
	if (e != ERR_OK)
		return blame(set, e, reterr, ret_again);
	for (size_t i = 0; i < set->n; i++) {
		set->ops[i].version = set->ops[i].message != NULL
			? set->works[i].message.key.inserted
			: set->changes[i].now.version;
		set->ops[i].id = set->changes[i].now.id;
	}
	return ERR_OK;
}

/* Change sets can be refused.  Bulk loads are only counted.  Messages burden no partition. */
static enum err admit(struct service *s, uint64_t table_id, const struct entity_op *ops, size_t n,
	unsigned flags, struct err_detail *detail)
{
	if ((flags & ENTITIES_CHECK) != 0)
		return ERR_OK;
	size_t rows = 0;
	for (size_t i = 0; i < n; i++)
		rows += ops[i].message == NULL;
	for (size_t i = 0, same = 0; i < n; i += same) {
		struct span pk = ops[i].pk;
		for (same = 1; i + same < n && span_eq(ops[i + same].pk, pk);)
			same++;
		if (ops[i].message != NULL || key_check(pk, "PartitionKey", NULL) != ERR_OK)
			continue; /* prepare() reports the error */
		if ((flags & ENTITIES_SET) != 0)
			return admission_entities(s, table_id, pk, HEAT_CHANGED, rows, detail);
		admission_count(s, table_id, pk, HEAT_CHANGED, same);
	}
	return ERR_OK;
}

enum err entities_apply(struct service *s, enum origin origin, uint64_t table_id,
	struct entity_op *ops, size_t n, unsigned flags, struct err_detail *reterr)
{
	struct err_detail scratch = { 0 };
	if (reterr == NULL)
		reterr = &scratch;
	enum err e = (flags & ENTITIES_SET) != 0 ? check_set(ops, n, reterr) : ERR_OK;
	if (e == ERR_OK)
		e = admit(s, table_id, ops, n, flags, reterr);
	if (e != ERR_OK || n == 0)
		return e;
	size_t room = n + 1; /* for apply_to_check() */
	for (size_t i = 0; i < n; i++)
		room += companions_max(&ops[i]);
	struct entity_set set = { .ops = ops, .n = n };
	set.works = calloc(n, sizeof(*set.works));
	set.changes = calloc(room, sizeof(*set.changes));
	e = ERR_NO_MEMORY;
	if (set.works != NULL && set.changes != NULL) {
		bool again = true;
		for (size_t i = 0; i < n; i++)
			set.works[i].body = BUF_INIT(LIMIT_DOCUMENT_BYTES);
		for (int tries = 0; again && tries < RETRIES; tries++) {
			e = try_apply(s, origin, table_id, &set, flags, reterr, &again);
			changes_fini(set.changes, room);
		}
		for (size_t i = 0; i < n; i++)
			buf_fini(&set.works[i].body);
	}
	free(set.changes);
	free(set.works);
	return e;
}

static bool key_agrees(bool has, struct span in_document, struct span in_path)
{
	return !has || span_eq(in_document, in_path);
}

static enum err check_keys(
	const struct entity *e, struct span pk, struct span rk, struct err_detail *detail)
{
	if (!key_agrees(e->has_pk, e->pk, pk))
		return err_set(detail, ERR_KEY_MISMATCH,
			"PartitionKey in the document is not the PartitionKey of the path");
	if (!key_agrees(e->has_rk, e->rk, rk))
		return err_set(detail, ERR_KEY_MISMATCH,
			"RowKey in the document is not the RowKey of the path");
	if (!e->has_pk && filename_is_long(pk, FILENAME_PARTITION))
		return err_set(detail, ERR_KEY_MISSING,
			"the directory's name is a digest: the document must hold PartitionKey");
	if (!e->has_rk && filename_is_long(rk, FILENAME_ROW))
		return err_set(detail, ERR_KEY_MISSING,
			"the file's name is a digest: the document must hold RowKey");
	return ERR_OK;
}

/* Most documents of other forms have spaces where this one has none, or lack its line end. */
static bool is_canonical(const struct entity *e, struct span text)
{
	if (text.n < sizeof("{}\n") - 1 || memcmp(text.p + text.n - 2, "}\n", 2) != 0 ||
		(text.p[1] != '"' && text.p[1] != '}'))
		return false;
	struct buf again = BUF_INIT(text.n);
	entity_json_encode(e, ENTITY_JSON_NEWLINE, &again);
	bool same = buf_ok(&again) && span_eq(buf_span(&again), text);
	buf_fini(&again);
	return same;
}

enum err document_check(struct span text, struct span pk, struct span rk, struct entity *ret_entity,
	unsigned *ret_flags, struct err_detail *detail)
{
	struct entity own = { 0 };
	struct entity *e = ret_entity != NULL ? ret_entity : &own;
	struct entity_json_facts facts;
	enum err result = entity_json_decode(text, ENTITY_JSON_FILE, e, &facts, detail);
	if (result == ERR_OK)
		result = check_keys(e, pk, rk, detail);
	if (result == ERR_OK) {
		struct entity keyed = *e;
		keyed.pk = pk;
		keyed.rk = rk;
		keyed.has_pk = keyed.has_rk = true;
		if (entity_size(&keyed) > LIMIT_ENTITY_BYTES)
			result = ERR_ENTITY_TOO_LARGE;
	}
	if (result == ERR_OK && ret_flags != NULL && facts.has_keys)
		*ret_flags = ITEM_KEYS_INSIDE;
	else if (result == ERR_OK && ret_flags != NULL)
		*ret_flags = is_canonical(e, text) ? ITEM_CANONICAL : 0;
	entity_fini(&own);
	return result;
}

enum err entity_commit_document(struct service *s, enum origin origin, uint64_t table_id,
	struct entity_op *op, bool durable, struct item *ret, struct item *ret_replaced,
	struct err_detail *detail)
{
	struct entity_work *w = calloc(1, sizeof(*w));
	if (w == NULL)
		return ERR_NO_MEMORY;
	struct change c = { 0 };
	enum err e = op->admitted ? ERR_OK : admit(s, table_id, op, 1, ENTITIES_SET, detail);
	if (e == ERR_OK)
		e = prepare(s, table_id, op, w, &c, detail);
	if (e == ERR_OK)
		e = service_apply(s, origin, &c, 1, durable, detail);
	if (e == ERR_OK && ret != NULL) {
		*ret = c.now;
		c.now = (struct item){ 0 };
	}
	if (e == ERR_OK && ret_replaced != NULL) {
		*ret_replaced = c.old;
		c.old = (struct item){ 0 };
	}
	changes_fini(&c, 1);
	free(w);
	return e;
}
