/* SPDX-License-Identifier: MIT
 * The conformance suite: one function per promise of store/store.h, on a fresh store with
 * an account and a table each. */
#include "store_contract.h"

#include "base/clock.h"
#include "check.h"
#include "store/engines.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define SPAN_NONE ((struct span){ NULL, 0 })
/* A row's document. */
#define D(text_) "{\"S\":\"" text_ "\"}"

/* The store under test, and the last change made. */
struct world {
	unsigned abilities, lacks; /* enum contract_part */
	struct store *s;
	const struct contract_engine *engine;
	int64_t clock;
	uint64_t account, table;
	struct change c;
	struct err_detail d;
};

static enum err apply(struct world *w, struct change c)
{
	changes_fini(&w->c, 1);
	if (c.version == 0)
		c.version = ++w->clock;
	w->c = c;
	return store_apply(w->s, &w->c, 1, false, &w->d);
}

static struct item_ref child_of(uint64_t parent, const char *key)
{
	return (struct item_ref){ .parent = parent, .key = span_of(key) };
}

static struct item_ref file_of(uint64_t parent, const char *name)
{
	return (struct item_ref){ .parent = parent, .class = CLASS_NAMED, .key = span_of(name) };
}

static struct item_ref row_of(struct world *w, const char *pk, const char *rk)
{
	return (struct item_ref){
		.parent = w->table, .has_pk = true, .pk = span_of(pk), .key = span_of(rk)
	};
}

static struct change put(enum item_kind kind, struct item_ref at, const char *body)
{
	return (struct change){ .op = CHANGE_PUT,
		.at = at,
		.kind = kind,
		.attrs = ATTRS_UNSET,
		.body = body ? span_of(body) : SPAN_NONE,
		.name = kind == ITEM_TABLE && at.id == 0 ? at.key : SPAN_LIT("table") };
}

static struct change removal(struct item_ref at, uint32_t flags)
{
	return (struct change){ .op = CHANGE_DELETE, .at = at, .flags = flags };
}

static struct change moving(struct item_ref at, struct item_ref to, uint32_t flags)
{
	return (struct change){ .op = CHANGE_MOVE, .at = at, .to = to, .flags = flags };
}

static struct item_ref by_id(uint64_t id)
{
	return (struct item_ref){ .id = id };
}

/* Returns true if this can be the version of the change that was made last. */
static bool is_last_version(const struct world *w, int64_t version)
{
	return w->lacks & CONTRACT_VERSIONS ? version == w->c.version : version == w->clock;
}

/* Makes it and returns its id, 0 on failure. */
static uint64_t made(struct world *w, struct change c)
{
	enum err e = apply(w, c);
	CHECK_ERR(e, ERR_OK);
	return e == ERR_OK ? w->c.now.id : 0;
}

static uint64_t row(struct world *w, const char *pk, const char *rk, const char *body)
{
	return made(w, put(ITEM_ROW, row_of(w, pk, rk), body));
}

static uint64_t file(struct world *w, uint64_t dir, const char *name, const char *content)
{
	uint64_t id = made(w, put(ITEM_FILE, file_of(dir, name), NULL));
	struct change c = { .op = CHANGE_WRITE, .at = by_id(id), .body = span_of(content) };
	CHECK_ERR(apply(w, c), ERR_OK);
	return id;
}

static uint64_t partition(struct world *w, const char *pk)
{
	struct item it;
	if (store_child(w->s, NULL, w->table, CLASS_KEYED, span_of(pk), WANT_ATTRS, &it) != ERR_OK)
		return 0;
	uint64_t id = it.id;
	item_fini(&it);
	return id;
}

static struct item item_by_id(struct world *w, uint64_t id)
{
	struct item it = { 0 };
	CHECK_ERR(store_get(w->s, NULL, id, WANT_BODY, &it), ERR_OK);
	return it;
}

/* Whether the size of a directory can be that of one with n children. */
static bool counts(struct world *w, const struct item *dir, uint64_t n)
{
	return w->abilities & STORE_COUNTS_EXACT ? dir->size == n : (dir->size > 0) == (n > 0);
}

static enum err gone(struct world *w, uint64_t id)
{
	struct item it = { 0 };
	enum err e = store_get(w->s, NULL, id, WANT_ATTRS, &it);
	item_fini(&it);
	return e;
}

static bool content_is(struct world *w, uint64_t id, const char *want)
{
	char got[256];
	size_t n = 0;
	return store_file_read(w->s, NULL, id, 0, got, sizeof(got), &n) == ERR_OK &&
		span_is(span_make(got, n), want);
}

/* The keys of a listing, one letter each. */
struct keys {
	char text[4000];
	size_t n, stop_at;
};

static bool note_key(void *arg, const struct item *it)
{
	struct keys *k = arg;
	k->text[k->n++] = it->key.n ? it->key.p[0] : '-';
	k->text[k->n] = 0;
	return k->n != k->stop_at;
}

/* ---- the promises ---- */

typedef void contract_fn(struct world *w);

static void fixed_items_exist_and_are_not_listed(struct world *w)
{
	for (uint64_t id = STORE_ROOT; id <= STORE_TRASH; id++) {
		struct item it = item_by_id(w, id);
		CHECK_EQ_INT(it.kind, ITEM_FOLDER);
		item_fini(&it);
		CHECK_ERR(apply(w, removal(by_id(id), CHANGE_RECURSIVE)), ERR_NOT_PERMITTED);
		CHECK_ERR(apply(w, moving(by_id(id), file_of(STORE_TRASH, "x"), 0)),
			ERR_NOT_PERMITTED);
	}
	struct keys k = { 0 };
	CHECK_ERR(
		store_list(w->s, NULL, STORE_ROOT, CLASS_NAMED, SPAN_NONE, false, 0, note_key, &k),
		ERR_OK);
	CHECK_ERR(
		store_list(w->s, NULL, 0, CLASS_NAMED, SPAN_NONE, false, 0, note_key, &k), ERR_OK);
	CHECK_EQ_INT(k.n, 0);
}

static void ids_are_in_range_and_never_used_again(struct world *w)
{
	uint64_t a = row(w, "p", "a", "{}");
	CHECK(a > STORE_ID_FIRST && a < UINT64_C(1) << STORE_ID_BITS);
	CHECK_ERR(apply(w, removal(by_id(a), 0)), ERR_OK);
	uint64_t b = row(w, "p", "a", "{}");
	CHECK(b > a);
	if (!w->engine->reopen)
		return;
	CHECK_ERR(apply(w, removal(by_id(b), 0)), ERR_OK);
	w->s = w->engine->reopen(w->s);
	CHECK(row(w, "p", "a", "{}") > b);
}

static void a_row_reads_back_as_it_was_put(struct world *w)
{
	struct change c = put(ITEM_ROW, row_of(w, "p", "a"), "{\"A\":1}");
	c.item_flags = ITEM_KEYS_INSIDE;
	c.attrs = (struct attrs){ MODE_SET(0), 7, 8, -5, 9 };
	uint64_t id = made(w, c);
	CHECK(w->c.made_partition);
	CHECK(!w->c.now.body.p);
	struct item it = item_by_id(w, id);
	CHECK(span_is(it.body, "{\"A\":1}") && span_is(it.key, "a"));
	CHECK_EQ_INT(it.size, 7);
	CHECK_EQ_INT(it.generation, 1);
	CHECK(is_last_version(w, it.version));
	CHECK_EQ_INT(it.flags, ITEM_KEYS_INSIDE);
	CHECK_EQ_INT(it.parent, partition(w, "p"));
	CHECK(it.attrs.mode == MODE_SET(0) && it.attrs.uid == 7 && it.attrs.gid == 8 &&
		it.attrs.mtime_ns == -5 && it.attrs.ctime_ns == 9);
	item_fini(&it);
	CHECK_ERR(store_get(w->s, NULL, id, WANT_ATTRS, &it), ERR_OK);
	CHECK(!it.body.p);
	item_fini(&it);
}

static void the_empty_key_and_the_empty_body_are_legal(struct world *w)
{
	uint64_t id = row(w, "", "", "");
	struct item it = item_by_id(w, id);
	CHECK(it.key.p && it.key.n == 0 && it.body.p && it.body.n == 0);
	item_fini(&it);
	row(w, "", "b", "{}");
	struct keys k = { 0 };
	CHECK_ERR(store_list(w->s, NULL, partition(w, ""), CLASS_KEYED, SPAN_LIT(""), false, 0,
			  note_key, &k),
		ERR_OK);
	CHECK_EQ_STR(k.text, "b");
	k.n = 0;
	CHECK_ERR(store_list(w->s, NULL, partition(w, ""), CLASS_KEYED, SPAN_LIT(""), true, 0,
			  note_key, &k),
		ERR_OK);
	CHECK_EQ_STR(k.text, "-b");
}

static void a_replaced_row_keeps_id_mode_and_owner_not_times(struct world *w)
{
	struct change c = put(ITEM_ROW, row_of(w, "p", "a"), D("1"));
	c.attrs = (struct attrs){ MODE_SET(0640), 7, 8, 5, 9 };
	uint64_t id = made(w, c);
	c = put(ITEM_ROW, row_of(w, "p", "a"), D("22"));
	c.flags = CHANGE_WANT_OLD;
	CHECK_EQ_INT(made(w, c), id);
	CHECK(span_is(w->c.old.body, D("1")));
	CHECK_EQ_INT(w->c.old.generation, 1);
	CHECK_EQ_INT(w->c.now.generation, 2);
	CHECK_EQ_INT(w->c.now.attrs.mode, MODE_SET(0640));
	CHECK_EQ_INT(w->c.now.attrs.uid, 7);
	CHECK(w->c.now.attrs.mtime_ns == TIME_UNSET && w->c.now.attrs.ctime_ns == TIME_UNSET);
	c.attrs.mode = MODE_SET(0600);
	CHECK_EQ_INT(made(w, c), id);
	CHECK_EQ_INT(w->c.now.attrs.mode, MODE_SET(0600));
	CHECK_EQ_INT(w->c.now.attrs.gid, 8);
}

static void a_stale_version_applies_nothing(struct world *w)
{
	row(w, "p", "a", "1");
	struct change set[2] = { put(ITEM_ROW, row_of(w, "q", "new"), "x"),
		put(ITEM_ROW, row_of(w, "p", "a"), "2") };
	set[0].version = set[1].version = w->clock;
	CHECK_ERR(store_apply(w->s, set, 2, false, &w->d), ERR_STALE_VERSION);
	CHECK_EQ_INT(w->d.op, 1);
	CHECK_EQ_INT(set[0].now.kind, ITEM_NONE);
	CHECK_EQ_INT(partition(w, "q"), 0);
	set[0].version = set[1].version = ++w->clock;
	CHECK_ERR(store_apply(w->s, set, 2, false, &w->d), ERR_OK);
	changes_fini(set, 2);
	/* Once more, as after an answer that was lost. */
	CHECK_ERR(store_apply(w->s, set + 1, 1, false, &w->d), ERR_STALE_VERSION);
}

static void one_set_may_change_a_row_twice(struct world *w)
{
	struct change set[3] = { put(ITEM_ROW, row_of(w, "p", "a"), "1"),
		put(ITEM_ROW, row_of(w, "p", "a"), "2"), put(ITEM_ROW, row_of(w, "p", "b"), "3") };
	for (int i = 0; i < 3; i++)
		set[i].version = 5000;
	CHECK_ERR(store_apply(w->s, set, 3, false, &w->d), ERR_OK);
	CHECK_EQ_INT(set[0].now.id, set[1].now.id);
	CHECK_EQ_INT(set[1].now.generation, 2);
	CHECK(set[0].made_partition && !set[2].made_partition);
	changes_fini(set, 3);
	w->clock = 5000;
}

static void conditions_answer_as_they_say(struct world *w)
{
	struct change c = put(ITEM_ROW, row_of(w, "p", "a"), D("1"));
	static const enum change_cond need[] = { COND_PRESENT, COND_VERSION, COND_ID };
	for (int i = 0; i < 3; i++) {
		c.cond = need[i];
		CHECK_ERR(apply(w, c), ERR_NOT_FOUND);
	}
	c.cond = COND_ABSENT;
	uint64_t id = made(w, c);
	int64_t version = w->c.now.version;
	CHECK_ERR(apply(w, c), ERR_ENTITY_EXISTS);
	c.cond = COND_VERSION;
	c.cond_version = version - 1;
	CHECK_ERR(apply(w, c), ERR_CONDITION_NOT_MET);
	c.cond_version = version;
	CHECK_ERR(apply(w, c), ERR_OK);
	c.cond = COND_ID;
	c.cond_version = (int64_t)id + 1;
	CHECK_ERR(apply(w, c), ERR_GONE);
	c.cond_version = (int64_t)id;
	CHECK_ERR(apply(w, c), ERR_OK);
	c = put(ITEM_TABLE, child_of(w->account, "table"), NULL);
	c.cond = COND_ABSENT;
	CHECK_ERR(apply(w, c), ERR_TABLE_EXISTS);
	c = put(ITEM_ACCOUNT, child_of(STORE_ROOT, "account"), "k");
	c.cond = COND_ABSENT;
	CHECK_ERR(apply(w, c), w->lacks & CONTRACT_KINDS ? ERR_NOT_PERMITTED : ERR_ACCOUNT_EXISTS);
	CHECK_ERR(apply(w, put(ITEM_PARTITION, child_of(w->table, "p"), NULL)), ERR_NAME_EXISTS);
}

static void a_put_replaces_an_accounts_body_only(struct world *w)
{
	CHECK_EQ_INT(
		made(w, put(ITEM_ACCOUNT, child_of(STORE_ROOT, "account"), "new")), w->account);
	struct item it = item_by_id(w, w->account);
	CHECK(span_is(it.body, "new"));
	CHECK(counts(w, &it, 1));
	item_fini(&it);
}

static bool body_is(struct world *w, uint64_t id, const char *want)
{
	struct item it = item_by_id(w, id);
	bool is = it.body.p != NULL && span_is(it.body, want);
	item_fini(&it);
	return is;
}

static void a_put_replaces_a_tables_body_only(struct world *w)
{
	CHECK(body_is(w, w->table, ""));
	row(w, "p", "a", "{}");
	struct attrs mine = { MODE_SET(0700), 7, 8, TIME_UNSET, TIME_UNSET };
	struct change c = { .op = CHANGE_ATTRS, .at = by_id(w->table), .attrs = mine };
	c.set_mask = ATTR_MODE | ATTR_UID | ATTR_GID | ATTR_FLAG_MADE;
	c.item_flags = ITEM_MADE;
	CHECK_ERR(apply(w, c), ERR_OK);

	c = put(ITEM_TABLE, child_of(w->account, "table"), "first");
	c.name = SPAN_LIT("nAME");
	c.flags = CHANGE_WANT_OLD;
	CHECK_EQ_INT(made(w, c), w->table);
	CHECK(w->c.now.body.p == NULL);
	CHECK_EQ_INT(w->c.now.size, 1);
	CHECK_EQ_INT(w->c.now.version, w->clock);
	CHECK(w->c.old.body.p != NULL && w->c.old.body.n == 0);
	CHECK(span_is(w->c.old.name, "table"));

	struct item it = item_by_id(w, w->table);
	CHECK(span_is(it.body, "first") && span_is(it.name, "table") && span_is(it.key, "table"));
	CHECK_EQ_INT(it.kind, ITEM_TABLE);
	CHECK_EQ_INT(it.parent, w->account);
	CHECK(counts(w, &it, 1));
	CHECK_EQ_INT(it.generation, 0);
	CHECK_EQ_INT(it.flags, ITEM_MADE);
	CHECK_EQ_INT(it.version, w->clock);
	CHECK(it.attrs.mode == MODE_SET(0700) && it.attrs.uid == 7 && it.attrs.gid == 8);
	item_fini(&it);
	CHECK(partition(w, "p") != 0);
	CHECK_ERR(store_get(w->s, NULL, w->table, WANT_ATTRS, &it), ERR_OK);
	CHECK(it.body.p == NULL);
	item_fini(&it);
	it = item_by_id(w, w->account);
	CHECK(counts(w, &it, 1));
	item_fini(&it);

	/* By id, and back to nothing. */
	c = put(ITEM_TABLE, by_id(w->table), "second");
	c.flags = CHANGE_WANT_OLD;
	CHECK_EQ_INT(made(w, c), w->table);
	CHECK(span_is(w->c.old.body, "first"));
	CHECK(body_is(w, w->table, "second"));
	CHECK_EQ_INT(made(w, put(ITEM_TABLE, by_id(w->table), NULL)), w->table);
	CHECK(body_is(w, w->table, ""));
	CHECK_ERR(apply(w, put(ITEM_TABLE, by_id(99999), "x")), ERR_GONE);
	CHECK_ERR(apply(w, put(ITEM_TABLE, by_id(w->account), "x")), ERR_ACCOUNT_EXISTS);
	CHECK_ERR(apply(w, put(ITEM_TABLE, by_id(partition(w, "p")), "x")), ERR_NAME_EXISTS);
	CHECK_ERR(apply(w, put(ITEM_ACCOUNT, by_id(w->table), "x")), ERR_TABLE_EXISTS);
}

static struct item_ref queued(uint64_t parent, const char *key)
{
	return (struct item_ref){ .parent = parent, .class = CLASS_QUEUE, .key = span_of(key) };
}

static bool note_text(void *arg, const struct item *it)
{
	CHECK(it->kind == ITEM_MESSAGE && span_is(it->body, "text"));
	((struct keys *)arg)->n++;
	return true;
}

static void queues_and_messages_are_seen_by_no_other_listing(struct world *w)
{
	struct keys k = { 0 };
	uint64_t q = made(w, put(ITEM_QUEUE, queued(w->account, "table"), "about"));
	(void)made(w, put(ITEM_MESSAGE, queued(q, "m"), "text"));
	CHECK(q != w->table);
	for (int class = CLASS_KEYED; class <= CLASS_BLOB; class ++) {
		CHECK_ERR(store_list(w->s, NULL, w->account, (enum item_class) class, SPAN_NONE,
				  false, WANT_KEYS, note_key, &k),
			ERR_OK);
		CHECK_EQ_INT(k.n, class == CLASS_KEYED ? 1 : class == CLASS_NAMED ? 1 : 2);
	}
	k.n = 0;
	CHECK_ERR(store_list(w->s, NULL, q, CLASS_QUEUE, SPAN_NONE, false,
			  WANT_SMALL_BODY | WANT_FEW, note_text, &k),
		ERR_OK);
	CHECK_EQ_INT(k.n, 1);
	struct item it = item_by_id(w, q);
	CHECK(it.kind == ITEM_QUEUE && span_is(it.body, "about") && counts(w, &it, 1));
	item_fini(&it);
	it = item_by_id(w, w->account);
	CHECK(counts(w, &it, 2));
	item_fini(&it);
	struct change c = put(ITEM_QUEUE, queued(w->account, "table"), "other");
	c.cond = COND_ABSENT;
	CHECK_ERR(apply(w, c), ERR_QUEUE_EXISTS);
	c.cond = COND_NONE;
	CHECK_EQ_INT(made(w, c), q);
	CHECK(body_is(w, q, "other"));
	CHECK_ERR(apply(w, removal(queued(w->account, "table"), 0)), ERR_NOT_EMPTY);
	CHECK_ERR(apply(w, put(ITEM_FILE, file_of(q, "f"), NULL)), ERR_NOT_PERMITTED);
	CHECK_ERR(apply(w, put(ITEM_MESSAGE, queued(w->account, "m"), "x")), ERR_NOT_PERMITTED);
}

static struct item_ref blob_at(uint64_t parent, const char *key)
{
	return (struct item_ref){ .parent = parent, .class = CLASS_BLOB, .key = span_of(key) };
}

static void a_blob_holds_extents_and_pieces(struct world *w)
{
	uint64_t c = made(w, put(ITEM_CONTAINER, blob_at(w->account, "table"), "about"));
	uint64_t b = made(w, put(ITEM_BLOB, blob_at(c, "a/b"), "first"));
	uint64_t x = made(w, put(ITEM_EXTENT, blob_at(b, "x"), NULL));
	uint64_t p = made(w, put(ITEM_PIECE, blob_at(x, "0"), "one"));
	(void)made(w, put(ITEM_PIECE, blob_at(b, "s"), "snapshot"));
	CHECK_ERR(apply(w, put(ITEM_PIECE, blob_at(c, "s"), "x")), ERR_NOT_PERMITTED);
	CHECK_ERR(apply(w, put(ITEM_EXTENT, blob_at(c, "x"), NULL)), ERR_NOT_PERMITTED);
	CHECK_ERR(apply(w, put(ITEM_BLOB, blob_at(b, "b"), "x")), ERR_NOT_PERMITTED);
	CHECK_ERR(apply(w, put(ITEM_BLOB, queued(c, "b"), "x")), ERR_NOT_PERMITTED);
	CHECK_ERR(apply(w, put(ITEM_EXTENT, blob_at(STORE_TRASH, "x"), NULL)), ERR_NOT_PERMITTED);
	struct change replace = put(ITEM_BLOB, blob_at(c, "a/b"), "second");
	replace.cond = COND_ABSENT;
	CHECK_ERR(apply(w, replace), ERR_BLOB_EXISTS);
	replace.cond = COND_NONE;
	CHECK_EQ_INT(made(w, replace), b);
	CHECK(body_is(w, b, "second"));
	replace = put(ITEM_PIECE, blob_at(x, "0"), "other");
	replace.item_flags = ITEM_PIECE_FLAGS;
	CHECK_EQ_INT(made(w, replace), p);
	struct item it = item_by_id(w, p);
	CHECK(it.size == 5 && it.flags == ITEM_PIECE_FLAGS && it.generation == 1);
	item_fini(&it);
	CHECK_ERR(apply(w, removal(blob_at(w->account, "table"), CHANGE_RECURSIVE)), ERR_OK);
	CHECK_ERR(gone(w, p), ERR_NOT_FOUND);
}

static uint64_t piece_bytes(const struct world *w)
{
	struct store_info info;
	store_info(w->s, &info);
	return info.piece_bytes;
}

static void pieces_of_blobs_are_counted_and_limited(struct world *w)
{
	uint64_t c = made(w, put(ITEM_CONTAINER, blob_at(w->account, "c"), ""));
	uint64_t b = made(w, put(ITEM_BLOB, blob_at(c, "b"), ""));
	uint64_t x = made(w, put(ITEM_EXTENT, blob_at(b, "x"), NULL));
	if (!store_set_piece_limit(w->s, 10))
		return;
	(void)made(w, put(ITEM_PIECE, blob_at(x, "0"), "1234567"));
	CHECK_ERR(apply(w, put(ITEM_PIECE, blob_at(x, "1"), "1234")), ERR_BLOB_SPACE);
	(void)made(w, put(ITEM_PIECE, blob_at(x, "1"), "123"));
	CHECK_EQ_INT(piece_bytes(w), 10);
	CHECK_ERR(apply(w, put(ITEM_PIECE, blob_at(x, "0"), "12345678")), ERR_BLOB_SPACE);
	(void)made(w, put(ITEM_PIECE, blob_at(x, "0"), "1"));
	CHECK_EQ_INT(piece_bytes(w), 4);
	CHECK_ERR(apply(w, removal(blob_at(x, "1"), 0)), ERR_OK);
	CHECK_EQ_INT(piece_bytes(w), 1);
	CHECK_ERR(apply(w, removal(by_id(c), CHANGE_RECURSIVE)), ERR_OK);
	CHECK_EQ_INT(piece_bytes(w), 0);
	CHECK(store_set_piece_limit(w->s, UINT64_MAX));
}

static void an_extent_waits_among_the_orphans_and_moves_to_its_blob(struct world *w)
{
	uint64_t x = made(w, put(ITEM_EXTENT, blob_at(STORE_ORPHANS, "up"), NULL));
	uint64_t p = made(w, put(ITEM_PIECE, blob_at(x, "0"), "one"));
	uint64_t c = made(w, put(ITEM_CONTAINER, blob_at(w->account, "c"), ""));
	uint64_t b = made(w, put(ITEM_BLOB, blob_at(c, "b"), ""));
	enum err e = apply(w, moving(blob_at(STORE_ORPHANS, "up"), blob_at(b, "x"), 0));
	if (e == ERR_CROSS_DEVICE)
		return;
	CHECK_ERR(e, ERR_OK);
	CHECK(body_is(w, p, "one"));
	struct item it = item_by_id(w, x);
	CHECK(it.parent == b && it.kind == ITEM_EXTENT && counts(w, &it, 1));
	item_fini(&it);
}

static void a_message_moves_in_its_queue_with_or_without_a_new_text(struct world *w)
{
	uint64_t q = made(w, put(ITEM_QUEUE, queued(w->account, "q"), ""));
	uint64_t m = made(w, put(ITEM_MESSAGE, queued(q, "a"), "one"));
	int64_t born = w->c.now.version;
	CHECK_ERR(apply(w, put(ITEM_MESSAGE, queued(q, "a"), "two")), ERR_NAME_EXISTS);
	CHECK_ERR(apply(w, moving(queued(q, "a"), queued(q, "b"), 0)), ERR_OK);
	CHECK_EQ_INT(w->c.now.id, m);
	CHECK_EQ_INT(w->c.now.born, born);
	CHECK_EQ_INT(w->c.now.version, w->clock);
	CHECK(body_is(w, m, "one"));
	CHECK_ERR(apply(w, moving(queued(q, "a"), queued(q, "c"), 0)), ERR_NOT_FOUND);
	struct change c = moving(queued(q, "b"), queued(q, "c"), 0);
	c.body = SPAN_LIT("");
	c.cond = COND_VERSION;
	c.cond_version = born;
	CHECK_ERR(apply(w, c), ERR_CONDITION_NOT_MET);
	c.cond_version = w->clock - 2;
	CHECK_ERR(apply(w, c), ERR_OK);
	struct item it = item_by_id(w, m);
	CHECK(it.kind == ITEM_MESSAGE && it.size == 0 && it.born == born && span_is(it.key, "c"));
	CHECK(it.body.p != NULL && it.body.n == 0);
	item_fini(&it);
	c = moving(queued(q, "c"), row_of(w, "p", "r"), 0);
	c.to_kind = ITEM_ROW;
	enum err e = apply(w, c);
	CHECK(e == ERR_INVALID_INPUT || e == ERR_CROSS_DEVICE);
	it = item_by_id(w, q);
	CHECK(counts(w, &it, 1));
	item_fini(&it);
	CHECK_ERR(apply(w, removal(by_id(q), CHANGE_RECURSIVE)), ERR_OK);
	CHECK_ERR(gone(w, m), ERR_NOT_FOUND);
	CHECK_EQ_INT(made(w, put(ITEM_QUEUE, queued(w->account, "q"), "")) == q, false);
}

static void conditions_hold_for_a_tables_body(struct world *w)
{
	struct change c = put(ITEM_TABLE, child_of(w->account, "table"), "x");
	c.cond = COND_ABSENT;
	CHECK_ERR(apply(w, c), ERR_TABLE_EXISTS);
	c.cond = COND_VERSION;
	c.cond_version = w->clock;
	CHECK_ERR(apply(w, c), ERR_CONDITION_NOT_MET);
	c.cond = COND_ID;
	c.cond_version = (int64_t)w->table + 1;
	CHECK_ERR(apply(w, c), ERR_GONE);
	CHECK(body_is(w, w->table, ""));
	c.cond_version = (int64_t)w->table;
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK(body_is(w, w->table, "x"));
	c.cond = COND_VERSION;
	c.cond_version = w->clock;
	c.body = SPAN_LIT("y");
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK(body_is(w, w->table, "y"));
	c.cond = COND_PRESENT;
	c.body = SPAN_LIT("z");
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK(body_is(w, w->table, "z"));
	c.at = child_of(w->account, "other");
	CHECK_ERR(apply(w, c), ERR_NOT_FOUND);
	/* A version that is no later changes nothing. */
	c = put(ITEM_TABLE, by_id(w->table), "stale");
	c.version = 1;
	CHECK_ERR(apply(w, c), ERR_STALE_VERSION);
	CHECK(body_is(w, w->table, "z"));
	/* A new one has its body from the start. */
	CHECK(body_is(w, made(w, put(ITEM_TABLE, child_of(w->account, "other"), "born")), "born"));
}

static void a_tables_body_moves_with_it_and_goes_with_it(struct world *w)
{
	made(w, put(ITEM_TABLE, by_id(w->table), "mine"));
	uint64_t other = made(w, put(ITEM_TABLE, child_of(w->account, "other"), "other's"));
	row(w, "p", "a", "{}");
	CHECK(body_is(w, w->table, "mine"));
	struct change c = moving(by_id(w->table), child_of(w->account, "moved"), 0);
	c.name = SPAN_LIT("Moved");
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK(body_is(w, w->table, "mine"));
	/* Another case of its name; over an empty one; an exchange. */
	c.name = SPAN_LIT("MOVED");
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK(body_is(w, w->table, "mine"));
	c = moving(by_id(w->table), child_of(w->account, "other"), CHANGE_EXCHANGE);
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK(body_is(w, w->table, "mine") && body_is(w, other, "other's"));
	c = moving(by_id(w->table), child_of(w->account, "moved"), CHANGE_WANT_OLD);
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK(span_is(w->c.old.body, "other's"));
	CHECK(body_is(w, w->table, "mine"));
	c.body = SPAN_LIT("new");
	c.to = child_of(w->account, "else");
	CHECK_ERR(apply(w, c), ERR_INVALID_INPUT);
	if (w->engine->reopen != NULL)
		w->s = w->engine->reopen(w->s);
	CHECK(body_is(w, w->table, "mine"));
	CHECK_ERR(apply(w, removal(by_id(w->table), CHANGE_RECURSIVE | CHANGE_WANT_OLD)), ERR_OK);
	CHECK(span_is(w->c.old.body, "mine"));
	CHECK(body_is(w, made(w, put(ITEM_TABLE, child_of(w->account, "moved"), NULL)), ""));
}

static void missing_parents_and_tables_are_told_apart(struct world *w)
{
	CHECK_ERR(apply(w, put(ITEM_TABLE, child_of(99999, "t"), NULL)), ERR_NOT_FOUND);
	struct item_ref at = { .parent = 99999, .has_pk = true, .key = SPAN_LIT("r") };
	CHECK_ERR(apply(w, put(ITEM_ROW, at, "{}")), ERR_TABLE_NOT_FOUND);
	at.parent = w->account;
	CHECK_ERR(apply(w, put(ITEM_ROW, at, "{}")), ERR_TABLE_NOT_FOUND);
	CHECK_ERR(apply(w, removal(row_of(w, "p", "r"), 0)), ERR_NOT_FOUND);
	CHECK_ERR(apply(w, removal(by_id(99999), 0)), ERR_GONE);
	struct item it;
	CHECK_ERR(
		store_child(w->s, NULL, 99999, CLASS_KEYED, SPAN_LIT("a"), 0, &it), ERR_NOT_FOUND);
	CHECK_ERR(store_get(w->s, NULL, 99999, 0, &it), ERR_NOT_FOUND);
}

static void a_parent_refuses_what_it_may_not_hold(struct world *w)
{
	uint64_t r = row(w, "p", "a", "{}");
	uint64_t p = partition(w, "p");
	uint64_t folder = made(w, put(ITEM_FOLDER, file_of(p, "folder"), NULL));
	const struct change bad[] = {
		put(ITEM_ROW, child_of(w->table, "r"), "{}"),
		put(ITEM_ROW, child_of(folder, "r"), "{}"),
		put(ITEM_TABLE, child_of(STORE_ROOT, "t"), NULL),
		put(ITEM_ACCOUNT, child_of(folder, "account"), "k"),
		put(ITEM_FILE, child_of(STORE_ROOT, "f"), NULL),
		put(ITEM_FILE, child_of(w->table, "f"), NULL),
		put(ITEM_FILE, file_of(r, "f"), NULL),
		put(ITEM_FOLDER, child_of(w->account, "f"), NULL),
		put(ITEM_PARTITION, child_of(p, "p"), NULL),
		put(ITEM_ROW, file_of(p, "r"), "{}"),
		moving(by_id(r), child_of(w->table, "x"), 0),
		moving(by_id(folder), child_of(w->account, "x"), 0),
	};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_ERR(apply(w, bad[i]), ERR_NOT_PERMITTED);
	CHECK_ERR(apply(w, put(ITEM_FOLDER, file_of(w->table, "pending"), NULL)), ERR_OK);
	const uint64_t dirs[] = { STORE_ROOT, w->account, w->table, p, folder, STORE_TRASH };
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		CHECK_ERR(apply(w, put(ITEM_FILE, file_of(dirs[i], "f"), NULL)), ERR_OK);
	CHECK_ERR(apply(w, put(ITEM_FOLDER, file_of(w->account, "g"), NULL)), ERR_OK);
	CHECK_ERR(apply(w, moving(by_id(folder), file_of(w->account, "x"), 0)), ERR_OK);
}

static void membership_counts_and_moves_the_directorys_time(struct world *w)
{
	row(w, "p", "a", D("1"));
	uint64_t p = partition(w, "p");
	struct change c = { .op = CHANGE_ATTRS,
		.at = by_id(p),
		.set_mask = ATTR_MTIME | ATTR_CTIME,
		.attrs = { .mtime_ns = 5, .ctime_ns = 6 } };
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.attrs.mtime_ns, 5);
	row(w, "p", "a", D("2")); /* no member more */
	struct item it = item_by_id(w, p);
	CHECK(counts(w, &it, 1));
	CHECK_EQ_INT(it.attrs.mtime_ns, 5);
	item_fini(&it);
	row(w, "p", "b", D("1"));
	it = item_by_id(w, p);
	CHECK(counts(w, &it, 2));
	CHECK(is_last_version(w, it.version));
	CHECK(it.attrs.mtime_ns == TIME_UNSET && it.attrs.ctime_ns == TIME_UNSET);
	item_fini(&it);
	it = item_by_id(w, w->table);
	CHECK(counts(w, &it, 1));
	item_fini(&it);
}

static void an_emptied_partition_goes_unless_it_was_made(struct world *w)
{
	row(w, "p", "a", D("1"));
	uint64_t p = partition(w, "p");
	CHECK_ERR(apply(w, removal(row_of(w, "p", "a"), 0)), ERR_OK);
	CHECK_EQ_INT(w->c.left.id, p);
	CHECK_EQ_INT(w->c.left.kind, ITEM_PARTITION);
	CHECK(span_is(w->c.left.key, "p"));
	CHECK_ERR(gone(w, p), ERR_NOT_FOUND);

	row(w, "q", "a", D("1"));
	CHECK_ERR(apply(w, removal(row_of(w, "q", "a"), CHANGE_KEEP_DIR)), ERR_OK);
	CHECK_EQ_INT(w->c.left.kind, ITEM_NONE);
	struct item it = item_by_id(w, partition(w, "q"));
	CHECK_EQ_INT(it.flags, ITEM_MADE);
	CHECK(w->lacks & CONTRACT_EMPTY || it.size == 0);
	item_fini(&it);

	struct change c = put(ITEM_PARTITION, child_of(w->table, "made"), NULL);
	c.item_flags = ITEM_MADE;
	uint64_t m = made(w, c);
	row(w, "made", "a", D("1"));
	CHECK_ERR(apply(w, removal(row_of(w, "made", "a"), 0)), ERR_OK);
	CHECK_ERR(gone(w, m), ERR_OK);

	/* A file keeps it, too. */
	row(w, "f", "a", D("1"));
	file(w, partition(w, "f"), "notes", "x");
	CHECK_ERR(apply(w, removal(row_of(w, "f", "a"), 0)), ERR_OK);
	CHECK(partition(w, "f") != 0);
	CHECK_ERR(apply(w, removal(file_of(partition(w, "f"), "notes"), 0)), ERR_OK);
	CHECK_EQ_INT(partition(w, "f"), 0);
}

static void directories_are_removed_empty_or_recursively(struct world *w)
{
	struct store_info info;
	uint64_t r = row(w, "p", "a", "1");
	uint64_t folder = made(w, put(ITEM_FOLDER, file_of(partition(w, "p"), "d"), NULL));
	uint64_t f = file(w, folder, "f", "12345");
	CHECK_ERR(apply(w, removal(by_id(w->account), 0)), ERR_NOT_EMPTY);
	CHECK_ERR(apply(w, removal(by_id(partition(w, "p")), 0)), ERR_NOT_EMPTY);
	store_info(w->s, &info);
	CHECK_EQ_INT(info.file_bytes, 5);
	CHECK_ERR(apply(w, removal(by_id(w->table), CHANGE_RECURSIVE)), ERR_OK);
	CHECK_ERR(gone(w, r), ERR_NOT_FOUND);
	CHECK_ERR(gone(w, f), ERR_NOT_FOUND);
	CHECK_ERR(gone(w, folder), ERR_NOT_FOUND);
	store_info(w->s, &info);
	CHECK_EQ_INT(info.file_bytes, 0);
	struct item it = item_by_id(w, w->account);
	CHECK_EQ_INT(it.size, 0);
	item_fini(&it);
	CHECK_ERR(apply(w, removal(by_id(w->account), 0)), ERR_OK);
}

/* More than one change set takes away at once. */
#define MANY 1000

static void fill_table(struct world *w)
{
	char key[16];
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		(void)row(w, i % 2 ? "p" : "q", key, "{}");
	}
}

static void wait_until_reclaimed(struct world *w)
{
	struct store_info info;
	do
		store_info(w->s, &info);
	while (info.reclaiming && usleep(1000) == 0);
	CHECK_EQ_INT(info.file_bytes, 0);
}

static bool has_child(struct world *w, struct store_view *v, uint64_t dir, const char *key)
{
	struct item it = { 0 };
	struct keys k = { 0 };
	bool found = store_child(w->s, v, dir, CLASS_KEYED, span_of(key), 0, &it) == ERR_OK;
	item_fini(&it);
	CHECK_ERR(store_list(w->s, v, dir, CLASS_KEYED, SPAN_NONE, false, 0, note_key, &k), ERR_OK);
	CHECK_EQ_INT(k.n > 0, found);
	return found;
}

static void below_a_removed_directory_nothing_can_be_read_or_changed(struct world *w)
{
	char c[4];
	size_t n;
	fill_table(w);
	uint64_t r = row(w, "p", "1", "2"), p = partition(w, "p"), old = w->table;
	uint64_t folder = made(w, put(ITEM_FOLDER, file_of(p, "d"), NULL));
	uint64_t f = file(w, folder, "f", "12345");
	CHECK(has_child(w, NULL, p, "1"));
	CHECK_ERR(apply(w, removal(by_id(w->table), CHANGE_RECURSIVE)), ERR_OK);
	const uint64_t ids[] = { r, p, folder, f, old };
	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		CHECK_ERR(gone(w, ids[i]), ERR_NOT_FOUND);
		CHECK_ERR(apply(w, removal(by_id(ids[i]), CHANGE_RECURSIVE)), ERR_GONE);
	}
	CHECK(!has_child(w, NULL, p, "1") && !has_child(w, NULL, old, "p"));
	CHECK_ERR(store_file_read(w->s, NULL, f, 0, c, sizeof(c), &n), ERR_NOT_FOUND);
	CHECK_ERR(apply(w, put(ITEM_ROW, row_of(w, "p", "1"), "{}")), ERR_TABLE_NOT_FOUND);
	CHECK_ERR(apply(w, put(ITEM_ROW, child_of(p, "1"), "{}")), ERR_NOT_FOUND);
	CHECK_ERR(apply(w, put(ITEM_FILE, file_of(folder, "g"), NULL)), ERR_NOT_FOUND);
	CHECK_ERR(apply(w, removal(child_of(p, "1"), 0)), ERR_NOT_FOUND);
	CHECK_ERR(apply(w, moving(child_of(p, "1"), child_of(p, "x"), 0)), ERR_NOT_FOUND);
	wait_until_reclaimed(w);
	CHECK_ERR(gone(w, r), ERR_NOT_FOUND);
}

static void the_name_of_a_removed_directory_is_free_at_once(struct world *w)
{
	fill_table(w);
	struct item_ref at = child_of(w->account, "again");
	CHECK_ERR(apply(w, moving(by_id(w->table), at, 0)), ERR_OK);
	for (int i = 0; i < 3; i++) {
		CHECK_ERR(apply(w, removal(at, CHANGE_RECURSIVE)), ERR_OK);
		w->table = made(w, put(ITEM_TABLE, at, NULL));
		struct item it = item_by_id(w, w->account);
		CHECK(counts(w, &it, 1));
		item_fini(&it);
		fill_table(w);
	}
	wait_until_reclaimed(w);
	CHECK(has_child(w, NULL, partition(w, "p"), "1"));
	struct item it = item_by_id(w, w->table);
	CHECK(counts(w, &it, 2));
	item_fini(&it);
	CHECK_ERR(store_check(w->s, NULL, NULL, NULL), ERR_OK);
}

static void a_view_shows_what_is_removed_and_reclaimed_later(struct world *w)
{
	struct store_view *before, *after;
	fill_table(w);
	uint64_t p = partition(w, "p");
	CHECK_ERR(store_view_hold(w->s, &before), ERR_OK);
	CHECK_ERR(apply(w, removal(by_id(w->account), CHANGE_RECURSIVE)), ERR_OK);
	CHECK_ERR(store_view_hold(w->s, &after), ERR_OK);
	CHECK(has_child(w, before, p, "1") && !has_child(w, after, p, "1"));
	wait_until_reclaimed(w);
	CHECK(has_child(w, before, p, "1") && !has_child(w, after, p, "1"));
	store_view_close(w->s, before);
	store_view_close(w->s, after);
}

static void the_quota_of_what_is_removed_is_free_at_once(struct world *w)
{
	char content[1025];
	memset(content, 'x', sizeof(content));
	content[1024] = '\0';
	w->engine->limits(w->s, 1 << 20, (MANY / 2 + 1) * 1024);
	fill_table(w);
	for (int i = 0; i < MANY / 2; i++) {
		char name[16];
		(void)snprintf(name, sizeof(name), "f%d", i);
		(void)file(w, partition(w, "p"), name, content);
	}
	CHECK_ERR(apply(w, removal(by_id(w->table), CHANGE_RECURSIVE)), ERR_OK);
	uint64_t folder = made(w, put(ITEM_FOLDER, file_of(w->account, "d"), NULL));
	for (int i = 0; i < MANY / 2; i++) {
		char name[16];
		(void)snprintf(name, sizeof(name), "%d", i);
		(void)file(w, folder, name, content);
	}
	struct store_info info;
	do
		store_info(w->s, &info);
	while (info.reclaiming && usleep(1000) == 0);
	CHECK_EQ_INT(info.file_bytes, MANY / 2 * 1024);
}

static void change_sets_that_were_applied_are_counted(struct world *w)
{
	struct store_info a, b;
	store_info(w->s, &a);
	row(w, "p", "a", D("1"));
	row(w, "p", "b", D("1"));
	struct change c = put(ITEM_ROW, row_of(w, "p", "a"), D("2"));
	c.cond = COND_ABSENT;
	CHECK_ERR(apply(w, c), ERR_ENTITY_EXISTS);
	store_info(w->s, &b);
	CHECK_EQ_INT(b.change_sets - a.change_sets, 2);
	CHECK_EQ_INT(b.commits - a.commits, 2);
	CHECK_EQ_INT(b.commit_sizes[0] - a.commit_sizes[0], 2);
}

static void a_delete_tells_what_was_there(struct world *w)
{
	uint64_t id = row(w, "p", "a", D("bytes"));
	int64_t version = w->c.now.version;
	CHECK_ERR(apply(w, removal(by_id(id), CHANGE_WANT_OLD)), ERR_OK);
	CHECK_EQ_INT(w->c.now.version, version);
	CHECK(span_is(w->c.old.body, D("bytes")) && !w->c.now.body.p);
	struct change c = put(ITEM_ROW, row_of(w, "p", "a"), D("x"));
	c.flags = CHANGE_WANT_OLD;
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.old.kind, ITEM_NONE);
}

static void a_move_carries_id_generation_and_mtime(struct world *w)
{
	uint64_t id = row(w, "p", "a", "1");
	int64_t version = w->c.now.version;
	CHECK_ERR(apply(w, moving(row_of(w, "p", "a"), row_of(w, "q", "b"), 0)), ERR_OK);
	CHECK(w->c.made_partition);
	CHECK_EQ_INT(w->c.left.kind, ITEM_PARTITION);
	CHECK_EQ_INT(w->c.now.id, id);
	CHECK_EQ_INT(w->c.now.generation, 1);
	CHECK_EQ_INT(w->c.now.version, w->clock);
	CHECK_EQ_INT(w->c.now.attrs.mtime_ns, ticks_to_unix_ns(version));
	CHECK(w->c.now.attrs.ctime_ns == TIME_UNSET);
	CHECK_EQ_INT(partition(w, "p"), 0);
	/* With a document that holds other keys. */
	struct change c = moving(by_id(id), row_of(w, "q", "c"), 0);
	c.body = SPAN_LIT("rewritten");
	c.item_flags = ITEM_KEYS_INSIDE;
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.generation, 2);
	CHECK_EQ_INT(w->c.now.size, 9);
	CHECK_EQ_INT(w->c.now.flags, ITEM_KEYS_INSIDE);
}

static void a_move_replaces_or_refuses(struct world *w)
{
	uint64_t a = row(w, "p", "a", "1"), b = row(w, "p", "b", "2");
	uint64_t p = partition(w, "p");
	uint64_t d = made(w, put(ITEM_FOLDER, file_of(p, "d"), NULL));
	uint64_t e = made(w, put(ITEM_FOLDER, file_of(p, "e"), NULL));
	uint64_t f = file(w, p, "f", "x");
	file(w, e, "inside", "y");
	CHECK_ERR(apply(w, moving(by_id(a), row_of(w, "p", "b"), CHANGE_NO_REPLACE)),
		ERR_ENTITY_EXISTS);
	CHECK_ERR(apply(w, moving(by_id(f), file_of(p, "d"), CHANGE_NO_REPLACE)), ERR_NAME_EXISTS);
	CHECK_ERR(apply(w, moving(by_id(f), file_of(p, "d"), 0)), ERR_IS_A_DIRECTORY);
	CHECK_ERR(apply(w, moving(by_id(d), file_of(p, "f"), 0)), ERR_NOT_A_DIRECTORY);
	CHECK_ERR(apply(w, moving(by_id(d), file_of(p, "e"), 0)), ERR_NOT_EMPTY);
	CHECK_ERR(apply(w, moving(by_id(e), file_of(p, "d"), 0)), ERR_OK);
	CHECK_ERR(gone(w, d), ERR_NOT_FOUND);
	struct change c = moving(by_id(a), row_of(w, "p", "b"), CHANGE_WANT_OLD);
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.old.id, b);
	CHECK(span_is(w->c.old.body, "2"));
	CHECK_ERR(gone(w, b), ERR_NOT_FOUND);
	struct item it = item_by_id(w, p);
	CHECK(counts(w, &it, 3));
	item_fini(&it);
}

static void a_move_replaces_only_the_version_that_was_named(struct world *w)
{
	uint64_t a = row(w, "p", "a", D("1"));
	row(w, "p", "b", D("2"));
	int64_t version = w->c.now.version;
	struct change c = moving(by_id(a), row_of(w, "p", "b"), 0);
	c.to_match = true;
	c.to_version = version - 1;
	CHECK_ERR(apply(w, c), ERR_CONDITION_NOT_MET);
	c.to.key = SPAN_LIT("none");
	CHECK_ERR(apply(w, c), ERR_CONDITION_NOT_MET);
	c.to.key = SPAN_LIT("b");
	c.to_version = version;
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.id, a);
}

static void a_move_onto_itself_changes_nothing(struct world *w)
{
	uint64_t a = row(w, "p", "a", "1");
	int64_t version = w->c.now.version;
	CHECK_ERR(apply(w, moving(by_id(a), row_of(w, "p", "a"), 0)), ERR_OK);
	CHECK_EQ_INT(w->c.now.version, version);
	CHECK_ERR(apply(w, moving(by_id(a), row_of(w, "p", "a"), CHANGE_EXCHANGE)), ERR_OK);
	CHECK_ERR(apply(w, moving(by_id(a), row_of(w, "p", "a"), CHANGE_NO_REPLACE)),
		ERR_ENTITY_EXISTS);
	/* Another case of a table's name is a change. */
	struct change c = moving(by_id(w->table), child_of(w->account, "table"), 0);
	c.name = SPAN_LIT("TABLE");
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK(span_is(w->c.now.name, "TABLE"));
}

static void a_directory_cannot_move_into_itself(struct world *w)
{
	row(w, "p", "a", "1");
	uint64_t p = partition(w, "p");
	uint64_t d = made(w, put(ITEM_FOLDER, file_of(p, "d"), NULL));
	uint64_t e = made(w, put(ITEM_FOLDER, file_of(d, "e"), NULL));
	CHECK_ERR(apply(w, moving(by_id(d), file_of(e, "x"), 0)), ERR_INVALID_INPUT);
	CHECK_ERR(apply(w, moving(by_id(d), file_of(d, "x"), 0)), ERR_INVALID_INPUT);
	CHECK_ERR(apply(w, moving(by_id(e), file_of(p, "d"), CHANGE_EXCHANGE)), ERR_INVALID_INPUT);
	CHECK_ERR(apply(w, moving(by_id(e), file_of(p, "d"), 0)), ERR_NOT_EMPTY);
	CHECK_ERR(apply(w, moving(by_id(e), file_of(p, "x"), 0)), ERR_OK);
}

static void a_moved_partition_or_table_takes_all_along(struct world *w)
{
	uint64_t a = row(w, "p", "a", "1");
	CHECK_ERR(apply(w, moving(by_id(partition(w, "p")), child_of(w->table, "q"), 0)), ERR_OK);
	struct item it;
	CHECK_ERR(store_child(w->s, NULL, partition(w, "q"), CLASS_KEYED, SPAN_LIT("a"), 0, &it),
		ERR_OK);
	CHECK_EQ_INT(it.id, a);
	item_fini(&it);
	/* The old key is free, and its rows are another partition's. */
	uint64_t again = row(w, "p", "a", "2");
	CHECK(again != a);
	uint64_t other = made(w, put(ITEM_ACCOUNT, child_of(STORE_ROOT, "other"), "k"));
	struct change c = moving(by_id(w->table), child_of(other, "t"), 0);
	c.name = SPAN_LIT("T");
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.size, 2);
	CHECK(span_is(w->c.now.name, "T"));
	CHECK_ERR(apply(w, removal(row_of(w, "q", "a"), 0)), ERR_OK);
}

static void files_and_rows_turn_into_each_other(struct world *w)
{
	uint64_t r = row(w, "p", "a", "{}");
	uint64_t p = partition(w, "p");
	uint64_t f = file(w, p, "tmp", "{\"B\":2}");
	struct store_info info;
	struct change c = moving(by_id(f), row_of(w, "p", "a"), CHANGE_WANT_OLD);
	c.to_kind = ITEM_ROW;
	CHECK_ERR(apply(w, c), ERR_INVALID_INPUT);
	c.body = SPAN_LIT("{\"B\":2}");
	c.cond = COND_VERSION;
	c.cond_version = 1;
	CHECK_ERR(apply(w, c), ERR_CONDITION_NOT_MET);
	c.cond = COND_NONE;
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.id, f);
	CHECK_EQ_INT(w->c.now.generation, 0);
	CHECK_EQ_INT(w->c.old.id, r);
	store_info(w->s, &info);
	CHECK_EQ_INT(info.file_bytes, 0);
	c = moving(by_id(f), file_of(p, "back"), 0);
	c.to_kind = ITEM_FILE;
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.generation, 1);
	CHECK(content_is(w, f, "{\"B\":2}"));
	store_info(w->s, &info);
	CHECK_EQ_INT(info.file_bytes, 7);
	/* (id, generation) must not name two contents. */
	c = (struct change){ .op = CHANGE_WRITE, .at = by_id(f), .body = SPAN_LIT("{\"C\"") };
	CHECK_ERR(apply(w, c), ERR_OK);
	c = moving(by_id(f), row_of(w, "p", "a"), 0);
	c.to_kind = ITEM_ROW;
	c.body = SPAN_LIT("{\"C\":2}");
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.generation, 1);
	CHECK_EQ_INT(w->c.now.flags, 0);
}

/* Whatever changes, replaces, moves or turns it. */
static void what_is_made_keeps_the_time_at_which_it_was(struct world *w)
{
	uint64_t r = made(w, put(ITEM_ROW, row_of(w, "p", "a"), "{}"));
	int64_t born = w->clock;
	CHECK_EQ_INT(w->c.now.born, born);
	CHECK_ERR(apply(w, put(ITEM_ROW, row_of(w, "p", "a"), "{\"A\":1}")), ERR_OK);
	CHECK_EQ_INT(w->c.now.born, born);
	CHECK_ERR(apply(w, moving(by_id(r), row_of(w, "q", "b"), 0)), ERR_OK);
	CHECK_ERR(apply(w, put(ITEM_ROW, row_of(w, "p", "a"), "{}")), ERR_OK);
	CHECK_EQ_INT(w->c.now.born, w->clock);
	uint64_t p = partition(w, "p");
	struct change c = moving(by_id(r), file_of(p, "f"), 0);
	c.to_kind = ITEM_FILE;
	CHECK_ERR(apply(w, c), ERR_OK);
	c = (struct change){ .op = CHANGE_WRITE, .at = by_id(r), .body = SPAN_LIT("{ }") };
	CHECK_ERR(apply(w, c), ERR_OK);
	struct item it = item_by_id(w, r);
	CHECK_EQ_INT(it.born, born);
	CHECK(it.version > born);
	item_fini(&it);
	/* A file's own, though it is empty again. */
	uint64_t f = made(w, put(ITEM_FILE, file_of(p, "g"), ""));
	born = w->clock;
	c.at = by_id(f);
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_ERR(apply(w, (struct change){ .op = CHANGE_RESIZE, .at = by_id(f) }), ERR_OK);
	it = item_by_id(w, f);
	CHECK_EQ_INT(it.born, born);
	item_fini(&it);
	it = item_by_id(w, p);
	CHECK_EQ_INT(it.born, 0);
	item_fini(&it);
}

static void a_removed_row_may_leave_a_file(struct world *w)
{
	struct store_info info;
	struct item it;
	uint64_t r = row(w, "p", "a", "{\"A\":1}");
	uint64_t q = row(w, "q", "b", "{}"), p = partition(w, "q");
	int64_t was = w->c.now.version;
	struct change c = removal(row_of(w, "p", "a"), CHANGE_TO_FILE | CHANGE_WANT_OLD);
	c.to = file_of(STORE_TRASH, "left");
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.id, r);
	CHECK(span_is(w->c.old.body, "{\"A\":1}"));
	CHECK_ERR(gone(w, r), ERR_NOT_FOUND);
	CHECK_ERR(store_child(
			  w->s, NULL, STORE_TRASH, CLASS_NAMED, SPAN_LIT("left"), WANT_ATTRS, &it),
		ERR_OK);
	uint64_t f = it.id;
	CHECK(f != r && f < UINT64_C(1) << STORE_ID_BITS);
	CHECK_EQ_INT(it.kind, ITEM_FILE);
	CHECK_EQ_INT(it.generation, 0);
	CHECK_EQ_INT(it.size, 7);
	CHECK(it.version > was);
	item_fini(&it);
	CHECK(content_is(w, f, "{\"A\":1}"));
	store_info(w->s, &info);
	CHECK_EQ_INT(info.file_bytes, 7);
	/* What is there already is not replaced, and only rows leave files. */
	c = removal(by_id(q), CHANGE_TO_FILE);
	c.to = file_of(STORE_TRASH, "left");
	CHECK_ERR(apply(w, c), ERR_NAME_EXISTS);
	c = removal(by_id(f), CHANGE_TO_FILE);
	c.to = file_of(STORE_TRASH, "again");
	CHECK_ERR(apply(w, c), ERR_INVALID_INPUT);
	/* It comes back as a row with its id, and leaves another file. */
	c = moving(by_id(f), row_of(w, "q", "c"), 0);
	c.to_kind = ITEM_ROW;
	c.body = SPAN_LIT("{\"A\":1}");
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.id, f);
	c = removal(by_id(f), CHANGE_TO_FILE);
	c.to = file_of(p, "here");
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_ERR(gone(w, f), ERR_NOT_FOUND);
	CHECK_ERR(
		store_child(w->s, NULL, p, CLASS_NAMED, SPAN_LIT("here"), WANT_ATTRS, &it), ERR_OK);
	CHECK(it.id != f && it.id != r);
	CHECK(content_is(w, it.id, "{\"A\":1}"));
	item_fini(&it);
	CHECK_ERR(store_check(w->s, NULL, NULL, NULL), ERR_OK);
}

static void a_row_without_a_document_waits_for_one(struct world *w)
{
	struct item it = { 0 };
	row(w, "p", "a", "{}");
	uint64_t p = partition(w, "p"), e = row(w, "p", "empty", "");
	CHECK_ERR(store_get(w->s, NULL, p, WANT_ATTRS, &it), ERR_OK);
	CHECK(it.flags & ITEM_HELD_EMPTY);
	item_fini(&it);
	CHECK_ERR(store_get(w->s, NULL, e, WANT_BODY, &it), ERR_OK);
	CHECK(item_is_empty_row(&it) && it.body.p != NULL && it.body.n == 0);
	item_fini(&it);
	/* To conditions about rows it is nothing, but no second one comes to its place. */
	struct change c = put(ITEM_ROW, row_of(w, "p", "empty"), NULL);
	c.body = SPAN_LIT("");
	CHECK_ERR(apply(w, c), ERR_ENTITY_EXISTS);
	c.cond = COND_ABSENT;
	CHECK_ERR(apply(w, c), ERR_ENTITY_EXISTS);
	c.body = SPAN_LIT("{}");
	c.cond = COND_PRESENT;
	CHECK_ERR(apply(w, c), ERR_NOT_FOUND);
	c = removal(row_of(w, "p", "empty"), 0);
	c.cond = COND_PRESENT;
	CHECK_ERR(apply(w, c), ERR_NOT_FOUND);
	/* Its document comes to the same item. */
	c = put(ITEM_ROW, row_of(w, "p", "empty"), NULL);
	c.body = SPAN_LIT("{\"A\":1}");
	c.cond = COND_ABSENT;
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.id, e);
	CHECK_EQ_INT(w->c.now.generation, 2);
	CHECK_ERR(apply(w, c), ERR_ENTITY_EXISTS);
	/* An empty file becomes one by a move, and one becomes an empty file. */
	uint64_t f = made(w, put(ITEM_FILE, file_of(p, "tmp"), NULL));
	c = moving(by_id(f), row_of(w, "p", "b"), 0);
	c.to_kind = ITEM_ROW;
	c.body = SPAN_LIT("");
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK(item_is_empty_row(&w->c.now) && w->c.now.id == f);
	c = moving(by_id(f), file_of(p, "tmp"), 0);
	c.to_kind = ITEM_FILE;
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK(w->c.now.kind == ITEM_FILE && w->c.now.size == 0 && w->c.now.id == f);
	CHECK_ERR(apply(w, removal(by_id(f), 0)), ERR_OK);
	CHECK_ERR(store_check(w->s, NULL, NULL, NULL), ERR_OK);
}

static void a_pending_folder_becomes_a_partition(struct world *w)
{
	uint64_t d = made(w, put(ITEM_FOLDER, file_of(w->table, "long%~X"), NULL));
	file(w, d, "f", "x");
	struct change c = moving(by_id(d), child_of(w->table, "longkey"), 0);
	c.to_kind = ITEM_PARTITION;
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.id, d);
	CHECK_EQ_INT(w->c.now.kind, ITEM_PARTITION);
	CHECK_EQ_INT(w->c.now.class, CLASS_KEYED);
	row(w, "longkey", "a", "{}");
	CHECK_EQ_INT(w->c.now.parent, d);
}

static void an_exchange_swaps_and_converts(struct world *w)
{
	uint64_t a = row(w, "p", "a", "row");
	uint64_t p = partition(w, "p");
	uint64_t f = file(w, p, "f", "file");
	CHECK_ERR(apply(w, moving(by_id(a), file_of(p, "none"), CHANGE_EXCHANGE)), ERR_NOT_FOUND);
	struct change c = moving(by_id(a), file_of(p, "f"), CHANGE_EXCHANGE | CHANGE_WANT_OLD);
	CHECK_ERR(apply(w, c), ERR_NOT_PERMITTED); /* a row under a file's name */
	c.to_kind = ITEM_FILE;
	c.other_kind = ITEM_ROW;
	c.other_body = SPAN_LIT("file");
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.old.id, f);
	CHECK_EQ_INT(w->c.old.kind, ITEM_FILE);
	CHECK(content_is(w, a, "row"));
	struct item it = item_by_id(w, f);
	CHECK(it.kind == ITEM_ROW && span_is(it.key, "a") && span_is(it.body, "file"));
	item_fini(&it);
	it = item_by_id(w, p);
	CHECK(counts(w, &it, 2));
	item_fini(&it);
}

static void attributes_change_by_mask_and_without_a_version(struct world *w)
{
	uint64_t a = row(w, "p", "a", D("1"));
	int64_t version = w->c.now.version;
	struct change c = { .op = CHANGE_ATTRS,
		.at = by_id(a),
		.set_mask = ATTR_UID | ATTR_MTIME,
		.attrs = { MODE_SET(0777), 11, 12, 13, 14 } };
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.version, version);
	CHECK_EQ_INT(w->c.now.generation, 1);
	CHECK(w->c.now.attrs.uid == 11 && w->c.now.attrs.mtime_ns == 13);
	CHECK(w->c.now.attrs.mode == MODE_UNSET && w->c.now.attrs.gid == OWNER_UNSET);
	c = (struct change){ .op = CHANGE_ATTRS,
		.at = by_id(partition(w, "p")),
		.set_mask = ATTR_FLAG_MADE,
		.item_flags = ITEM_MADE };
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_ERR(apply(w, removal(by_id(a), 0)), ERR_OK);
	CHECK_EQ_INT(w->c.left.kind, ITEM_NONE);
}

/* A file's condition stays with it, until it is a row; nothing else has one. */
static void conditions_are_of_files(struct world *w)
{
	uint64_t a = row(w, "p", "a", D("1")), p = partition(w, "p"), f = file(w, p, "f", "abc");
	struct change c = { .op = CHANGE_ATTRS,
		.at = by_id(f),
		.set_mask = ATTR_MATCH,
		.attrs = { .if_match = 77 } };
	CHECK_ERR(apply(w, c), ERR_OK);
	c.at = by_id(a);
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.attrs.if_match, MATCH_UNSET);
	c.at = by_id(p);
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.attrs.if_match, MATCH_UNSET);
	c = (struct change){ .op = CHANGE_RESIZE, .at = by_id(f), .offset = 0 };
	CHECK_ERR(apply(w, c), ERR_OK);
	c = (struct change){ .op = CHANGE_ATTRS, .at = by_id(f), .set_mask = ATTR_UID };
	CHECK_ERR(apply(w, c), ERR_OK);
	struct item it = item_by_id(w, f);
	CHECK_EQ_INT(it.attrs.if_match, 77);
	item_fini(&it);
	c = (struct change){ .op = CHANGE_MOVE,
		.at = by_id(f),
		.to = { .parent = p, .class = CLASS_NAMED, .key = SPAN_LIT("g") } };
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.attrs.if_match, 77);
	c.to = (struct item_ref){ .parent = p, .class = CLASS_KEYED, .key = SPAN_LIT("b") };
	c.to_kind = ITEM_ROW;
	c.body = SPAN_LIT("{}");
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.attrs.if_match, MATCH_UNSET);
	it = item_by_id(w, f);
	CHECK(it.kind == ITEM_ROW && it.attrs.if_match == MATCH_UNSET);
	item_fini(&it);
}

static void files_have_holes_ends_and_times(struct world *w)
{
	row(w, "p", "a", D("1"));
	uint64_t f = file(w, partition(w, "p"), "f", "abc");
	struct change c = { .op = CHANGE_ATTRS,
		.at = by_id(f),
		.set_mask = ATTR_MTIME,
		.attrs = { .mtime_ns = 1 } };
	CHECK_ERR(apply(w, c), ERR_OK);
	c = (struct change){
		.op = CHANGE_WRITE, .at = by_id(f), .offset = 40000, .body = SPAN_LIT("end")
	};
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_EQ_INT(w->c.now.size, 40003);
	CHECK(w->c.now.attrs.mtime_ns == TIME_UNSET);
	char b[8] = "xxxxxxxx";
	size_t n = 99;
	CHECK_ERR(store_file_read(w->s, NULL, f, 1, b, 4, &n), ERR_OK);
	CHECK(n == 4 && memcmp(b, "bc\0\0", 4) == 0);
	CHECK_ERR(store_file_read(w->s, NULL, f, 39999, b, 8, &n), ERR_OK);
	CHECK(n == 4 && memcmp(b, "\0end", 4) == 0);
	CHECK_ERR(store_file_read(w->s, NULL, f, 40003, b, 8, &n), ERR_OK);
	CHECK_EQ_INT(n, 0);
	CHECK_ERR(store_file_read(w->s, NULL, f, UINT64_MAX, b, 8, &n), ERR_OK);
	CHECK_EQ_INT(n, 0);
	/* What was cut off does not come back. */
	c = (struct change){ .op = CHANGE_RESIZE, .at = by_id(f), .offset = 2 };
	CHECK_ERR(apply(w, c), ERR_OK);
	c.offset = 5;
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_ERR(store_file_read(w->s, NULL, f, 0, b, 8, &n), ERR_OK);
	CHECK(n == 5 && memcmp(b, "ab\0\0\0", 5) == 0);
	CHECK_ERR(store_file_read(w->s, NULL, partition(w, "p"), 0, b, 8, &n), ERR_IS_A_DIRECTORY);
	CHECK_ERR(store_file_read(w->s, NULL, 99999, 0, b, 8, &n), ERR_NOT_FOUND);
	c = (struct change){ .op = CHANGE_WRITE, .at = row_of(w, "p", "a"), .body = SPAN_LIT("x") };
	CHECK_ERR(apply(w, c), ERR_INVALID_INPUT);
}

static void file_limits_hold_on_both_sides(struct world *w)
{
	w->engine->limits(w->s, 100, 150);
	row(w, "p", "a", D("1"));
	uint64_t p = partition(w, "p");
	uint64_t f = made(w, put(ITEM_FILE, file_of(p, "f"), NULL));
	struct change c = {
		.op = CHANGE_WRITE, .at = by_id(f), .offset = 99, .body = SPAN_LIT("x")
	};
	CHECK_ERR(apply(w, c), ERR_OK);
	c.offset = 100;
	CHECK_ERR(apply(w, c), ERR_FILE_TOO_LARGE);
	c.offset = UINT64_MAX;
	CHECK_ERR(apply(w, c), ERR_FILE_TOO_LARGE);
	uint64_t g = made(w, put(ITEM_FILE, file_of(p, "g"), NULL));
	c = (struct change){ .op = CHANGE_RESIZE, .at = by_id(g), .offset = 51 };
	CHECK_ERR(apply(w, c), ERR_QUOTA);
	c.offset = 50;
	CHECK_ERR(apply(w, c), ERR_OK);
	CHECK_ERR(apply(w, removal(by_id(f), 0)), ERR_OK);
	c.offset = 100;
	CHECK_ERR(apply(w, c), ERR_OK);
}

/* Skips the rows with this document. */
static bool is_dull(void *arg, const struct item *it)
{
	(void)arg;
	CHECK(it->key.n == 1 && it->version > 0);
	return span_is(it->body, D("dull"));
}

static bool note_bright(void *arg, const struct item *it)
{
	return span_is(it->body, D("dull")) || note_key(arg, it);
}

static void a_scan_shows_every_item_that_it_may_not_skip(struct world *w)
{
	char key[2] = "";
	for (key[0] = 'a'; key[0] <= 'z'; key[0]++)
		row(w, "p", key, key[0] % 5 == 0 ? D("bright") : D("dull"));
	uint64_t p = partition(w, "p");
	struct keys k = { 0 };
	CHECK_ERR(
		store_scan(w->s, NULL, p, CLASS_KEYED, SPAN_NONE, false, is_dull, note_bright, &k),
		ERR_OK);
	CHECK_EQ_STR(k.text, "dinsx");
	k = (struct keys){ .stop_at = 2 };
	CHECK_ERR(store_scan(w->s, NULL, p, CLASS_KEYED, SPAN_LIT("i"), true, is_dull, note_bright,
			  &k),
		ERR_OK);
	CHECK_EQ_STR(k.text, "in");
	k = (struct keys){ 0 };
	CHECK_ERR(store_scan(w->s, NULL, p, CLASS_KEYED, SPAN_LIT("s"), false, is_dull, note_bright,
			  &k),
		ERR_OK);
	CHECK_EQ_STR(k.text, "x");
	CHECK_ERR(store_list(w->s, NULL, p, CLASS_KEYED, SPAN_LIT("w"), false, WANT_BODY, note_key,
			  &k),
		ERR_OK);
	CHECK_EQ_STR(k.text, "xxyz"); /* a listing skips nothing */
}

static void a_listing_is_ordered_bounded_and_resumes(struct world *w)
{
	char key[3] = "";
	for (int i = 0; i < 26; i++) {
		key[0] = (char)('a' + (i * 7) % 26);
		row(w, "p", key, D("1"));
	}
	uint64_t p = partition(w, "p");
	file(w, p, "A", "");
	struct keys k = { 0 };
	CHECK_ERR(
		store_list(w->s, NULL, p, CLASS_KEYED, SPAN_NONE, false, 0, note_key, &k), ERR_OK);
	CHECK_EQ_STR(k.text, "abcdefghijklmnopqrstuvwxyz");
	k = (struct keys){ .stop_at = 3 };
	CHECK_ERR(store_list(w->s, NULL, p, CLASS_KEYED, SPAN_LIT("w"), false, 0, note_key, &k),
		ERR_OK);
	CHECK_EQ_STR(k.text, "xyz");
	k = (struct keys){ .stop_at = 2 };
	CHECK_ERR(store_list(
			  w->s, NULL, p, CLASS_KEYED, SPAN_LIT("w"), true, WANT_BODY, note_key, &k),
		ERR_OK);
	CHECK_EQ_STR(k.text, "wx");
	k = (struct keys){ 0 };
	CHECK_ERR(
		store_list(w->s, NULL, p, CLASS_NAMED, SPAN_NONE, false, 0, note_key, &k), ERR_OK);
	CHECK_EQ_STR(k.text, "A");
}

static void keys_are_ordered_by_their_bytes(struct world *w)
{
	static const char *const keys[] = { "\x7f", "\xffz", "B", "a", "Aa", "A", "\x01" };
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		row(w, "p", keys[i], "1");
	struct keys k = { 0 };
	CHECK_ERR(store_list(w->s, NULL, partition(w, "p"), CLASS_KEYED, SPAN_NONE, false, 0,
			  note_key, &k),
		ERR_OK);
	CHECK_EQ_STR(k.text,
		"\x01"
		"AABa\x7f\xff");
}

static void a_view_does_not_change(struct world *w)
{
	struct store_view *v;
	struct item it = { 0 };
	uint64_t a = row(w, "p", "a", "old"), p = partition(w, "p");
	CHECK_ERR(store_view_open(w->s, &v), ERR_OK);
	row(w, "p", "a", "new");
	row(w, "p", "b", "new");
	CHECK_ERR(store_get(w->s, v, a, WANT_BODY, &it), ERR_OK);
	CHECK(span_is(it.body, "old"));
	item_fini(&it);
	CHECK_ERR(store_child(w->s, v, p, CLASS_KEYED, SPAN_LIT("b"), 0, &it), ERR_NOT_FOUND);
	CHECK_ERR(apply(w, removal(by_id(w->account), CHANGE_RECURSIVE)), ERR_OK);
	struct keys k = { 0 };
	CHECK_ERR(store_list(w->s, v, p, CLASS_KEYED, SPAN_NONE, false, 0, note_key, &k), ERR_OK);
	CHECK_EQ_STR(k.text, "a");
	store_view_close(w->s, v);
	CHECK_ERR(gone(w, a), ERR_NOT_FOUND);
}

/* Held for long, several at a time, closed in any order. */
static void each_held_view_shows_its_own_moment(struct world *w)
{
	enum {
		N = 9 /* more than SQLite has marks for */
	};
	struct store_view *v[N];
	struct item it = { 0 };
	char text[2] = "0";
	uint64_t id = 0;
	for (int i = 0; i < N; i++, text[0]++) {
		id = row(w, "p", "a", text);
		CHECK_ERR(store_view_hold(w->s, &v[i]), ERR_OK);
	}
	row(w, "p", "a", "later");
	for (int i = 0; i < N; i++) {
		int at = i * 4 % N;
		CHECK_ERR(store_get(w->s, v[at], id, WANT_BODY, &it), ERR_OK);
		CHECK(it.body.n == 1 && it.body.p[0] == '0' + at);
		item_fini(&it);
		store_view_close(w->s, v[at]);
		row(w, "p", "b", "between");
	}
	CHECK_ERR(store_get(w->s, NULL, id, WANT_BODY, &it), ERR_OK);
	CHECK(span_is(it.body, "later"));
	item_fini(&it);
}

static void a_failed_set_names_the_change_and_leaves_nothing(struct world *w)
{
	struct change set[3] = { put(ITEM_ROW, row_of(w, "p", "a"), "1"),
		removal(by_id(w->account), 0), put(ITEM_ROW, row_of(w, "p", "b"), "1") };
	for (int i = 0; i < 3; i++)
		set[i].version = 7000;
	struct item before = item_by_id(w, w->table);
	CHECK_ERR(store_apply(w->s, set, 3, true, &w->d), ERR_NOT_EMPTY);
	CHECK_EQ_INT(w->d.op, 1);
	CHECK(!set[0].now.mem && !set[0].made_partition);
	CHECK_EQ_INT(partition(w, "p"), 0);
	struct item after = item_by_id(w, w->table);
	CHECK(before.version == after.version && after.size == 0);
	item_fini(&before);
	item_fini(&after);
}

static void the_version_floor_covers_all_that_was_applied(struct world *w)
{
	w->clock = 900000000;
	row(w, "p", "a", D("1"));
	CHECK(store_version_floor(w->s) >= w->c.now.version);
	CHECK_ERR(apply(w, removal(row_of(w, "p", "a"), 0)), ERR_OK);
	if (w->engine->reopen)
		w->s = w->engine->reopen(w->s);
	CHECK(store_version_floor(w->s) >= w->c.version);
}

#define THREADS 8
#define SETS_EACH 60
struct racer {
	struct world *w;
	int nr;
	uint64_t ids[SETS_EACH];
};

static void *race(void *arg)
{
	struct racer *r = arg;
	for (int i = 0; i < SETS_EACH; i++) {
		char key[32];
		(void)snprintf(key, sizeof(key), "%d-%d", r->nr, i);
		struct change c = put(ITEM_ROW, row_of(r->w, "p", key), "{}");
		c.version = 10000 + i;
		/* Every fifth must fail and harm nobody. */
		if (i % 5 == 4)
			c.cond = COND_PRESENT;
		enum err e = store_apply(r->w->s, &c, 1, i % 2, NULL);
		if (e == ERR_OK)
			r->ids[i] = c.now.id;
		changes_fini(&c, 1);
	}
	return NULL;
}

static void eight_threads_lose_nothing(struct world *w)
{
	struct racer *racers = calloc(THREADS, sizeof(*racers));
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++) {
		racers[i] = (struct racer){ .w = w, .nr = i };
		CHECK(pthread_create(&threads[i], NULL, race, &racers[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	for (int i = 0; i < THREADS * SETS_EACH; i++) {
		uint64_t id = racers[i / SETS_EACH].ids[i % SETS_EACH];
		CHECK_EQ_INT(id != 0, i % SETS_EACH % 5 != 4);
		if (id)
			CHECK_ERR(gone(w, id), ERR_OK);
	}
	struct item it = item_by_id(w, partition(w, "p"));
	CHECK(counts(w, &it, THREADS * SETS_EACH / 5 * 4));
	item_fini(&it);
	free(racers);
}

static void everything_survives_a_clean_reopen(struct world *w)
{
	if (!w->engine->reopen)
		return;
	uint64_t a = row(w, "p", "a", D("kept"));
	uint64_t f = file(w, partition(w, "p"), "f", "content");
	w->s = w->engine->reopen(w->s);
	struct item it = item_by_id(w, a);
	CHECK(span_is(it.body, D("kept")));
	item_fini(&it);
	CHECK(content_is(w, f, "content"));
	CHECK_ERR(store_check(w->s, NULL, NULL, NULL), ERR_OK);
	CHECK_ERR(store_sync(w->s), ERR_OK);
}

/* Asking changes nothing and counts as nothing, also where it has to wait its turn. */
static void room_is_asked_for(struct world *w)
{
	struct store_info before, after;
	uint64_t a = row(w, "p", "a", D("kept"));
	store_info(w->s, &before);
	CHECK_ERR(store_room(w->s, 0, NULL), ERR_OK);
	CHECK_ERR(store_room(w->s, 1 << 20, NULL), ERR_OK);
	enum err e = store_room(w->s, (uint64_t)1 << 60, NULL);
	CHECK(e == ERR_OK || e == ERR_NO_SPACE); /* in memory nothing is asked */
	store_info(w->s, &after);
	CHECK(after.commits == before.commits && after.change_sets == before.change_sets);
	struct item it = item_by_id(w, a);
	CHECK(span_is(it.body, D("kept")));
	item_fini(&it);
}

static void what_no_change_can_be_is_refused(struct world *w)
{
	struct item it = { 0 };
	CHECK_ERR(apply(w, put(ITEM_NONE, row_of(w, "p", "a"), "{}")), ERR_INVALID_INPUT);
	(void)row(w, "p", "a", "{}");
	struct change c = { .op = (enum change_op)99, .at = row_of(w, "p", "a") };
	CHECK_ERR(apply(w, c), ERR_INVALID_INPUT);
	uint64_t d = made(w, put(ITEM_FOLDER, file_of(w->table, "d"), NULL));
	CHECK_ERR(apply(w, moving(by_id(d), by_id(STORE_TRASH), 0)), ERR_NOT_FOUND);
	CHECK_ERR(
		store_child(w->s, NULL, 0, CLASS_NAMED, SPAN_LIT("trash"), 0, &it), ERR_NOT_FOUND);
	CHECK_ERR(store_apply(w->s, NULL, 0, true, NULL), ERR_OK);
}

static void what_was_exchanged_may_be_written_in_the_same_set(struct world *w)
{
	uint64_t a = row(w, "p", "a", "1"), b = row(w, "p", "b", "2");
	int64_t version = ++w->clock;
	struct change set[2] = { moving(by_id(a), row_of(w, "p", "b"), CHANGE_EXCHANGE),
		put(ITEM_ROW, row_of(w, "p", "a"), "3") };
	set[0].flags |= CHANGE_WANT_OLD;
	set[0].version = set[1].version = version;
	CHECK_ERR(store_apply(w->s, set, 2, false, &w->d), ERR_OK);
	changes_fini(set, 2);
	struct item it = item_by_id(w, b);
	CHECK(span_is(it.key, "a") && span_is(it.body, "3"));
	item_fini(&it);
	it = item_by_id(w, a);
	CHECK(span_is(it.key, "b") && span_is(it.body, "1"));
	item_fini(&it);
}

static void exchanged_tables_take_a_name(struct world *w)
{
	struct change c = put(ITEM_TABLE, child_of(w->account, "other"), NULL);
	c.name = SPAN_LIT("Other");
	uint64_t other = made(w, c);
	c = moving(by_id(w->table), child_of(w->account, "other"), CHANGE_EXCHANGE);
	c.name = SPAN_LIT("OTHER");
	CHECK_ERR(apply(w, c), ERR_OK);
	struct item it = item_by_id(w, w->table);
	CHECK(span_is(it.key, "other") && span_is(it.name, "OTHER"));
	item_fini(&it);
	it = item_by_id(w, other);
	CHECK(span_is(it.key, "table") && span_is(it.name, "Other"));
	item_fini(&it);
}

static void a_small_file_is_cut(struct world *w)
{
	row(w, "p", "a", D("1"));
	uint64_t f = file(w, partition(w, "p"), "f", "abcdef");
	struct change c = { .op = CHANGE_RESIZE, .at = by_id(f), .offset = 3 };
	CHECK_ERR(apply(w, c), ERR_OK);
	c.offset = 5;
	CHECK_ERR(apply(w, c), ERR_OK);
	char b[8];
	size_t n;
	CHECK_ERR(store_file_read(w->s, NULL, f, 0, b, 8, &n), ERR_OK);
	CHECK(n == 5 && memcmp(b, "abc\0\0", 5) == 0);
}

/* What it cannot do it refuses, and then nothing is changed. */
static void expect(struct world *w, unsigned ability, enum err e)
{
	CHECK_ERR(e, w->abilities & ability ? ERR_OK : ERR_CROSS_DEVICE);
}

static void directories_move_or_are_refused(struct world *w)
{
	row(w, "p", "a", D("1"));
	uint64_t p = partition(w, "p");
	uint64_t d = made(w, put(ITEM_FOLDER, file_of(p, "d"), NULL));
	if (w->lacks & CONTRACT_KINDS) /* folders are not the service's */
		CHECK_ERR(apply(w, moving(by_id(d), file_of(p, "e"), 0)), ERR_OK);
	else
		expect(w, STORE_CAN_MOVE_DIRS, apply(w, moving(by_id(d), file_of(p, "e"), 0)));
	expect(w, STORE_CAN_MOVE_DIRS, apply(w, moving(by_id(p), child_of(w->table, "q"), 0)));
	expect(w, STORE_CAN_MOVE_DIRS,
		apply(w, moving(by_id(w->table), child_of(w->account, "t"), 0)));
	bool moved = w->abilities & STORE_CAN_MOVE_DIRS;
	CHECK_EQ_INT(partition(w, moved ? "q" : "p"), p);
	CHECK_EQ_INT(partition(w, moved ? "p" : "q"), 0);
}

static void sets_span_directories_or_are_refused(struct world *w)
{
	bool spans = w->abilities & STORE_CAN_SPAN;
	struct change set[2] = { put(ITEM_ROW, row_of(w, "p", "a"), D("1")),
		put(ITEM_ROW, row_of(w, "q", "a"), D("1")) };
	set[0].version = set[1].version = 7000;
	expect(w, STORE_CAN_SPAN, store_apply(w->s, set, 2, false, &w->d));
	CHECK(spans || (w->d.op == 1 && !set[0].now.mem && partition(w, "p") == 0));
	changes_fini(set, 2);
	w->clock = 8000;
	uint64_t a = row(w, "p", "a", D("2"));
	expect(w, STORE_CAN_SPAN | STORE_MOVES_IN_STEPS,
		apply(w, moving(by_id(a), row_of(w, "r", "a"), 0)));
	if (w->abilities & STORE_MOVES_IN_STEPS)
		a = w->c.now.id;
	struct change left = removal(by_id(a), CHANGE_TO_FILE);
	left.to = file_of(STORE_TRASH, "left");
	spans |= w->lacks & CONTRACT_KINDS; /* files are not the service's */
	CHECK_ERR(apply(w, left), spans ? ERR_OK : ERR_CROSS_DEVICE);
	CHECK_ERR(gone(w, a), spans ? ERR_NOT_FOUND : ERR_OK);
}

/* Collects the rows that store_find() gives: PARTITION ROW, one letter each, with a space behind. */
struct found_rows {
	struct world *w;
	struct keys keys;
	char body[100]; /* of the last row */
};

static uint64_t row_id(struct world *w, const struct item *partition, const struct item *row)
{
	struct item it;
	CHECK_ERR(store_child(w->s, NULL, partition->id, CLASS_KEYED, row->key, WANT_ATTRS, &it),
		ERR_OK);
	uint64_t id = it.id;
	item_fini(&it);
	return id;
}

static bool note_found(void *arg, const struct item *partition, const struct item *it)
{
	struct found_rows *f = arg;
	struct keys *k = &f->keys;
	k->text[k->n++] = partition->key.p[0];
	k->text[k->n++] = it->key.p[0];
	k->text[k->n++] = ' ';
	k->text[k->n] = 0;
	(void)snprintf(f->body, sizeof(f->body), "%.*s", (int)it->body.n, it->body.p);
	CHECK(it->id == 0 || it->id == row_id(f->w, partition, it));
	return k->n != k->stop_at;
}

/* All answers from the place on.  Returns the keys. */
static const char *find(struct world *w, struct store_find q, size_t stop_at, struct found_rows *f)
{
	struct store_found found = { .more = true }, before = { 0 };
	*f = (struct found_rows){ .w = w, .keys = { .stop_at = stop_at } };
	q.table = w->table;
	q.filter = SPAN_LIT("N ge 2");
	while (found.more && (stop_at == 0 || f->keys.n < stop_at)) {
		enum err e = store_find(w->s, &q, note_found, f, &found);
		CHECK_ERR(e, ERR_OK);
		buf_fini(&before.next_pk);
		buf_fini(&before.next_rk);
		before = found;
		q.from_pk = found.next_pk.len > 0 ? buf_span(&found.next_pk) : SPAN_LIT("");
		q.from_rk = found.next_rk.len > 0 ? buf_span(&found.next_rk) : SPAN_LIT("");
	}
	buf_fini(&before.next_pk);
	buf_fini(&before.next_rk);
	return f->keys.text;
}

static void rows_are_found_by_a_filter(struct world *w)
{
	const struct span any = SPAN_LIT("");
	struct store_find all = { .from_pk = any, .from_rk = any }, q = all;
	struct found_rows f;
	for (const char *at = "pa1pb2pc3qa2qb1ra5"; *at; at += 3) {
		char body[40], pk[2] = { at[0] }, rk[2] = { at[1] };
		(void)snprintf(body, sizeof(body), "{\"N\":%c,\"M\":7}\n", at[2]);
		row(w, pk, rk, body);
	}
	q.until_pk = SPAN_LIT("p");
	q.until_rk = SPAN_LIT("b");
	CHECK_EQ_STR(find(w, q, 0, &f), "pb ");
	CHECK_EQ_STR(find(w, all, 0, &f), "pb pc qa ra ");
	q = all;
	CHECK_EQ_STR(f.body, "{\"N\":5,\"M\":7}\n");
	CHECK_EQ_STR(find(w, all, 6, &f), "pb pc ");
	q.most = 1;
	CHECK_EQ_STR(find(w, q, 0, &f), "pb pc qa ra ");
	q = (struct store_find){ .from_pk = SPAN_LIT("p"), .from_rk = SPAN_LIT("b\x01") };
	CHECK_EQ_STR(find(w, q, 0, &f), "pc qa ra ");
	q.until_pk = SPAN_LIT("q");
	CHECK_EQ_STR(find(w, q, 0, &f), "pc qa ");
	q.from_rk = q.until_rk = SPAN_LIT("b");
	q.until_pk = q.from_pk;
	CHECK_EQ_STR(find(w, q, 0, &f), "pb ");
	q = (struct store_find){ .from_pk = SPAN_LIT("p\x01"), .from_rk = any };
	CHECK_EQ_STR(find(w, q, 0, &f), "qa ra ");
	q = all;
	q.select = SPAN_LIT("PartitionKey,RowKey,Timestamp,N");
	CHECK_EQ_STR(find(w, q, 0, &f), "pb pc qa ra ");
	CHECK_EQ_STR(f.body, "{\"N\":5}\n");
	row(w, "p", "a", "{\"N\":9}\n");
	CHECK_ERR(apply(w, removal(row_of(w, "q", "a"), 0)), ERR_OK);
	CHECK_EQ_STR(find(w, all, 0, &f), "pa pb pc ra ");
}

static void a_filter_is_refused_by_an_engine_that_evaluates_none(struct world *w)
{
	const struct store_find q = {
		.table = w->table, .from_pk = SPAN_LIT(""), .from_rk = SPAN_LIT("")
	};
	struct store_found found;
	if ((w->abilities & STORE_FINDS) == 0)
		CHECK_ERR(store_find(w->s, &q, NULL, NULL, &found), ERR_NOT_SUPPORTED);
}

/* What every engine can do: all of it stands in one partition, which comes and goes. */
static void a_set_inside_one_directory_needs_no_ability(struct world *w)
{
	row(w, "p", "a", "1");
	uint64_t p = partition(w, "p");
	uint64_t f = file(w, p, "f", "{}");
	struct change turn = moving(by_id(f), row_of(w, "p", "b"), 0);
	turn.to_kind = ITEM_ROW;
	turn.body = SPAN_LIT("{}");
	struct change set[4] = { removal(row_of(w, "p", "a"), 0), turn,
		removal(row_of(w, "p", "b"), 0), put(ITEM_ROW, row_of(w, "p", "c"), "1") };
	for (int i = 0; i < 4; i++)
		set[i].version = 7000 + i;
	CHECK_ERR(store_apply(w->s, set, 4, false, &w->d), ERR_OK);
	CHECK(set[3].made_partition == (partition(w, "p") != p));
	changes_fini(set, 4);
	w->clock = 8000;
	struct change when = { .op = CHANGE_ATTRS, .at = by_id(w->table), .attrs = ATTRS_UNSET };
	when.set_mask = ATTR_MTIME;
	when.attrs.mtime_ns = 5;
	CHECK_ERR(apply(w, when), ERR_OK);
	CHECK_ERR(apply(w, removal(by_id(w->table), CHANGE_RECURSIVE)), ERR_OK);
}

static void views_are_of_a_moment_or_of_now(struct world *w)
{
	struct store_view *v, *held;
	CHECK_ERR(store_view_open(w->s, &v), ERR_OK);
	CHECK_ERR(store_view_hold(w->s, &held), ERR_OK);
	bool can = w->abilities & STORE_CAN_VIEW;
	CHECK((v != NULL) == can && (held != NULL) == can);
	uint64_t a = row(w, "p", "a", D("1"));
	struct item it = { 0 };
	CHECK_ERR(store_get(w->s, v, a, WANT_ATTRS, &it), can ? ERR_NOT_FOUND : ERR_OK);
	item_fini(&it);
	store_view_close(w->s, v);
	store_view_close(w->s, held);
}

/* ---- several handles on one store ---- */

struct heard {
	unsigned calls;
	struct change last; /* without what its spans point to */
	bool old_body, visible;
	struct store *s;
};

static void on_external(void *arg, const struct change *changes, size_t n)
{
	struct heard *h = arg;
	struct item it = { 0 };
	h->calls++;
	h->last = changes[n - 1];
	h->old_body = h->last.old.body.p != NULL;
	h->visible = store_get(h->s, NULL, h->last.now.id, WANT_ATTRS, &it) == ERR_OK &&
		it.version == h->last.now.version;
	item_fini(&it);
}

static void external_changes_are_told_before_they_are_acknowledged(struct world *w)
{
	struct heard h = { 0 };
	struct change again;
	if (!w->engine->again)
		return;
	uint64_t a = row(w, "p", "a", "1");
	h.s = w->engine->again(w->s);
	store_listen(h.s, on_external, &h);
	row(w, "p", "a", "2");
	CHECK_EQ_INT(h.calls, 1);
	CHECK(h.visible && !h.old_body);
	CHECK_EQ_INT(h.last.op, CHANGE_PUT);
	CHECK(h.last.old.id == a && h.last.now.id == a);
	CHECK(h.last.old.generation == 1 && h.last.now.generation == 2);
	CHECK_ERR(apply(w, removal(by_id(w->table), 0)), ERR_NOT_EMPTY);
	CHECK_EQ_INT(h.calls, 1); /* nothing was changed */
	again = put(ITEM_ROW, row_of(w, "p", "a"), "3");
	again.version = ++w->clock;
	CHECK_ERR(store_apply(h.s, &again, 1, false, NULL), ERR_OK);
	changes_fini(&again, 1);
	CHECK_EQ_INT(h.calls, 1); /* its own */
	store_listen(h.s, NULL, NULL);
	row(w, "p", "a", "4");
	CHECK_EQ_INT(h.calls, 1);
	store_close(h.s);
}

static void the_version_floor_covers_external_changes(struct world *w)
{
	if (!w->engine->again)
		return;
	struct store *other = w->engine->again(w->s);
	w->clock = 5000000;
	uint64_t a = row(w, "p", "a", "1");
	CHECK(store_version_floor(other) >= w->clock);
	struct change c = put(ITEM_ROW, row_of(w, "p", "a"), "2");
	c.version = 4000000;
	CHECK_ERR(store_apply(other, &c, 1, false, NULL), ERR_STALE_VERSION);
	c.version = store_version_floor(other) + 1;
	CHECK_ERR(store_apply(other, &c, 1, false, NULL), ERR_OK);
	CHECK_EQ_INT(c.now.id, a);
	changes_fini(&c, 1);
	store_close(other);
}

static void two_handles_never_give_the_same_id(struct world *w)
{
	enum {
		N = 120
	};
	uint64_t ids[N];
	if (!w->engine->again)
		return;
	struct store *stores[2] = { w->s, w->engine->again(w->s) };
	for (int i = 0; i < N; i++) {
		char key[16];
		(void)snprintf(key, sizeof(key), "%d", i / 2);
		/* Every second row is removed at once: its id is not given again. */
		w->s = stores[i / 7 % 2];
		ids[i] = row(w, "p", key, "{}");
		if (i % 2 == 0)
			CHECK_ERR(apply(w, removal(by_id(ids[i]), 0)), ERR_OK);
		for (int j = 0; j < i; j++)
			CHECK(ids[j] != ids[i]);
	}
	w->s = stores[0];
	store_close(stores[1]);
}

/* clang-format off */
#define P(name_) { #name_, name_, 0 }
#define P_NEEDS(abilities_, name_) { #name_, name_, abilities_ }
/* clang-format on */
static const struct promise {
	const char *name;
	contract_fn *run;
	unsigned needs; /* enum store_ability and contract_part: not of an engine that lacks one */
} promises[] = {
	P_NEEDS(STORE_CAN_MOVE_DIRS, fixed_items_exist_and_are_not_listed),
	P(ids_are_in_range_and_never_used_again),
	P(a_row_reads_back_as_it_was_put),
	P(the_empty_key_and_the_empty_body_are_legal),
	P(a_replaced_row_keeps_id_mode_and_owner_not_times),
	P_NEEDS(STORE_CAN_SPAN, a_stale_version_applies_nothing),
	P_NEEDS(CONTRACT_TWICE, one_set_may_change_a_row_twice),
	P(conditions_answer_as_they_say),
	P_NEEDS(CONTRACT_KINDS, a_put_replaces_an_accounts_body_only),
	P_NEEDS(CONTRACT_KINDS, a_put_replaces_a_tables_body_only),
	P_NEEDS(CONTRACT_KINDS, conditions_hold_for_a_tables_body),
	P_NEEDS(STORE_CAN_MOVE_DIRS, a_tables_body_moves_with_it_and_goes_with_it),
	P_NEEDS(CONTRACT_KINDS, queues_and_messages_are_seen_by_no_other_listing),
	P_NEEDS(CONTRACT_KINDS, a_blob_holds_extents_and_pieces),
	P_NEEDS(CONTRACT_KINDS, pieces_of_blobs_are_counted_and_limited),
	P_NEEDS(CONTRACT_KINDS, an_extent_waits_among_the_orphans_and_moves_to_its_blob),
	P_NEEDS(CONTRACT_KINDS, a_message_moves_in_its_queue_with_or_without_a_new_text),
	P(missing_parents_and_tables_are_told_apart),
	P_NEEDS(STORE_CAN_MOVE_DIRS | STORE_CAN_SPAN, a_parent_refuses_what_it_may_not_hold),
	P(membership_counts_and_moves_the_directorys_time),
	P(an_emptied_partition_goes_unless_it_was_made),
	P_NEEDS(CONTRACT_SUBTREES, directories_are_removed_empty_or_recursively),
	P_NEEDS(CONTRACT_SUBTREES, below_a_removed_directory_nothing_can_be_read_or_changed),
	P_NEEDS(STORE_CAN_MOVE_DIRS, the_name_of_a_removed_directory_is_free_at_once),
	P_NEEDS(STORE_CAN_VIEW, a_view_shows_what_is_removed_and_reclaimed_later),
	P_NEEDS(CONTRACT_SUBTREES, the_quota_of_what_is_removed_is_free_at_once),
	P(change_sets_that_were_applied_are_counted),
	P(a_delete_tells_what_was_there),
	P_NEEDS(STORE_CAN_SPAN, a_move_carries_id_generation_and_mtime),
	P_NEEDS(STORE_CAN_MOVE_DIRS, a_move_replaces_or_refuses),
	P(a_move_replaces_only_the_version_that_was_named),
	P_NEEDS(STORE_CAN_MOVE_DIRS, a_move_onto_itself_changes_nothing),
	P_NEEDS(STORE_CAN_MOVE_DIRS | STORE_CAN_SPAN, a_directory_cannot_move_into_itself),
	P_NEEDS(STORE_CAN_MOVE_DIRS | STORE_CAN_SPAN, a_moved_partition_or_table_takes_all_along),
	P_NEEDS(CONTRACT_EXCHANGES, files_and_rows_turn_into_each_other),
	P_NEEDS(STORE_CAN_SPAN, what_is_made_keeps_the_time_at_which_it_was),
	P_NEEDS(STORE_CAN_SPAN, a_removed_row_may_leave_a_file),
	P(a_row_without_a_document_waits_for_one),
	P_NEEDS(STORE_CAN_MOVE_DIRS, a_pending_folder_becomes_a_partition),
	P_NEEDS(CONTRACT_EXCHANGES, an_exchange_swaps_and_converts),
	P(attributes_change_by_mask_and_without_a_version),
	P(files_have_holes_ends_and_times),
	P(conditions_are_of_files),
	P(file_limits_hold_on_both_sides),
	P(a_scan_shows_every_item_that_it_may_not_skip),
	P(a_listing_is_ordered_bounded_and_resumes),
	P_NEEDS(STORE_FINDS, rows_are_found_by_a_filter),
	P(a_filter_is_refused_by_an_engine_that_evaluates_none),
	P_NEEDS(CONTRACT_KEYS, keys_are_ordered_by_their_bytes),
	P_NEEDS(STORE_CAN_VIEW, a_view_does_not_change),
	P_NEEDS(STORE_CAN_VIEW, each_held_view_shows_its_own_moment),
	P_NEEDS(STORE_CAN_SPAN, a_failed_set_names_the_change_and_leaves_nothing),
	P(the_version_floor_covers_all_that_was_applied),
	P(eight_threads_lose_nothing),
	P(everything_survives_a_clean_reopen),
	P(room_is_asked_for),
	P_NEEDS(STORE_CAN_MOVE_DIRS, what_no_change_can_be_is_refused),
	P_NEEDS(CONTRACT_EXCHANGES, what_was_exchanged_may_be_written_in_the_same_set),
	P_NEEDS(STORE_CAN_MOVE_DIRS, exchanged_tables_take_a_name),
	P(a_small_file_is_cut),
	P(directories_move_or_are_refused),
	P(sets_span_directories_or_are_refused),
	P_NEEDS(CONTRACT_TWICE, a_set_inside_one_directory_needs_no_ability),
	P(views_are_of_a_moment_or_of_now),
	P(external_changes_are_told_before_they_are_acknowledged),
	P(the_version_floor_covers_external_changes),
	P(two_handles_never_give_the_same_id),
};

unsigned contract_count(void)
{
	return (unsigned)ARRAY_LEN(promises);
}

const char *contract_name(unsigned i)
{
	return promises[i].name;
}

/* An engine of one account has it from the start. */
static uint64_t account_of(struct world *w)
{
	struct item it = { 0 };
	if (w->engine->account == NULL)
		return made(w, put(ITEM_ACCOUNT, child_of(STORE_ROOT, "account"), "keys"));
	CHECK_ERR(store_child(w->s, NULL, STORE_ROOT, CLASS_KEYED, span_of(w->engine->account),
			  WANT_ATTRS, &it),
		ERR_OK);
	uint64_t id = it.id;
	item_fini(&it);
	return id;
}

unsigned contract_run(unsigned i, const struct contract_engine *engine)
{
	struct world w = { .engine = engine, .clock = 1000, .s = engine->open() };
	check_failures = 0;
	if (!w.s)
		return 1;
	struct store_info info;
	store_info(w.s, &info);
	w.abilities = info.abilities;
	w.lacks = engine->lacks;
	if ((promises[i].needs & ~info.abilities & ~CONTRACT_PARTS) != 0 ||
		(promises[i].needs & engine->lacks) != 0) {
		store_close(w.s);
		return 0;
	}
	w.account = account_of(&w);
	w.table = made(&w, put(ITEM_TABLE, child_of(w.account, "table"), NULL));
	promises[i].run(&w);
	changes_fini(&w.c, 1);
	CHECK_ERR(store_check(w.s, NULL, NULL, NULL), ERR_OK);
	store_close(w.s);
	return check_failures;
}
