/* SPDX-License-Identifier: MIT
 * rename(2) in all forms: the item that moves, its conversion, and the item that it replaces. */
#include "model/filename.h"
#include "model/key.h"
#include "model/limits.h"
#include "service/core/admission.h"
#include "service/tree/tree_parts.h"

#include <stdlib.h>

/* An item on its way to another name, with its conversion. */
struct passenger {
	struct item item; /* with its body, if it is a row */
	const struct dentry *from, *to;
	enum item_kind becomes;
	struct buf body; /* the new document */
	bool new_body;
	uint32_t flags;
	bool exact;       /* valid only for the version that was read */
	bool rekeyed;     /* a partition that gets another key */
	bool keys_in_all; /* ... which every row's document must contain */
};

static void passenger_fini(struct passenger *p)
{
	item_fini(&p->item);
	buf_fini(&p->body);
}

/* Returns the kind that an item gets at the new name; ITEM_NONE: it may not go there. */
static enum item_kind kind_there(const struct item *it, const struct dentry *to)
{
	enum item_kind k = it->kind;
	if (k == ITEM_ROW || k == ITEM_FILE)
		k = to->class == CLASS_KEYED ? ITEM_ROW : ITEM_FILE;
	else if (k == ITEM_FOLDER && to->class == CLASS_KEYED)
		return ITEM_NONE;
	else if (item_is_dir(k) && k != ITEM_FOLDER && to->class == CLASS_NAMED)
		return ITEM_NONE;
	if (k == ITEM_ROW && to->dir->kind != ITEM_PARTITION)
		return ITEM_NONE;
	return item_may_hold(to->dir->kind, k) ? k : ITEM_NONE;
}

struct keys {
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES];
	struct span pk_span, rk_span;
};

static void keys_of_dentry(const struct dentry *at, struct keys *k)
{
	key_from_order(at->dir->key.p, at->dir->key.n, k->pk);
	key_from_order(at->key.p, at->key.n, k->rk);
	k->pk_span = span_make(k->pk, at->dir->key.n);
	k->rk_span = span_make(k->rk, at->key.n);
}

/* For a row with a new key: encodes a document again if it contains the old key. */
static enum err rewrite_keys(struct passenger *p, const struct keys *k)
{
	bool inside = filename_is_long(k->pk_span, FILENAME_PARTITION) ||
		filename_is_long(k->rk_span, FILENAME_ROW);
	if (((p->item.flags & ITEM_KEYS_INSIDE) == 0 && !inside) || item_is_empty_row(&p->item))
		return ERR_OK;
	struct entity e = { 0 };
	enum err result = entity_json_decode(p->item.body, ENTITY_JSON_FILE, &e, NULL, NULL);
	if (result == ERR_OK) {
		e.pk = k->pk_span;
		e.rk = k->rk_span;
		e.has_pk = e.has_rk = true;
		unsigned flags =
			ENTITY_JSON_NEWLINE | (inside ? ENTITY_JSON_PK | ENTITY_JSON_RK : 0u);
		entity_json_encode(&e, flags, &p->body);
		p->new_body = true;
		p->flags = inside ? ITEM_KEYS_INSIDE : ITEM_CANONICAL;
		result = buf_ok(&p->body) ? ERR_OK : ERR_NO_MEMORY;
	}
	entity_fini(&e);
	return result;
}

/* For an ordinary file that becomes a row: its content must be a valid document, or nothing. */
static enum err board_file(
	struct service *s, struct passenger *p, const struct keys *k, struct err_detail *detail)
{
	enum err e = tree_file_content(s, &p->item, &p->body);
	if (e != ERR_OK)
		return e;
	p->flags = 0;
	if (p->body.len > 0)
		e = document_check(
			buf_span(&p->body), k->pk_span, k->rk_span, NULL, &p->flags, detail);
	p->new_body = true;
	return e;
}

/* For a partition with a new key: documents with keys must be rewritten; all of them if its name is
 * a digest.  Then the partition's version must not change, so that no new row is missed. */
static void board_partition(struct passenger *p)
{
	char pk[LIMIT_KEY_BYTES];
	struct span order = p->to->key;
	key_from_order(order.p, order.n, pk);
	p->rekeyed = !span_eq(p->from->key, order);
	p->keys_in_all = p->rekeyed && filename_is_long(span_make(pk, order.n), FILENAME_PARTITION);
	p->exact = p->keys_in_all;
}

static enum err board(struct service *s, struct passenger *p, const struct dentry *from,
	const struct dentry *to, struct err_detail *detail)
{
	p->from = from;
	p->to = to;
	p->body = BUF_INIT(LIMIT_DOCUMENT_BYTES);
	enum err e = store_child(
		service_store(s), NULL, from->dir->id, from->class, from->key, WANT_BODY, &p->item);
	if (e != ERR_OK)
		return e;
	p->becomes = kind_there(&p->item, to);
	if (p->becomes == ITEM_NONE)
		return ERR_NOT_PERMITTED;
	/* A row that remains a row is checked too: a change could add keys to its document, and the
	 * move would leave the old ones in it. */
	p->exact = p->item.kind == ITEM_FILE || p->becomes == ITEM_ROW;
	if (p->becomes == ITEM_PARTITION)
		board_partition(p);
	if (p->becomes != ITEM_ROW)
		return ERR_OK;
	struct keys *k = malloc(sizeof(*k));
	if (k == NULL)
		return ERR_NO_MEMORY;
	keys_of_dentry(to, k);
	e = p->item.kind == ITEM_ROW ? rewrite_keys(p, k) : board_file(s, p, k, detail);
	free(k);
	return e;
}

/* The rows of a partition to rewrite for another key: those with keys in their documents, or
 * all. */
struct keyed_rows {
	struct item *rows;
	size_t n, cap;
	uint64_t bytes;
	bool all;
	enum err error;
};

static void keyed_rows_fini(struct keyed_rows *r)
{
	for (size_t i = 0; i < r->n; i++)
		item_fini(&r->rows[i]);
	free(r->rows);
}

static bool collect_keyed(void *arg, const struct item *it)
{
	struct keyed_rows *r = arg;
	if (it->kind != ITEM_ROW || item_is_empty_row(it) ||
		(!r->all && (it->flags & ITEM_KEYS_INSIDE) == 0))
		return true;
	r->bytes += it->size;
	if (r->n == LIMIT_REKEYED_ROWS || r->bytes > LIMIT_REKEYED_BYTES) {
		r->error = ERR_RENAME_TOO_LARGE;
		return false;
	}
	if (r->n == r->cap) {
		size_t cap = r->cap == 0 ? 16 : r->cap * 2;
		struct item *rows = reallocarray(r->rows, cap, sizeof(*rows));
		if (rows == NULL) {
			r->error = ERR_NO_MEMORY;
			return false;
		}
		r->rows = rows;
		r->cap = cap;
	}
	r->rows[r->n] = (struct item){ 0 };
	r->error = item_copy(&r->rows[r->n], it);
	if (r->error == ERR_OK)
		r->n++;
	return r->error == ERR_OK;
}

static enum err put_rewritten(struct service *s, const struct item *row, struct span pk,
	struct change *c, struct buf *body)
{
	struct passenger p = { .body = BUF_INIT(LIMIT_DOCUMENT_BYTES) };
	enum err e = store_get(service_store(s), NULL, row->id, WANT_BODY, &p.item);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && p.item.version != row->version))
		e = ERR_GONE;
	struct keys *k = malloc(sizeof(*k));
	if (e == ERR_OK && k == NULL)
		e = ERR_NO_MEMORY;
	if (e == ERR_OK) {
		key_from_order(row->key.p, row->key.n, k->rk);
		k->rk_span = span_make(k->rk, row->key.n);
		k->pk_span = pk;
		e = rewrite_keys(&p, k);
	}
	if (e == ERR_OK) {
		*body = p.body;
		p.body = (struct buf){ 0 };
		*c = (struct change){ .op = CHANGE_PUT, .kind = ITEM_ROW, .attrs = row->attrs };
		c->at = (struct item_ref){
			.parent = row->parent, .class = CLASS_KEYED, .key = row->key
		};
		c->cond = COND_VERSION;
		c->cond_version = row->version;
		c->item_flags = p.flags;
		c->body = buf_span(body);
	}
	free(k);
	passenger_fini(&p);
	return e;
}

static enum err find_keyed(struct service *s, const struct passenger *p, struct keyed_rows *r)
{
	if (!p->rekeyed)
		return ERR_OK;
	r->all = p->keys_in_all;
	enum err e = store_list(service_store(s), NULL, p->item.id, CLASS_KEYED, (struct span){ 0 },
		false, WANT_ATTRS, collect_keyed, r);
	return e == ERR_OK ? r->error : e;
}

/* A row is not where it was listed; changes[0] is the move itself. */
static enum err row_left(enum err e, const struct err_detail *detail)
{
	return e == ERR_NOT_FOUND && detail->op > 0 ? ERR_GONE : e;
}

/* Moves a partition to another key, or exchanges two.  Rewrites the rows whose documents contain
 * the old key or must contain the new one. */
static enum err move_partition(struct service *s, const struct passenger *p,
	const struct passenger *other, struct change *move, struct err_detail *detail)
{
	struct keyed_rows r = { 0 };
	enum err e = find_keyed(s, p, &r);
	size_t of_p = r.n;
	if (e == ERR_OK && other->item.kind == ITEM_PARTITION)
		e = find_keyed(s, other, &r);
	struct change *changes = calloc(r.n + 1, sizeof(*changes));
	struct buf *bodies = calloc(r.n + 1, sizeof(*bodies));
	char *pk = malloc(LIMIT_KEY_BYTES);
	if (e == ERR_OK && (changes == NULL || bodies == NULL || pk == NULL))
		e = ERR_NO_MEMORY;
	if (e == ERR_OK)
		changes[0] = *move;
	for (size_t i = 0; e == ERR_OK && i < r.n; i++) {
		struct span order = i < of_p ? move->to.key : move->at.key;
		key_from_order(order.p, order.n, pk);
		e = put_rewritten(
			s, &r.rows[i], span_make(pk, order.n), &changes[i + 1], &bodies[i + 1]);
	}
	detail->op = 0;
	if (e == ERR_OK)
		e = row_left(
			service_apply(s, p->from->origin, changes, r.n + 1, false, detail), detail);
	if (e == ERR_OK) {
		*move = changes[0];
		changes[0] = (struct change){ 0 };
	}
	for (size_t i = 0; bodies != NULL && i <= r.n; i++)
		buf_fini(&bodies[i]);
	if (changes != NULL)
		changes_fini(changes, r.n + 1);
	free(pk);
	free(bodies);
	free(changes);
	keyed_rows_fini(&r);
	return e;
}

static void fill_move(
	struct change *c, const struct passenger *p, const struct passenger *other, unsigned flags)
{
	*c = (struct change){
		.op = CHANGE_MOVE, .at = tree__place_of(p->from), .to = tree__place_of(p->to)
	};
	c->attrs = ATTRS_UNSET;
	c->flags = CHANGE_KEEP_DIR | CHANGE_WANT_OLD;
	c->name = p->to->name;
	c->to_kind = p->becomes;
	c->cond = p->exact ? COND_VERSION : COND_ID;
	c->cond_version = p->exact ? p->item.version : (int64_t)p->item.id;
	if (p->new_body) {
		c->body = p->body.len > 0 ? buf_span(&p->body) : SPAN_LIT("");
		c->item_flags = p->flags;
	}
	if ((flags & TREE_NO_REPLACE) != 0)
		c->flags |= CHANGE_NO_REPLACE;
	if ((flags & TREE_EXCHANGE) != 0) {
		c->flags |= CHANGE_EXCHANGE;
		c->other_kind = other->becomes;
		c->other_flags = other->flags;
		c->to_match = other->exact;
		c->to_version = other->item.version;
		if (other->new_body)
			c->other_body = buf_span(&other->body);
	}
}

/* Reads the item at the destination; its kind is ITEM_NONE if there is none.  In an exchange it was
 * read before, and the conditions must be about that version. */
static enum err look_at_target(
	struct service *s, const struct dentry *to, const struct passenger *other, struct item *ret)
{
	enum err e = other->item.kind != ITEM_NONE
		? item_copy(ret, &other->item)
		: store_child(
			  service_store(s), NULL, to->dir->id, to->class, to->key, WANT_ATTRS, ret);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* Returns the precondition of a file that becomes a row, on the existing row. */
static int64_t match_of(const struct passenger *p)
{
	bool asks = p->item.kind == ITEM_FILE && p->becomes == ITEM_ROW;
	return asks ? p->item.attrs.if_match : MATCH_UNSET;
}

/* Where a document stands, none comes that is none. */
static bool needs_no_document(const struct passenger *p)
{
	return p->becomes == ITEM_ROW && p->item.size == 0;
}

static enum err check_match(const struct passenger *p, const struct item *there)
{
	int64_t match = match_of(p);
	bool row = there->kind == ITEM_ROW && !item_is_empty_row(there);
	if (row && needs_no_document(p))
		return ERR_EMPTY;
	if (match == MATCH_UNSET || (match == MATCH_ABSENT && !row) ||
		(match == MATCH_PRESENT && row) || (row && match == there->version))
		return ERR_OK;
	return ERR_CONDITION_NOT_MET;
}

/* Makes the commit depend on what check_match() has seen. */
static void fill_match(struct change *c, const struct passenger *p, const struct passenger *other,
	const struct item *target)
{
	bool asks = match_of(p) != MATCH_UNSET || needs_no_document(p);
	if (asks && target->kind == ITEM_NONE) {
		c->flags |= CHANGE_NO_REPLACE;
	} else if (asks) {
		c->to_match = true;
		c->to_version = target->version;
	}
	if (match_of(other) != MATCH_UNSET) {
		c->cond = COND_VERSION;
		c->cond_version = p->item.version;
	}
}

/* Applies the move, and hides the replaced file in the same change set. */
static enum err apply_move(struct service *s, enum origin origin, struct change *move,
	const struct item *target, unsigned flags, struct err_detail *detail)
{
	char key[24];
	struct change all[2] = { 0 };
	size_t n = 0;
	if ((flags & TREE_KEEP_REPLACED) != 0 && target->kind == ITEM_FILE &&
		service_can(s, STORE_CAN_SPAN))
		all[n++] = tree__orphan(move->to, target->id, key);
	size_t at = n++;
	all[at] = *move;
	enum err e = service_apply(s, origin, all, n, false, detail);
	*move = all[at];
	all[at] = (struct change){ 0 };
	changes_fini(all, n);
	return e;
}

static enum err make_move(struct service *s, struct change *c, const struct passenger *p,
	const struct passenger *other, const struct item *target, unsigned flags,
	struct err_detail *detail)
{
	enum err e = p->item.kind == ITEM_PARTITION
		? move_partition(s, p, other, c, detail)
		: apply_move(s, p->from->origin, c, target, flags, detail);
	/* The condition held before; the next try checks it again. */
	bool came = e == ERR_ENTITY_EXISTS && (flags & TREE_NO_REPLACE) == 0;
	return e == ERR_CONDITION_NOT_MET || came ? ERR_GONE : e;
}

/* ERR_GONE: an item changed between the read and the commit. */
static enum err move_once(struct service *s, const struct dentry *from, const struct dentry *to,
	unsigned flags, struct item *ret_now, struct item *ret_replaced, struct err_detail *detail)
{
	struct passenger p = { 0 }, other = { 0 };
	struct item target = { 0 };
	struct change c = { 0 };
	enum err e = board(s, &p, from, to, detail);
	if (e == ERR_OK && (flags & TREE_EXCHANGE) != 0)
		e = board(s, &other, to, from, detail);
	if (e == ERR_OK)
		e = look_at_target(s, to, &other, &target);
	if (e == ERR_OK)
		e = check_match(&p, &target);
	if (e == ERR_OK)
		e = check_match(&other, &p.item);
	if (e == ERR_OK) {
		fill_move(&c, &p, &other, flags);
		fill_match(&c, &p, &other, &target);
		e = make_move(s, &c, &p, &other, &target, flags, detail);
	}
	if (e == ERR_OK && ret_now != NULL) {
		*ret_now = c.now;
		c.now = (struct item){ 0 };
	}
	if (e == ERR_OK && ret_replaced != NULL) {
		*ret_replaced = c.old;
		c.old = (struct item){ 0 };
	}
	changes_fini(&c, 1);
	item_fini(&target);
	passenger_fini(&p);
	passenger_fini(&other);
	return e;
}

/* A row that moves to another partition counts in both; if it is refused, in neither. */
static enum err admit_move(struct service *s, const struct dentry *from, const struct dentry *to,
	struct err_detail *detail)
{
	enum err e = ERR_OK;
	bool arrives = to->class == CLASS_KEYED;
	bool leaves = from->class == CLASS_KEYED && (!arrives || to->dir->id != from->dir->id);
	if (arrives && leaves)
		e = admission_in(s, to->dir, HEAT_CHANGED, 0, detail);
	if (e == ERR_OK && leaves)
		e = admission_in(s, from->dir, HEAT_CHANGED, 1, detail);
	if (e == ERR_OK && arrives)
		e = admission_in(s, to->dir, HEAT_CHANGED, 1, detail);
	return e;
}

enum err tree_move(struct service *s, const struct dentry *from, const struct dentry *to,
	unsigned flags, struct item *ret_now, struct item *ret_replaced, struct err_detail *detail)
{
	struct err_detail scratch = { 0 };
	if (detail == NULL)
		detail = &scratch;
	enum err e = admit_move(s, from, to, detail);
	if (e != ERR_OK)
		return e;
	e = ERR_GONE;
	for (int tries = 0; tries < TREE_RETRIES && e == ERR_GONE; tries++)
		e = move_once(s, from, to, flags, ret_now, ret_replaced, detail);
	return e;
}
