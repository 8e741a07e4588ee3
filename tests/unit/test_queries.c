/* SPDX-License-Identifier: MIT
 * Queries against a plain array of rows, on each engine. */
#include "base/clock.h"
#include "check.h"
#include "model/key.h"
#include "model/limits.h"
#include "service/change/entities.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/query/queries.h"
#include "store/engines.h"

#include <stdlib.h>
#include <unistd.h>

/* What the helpers cannot go on without. */
#define MUST(cond_) BUG_ON(!(cond_))

/* xorshift64*: the same run every time. */
static uint64_t dice_state;

static void dice_seed(unsigned seed)
{
	dice_state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
}

/* 0 to 2^31 - 1. */
static int dice(void)
{
	dice_state ^= dice_state >> 12;
	dice_state ^= dice_state << 25;
	dice_state ^= dice_state >> 27;
	return (int)((dice_state * UINT64_C(0x2545F4914F6CDD1D)) >> 33);
}

/* U+FFFD comes behind U+10000 in the service's order, and before it in UTF-8's. */
static const char *const keys[] = { "", "a", "a b", "ab", "abc", "b", "ba", "c", "\xf0\x90\x80\x80",
	"\xf0\x90\x80\x80x", "\xef\xbf\xbd" };
#define KEYS ARRAY_LEN(keys)

struct row {
	char pk[16], rk[16];
	char json[64];
	int64_t version;
};

#define ROWS_MAX 4096
struct world {
	struct service *service;
	uint64_t account, table;
	struct row rows[ROWS_MAX]; /* in key order */
	size_t n;
	char path[40]; /* "": in memory */
};

/* ---- making ---- */

static uint64_t make_table(struct world *w, struct span name)
{
	struct item it = { 0 };
	MUST(table_create(w->service, ORIGIN_COMMAND, w->account, name, &it, NULL) == ERR_OK);
	uint64_t id = it.id;
	item_fini(&it);
	return id;
}

static struct world *world_of(struct store *store)
{
	struct world *w = calloc(1, sizeof(*w));
	MUST(w != NULL && service_new(store, &w->service) == ERR_OK);
	MUST(account_create(w->service, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL, NULL) ==
		ERR_OK);
	struct item it = { 0 };
	MUST(account_find(w->service, SPAN_LIT("acct"), &it) == ERR_OK);
	w->account = it.id;
	item_fini(&it);
	w->table = make_table(w, SPAN_LIT("Tab"));
	return w;
}

static struct world *world_memory(void)
{
	struct store *store;
	MUST(store_open_memory(&store) == ERR_OK);
	return world_of(store);
}

static struct world *world_sqlite(void)
{
	char path[] = "/tmp/rowfs-queries-XXXXXX";
	int fd = mkstemp(path);
	struct store *store;
	MUST(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
	MUST(store_create(path, NULL) == ERR_OK);
	MUST(store_open(path, 0, &store, NULL, NULL) == ERR_OK);
	struct world *w = world_of(store);
	snprintf(w->path, sizeof(w->path), "%s", path);
	return w;
}

static void world_free(struct world *w)
{
	service_free(w->service);
	if (w->path[0] != '\0')
		unlink(w->path);
	free(w);
}

/* A document that a user wrote, with blanks or an order that rowfs does not write. */
static bool is_own_form(const char *json)
{
	return strncmp(json, "{ ", 2) == 0 || strstr(json, ",\"A@odata.type\"") != NULL;
}

static void put(struct world *w, uint64_t table, struct span pk, struct span rk, const char *json,
	int64_t *ret_version)
{
	struct entity e = { 0 };
	struct entity_op op = {
		.kind = ENTITY_UPSERT, .pk = pk, .rk = rk, .entity = &e, .attrs = ATTRS_UNSET
	};
	MUST(entity_json_decode(span_of(json), ENTITY_JSON_FILE, &e, NULL, NULL) == ERR_OK);
	if (is_own_form(json))
		op.document = span_of(json);
	MUST(entities_apply(w->service, ORIGIN_COMMAND, table, &op, 1, ENTITIES_SET, NULL) ==
		ERR_OK);
	*ret_version = op.version;
	entity_fini(&e);
}

static int key_cmp(const char *a, const char *b)
{
	char x[16], y[16];
	key_to_order(a, strlen(a), x);
	key_to_order(b, strlen(b), y);
	return span_cmp(span_make(x, strlen(a)), span_make(y, strlen(b)));
}

static int row_cmp(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int c = key_cmp(x->pk, y->pk);
	return c != 0 ? c : key_cmp(x->rk, y->rk);
}

static void add_row(struct world *w, const char *pk, const char *rk, const char *json)
{
	MUST(w->n < ROWS_MAX);
	struct row *r = &w->rows[w->n++];
	snprintf(r->pk, sizeof(r->pk), "%s", pk);
	snprintf(r->rk, sizeof(r->rk), "%s", rk);
	snprintf(r->json, sizeof(r->json), "%s", json);
	put(w, w->table, span_of(pk), span_of(rk), json, &r->version);
}

static void sort_rows(struct world *w)
{
	qsort(w->rows, w->n, sizeof(w->rows[0]), row_cmp);
}

/* An ordinary file in the partition pk. */
static void add_file(struct world *w, const char *pk, const char *name)
{
	struct store *s = service_store(w->service);
	struct item parent = { 0 };
	char order[16];
	key_to_order(pk, strlen(pk), order);
	MUST(store_child(s, NULL, w->table, CLASS_KEYED, span_make(order, strlen(pk)), WANT_ATTRS,
		     &parent) == ERR_OK);
	struct change c = { .op = CHANGE_PUT,
		.at = { .parent = parent.id, .class = CLASS_NAMED, .key = span_of(name) },
		.kind = ITEM_FILE,
		.attrs = ATTRS_UNSET };
	MUST(service_apply(w->service, ORIGIN_COMMAND, &c, 1, false, NULL) == ERR_OK);
	changes_fini(&c, 1);
	item_fini(&parent);
}

/* A partition that stays without rows. */
static void add_empty_partition(struct world *w, const char *pk)
{
	char order[16];
	key_to_order(pk, strlen(pk), order);
	struct change c = { .op = CHANGE_PUT,
		.at = { .parent = w->table,
			.class = CLASS_KEYED,
			.key = span_make(order, strlen(pk)) },
		.kind = ITEM_PARTITION,
		.item_flags = ITEM_MADE,
		.attrs = ATTRS_UNSET };
	MUST(service_apply(w->service, ORIGIN_COMMAND, &c, 1, false, NULL) == ERR_OK);
	changes_fini(&c, 1);
}

static void fill_at_random(struct world *w, int percent)
{
	static const char *const documents[] = { "{}", "{\"A\":1}", "{\"A\":2}",
		"{\"A\":2,\"B\":\"x\"}", "{\"A\":\"s\"}", "{ \"B\": \"x\", \"A\": 2 }",
		"{ \"A\": \"\\u0073\" }", "{\"A\":\"2\",\"A@odata.type\":\"Edm.Int64\"}",
		"{\"A@odata.type\":\"Edm.Int64\",\"A\":\"2\"}",
		"{\"B\":\"\\\",\\\"A\\\":1\",\"AA\":1}", "{\"B\":true,\"A\":1.5}" };
	for (size_t i = 0; i < KEYS; i++) {
		size_t before = w->n;
		for (size_t j = 0; j < KEYS && i != 7; j++) {
			if (dice() % 100 < percent)
				add_row(w, keys[i], keys[j],
					documents[(size_t)dice() % ARRAY_LEN(documents)]);
		}
		if (w->n == before)
			add_empty_partition(w, keys[i]);
		if (i % 2 == 0) {
			add_file(w, keys[i], "a");
			add_file(w, keys[i], "notes.txt");
		}
	}
	/* Another table's rows are none of ours. */
	uint64_t noise = make_table(w, SPAN_LIT("Tab2"));
	int64_t version;
	put(w, noise, SPAN_LIT("a"), SPAN_LIT("a"), "{}", &version);
	sort_rows(w);
}

/* ---- what is expected ---- */

static bool row_matches(const struct row *r, const struct filter *f)
{
	struct entity e = { 0 };
	struct value pk = { .type = EDM_STRING, .bytes = span_of(r->pk) };
	struct value rk = { .type = EDM_STRING, .bytes = span_of(r->rk) };
	struct value time = { .type = EDM_DATETIME, .ticks = r->version };
	const struct value *values[16] = { &pk, &rk, &time };
	if (f == NULL)
		return true;
	MUST(f->nslots <= ARRAY_LEN(values));
	MUST(entity_json_decode(span_of(r->json), ENTITY_JSON_FILE, &e, NULL, NULL) == ERR_OK);
	filter_bind(f, &e, values);
	bool matches = filter_eval(f, values);
	entity_fini(&e);
	return matches;
}

static bool in_ranges(const struct row *r, const struct key_ranges *k)
{
	char pk[16], rk[16];
	key_to_order(r->pk, strlen(r->pk), pk);
	key_to_order(r->rk, strlen(r->rk), rk);
	return k == NULL ||
		key_ranges_hold(k, span_make(pk, strlen(r->pk)), span_make(rk, strlen(r->rk)));
}

/* ---- running ---- */

struct taker {
	const struct world *w;
	const struct query *q;
	size_t seen[ROWS_MAX]; /* indexes into w->rows */
	size_t n;
	size_t stop_after; /* answers false then; 0: never */
	size_t on_page;
};

static const struct row *find_row(const struct world *w, struct span pk, struct span rk)
{
	for (size_t i = 0; i < w->n; i++) {
		if (span_is(pk, w->rows[i].pk) && span_is(rk, w->rows[i].rk))
			return &w->rows[i];
	}
	return NULL;
}

static bool take(void *arg, const struct query_row *row)
{
	struct taker *t = arg;
	const struct row *r = find_row(t->w, row->pk, row->rk);
	CHECK(r != NULL);
	if (r == NULL || t->n == ROWS_MAX)
		return false;
	CHECK(row->version == r->version);
	bool own = is_own_form(r->json); /* such a document is decoded for the filter */
	CHECK(own ? row->entity != NULL || !t->q->decode : (row->entity != NULL) == t->q->decode);
	if (row->entity != NULL) {
		CHECK(span_eq(row->entity->pk, row->pk) && span_eq(row->entity->rk, row->rk));
		CHECK(row->entity->has_pk && row->entity->has_rk);
		CHECK(row->entity->timestamp == row->version);
		CHECK((entity_find(row->entity, SPAN_LIT("A")) != NULL) ==
			(strstr(r->json, "\"A\":") != NULL));
	}
	CHECK(span_starts(row->document, span_of(r->json)));
	CHECK(((row->flags & ITEM_CANONICAL) != 0) == !own);
	t->seen[t->n++] = (size_t)(r - t->w->rows);
	t->on_page++;
	return t->stop_after == 0 || t->on_page < t->stop_after;
}

/* The place that a page names is the first row of the ranges behind what was handed out. */
static void check_next(const struct taker *t, const struct query_end *end,
	const struct key_ranges *ranges, const struct key_ranges *limit)
{
	size_t last = t->seen[t->n - 1], next = last + 1;
	while (next < t->w->n &&
		!(in_ranges(&t->w->rows[next], ranges) && in_ranges(&t->w->rows[next], limit)))
		next++;
	CHECK(end->more == (next < t->w->n));
	if (end->more && next < t->w->n) {
		CHECK(span_is(buf_span(&end->next_pk), t->w->rows[next].pk));
		CHECK(span_is(buf_span(&end->next_rk), t->w->rows[next].rk));
	}
}

static void copy_key(struct span key, char out[LIMIT_KEY_BYTES], struct span *ret)
{
	MUST(key.p != NULL && key.n <= LIMIT_KEY_BYTES);
	memcpy(out, key.p, key.n);
	*ret = span_make(out, key.n);
}

/* Page by page to the end; returns how many. */
static size_t run_pages(
	struct world *w, struct query q, struct taker *t, const struct key_ranges *ranges)
{
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES];
	size_t pages = 0;
	bool more = true;
	while (more && check_failures == 0 && pages < 20000) {
		struct query_end end;
		size_t before = t->n;
		t->on_page = 0;
		CHECK_ERR(query_run(w->service, NULL, &q, take, t, &end), ERR_OK);
		pages++;
		more = end.more;
		CHECK(end.matched == t->n - before && end.looked_at >= end.matched);
		CHECK(q.top == 0 || end.matched <= q.top);
		bool full =
			end.matched > 0 && (end.matched == q.top || t->on_page == t->stop_after);
		if (full && q.deadline_us == 0)
			check_next(t, &end, ranges, q.limit);
		else if (q.deadline_us == 0 && q.max_bytes == 0)
			CHECK(!more);
		if (more) {
			struct span was_pk = q.from_pk, was_rk = q.from_rk;
			char old[2][16] = { "", "" };
			if (was_pk.p != NULL)
				snprintf(old[0], 16, "%.*s", (int)was_pk.n, was_pk.p);
			if (was_rk.p != NULL)
				snprintf(old[1], 16, "%.*s", (int)was_rk.n, was_rk.p);
			copy_key(buf_span(&end.next_pk), pk, &q.from_pk);
			copy_key(buf_span(&end.next_rk), rk, &q.from_rk);
			char now[2][16];
			snprintf(now[0], 16, "%.*s", (int)q.from_pk.n, pk);
			snprintf(now[1], 16, "%.*s", (int)q.from_rk.n, rk);
			int c = key_cmp(now[0], old[0]);
			CHECK_ERR(key_check(q.from_pk, "PartitionKey", NULL), ERR_OK);
			CHECK_ERR(key_check(q.from_rk, "RowKey", NULL), ERR_OK);
			CHECK(pages == 1 || c > 0 || (c == 0 && key_cmp(now[1], old[1]) > 0));
		}
		query_end_fini(&end);
	}
	CHECK(!more);
	return pages;
}

static void check_seen(const struct world *w, const struct taker *t, const struct filter *f,
	const struct key_ranges *limit, const char *text)
{
	size_t at = 0;
	for (size_t i = 0; i < w->n; i++) {
		if (!row_matches(&w->rows[i], f) || !in_ranges(&w->rows[i], limit))
			continue;
		bool ok = at < t->n && t->seen[at] == i;
		if (!ok && check_failures == 0)
			printf("# %s: row (%s, %s) is missing\n", text, w->rows[i].pk,
				w->rows[i].rk);
		CHECK(ok);
		at++;
	}
	CHECK_EQ_INT(t->n, at);
}

/* The whole answer with this filter under these limits is right, whatever the pages. */
static void check_query(struct world *w, const char *text, struct query q, size_t stop_after)
{
	struct filter f;
	struct key_ranges ranges;
	struct err_detail detail = { 0 };
	REQUIRE(filter_parse(span_of(text), &f, &detail) == ERR_OK);
	CHECK_ERR(key_ranges_of_filter(&f, &ranges), ERR_OK);
	q.table_id = w->table;
	q.filter = &f;
	struct taker *t = calloc(1, sizeof(*t));
	MUST(t != NULL);
	t->w = w;
	t->q = &q;
	t->stop_after = stop_after;
	(void)run_pages(w, q, t, &ranges);
	check_seen(w, t, &f, q.limit, text);
	if (check_failures > 0)
		printf("# top %zu, stop %zu, bytes %zu, deadline %" PRIu64 ": %s\n", q.top,
			stop_after, q.max_bytes, q.deadline_us, text);
	free(t);
	key_ranges_fini(&ranges);
	filter_fini(&f);
}

/* ---- random filters ---- */

static void random_leaf(const struct world *w, struct buf *out)
{
	char time[CLOCK_TEXT_MAX];
	static const char *const ops[] = { "eq", "ne", "gt", "ge", "lt", "le", "eq", "eq" };
	static const char *const literals[] = { "1", "2", "2L", "1.5", "true", "'s'", "'x'" };
	static const char *const names[] = { "A", "A", "B" };
	const char *op = ops[(size_t)dice() % ARRAY_LEN(ops)];
	const char *key = dice() % 12 ? keys[(size_t)dice() % KEYS] : "aa/";
	switch (dice() % 9) {
	case 0:
	case 8:
		buf_addf(out, "%s %s %s", names[(size_t)dice() % ARRAY_LEN(names)], op,
			literals[(size_t)dice() % ARRAY_LEN(literals)]);
		break;
	case 1:
		MUST(clock_format(w->rows[(size_t)dice() % w->n].version, time) > 0);
		buf_addf(out, "Timestamp %s datetime'%s'", op, time);
		break;
	case 2:
	case 3:
	case 4:
		buf_addf(out, "RowKey %s '%s'", op, key);
		break;
	default:
		buf_addf(out, "PartitionKey %s '%s'", op, key);
	}
}

static void random_filter(const struct world *w, struct buf *out, int size)
{
	if (size <= 1) {
		random_leaf(w, out);
		return;
	}
	int left = 1 + dice() % (size - 1);
	buf_add_str(out, dice() % 6 ? "(" : "not (");
	random_filter(w, out, left);
	buf_add_str(out, dice() % 2 ? " and " : " or ");
	random_filter(w, out, size - left);
	buf_add_str(out, ")");
}

static void random_limit(struct key_ranges *ret)
{
	struct span b[4];
	for (int i = 0; i < 4; i++)
		b[i] = dice() % 3 == 0 ? (struct span){ 0 } : span_of(keys[(size_t)dice() % KEYS]);
	if (b[0].p == NULL)
		b[1] = b[0];
	if (b[2].p == NULL)
		b[3] = b[2];
	MUST(key_ranges_between(b[0], b[1], b[2], b[3], ret) == ERR_OK);
}

static void random_queries(struct world *w, int rounds)
{
	for (int i = 0; i < rounds && check_failures == 0; i++) {
		struct buf text = BUF_INIT(1u << 20);
		struct key_ranges limit = { 0 };
		struct query q = { .decode = dice() % 2 };
		size_t stop = dice() % 6 == 0 ? 1 + (size_t)dice() % 5 : 0;
		if (dice() % 8)
			random_filter(w, &text, 1 + dice() % 7);
		buf_add_str(&text, " ");
		if (dice() % 2)
			q.top = 1 + (size_t)dice() % (dice() % 2 ? 4 : 40);
		if (dice() % 6 == 0)
			q.max_bytes = 1 + (size_t)dice() % 60;
		if (dice() % 4 == 0)
			q.deadline_us = 1;
		if (dice() % 3 == 0) {
			random_limit(&limit);
			q.limit = &limit;
		}
		check_query(w, text.data, q, stop);
		key_ranges_fini(&limit);
		buf_fini(&text);
	}
}

TEST(random_queries_in_memory_give_each_row_once_and_in_order)
{
	static const int percents[] = { 15, 50, 100 };
	dice_seed(1);
	for (size_t i = 0; i < ARRAY_LEN(percents); i++) {
		struct world *w = world_memory();
		fill_at_random(w, percents[i]);
		random_queries(w, 1500);
		world_free(w);
	}
}

TEST(random_queries_in_sqlite_give_each_row_once_and_in_order)
{
	static const int percents[] = { 30, 100 };
	dice_seed(2);
	for (size_t i = 0; i < ARRAY_LEN(percents); i++) {
		struct world *w = world_sqlite();
		fill_at_random(w, percents[i]);
		random_queries(w, 150);
		world_free(w);
	}
}

/* ---- an engine that counts what it is asked for, and may be slow or without views ---- */

static struct store_ops watched_ops;
static const struct store_ops *watched;
static struct {
	unsigned children, lists, views, items;
} asked;
/* Called before each list. */
static void (*before_list)(void *arg);
static void *before_list_arg;
static store_list_fn watched_fn;

static enum err watch_child(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span key, unsigned want, struct item *ret)
{
	asked.children++;
	return watched->child(s, v, parent, class, key, want, ret);
}

static bool watch_item(void *arg, const struct item *it)
{
	asked.items++;
	return watched_fn(arg, it);
}

static enum err watch_list(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span after, bool inclusive, unsigned want, store_list_fn fn,
	void *arg, bool *ret_more)
{
	asked.lists++;
	watched_fn = fn;
	if (before_list != NULL)
		before_list(before_list_arg);
	return watched->list(
		s, v, parent, class, after, inclusive, want, watch_item, arg, ret_more);
}

static enum err watch_view(struct store *s, bool held, struct store_view **ret)
{
	asked.views++;
	return watched->view_open(s, held, ret);
}

static void watch(struct world *w)
{
	struct store *s = service_store(w->service);
	watched = s->ops;
	watched_ops = *watched;
	watched_ops.child = watch_child;
	watched_ops.list = watch_list;
	watched_ops.scan = NULL;
	watched_ops.view_open = watch_view;
	s->ops = &watched_ops;
	asked.children = asked.lists = asked.views = asked.items = 0;
	before_list = NULL;
}

static enum err watch_scan(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span after, bool inclusive, store_skip_fn skip,
	store_list_fn fn, void *arg, bool *ret_more)
{
	watched_fn = fn;
	return watched->scan(
		s, v, parent, class, after, inclusive, skip, watch_item, arg, ret_more);
}

/* items: that the engine hands out. */
static void check_scan(
	struct world *w, const char *text, unsigned looked_at, unsigned matched, unsigned items)
{
	struct filter f;
	struct query_end end;
	struct query q = { .table_id = w->table, .filter = &f };
	struct taker t = { .w = w, .q = &q };
	asked.items = 0;
	MUST(filter_parse(span_of(text), &f, NULL) == ERR_OK);
	CHECK_ERR(query_run(w->service, NULL, &q, take, &t, &end), ERR_OK);
	CHECK_EQ_INT(end.looked_at, looked_at);
	CHECK_EQ_INT(end.matched, matched);
	CHECK_EQ_INT(asked.items, items);
	query_end_fini(&end);
	filter_fini(&f);
}

TEST(the_engine_hands_out_only_rows_that_match_and_what_follows_them)
{
	struct world *w = world_sqlite();
	char rk[16];
	for (int i = 0; i < 300; i++) {
		snprintf(rk, sizeof(rk), "%03d", i);
		add_row(w, "p", rk, i % 100 == 50 ? "{\"A\":2}" : "{\"A\":1}");
	}
	watch(w);
	watched_ops.scan = watch_scan;
	check_scan(w, "A eq 2", 300, 3, 1 /* the partition */ + 3 + 3);
	check_scan(w, "A eq 2 and RowKey ge '1' and RowKey lt '2'", 100, 1, 1 + 1 + 1 + 1);
	world_free(w);
}

TEST(an_engine_without_views_is_read_as_it_is)
{
	struct store *s;
	REQUIRE(store_open_memory_with(0, &s) == ERR_OK);
	struct world *w = world_of(s);
	dice_seed(3);
	fill_at_random(w, 60);
	random_queries(w, 200);
	world_free(w);
}

/* 20 partitions p00.. of 50 rows r00.. */
static struct world *world_grid(void)
{
	struct world *w = world_memory();
	char pk[16], rk[16];
	for (int i = 0; i < 20; i++) {
		for (int j = 0; j < 50; j++) {
			snprintf(pk, sizeof(pk), "p%02d", i);
			snprintf(rk, sizeof(rk), "r%02d", j);
			add_row(w, pk, rk, "{\"A\":1}");
		}
	}
	sort_rows(w);
	return w;
}

struct cost {
	const char *filter;
	size_t top;
	enum key_plan plan;
	unsigned matched, looked_at, children, lists, items;
};

static bool count_row(void *arg, const struct query_row *row)
{
	(void)row;
	++*(size_t *)arg;
	return true;
}

static void check_cost(struct world *w, const struct cost *c)
{
	struct filter f;
	struct query_end end;
	size_t n = 0;
	MUST(filter_parse(span_of(c->filter), &f, NULL) == ERR_OK);
	struct query q = { .table_id = w->table, .filter = &f, .top = c->top };
	asked.children = asked.lists = asked.items = 0;
	CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
	CHECK_EQ_INT(end.plan, c->plan);
	CHECK_EQ_INT(n, c->matched);
	CHECK_EQ_INT(end.looked_at, c->looked_at);
	bool cheap =
		asked.children <= c->children && asked.lists <= c->lists && asked.items <= c->items;
	if (!cheap)
		printf("# %s: %u children, %u lists, %u items\n", c->filter, asked.children,
			asked.lists, asked.items);
	CHECK(cheap);
	query_end_fini(&end);
	filter_fini(&f);
}

TEST(bounds_become_seeks)
{
	/* The engine's lists are of 7 items.  Lists of partitions begin with 4. */
	static const struct cost costs[] = {
		{ "PartitionKey eq 'p05' and RowKey eq 'r07'", 0, KEY_PLAN_POINT, 1, 1, 2, 0, 0 },
		{ "PartitionKey eq 'p05' and RowKey eq 'zz'", 0, KEY_PLAN_POINT, 0, 0, 2, 0, 0 },
		{ "PartitionKey eq 'zz' and RowKey eq 'r07'", 0, KEY_PLAN_POINT, 0, 0, 1, 0, 0 },
		{ "PartitionKey eq 'p05' and RowKey eq 'a/b'", 0, KEY_PLAN_POINT, 0, 0, 1, 0, 0 },
		{ "PartitionKey eq 'p05' and (RowKey eq 'r01' or RowKey eq 'r48')", 0,
			KEY_PLAN_POINTS, 2, 2, 3, 0, 0 },
		{ "PartitionKey eq 'p05' and RowKey ge 'r10' and RowKey lt 'r15'", 0,
			KEY_PLAN_ROW_RANGE, 5, 5, 1, 1, 6 },
		{ "PartitionKey eq 'p05' and RowKey gt 'r44' and A eq 2", 0, KEY_PLAN_ROW_RANGE, 0,
			5, 1, 1, 5 },
		{ "PartitionKey eq 'p05'", 3, KEY_PLAN_ROW_RANGE, 3, 3, 1, 1, 4 },
		{ "PartitionKey eq 'p05' or PartitionKey eq 'p07'", 51, KEY_PLAN_ROW_RANGE, 51, 51,
			2, 9, 52 },
		{ "PartitionKey ge 'p05' and PartitionKey le 'p06' and RowKey lt 'r01'", 0,
			KEY_PLAN_PARTITION_RANGE, 2, 2, 0, 3, 3 + 4 },
		{ "RowKey eq 'r49'", 0, KEY_PLAN_PARTITION_RANGE, 20, 20, 20, 5, 20 },
		{ "PartitionKey gt 'p17' and RowKey ge 'r49'", 0, KEY_PLAN_PARTITION_RANGE, 2, 2, 0,
			3, 4 },
		{ "", 2, KEY_PLAN_SCAN, 2, 2, 0, 2, 4 + 3 },
		{ "PartitionKey lt 'a'", 0, KEY_PLAN_PARTITION_RANGE, 0, 0, 0, 1, 1 },
		{ "PartitionKey lt 'b' and PartitionKey gt 'b'", 0, KEY_PLAN_NOTHING, 0, 0, 0, 0,
			0 },
	};
	struct world *w = world_grid();
	watch(w);
	for (size_t i = 0; i < ARRAY_LEN(costs); i++)
		check_cost(w, &costs[i]);
	world_free(w);
}

TEST(one_row_needs_no_view_and_more_need_one)
{
	struct world *w = world_grid();
	watch(w);
	check_cost(w,
		&(struct cost){ "PartitionKey eq 'p05' and RowKey eq 'r07'", 0, KEY_PLAN_POINT, 1,
			1, 2, 0, 0 });
	CHECK_EQ_INT(asked.views, 0);
	check_cost(
		w, &(struct cost){ "PartitionKey eq 'p05'", 1, KEY_PLAN_ROW_RANGE, 1, 1, 1, 1, 2 });
	CHECK_EQ_INT(asked.views, 1);
	world_free(w);
}

/* Most rows of a small partition are wanted: it is read through. */
TEST(many_points_in_a_small_partition_are_one_listing)
{
	struct world *w = world_grid();
	struct buf text = BUF_INIT(1u << 16);
	watch(w);
	buf_add_str(&text, "PartitionKey eq 'p03' and (RowKey eq 'nothing'");
	for (int i = 0; i < 20; i++)
		buf_addf(&text, " or RowKey eq 'r%02d'", i * 2);
	buf_add_str(&text, ")");
	check_cost(w, &(struct cost){ text.data, 0, KEY_PLAN_POINTS, 20, 20, 1, 6, 40 });
	check_query(w, text.data, (struct query){ .top = 3 }, 0);
	check_query(w, text.data, (struct query){ .deadline_us = 1 }, 0);
	buf_fini(&text);
	world_free(w);
}

/* ---- limits ---- */

TEST(a_deadline_in_the_past_still_gets_on_by_a_bounded_step)
{
	struct world *w = world_grid();
	struct query_end end;
	size_t n = 0;
	struct query q = { .table_id = w->table, .deadline_us = 1 };
	CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
	CHECK(end.more && end.looked_at >= 1 && end.looked_at <= 100);
	query_end_fini(&end);
	check_query(w, "A eq 2", (struct query){ .deadline_us = 1 }, 0);
	check_query(w, "RowKey eq 'nothing'", (struct query){ .deadline_us = 1 }, 0);
	check_query(w, "PartitionKey ne 'p07' and RowKey ne 'r02'",
		(struct query){ .deadline_us = 1, .top = 7 }, 0);
	world_free(w);
}

static unsigned shown; /* what sees_none() was asked for */

static bool sees_none(const struct query_requester *v, const struct attrs *attrs, bool dir)
{
	(void)v;
	(void)attrs;
	shown += dir;
	return false;
}

/* Rows that may not be seen are no reason to walk all of them at once, nor to end anywhere. */
TEST(a_deadline_stops_among_partitions_that_are_not_seen)
{
	struct world *w = world_grid();
	const struct query_requester blind = { sees_none };
	struct query q = { .table_id = w->table, .requester = &blind, .deadline_us = 1 };
	struct query_end end = { .more = true };
	struct buf pk = { 0 };
	unsigned pages = 0;
	size_t n = 0;
	while (end.more && pages < 1000) {
		CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
		buf_fini(&pk);
		pk = end.next_pk;
		q.from_pk = buf_span(&pk);
		buf_fini(&end.next_rk);
		pages++;
	}
	buf_fini(&pk);
	CHECK(!end.more && n == 0 && pages >= 10 && shown >= pages);
	world_free(w);
}

/* However many keys are still to be looked for. */
static void check_stops(struct world *w, const char *before, const char *after)
{
	struct buf text = BUF_INIT(1u << 16);
	buf_add_str(&text, before);
	for (int i = 0; i < 300; i++)
		buf_addf(&text, "%sPartitionKey eq 'q%d'", i == 0 ? "" : " or ", i);
	buf_add_str(&text, after);
	struct filter f;
	struct query_end end;
	size_t n = 0;
	MUST(filter_parse(buf_span(&text), &f, NULL) == ERR_OK);
	struct query q = { .table_id = w->table, .filter = &f, .deadline_us = 1 };
	asked.children = asked.lists = 0;
	CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
	CHECK(end.more && n == 0);
	CHECK(asked.lists + asked.children < 5);
	query_end_fini(&end);
	filter_fini(&f);
	check_query(w, text.data, (struct query){ .deadline_us = 1 }, 0);
	buf_fini(&text);
}

TEST(a_deadline_stops_while_nothing_is_found)
{
	struct world *w = world_grid();
	watch(w);
	check_stops(w, "RowKey ge 'zz' or (RowKey eq 'r01' and (", "))");
	check_stops(w, "", "");
	check_stops(w, "RowKey eq 'r01' and (", ")");
	world_free(w);
}

/* No row has these keys, and no token could name them. */
TEST(positions_are_legal_keys_whatever_the_filter_says)
{
	struct world *w = world_grid();
	struct buf text = BUF_INIT(1u << 16);
	char big[LIMIT_KEY_BYTES + 100];
	memset(big, 'p', sizeof(big));
	buf_addf(&text,
		"PartitionKey eq 'p01' or PartitionKey eq 'p00/' or "
		"PartitionKey eq 'p00#' or PartitionKey eq '%.*s'",
		(int)sizeof(big), big);
	check_query(w, text.data, (struct query){ .deadline_us = 1 }, 0);
	buf_clear(&text);
	buf_addf(&text,
		"PartitionKey ge '%.*s' or RowKey eq 'r01/' or "
		"(RowKey gt 'r01/' and RowKey lt 'r03?') or RowKey ge 'r48#'",
		(int)sizeof(big), big);
	check_query(w, text.data, (struct query){ .deadline_us = 1 }, 0);
	check_query(w, text.data, (struct query){ .top = 1 }, 0);
	buf_fini(&text);
	world_free(w);
}

static bool sleep_at_row(void *arg, const struct query_row *row)
{
	(void)row;
	++*(size_t *)arg;
	return usleep(1000) == 0;
}

/* The next page finds nothing that this one has, whatever the keys between. */
TEST(a_deadline_is_held_where_a_bound_is_no_key)
{
	static const char *const filters[] = { "RowKey gt 'r49/'", "RowKey eq 'r01/'",
		"RowKey lt 'r02' or RowKey gt 'r49/'", "RowKey gt 'r01/' and RowKey lt 'r03/'" };
	struct world *w = world_grid();
	watch(w);
	for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
		struct filter f;
		struct query_end end;
		size_t n = 0;
		MUST(filter_parse(span_of(filters[i]), &f, NULL) == ERR_OK);
		struct query q = { .table_id = w->table, .filter = &f, .deadline_us = 1 };
		asked.lists = 0;
		CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
		CHECK(end.more && asked.lists <= 3);
		CHECK(span_is(buf_span(&end.next_pk), "p00") ||
			span_is(buf_span(&end.next_pk), "p01"));
		query_end_fini(&end);
		filter_fini(&f);
		check_query(w, filters[i], (struct query){ .deadline_us = 1 }, 0);
	}
	world_free(w);
}

/* Where the place of the next span cannot be named, the next row's is. */
TEST(a_deadline_that_passes_between_bounds_that_are_no_keys_stops_at_the_next_row)
{
	struct world *w = world_grid();
	struct buf text = BUF_INIT(1u << 16);
	buf_add_str(&text, "PartitionKey eq 'p03' and (RowKey eq 'r00'");
	for (int i = 0; i < 4; i++)
		buf_addf(
			&text, " or (RowKey gt 'r%02d/' and RowKey lt 'r%02d/')", i * 9, i * 9 + 4);
	buf_add_str(&text, ")");
	struct filter f;
	struct query_end end;
	size_t n = 0;
	MUST(filter_parse(buf_span(&text), &f, NULL) == ERR_OK);
	struct query q = { .table_id = w->table, .filter = &f };
	q.deadline_us = clock_mono_us() + 500;
	CHECK_ERR(query_run(w->service, NULL, &q, sleep_at_row, &n, &end), ERR_OK);
	CHECK(end.more);
	CHECK_EQ_INT(n, 1);
	query_end_fini(&end);
	filter_fini(&f);
	check_query(w, text.data, (struct query){ .deadline_us = 1 }, 0);
	buf_fini(&text);
	world_free(w);
}

/* The row that filled the page is the only one; what is behind it is not all looked for. */
TEST(a_full_page_looks_only_a_little_ahead)
{
	struct world *w = world_memory();
	char pk[16];
	for (int i = 0; i < 300; i++) {
		snprintf(pk, sizeof(pk), "p%03d", i);
		add_row(w, pk, i == 0 ? "r" : "s", "{}");
	}
	sort_rows(w);
	watch(w);
	struct filter f;
	struct query_end end;
	size_t n = 0;
	MUST(filter_parse(SPAN_LIT("RowKey eq 'r'"), &f, NULL) == ERR_OK);
	struct query q = { .table_id = w->table, .filter = &f, .top = 1 };
	CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
	CHECK(end.more && n == 1);
	CHECK(asked.children >= 60 && asked.children <= 70);
	CHECK(span_is(buf_span(&end.next_pk), "p065"));
	query_end_fini(&end);
	filter_fini(&f);
	world_free(w);
}

static void fill_partition(struct world *w, int rows)
{
	char rk[16];
	for (int i = 0; i < rows; i++) {
		snprintf(rk, sizeof(rk), "r%03d", i);
		add_row(w, "p", rk, "{\"A\":1}");
	}
	sort_rows(w);
}

static void add_points(struct buf *text, int n)
{
	buf_add_str(text, "PartitionKey eq 'p' and (RowKey eq 'r000'");
	for (int i = 0; i < n; i++)
		buf_addf(text, " or RowKey eq 'r%03dx'", i);
	buf_add_str(text, ")");
}

/* Points close together are read as one listing, with the rows between them. */
TEST(rows_between_points_count_for_the_deadline_and_for_looking_ahead)
{
	struct world *w = world_memory();
	struct buf text = BUF_INIT(1u << 16);
	struct filter f;
	struct query_end end;
	size_t n = 0;
	fill_partition(w, 700);
	add_points(&text, 699);
	watch(w);
	MUST(filter_parse(buf_span(&text), &f, NULL) == ERR_OK);
	struct query q = { .table_id = w->table, .filter = &f, .deadline_us = 1 };
	CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
	CHECK(end.more && n == 1 && asked.items < 80);
	CHECK(span_starts(buf_span(&end.next_rk), SPAN_LIT("r06")));
	query_end_fini(&end);
	q = (struct query){ .table_id = w->table, .filter = &f, .top = 1 };
	n = asked.items = 0;
	CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
	CHECK(end.more && n == 1 && asked.items < 80);
	query_end_fini(&end);
	filter_fini(&f);
	check_query(w, text.data, (struct query){ .deadline_us = 1 }, 0);
	check_query(w, text.data, (struct query){ .deadline_us = 1, .top = 1 }, 0);
	buf_fini(&text);
	world_free(w);
}

TEST(bytes_are_counted_until_the_limit_is_reached)
{
	struct world *w = world_grid();
	struct query_end end;
	size_t n = 0;
	size_t one = strlen("{\"A\":1}\n");
	struct query q = { .table_id = w->table, .max_bytes = 3 * one };
	CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
	CHECK_EQ_INT(n, 3);
	CHECK(end.more && span_is(buf_span(&end.next_rk), "r03"));
	query_end_fini(&end);
	q.max_bytes++;
	n = 0;
	CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
	CHECK_EQ_INT(n, 4);
	query_end_fini(&end);
	world_free(w);
}

TEST(a_start_names_a_row_or_the_next_one)
{
	static const struct {
		struct span pk, rk;
		const char *first_pk, *first_rk;
	} starts[] = {
		{ { 0 }, { 0 }, "p00", "r00" },
		{ SPAN_LIT(""), { 0 }, "p00", "r00" },
		{ SPAN_LIT("p03"), { 0 }, "p03", "r00" },
		{ SPAN_LIT("p03"), SPAN_LIT(""), "p03", "r00" },
		{ SPAN_LIT("p03"), SPAN_LIT("r07"), "p03", "r07" },
		{ SPAN_LIT("p03"), SPAN_LIT("r07x"), "p03", "r08" },
		{ SPAN_LIT("p03"), SPAN_LIT("s"), "p04", "r00" },
		{ SPAN_LIT("p03x"), SPAN_LIT("r07"), "p04", "r00" },
		{ SPAN_LIT("p19"), SPAN_LIT("r49"), "p19", "r49" },
		{ SPAN_LIT("p19"), SPAN_LIT("r50"), NULL, NULL },
		{ SPAN_LIT("q"), { 0 }, NULL, NULL },
	};
	struct world *w = world_grid();
	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		struct query q = {
			.table_id = w->table, .from_pk = starts[i].pk, .from_rk = starts[i].rk
		};
		struct taker *t = calloc(1, sizeof(*t));
		struct query_end end;
		MUST(t != NULL);
		t->w = w;
		t->q = &q;
		t->stop_after = 1;
		CHECK_ERR(query_run(w->service, NULL, &q, take, t, &end), ERR_OK);
		CHECK_EQ_INT(t->n, starts[i].first_pk != NULL);
		if (t->n == 1 && starts[i].first_pk != NULL) {
			CHECK_EQ_STR(w->rows[t->seen[0]].pk, starts[i].first_pk);
			CHECK_EQ_STR(w->rows[t->seen[0]].rk, starts[i].first_rk);
		}
		query_end_fini(&end);
		free(t);
	}
	world_free(w);
}

TEST(a_table_that_is_not_there_has_no_rows)
{
	struct world *w = world_memory();
	struct query_end end;
	size_t n = 0;
	struct query q = { .table_id = 123456, .top = 1 };
	CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
	CHECK(n == 0 && !end.more);
	query_end_fini(&end);
	world_free(w);
}

TEST(the_longest_keys_can_be_paged_through)
{
	struct world *w = world_memory();
	char key[2][LIMIT_KEY_BYTES], got[2][LIMIT_KEY_BYTES];
	for (size_t i = 0; i < LIMIT_KEY_BYTES; i += 3) {
		memcpy(key[0] + i, "\xe2\x82\xac", 3);
		memcpy(key[1] + i, "\xe2\x82\xad", 3);
	}
	int64_t version;
	for (int i = 0; i < 4; i++)
		put(w, w->table, span_make(key[i / 2], LIMIT_KEY_BYTES),
			span_make(key[i % 2], LIMIT_KEY_BYTES), "{}", &version);
	struct query q = { .table_id = w->table, .top = 1, .decode = true };
	size_t n = 0, pages = 0;
	for (bool more = true; more && pages < 5; pages++) {
		struct query_end end;
		CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
		more = end.more;
		CHECK(more == (pages < 3));
		if (more) {
			copy_key(buf_span(&end.next_pk), got[0], &q.from_pk);
			copy_key(buf_span(&end.next_rk), got[1], &q.from_rk);
		}
		query_end_fini(&end);
	}
	CHECK_EQ_INT(pages, 4);
	CHECK_EQ_INT(n, 4);
	world_free(w);
}

/* ---- views, damage, failures ---- */

static void check_view(struct world *w)
{
	struct store *s = service_store(w->service);
	struct store_view *v;
	struct query q = { .table_id = w->table };
	struct query_end end;
	int64_t version;
	size_t n = 0;
	put(w, w->table, SPAN_LIT("a"), SPAN_LIT("1"), "{}", &version);
	MUST(store_view_open(s, &v) == ERR_OK);
	put(w, w->table, SPAN_LIT("a"), SPAN_LIT("2"), "{}", &version);
	put(w, w->table, SPAN_LIT("b"), SPAN_LIT("1"), "{}", &version);
	CHECK_ERR(query_run(w->service, v, &q, count_row, &n, &end), ERR_OK);
	CHECK_EQ_INT(n, 1);
	query_end_fini(&end);
	store_view_close(s, v);
	n = 0;
	CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
	CHECK_EQ_INT(n, 3);
	query_end_fini(&end);
	world_free(w);
}

TEST(a_view_shows_what_was_there)
{
	check_view(world_memory());
	check_view(world_sqlite());
}

/* Another client at work while a query is slow: before the list `at` it sets A to 2 in the
 * first and the last row of partitions, in one change set each. */
struct meddler {
	struct world *w;
	unsigned at;
	unsigned sleep_ms;
	const char *const *pks; /* NULL behind the last */
	bool renames;           /* exchanges pks[0] and pks[1] instead */
};

static void set_first_and_last(struct world *w, const char *pk)
{
	struct entity e[2] = { 0 };
	struct entity_op ops[2];
	for (int i = 0; i < 2; i++) {
		MUST(entity_json_decode(
			     SPAN_LIT("{\"A\":2}"), ENTITY_JSON_FILE, &e[i], NULL, NULL) == ERR_OK);
		ops[i] = (struct entity_op){ .kind = ENTITY_UPSERT,
			.pk = span_of(pk),
			.rk = i == 0 ? SPAN_LIT("r00") : SPAN_LIT("r49"),
			.entity = &e[i],
			.attrs = ATTRS_UNSET };
	}
	MUST(entities_apply(w->service, ORIGIN_COMMAND, w->table, ops, 2, ENTITIES_SET, NULL) ==
		ERR_OK);
	entity_fini(&e[0]);
	entity_fini(&e[1]);
}

static void exchange(struct world *w, const char *pk, const char *other)
{
	struct change c = { .op = CHANGE_MOVE,
		.flags = CHANGE_EXCHANGE,
		.at = { .parent = w->table, .class = CLASS_KEYED, .key = span_of(pk) },
		.to = { .parent = w->table, .class = CLASS_KEYED, .key = span_of(other) } };
	MUST(service_apply(w->service, ORIGIN_COMMAND, &c, 1, false, NULL) == ERR_OK);
	changes_fini(&c, 1);
}

static void meddle(void *arg)
{
	struct meddler *m = arg;
	if (asked.lists != m->at)
		return;
	before_list = NULL; /* it lists, too */
	if (m->renames)
		exchange(m->w, m->pks[0], m->pks[1]);
	for (size_t i = 0; !m->renames && m->pks[i] != NULL; i++)
		set_first_and_last(m->w, m->pks[i]);
	MUST(usleep(m->sleep_ms * 1000) == 0);
}

/* Rows with A eq 2, and the last row's key; keys in order. */
struct seen {
	size_t n;
	char twos[200];
	char last[40];
};

static bool see(void *arg, const struct query_row *row)
{
	struct seen *s = arg;
	char key[40];
	const struct property *a = entity_find(row->entity, SPAN_LIT("A"));
	snprintf(key, sizeof(key), "%.*s/%.*s", (int)row->pk.n, row->pk.p, (int)row->rk.n,
		row->rk.p);
	CHECK(strcmp(key, s->last) > 0);
	memcpy(s->last, key, sizeof(key));
	s->n++;
	if (a != NULL && a->value.int32 == 2)
		snprintf(s->twos + strlen(s->twos), sizeof(s->twos) - strlen(s->twos), "%s ", key);
	return true;
}

/* A partition of 50 rows takes 8 lists here, and the first partitions one before. */
TEST(a_slow_query_changes_its_view_between_partitions)
{
	static const char *const pks[] = { "p00", "p01", "p02", NULL };
	struct world *w = world_grid();
	struct meddler m = { .w = w, .at = 12, .sleep_ms = 300, .pks = pks };
	struct seen seen = { 0 };
	struct query_end end;
	watch(w);
	before_list = meddle;
	before_list_arg = &m;
	struct query q = { .table_id = w->table, .decode = true };
	CHECK_ERR(query_run(w->service, NULL, &q, see, &seen, &end), ERR_OK);
	CHECK(!end.more);
	CHECK_EQ_INT(seen.n, w->n);
	CHECK_EQ_INT(asked.views, 2);
	CHECK_EQ_STR(seen.twos, "p02/r00 p02/r49 "); /* in p01 it was the old view still */
	query_end_fini(&end);
	world_free(w);
}

/* What was listed in the old view is not believed in the new one. */
TEST(partitions_are_listed_anew_in_a_new_view)
{
	static const char *const pks[] = { "p02", "p03", NULL };
	struct world *w = world_grid();
	struct meddler m = { .w = w, .at = 12, .sleep_ms = 300, .pks = pks, .renames = true };
	struct seen seen = { 0 };
	struct query_end end;
	set_first_and_last(w, "p02");
	watch(w);
	before_list = meddle;
	before_list_arg = &m;
	struct query q = { .table_id = w->table, .decode = true };
	CHECK_ERR(query_run(w->service, NULL, &q, see, &seen, &end), ERR_OK);
	CHECK_EQ_INT(seen.n, w->n);
	CHECK_EQ_STR(seen.twos, "p03/r00 p03/r49 ");
	query_end_fini(&end);
	world_free(w);
}

TEST(points_in_several_partitions_change_the_view_too)
{
	static const char *const pks[] = { "p00", "p01", NULL };
	struct world *w = world_grid();
	struct meddler m = { .w = w, .at = 2, .sleep_ms = 300, .pks = pks };
	struct seen seen = { 0 };
	struct query_end end;
	struct filter f;
	MUST(filter_parse(SPAN_LIT("PartitionKey eq 'p00' or PartitionKey eq 'p01'"), &f, NULL) ==
		ERR_OK);
	watch(w);
	before_list = meddle;
	before_list_arg = &m;
	struct query q = { .table_id = w->table, .filter = &f, .decode = true };
	CHECK_ERR(query_run(w->service, NULL, &q, see, &seen, &end), ERR_OK);
	CHECK_EQ_INT(seen.n, 100);
	CHECK_EQ_INT(asked.views, 2);
	CHECK_EQ_STR(seen.twos, "p01/r00 p01/r49 ");
	query_end_fini(&end);
	filter_fini(&f);
	world_free(w);
}

TEST(a_view_of_the_caller_stays)
{
	static const char *const pks[] = { "p00", "p01", "p02", NULL };
	struct world *w = world_grid();
	struct meddler m = { .w = w, .at = 12, .sleep_ms = 300, .pks = pks };
	struct seen seen = { 0 };
	struct query_end end;
	struct store_view *v;
	MUST(store_view_open(service_store(w->service), &v) == ERR_OK);
	watch(w);
	before_list = meddle;
	before_list_arg = &m;
	struct query q = { .table_id = w->table, .decode = true };
	CHECK_ERR(query_run(w->service, v, &q, see, &seen, &end), ERR_OK);
	CHECK_EQ_INT(seen.n, w->n);
	CHECK_EQ_INT(asked.views, 0);
	CHECK_EQ_STR(seen.twos, "");
	query_end_fini(&end);
	store_view_close(service_store(w->service), v);
	world_free(w);
}

/* A change set never comes apart within a page, so the page ends. */
static void check_long_partition(uint64_t deadline_us)
{
	static const char *const pks[] = { "p00", NULL };
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES];
	struct world *w = world_memory();
	struct meddler m = { .w = w, .at = 6, .sleep_ms = 1050, .pks = pks };
	struct seen seen = { 0 };
	struct query_end end;
	char key[16];
	for (int i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "r%02d%s", i / 4, i % 4 == 0 ? "" : &"xyz"[i % 4 - 1]);
		add_row(w, "p00", key, "{\"A\":1}");
	}
	watch(w);
	before_list = meddle;
	before_list_arg = &m;
	struct query q = { .table_id = w->table, .decode = true, .deadline_us = deadline_us };
	CHECK_ERR(query_run(w->service, NULL, &q, see, &seen, &end), ERR_OK);
	CHECK(end.more == (deadline_us != 0));
	CHECK_EQ_INT(asked.views, 1);
	CHECK_EQ_STR(seen.twos, "");
	CHECK(!end.more || (seen.n > 60 && seen.n < 140));
	if (end.more) {
		copy_key(buf_span(&end.next_pk), pk, &q.from_pk);
		copy_key(buf_span(&end.next_rk), rk, &q.from_rk);
		query_end_fini(&end);
		CHECK_ERR(query_run(w->service, NULL, &q, see, &seen, &end), ERR_OK);
		CHECK(!end.more);
		CHECK_EQ_STR(seen.twos, "p00/r49 ");
	}
	CHECK_EQ_INT(seen.n, w->n);
	query_end_fini(&end);
	world_free(w);
}

TEST(a_partition_that_takes_long_ends_the_page)
{
	check_long_partition(clock_mono_us() + 60000000);
}

TEST(without_a_deadline_it_is_read_in_one_view)
{
	check_long_partition(0);
}

TEST(a_document_that_does_not_decode_is_damage)
{
	struct world *w = world_memory();
	struct change c = { .op = CHANGE_PUT,
		.at = { .parent = w->table,
			.has_pk = true,
			.pk = SPAN_LIT("p"),
			.class = CLASS_KEYED,
			.key = SPAN_LIT("r") },
		.kind = ITEM_ROW,
		.body = SPAN_LIT("{\"A\":"),
		.attrs = ATTRS_UNSET };
	MUST(service_apply(w->service, ORIGIN_COMMAND, &c, 1, false, NULL) == ERR_OK);
	changes_fini(&c, 1);
	struct filter f;
	struct query_end end;
	size_t n = 0;
	MUST(filter_parse(SPAN_LIT("A eq 1"), &f, NULL) == ERR_OK);
	struct query q = { .table_id = w->table, .filter = &f };
	CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_CORRUPT);
	query_end_fini(&end);
	q = (struct query){ .table_id = w->table, .decode = true };
	CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_CORRUPT);
	query_end_fini(&end);
	q.decode = false; /* nothing looks into it */
	CHECK_EQ_INT(n, 0);
	CHECK_ERR(query_run(w->service, NULL, &q, count_row, &n, &end), ERR_OK);
	CHECK_EQ_INT(n, 1);
	query_end_fini(&end);
	filter_fini(&f);
	world_free(w);
}

TEST(a_failing_read_fails_the_query)
{
	struct store *inner, *fault;
	MUST(store_open_memory(&inner) == ERR_OK);
	MUST(store_open_fault(inner, &fault) == ERR_OK);
	struct world *w = world_of(fault);
	dice_seed(4);
	fill_at_random(w, 50);
	static const char *const filters[] = { "", "RowKey eq 'a'", "PartitionKey eq 'a'",
		"PartitionKey eq 'a' or PartitionKey gt 'b'" };
	for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
		struct filter f;
		MUST(filter_parse(span_of(filters[i]), &f, NULL) == ERR_OK);
		struct query q = { .table_id = w->table, .filter = &f };
		enum err e = ERR_IO;
		unsigned k = 1;
		for (; e != ERR_OK && k < 1000; k++) {
			struct query_end end;
			size_t n = 0;
			store_fault_arm(fault, FAULT_READS, k, ERR_IO);
			e = query_run(w->service, NULL, &q, count_row, &n, &end);
			CHECK(e == ERR_OK || e == ERR_IO);
			query_end_fini(&end);
		}
		store_fault_arm(fault, 0, 0, ERR_OK);
		CHECK(k > 2 && k < 1000);
		filter_fini(&f);
	}
	world_free(w);
}

RUN_TESTS(T(random_queries_in_memory_give_each_row_once_and_in_order),
	T(random_queries_in_sqlite_give_each_row_once_and_in_order),
	T(the_engine_hands_out_only_rows_that_match_and_what_follows_them),
	T(an_engine_without_views_is_read_as_it_is), T(bounds_become_seeks),
	T(one_row_needs_no_view_and_more_need_one),
	T(many_points_in_a_small_partition_are_one_listing),
	T(a_deadline_in_the_past_still_gets_on_by_a_bounded_step),
	T(a_deadline_stops_among_partitions_that_are_not_seen),
	T(a_deadline_stops_while_nothing_is_found),
	T(positions_are_legal_keys_whatever_the_filter_says),
	T(a_deadline_is_held_where_a_bound_is_no_key),
	T(a_deadline_that_passes_between_bounds_that_are_no_keys_stops_at_the_next_row),
	T(a_full_page_looks_only_a_little_ahead),
	T(rows_between_points_count_for_the_deadline_and_for_looking_ahead),
	T(bytes_are_counted_until_the_limit_is_reached), T(a_start_names_a_row_or_the_next_one),
	T(a_table_that_is_not_there_has_no_rows), T(the_longest_keys_can_be_paged_through),
	T(a_view_shows_what_was_there), T(a_slow_query_changes_its_view_between_partitions),
	T(partitions_are_listed_anew_in_a_new_view),
	T(points_in_several_partitions_change_the_view_too), T(a_view_of_the_caller_stays),
	T(a_partition_that_takes_long_ends_the_page), T(without_a_deadline_it_is_read_in_one_view),
	T(a_document_that_does_not_decode_is_damage), T(a_failing_read_fails_the_query))
