/* SPDX-License-Identifier: MIT
 * The service over the in-memory engine, and over SQLite where a restart matters. */
#include "base/clock.h"
#include "check.h"
#include "model/filename.h"
#include "model/key.h"
#include "service/change/adoption.h"
#include "service/change/entities.h"
#include "service/check/verify.h"
#include "service/core/accounts.h"
#include "service/core/heat.h"
#include "service/core/tables.h"
#include "service/tree/tree.h"
#include "service_table.h"
#include "store/engines.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What the helpers cannot go on without. */
#define MUST(cond_) BUG_ON(!(cond_))

/* ---- a service with one table ---- */

struct world {
	struct service *service;
	uint64_t account, table;
};

static struct world world_of(struct store *store)
{
	struct world w = { 0 };
	MUST(service_new(store, &w.service) == ERR_OK);
	struct item it = { 0 };
	if (account_find(w.service, SPAN_LIT("acct"), &it) != ERR_OK) {
		MUST(account_create(w.service, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL,
			     NULL) == ERR_OK);
		MUST(account_find(w.service, SPAN_LIT("acct"), &it) == ERR_OK);
	}
	w.account = it.id;
	item_fini(&it);
	if (table_find(w.service, SPAN_LIT("acct"), SPAN_LIT("Tab"), &it) != ERR_OK)
		MUST(table_create(w.service, ORIGIN_COMMAND, w.account, SPAN_LIT("Tab"), &it,
			     NULL) == ERR_OK);
	w.table = it.id;
	item_fini(&it);
	return w;
}

static struct world world_new(void)
{
	struct store *store;
	MUST(store_open_memory(&store) == ERR_OK);
	return world_of(store);
}

static enum err apply(struct world *w, enum entity_op_kind kind, const char *rk, const char *json,
	int64_t if_match, int64_t *ret_version)
{
	struct entity e = { 0 };
	struct entity_op op = { .kind = kind,
		.pk = SPAN_LIT("p"),
		.rk = span_of(rk),
		.entity = &e,
		.attrs = ATTRS_UNSET };
	if (json != NULL)
		MUST(entity_json_decode(span_of(json), ENTITY_JSON_FILE, &e, NULL, NULL) == ERR_OK);
	if (if_match >= 0) {
		op.if_match = true;
		op.if_match_version = if_match;
	}
	enum err result =
		entities_apply(w->service, ORIGIN_COMMAND, w->table, &op, 1, ENTITIES_SET, NULL);
	if (ret_version != NULL)
		*ret_version = op.version;
	entity_fini(&e);
	return result;
}

static const char *read_row(struct world *w, const char *rk)
{
	return service_row_text(w->service, w->table, "p", rk);
}

/* ---- versions ---- */

static _Atomic int64_t fake_now;
static int64_t fake_clock(void)
{
	return atomic_load(&fake_now);
}

TEST(versions_increase_while_the_clock_stands_still_and_when_it_steps_back)
{
	atomic_store(&fake_now, TICKS_UNIX_EPOCH + 1000 * TICKS_PER_SECOND);
	clock_set_source(fake_clock);
	struct world w = world_new();
	int64_t last = 0, version;
	for (int i = 0; i < 50; i++) {
		if (i % 10 == 9)
			atomic_fetch_sub(&fake_now, 100 * TICKS_PER_SECOND);
		CHECK_ERR(apply(&w, ENTITY_UPSERT, "r", "{\"A\":1}", -1, &version), ERR_OK);
		CHECK(version > last);
		last = version;
	}
	service_free(w.service);
	clock_set_source(NULL);
}

TEST(versions_increase_over_a_restart_with_the_clock_set_back)
{
	char path[] = "/tmp/rowfs-service-XXXXXX";
	int fd = mkstemp(path);
	MUST(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
	MUST(store_create(path, NULL) == ERR_OK);
	atomic_store(&fake_now, TICKS_UNIX_EPOCH + 1000000 * TICKS_PER_SECOND);
	clock_set_source(fake_clock);
	int64_t last = 0;
	for (int i = 0; i < 4; i++) {
		struct store *store;
		int64_t version;
		MUST(store_open(path, 0, &store, NULL, NULL) == ERR_OK);
		struct world w = world_of(store);
		CHECK_ERR(apply(&w, ENTITY_UPSERT, "r", "{}", -1, &version), ERR_OK);
		CHECK(version > last);
		last = version;
		service_free(w.service);
		atomic_fetch_sub(&fake_now, 5000 * TICKS_PER_SECOND);
	}
	clock_set_source(NULL);
	unlink(path);
}

/* ---- operations and conditions ---- */

TEST(insert_wants_absence_and_replace_merge_and_delete_want_presence)
{
	struct world w = world_new();
	CHECK_ERR(apply(&w, ENTITY_REPLACE, "r", "{}", -1, NULL), ERR_NOT_FOUND);
	CHECK_ERR(apply(&w, ENTITY_MERGE, "r", "{}", -1, NULL), ERR_NOT_FOUND);
	CHECK_ERR(apply(&w, ENTITY_DELETE, "r", NULL, -1, NULL), ERR_NOT_FOUND);
	CHECK_ERR(apply(&w, ENTITY_INSERT, "r", "{\"A\":1}", -1, NULL), ERR_OK);
	CHECK_ERR(apply(&w, ENTITY_INSERT, "r", "{\"A\":2}", -1, NULL), ERR_ENTITY_EXISTS);
	CHECK_EQ_STR(read_row(&w, "r"), "{\"A\":1}\n");
	CHECK_ERR(apply(&w, ENTITY_MERGE, "r", "{\"B\":true}", -1, NULL), ERR_OK);
	CHECK_EQ_STR(read_row(&w, "r"), "{\"A\":1,\"B\":true}\n");
	CHECK_ERR(apply(&w, ENTITY_UPSERT_MERGE, "r", "{\"A\":\"x\"}", -1, NULL), ERR_OK);
	CHECK_EQ_STR(read_row(&w, "r"), "{\"A\":\"x\",\"B\":true}\n");
	CHECK_ERR(apply(&w, ENTITY_UPSERT_MERGE, "s", "{\"A\":5}", -1, NULL), ERR_OK);
	CHECK_EQ_STR(read_row(&w, "s"), "{\"A\":5}\n");
	CHECK_ERR(apply(&w, ENTITY_REPLACE, "r", "{\"C\":1.5}", -1, NULL), ERR_OK);
	CHECK_EQ_STR(read_row(&w, "r"), "{\"C\":1.5}\n");
	CHECK_ERR(apply(&w, ENTITY_DELETE, "r", NULL, -1, NULL), ERR_OK);
	CHECK_EQ_STR(read_row(&w, "r"), "none");
	service_free(w.service);
}

TEST(if_match_holds_for_this_version_only)
{
	struct world w = world_new();
	int64_t first, second;
	CHECK_ERR(apply(&w, ENTITY_INSERT, "r", "{\"A\":1}", -1, &first), ERR_OK);
	CHECK_ERR(apply(&w, ENTITY_REPLACE, "r", "{\"A\":2}", first, &second), ERR_OK);
	CHECK_ERR(apply(&w, ENTITY_REPLACE, "r", "{\"A\":3}", first, NULL), ERR_CONDITION_NOT_MET);
	CHECK_ERR(apply(&w, ENTITY_MERGE, "r", "{\"A\":3}", first, NULL), ERR_CONDITION_NOT_MET);
	CHECK_ERR(apply(&w, ENTITY_DELETE, "r", NULL, first, NULL), ERR_CONDITION_NOT_MET);
	CHECK_EQ_STR(read_row(&w, "r"), "{\"A\":2}\n");
	CHECK_ERR(apply(&w, ENTITY_DELETE, "r", NULL, second, NULL), ERR_OK);
	service_free(w.service);
}

TEST(a_merge_past_a_limit_changes_nothing)
{
	struct world w = world_new();
	struct buf json = BUF_INIT(1 << 20);
	buf_add_char(&json, '{');
	for (int i = 0; i < 252; i++)
		buf_addf(&json, "%s\"P%d\":1", i > 0 ? "," : "", i);
	buf_add_char(&json, '}');
	CHECK_ERR(apply(&w, ENTITY_INSERT, "r", json.data, -1, NULL), ERR_OK);
	CHECK_ERR(apply(&w, ENTITY_MERGE, "r", "{\"P7\":2}", -1, NULL), ERR_OK);
	CHECK_ERR(apply(&w, ENTITY_MERGE, "r", "{\"Q\":2}", -1, NULL), ERR_TOO_MANY_PROPERTIES);
	buf_fini(&json);
	service_free(w.service);
}

/* ---- change sets ---- */

static enum err apply_set(
	struct world *w, size_t n, size_t same, const char *other_pk, size_t *ret_failed)
{
	struct entity e = { 0 };
	struct entity_op *ops = calloc(n + 1, sizeof(*ops));
	char(*rks)[8] = calloc(n + 1, sizeof(*rks));
	struct err_detail detail = { 0 };
	for (size_t i = 0; i < n; i++) {
		snprintf(rks[i], sizeof(rks[i]), "%zu", i == same ? 0 : i);
		ops[i] = (struct entity_op){ .kind = ENTITY_INSERT,
			.pk = SPAN_LIT("p"),
			.rk = span_of(rks[i]),
			.entity = &e,
			.attrs = ATTRS_UNSET };
	}
	if (other_pk != NULL)
		ops[n - 1].pk = span_of(other_pk);
	enum err result =
		entities_apply(w->service, ORIGIN_COMMAND, w->table, ops, n, ENTITIES_SET, &detail);
	*ret_failed = detail.op;
	free(rks);
	free(ops);
	return result;
}

TEST(a_change_set_holds_1_to_100_operations_of_one_partition_and_each_row_once)
{
	struct world w = world_new();
	size_t failed;
	CHECK_ERR(apply_set(&w, 0, SIZE_MAX, NULL, &failed), ERR_BATCH_TOO_LARGE);
	CHECK_ERR(apply_set(&w, 101, SIZE_MAX, NULL, &failed), ERR_BATCH_TOO_LARGE);
	CHECK_ERR(apply_set(&w, 5, 3, NULL, &failed), ERR_BATCH_DUPLICATE);
	CHECK_EQ_INT(failed, 3);
	CHECK_ERR(apply_set(&w, 5, SIZE_MAX, "q", &failed), ERR_BATCH_PARTITIONS);
	CHECK_EQ_INT(failed, 4);
	CHECK_EQ_STR(read_row(&w, "1"), "none");
	CHECK_ERR(apply(&w, ENTITY_INSERT, "42", "{}", -1, NULL), ERR_OK);
	CHECK_ERR(apply_set(&w, 100, SIZE_MAX, NULL, &failed), ERR_ENTITY_EXISTS);
	CHECK_EQ_INT(failed, 42);
	CHECK_EQ_STR(read_row(&w, "1"), "none");
	CHECK_ERR(apply(&w, ENTITY_DELETE, "42", NULL, -1, NULL), ERR_OK);
	CHECK_ERR(apply_set(&w, 100, SIZE_MAX, NULL, &failed), ERR_OK);
	CHECK_EQ_STR(read_row(&w, "99"), "{}\n");
	service_free(w.service);
}

struct merger {
	struct world *w;
	int from;
};

static void *merge_many(void *arg)
{
	struct merger *m = arg;
	for (int i = m->from; i < m->from + 25; i++) {
		char json[32];
		snprintf(json, sizeof(json), "{\"P%d\":%d}", i, i);
		enum err e = apply(m->w, ENTITY_UPSERT_MERGE, "r", json, -1, NULL);
		if (e != ERR_OK)
			return m;
	}
	return NULL;
}

TEST(merges_of_several_threads_lose_nothing)
{
	struct world w = world_new();
	pthread_t threads[4];
	struct merger mergers[4];
	for (int i = 0; i < 4; i++) {
		mergers[i] = (struct merger){ &w, i * 25 };
		MUST(pthread_create(&threads[i], NULL, merge_many, &mergers[i]) == 0);
	}
	for (int i = 0; i < 4; i++) {
		void *failed;
		pthread_join(threads[i], &failed);
		CHECK(failed == NULL);
	}
	struct item it = { 0 };
	struct entity e = { 0 };
	MUST(entity_row(w.service, NULL, w.table, SPAN_LIT("p"), SPAN_LIT("r"), &it) == ERR_OK);
	CHECK_ERR(entity_of_item(&it, SPAN_LIT("p"), &e), ERR_OK);
	CHECK_EQ_INT(e.nprops, 100);
	entity_fini(&e);
	item_fini(&it);
	service_free(w.service);
}

/* ---- documents ---- */

TEST(a_documents_keys_must_be_those_of_the_path)
{
	unsigned flags = ITEM_KEYS_INSIDE;
	struct span p = SPAN_LIT("p"), r = SPAN_LIT("r");
	CHECK_ERR(document_check(SPAN_LIT("{}"), p, r, NULL, &flags, NULL), ERR_OK);
	CHECK_EQ_INT(flags, 0);
	CHECK_ERR(document_check(SPAN_LIT("{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}"), p, r, NULL,
			  &flags, NULL),
		ERR_OK);
	CHECK_EQ_INT(flags, ITEM_KEYS_INSIDE);
	CHECK_ERR(document_check(SPAN_LIT("{\"PartitionKey\":\"q\"}"), p, r, NULL, NULL, NULL),
		ERR_KEY_MISMATCH);
	CHECK_ERR(document_check(SPAN_LIT("{\"RowKey\":\"\"}"), p, r, NULL, NULL, NULL),
		ERR_KEY_MISMATCH);
}

TEST(a_document_under_a_digest_name_must_hold_its_key)
{
	char key[300];
	memset(key, 'k', sizeof(key));
	struct span p = SPAN_LIT("p"), r = span_make(key, sizeof(key));
	struct buf json = BUF_INIT(4096);
	CHECK_ERR(document_check(SPAN_LIT("{}"), p, r, NULL, NULL, NULL), ERR_KEY_MISSING);
	CHECK_ERR(document_check(SPAN_LIT("{}"), r, SPAN_LIT("r"), NULL, NULL, NULL),
		ERR_KEY_MISSING);
	buf_addf(&json, "{\"RowKey\":\"%.*s\"}", (int)r.n, r.p);
	CHECK_ERR(document_check(buf_span(&json), p, r, NULL, NULL, NULL), ERR_OK);
	buf_fini(&json);
}

TEST(rows_with_keys_too_long_for_a_name_are_rendered_with_them)
{
	struct world w = world_new();
	char rk[301];
	memset(rk, 'k', 300);
	rk[300] = 0;
	CHECK_ERR(apply(&w, ENTITY_INSERT, rk, "{\"A\":1}", -1, NULL), ERR_OK);
	const char *text = read_row(&w, rk);
	CHECK(strncmp(text, "{\"PartitionKey\":\"p\",\"RowKey\":\"kkk", 33) == 0);
	CHECK_ERR(document_check(span_of(text), SPAN_LIT("p"), span_of(rk), NULL, NULL, NULL),
		ERR_OK);
	service_free(w.service);
}

/* What fits without its keys, and with short ones, may be too large with longer ones. */
TEST(a_documents_size_counts_the_keys_of_the_path)
{
	static char text[20 * 33000], rk[150];
	const size_t step = 32000;
	size_t low = 0, high = step, n = 0;
	struct span p = SPAN_LIT("p"), r = SPAN_LIT("r");
	text[n++] = '{';
	for (int i = 0; i < 16; i++) {
		n += (size_t)snprintf(text + n, 20, "\"P%02d\":\"", i);
		memset(text + n, 'x', step);
		n += step;
		n += (size_t)snprintf(text + n, 4, "\",");
	}
	n += (size_t)snprintf(text + n, 20, "\"Last\":\"");
	memset(text + n, 'x', step);
	while (high - low > 1) { /* low fits, high does not */
		size_t middle = (low + high) / 2;
		(void)memcpy(text + n + middle, "\"}", 3);
		enum err e = document_check(span_of(text), p, r, NULL, NULL, NULL);
		CHECK(e == ERR_OK || e == ERR_ENTITY_TOO_LARGE);
		memset(text + n + middle, 'x', 3);
		*(e == ERR_OK ? &low : &high) = middle;
	}
	CHECK(low > 0 && high < step);
	(void)memcpy(text + n + low, "\"}", 3);
	CHECK_ERR(document_check(span_of(text), p, r, NULL, NULL, NULL), ERR_OK);
	memset(rk, 'k', sizeof(rk));
	r = span_make(rk, sizeof(rk));
	CHECK_ERR(document_check(span_of(text), p, r, NULL, NULL, NULL), ERR_ENTITY_TOO_LARGE);
}

TEST(a_row_that_is_no_document_is_damaged)
{
	struct entity e = { 0 };
	struct item it = { .kind = ITEM_ROW, .key = SPAN_LIT("r"), .body = SPAN_LIT("{\"A\":") };
	CHECK_ERR(entity_of_item(&it, SPAN_LIT("p"), &e), ERR_CORRUPT);
	entity_fini(&e);
}

TEST(a_key_that_no_row_can_have_is_not_looked_for)
{
	struct world w = world_new();
	struct item it = { 0 };
	CHECK_ERR(entity_row(w.service, NULL, w.table, SPAN_LIT("p"), SPAN_LIT("a/b"), &it),
		ERR_KEY_INVALID);
	CHECK_ERR(entity_row(w.service, NULL, w.table, SPAN_LIT("a/b"), SPAN_LIT("r"), &it),
		ERR_KEY_INVALID);
	service_free(w.service);
}

static uint64_t id_of_child(
	struct world *w, uint64_t parent, enum item_class class, struct span key)
{
	struct item it = { 0 };
	enum err e =
		store_child(service_store(w->service), NULL, parent, class, key, WANT_ATTRS, &it);
	MUST(e == ERR_OK || e == ERR_NOT_FOUND);
	uint64_t id = e == ERR_OK ? it.id : 0;
	item_fini(&it);
	return id;
}

static uint64_t make_empty(
	struct world *w, uint64_t dir, enum item_kind kind, enum item_class class, struct span key)
{
	struct item d = { .id = dir, .kind = kind }, it = { 0 };
	const struct dentry at = { .dir = &d, .class = class, .key = key };
	const struct attrs attrs = ATTRS_UNSET;
	MUST(tree_create_file(w->service, &at, &attrs, &it, NULL) == ERR_OK);
	uint64_t id = it.id;
	item_fini(&it);
	return id;
}

TEST(a_row_without_a_document_is_none_to_other_front_ends)
{
	struct world w = world_new();
	CHECK_ERR(apply(&w, ENTITY_INSERT, "other", "{}", -1, NULL), ERR_OK);
	uint64_t p = id_of_child(&w, w.table, CLASS_KEYED, SPAN_LIT("p"));
	for (int i = 0; i < 3; i++) {
		static const char *const rks[] = { "a", "b", "c" };
		static const enum entity_op_kind makes[] = { ENTITY_INSERT, ENTITY_UPSERT,
			ENTITY_UPSERT_MERGE };
		struct span key = span_of(rks[i]);
		uint64_t id = make_empty(&w, p, ITEM_PARTITION, CLASS_KEYED, key);
		CHECK_EQ_STR(read_row(&w, rks[i]), "none");
		CHECK_ERR(apply(&w, ENTITY_DELETE, rks[i], NULL, -1, NULL), ERR_NOT_FOUND);
		CHECK_ERR(apply(&w, ENTITY_REPLACE, rks[i], "{}", -1, NULL), ERR_NOT_FOUND);
		CHECK_ERR(apply(&w, ENTITY_MERGE, rks[i], "{}", -1, NULL), ERR_NOT_FOUND);
		CHECK_ERR(apply(&w, makes[i], rks[i], "{\"A\":1}", -1, NULL), ERR_OK);
		CHECK_EQ_STR(read_row(&w, rks[i]), "{\"A\":1}\n");
		CHECK_EQ_INT(id_of_child(&w, p, CLASS_KEYED, key), id);
		CHECK_ERR(apply(&w, ENTITY_DELETE, rks[i], NULL, -1, NULL), ERR_OK);
		CHECK_EQ_INT(id_of_child(&w, p, CLASS_KEYED, key), 0);
	}
	service_free(w.service);
}

/* ---- renames ---- */

static struct item partition(struct world *w, const char *pk)
{
	struct item it = { 0 };
	MUST(store_child(service_store(w->service), NULL, w->table, CLASS_KEYED, span_of(pk),
		     WANT_ATTRS, &it) == ERR_OK);
	return it;
}

static void put_document(struct world *w, const char *rk, const char *json)
{
	unsigned flags;
	MUST(document_check(span_of(json), SPAN_LIT("p"), span_of(rk), NULL, &flags, NULL) ==
		ERR_OK);
	struct entity_op op = { .kind = ENTITY_UPSERT,
		.pk = SPAN_LIT("p"),
		.rk = span_of(rk),
		.document = span_of(json),
		.document_flags = flags,
		.attrs = ATTRS_UNSET };
	MUST(entity_commit_document(
		     w->service, ORIGIN_COMMAND, w->table, &op, false, NULL, NULL, NULL) == ERR_OK);
}

TEST(a_rename_keeps_the_bytes_unless_they_hold_a_key)
{
	struct world w = world_new();
	put_document(&w, "a", "{ \"X\" : 1.50 }");
	put_document(&w, "b", "{ \"X\" : 1.50, \"RowKey\":\"b\" }");
	struct item p = partition(&w, "p");
	struct dentry from = { .dir = &p, .class = CLASS_KEYED, .key = SPAN_LIT("a") };
	struct dentry to = { .dir = &p, .class = CLASS_KEYED, .key = SPAN_LIT("c") };
	struct item before = { 0 }, now = { 0 };
	MUST(entity_row(w.service, NULL, w.table, SPAN_LIT("p"), SPAN_LIT("a"), &before) == ERR_OK);
	CHECK_ERR(tree_move(w.service, &from, &to, 0, &now, NULL, NULL), ERR_OK);
	CHECK_EQ_STR(read_row(&w, "c"), "{ \"X\" : 1.50 }");
	CHECK_EQ_INT(now.id, before.id);
	CHECK_EQ_INT(now.generation, before.generation);
	CHECK(now.version > before.version);
	item_fini(&now);
	item_fini(&before);
	from.key = SPAN_LIT("b");
	to.key = SPAN_LIT("d");
	CHECK_ERR(tree_move(w.service, &from, &to, 0, NULL, NULL, NULL), ERR_OK);
	CHECK_EQ_STR(read_row(&w, "d"), "{\"X\":1.5}\n");
	item_fini(&p);
	service_free(w.service);
}

TEST(renaming_a_partition_renders_the_rows_that_hold_its_key)
{
	struct world w = world_new();
	put_document(&w, "a", "{ \"X\" : 1 }");
	put_document(&w, "b", "{ \"PartitionKey\":\"p\" }");
	struct item table = { 0 }, it = { 0 };
	MUST(store_get(service_store(w.service), NULL, w.table, WANT_ATTRS, &table) == ERR_OK);
	const struct dentry from = { .dir = &table, .class = CLASS_KEYED, .key = SPAN_LIT("p") };
	const struct dentry to = { .dir = &table, .class = CLASS_KEYED, .key = SPAN_LIT("q") };
	CHECK_ERR(tree_move(w.service, &from, &to, 0, NULL, NULL, NULL), ERR_OK);
	CHECK_EQ_STR(read_row(&w, "a"), "none");
	CHECK_ERR(entity_row(w.service, NULL, w.table, SPAN_LIT("q"), SPAN_LIT("a"), &it), ERR_OK);
	CHECK(span_is(it.body, "{ \"X\" : 1 }"));
	item_fini(&it);
	CHECK_ERR(entity_row(w.service, NULL, w.table, SPAN_LIT("q"), SPAN_LIT("b"), &it), ERR_OK);
	CHECK(span_is(it.body, "{}\n"));
	item_fini(&it);
	item_fini(&table);
	service_free(w.service);
}

TEST(a_file_becomes_a_row_only_with_an_entity_in_it)
{
	struct world w = world_new();
	put_document(&w, "r", "{}");
	struct item p = partition(&w, "p"), file = { 0 };
	struct dentry from = { .dir = &p, .class = CLASS_NAMED, .key = SPAN_LIT("tmp") };
	struct dentry to = { .dir = &p, .class = CLASS_KEYED, .key = SPAN_LIT("r") };
	struct attrs attrs = ATTRS_UNSET;
	struct err_detail detail = { 0 };
	CHECK_ERR(tree_create_file(w.service, &from, &attrs, &file, NULL), ERR_OK);
	CHECK_ERR(tree_move(w.service, &from, &to, 0, NULL, NULL, NULL), ERR_EMPTY);
	uint64_t id = file.id;
	item_fini(&file);
	CHECK_ERR(tree_file_write(w.service, id, 0, SPAN_LIT("{\"A\":[]}"), &file), ERR_OK);
	item_fini(&file);
	CHECK_ERR(tree_move(w.service, &from, &to, 0, NULL, NULL, &detail), ERR_INVALID_INPUT);
	CHECK_EQ_STR(read_row(&w, "r"), "{}");
	CHECK_ERR(tree_file_write(w.service, id, 0, SPAN_LIT("{\"A\":12}"), &file), ERR_OK);
	item_fini(&file);
	CHECK_ERR(tree_move(w.service, &from, &to, 0, &file, NULL, NULL), ERR_OK);
	CHECK_EQ_INT(file.id, id);
	CHECK_EQ_STR(read_row(&w, "r"), "{\"A\":12}");
	item_fini(&file);
	item_fini(&p);
	service_free(w.service);
}

/* ---- renames while others write ---- */

/* A layer over an engine: somebody else comes between what a caller has read and what it
 * then commits. */
struct meddler {
	struct store base;
	struct store *inner;
	struct world *w;
	void (*meddle)(struct world *w);
	int times;       /* how often it still comes between */
	bool busy;       /* this change set is its own */
	int calls;       /* change sets of others since it was set */
	enum err refuse; /* ... and the change that it refuses then, if it is an error */
	size_t refused;
	char path[32]; /* of the inner store's file, if it has one */
};

static struct meddler *meddler_of(struct store *s)
{
	return (struct meddler *)s;
}

static enum err m_get(
	struct store *s, struct store_view *v, uint64_t id, unsigned want, struct item *ret)
{
	return store_get(meddler_of(s)->inner, v, id, want, ret);
}

static enum err m_child(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span key, unsigned want, struct item *ret)
{
	return store_child(meddler_of(s)->inner, v, parent, class, key, want, ret);
}

static enum err m_list(struct store *s, struct store_view *v, uint64_t parent,
	enum item_class class, struct span after, bool inclusive, unsigned want, store_list_fn fn,
	void *arg, bool *ret_more)
{
	struct store *inner = meddler_of(s)->inner;
	return inner->ops->list(inner, v, parent, class, after, inclusive, want, fn, arg, ret_more);
}

static enum err m_file_read(struct store *s, struct store_view *v, uint64_t id, uint64_t offset,
	void *out, size_t n, size_t *ret_n)
{
	return store_file_read(meddler_of(s)->inner, v, id, offset, out, n, ret_n);
}

/* A thread of its own, as somebody else would be: it holds no lock of the caller. */
static void *come_between(void *arg)
{
	struct meddler *m = arg;
	m->meddle(m->w);
	return NULL;
}

static enum err m_apply(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *reterr)
{
	struct meddler *m = meddler_of(s);
	m->calls += !m->busy;
	if (!m->busy && m->times > 0) {
		m->times--;
		if (m->refuse != ERR_OK) {
			reterr->op = m->refused;
			return m->refuse;
		}
		pthread_t other;
		m->busy = true;
		MUST(pthread_create(&other, NULL, come_between, m) == 0);
		MUST(pthread_join(other, NULL) == 0);
		m->busy = false;
	}
	return store_apply(m->inner, changes, n, durable, reterr);
}

static enum err m_sync(struct store *s)
{
	return store_sync(meddler_of(s)->inner);
}

static int64_t m_version_floor(struct store *s)
{
	return store_version_floor(meddler_of(s)->inner);
}

static enum err m_view_open(struct store *s, bool held, struct store_view **ret)
{
	struct store *inner = meddler_of(s)->inner;
	return inner->ops->view_open(inner, held, ret);
}

static void m_view_close(struct store *s, struct store_view *v)
{
	store_view_close(meddler_of(s)->inner, v);
}

static void m_info(struct store *s, struct store_info *ret)
{
	store_info(meddler_of(s)->inner, ret);
}

static enum err m_check(struct store *s, store_check_fn fn, store_progress_fn progress, void *arg)
{
	return store_check(meddler_of(s)->inner, fn, progress, arg);
}

static void m_close(struct store *s)
{
	struct meddler *m = meddler_of(s);
	store_close(m->inner);
	if (m->path[0] != 0)
		unlink(m->path);
	free(m);
}

static const struct store_ops meddler_ops = {
	.name = "meddler",
	.get = m_get,
	.child = m_child,
	.list = m_list,
	.file_read = m_file_read,
	.apply = m_apply,
	.sync = m_sync,
	.version_floor = m_version_floor,
	.view_open = m_view_open,
	.view_close = m_view_close,
	.info = m_info,
	.check = m_check,
	.close = m_close,
};

/* A world over each engine in turn. */
enum {
	MEMORY,
	SQLITE,
	ENGINES
};

static struct world world_meddled(int engine)
{
	struct meddler *m = calloc(1, sizeof(*m));
	MUST(m != NULL);
	m->base.ops = &meddler_ops;
	if (engine == MEMORY) {
		MUST(store_open_memory(&m->inner) == ERR_OK);
	} else {
		(void)snprintf(m->path, sizeof(m->path), "/tmp/rowfs-service-XXXXXX");
		int fd = mkstemp(m->path);
		MUST(fd >= 0 && close(fd) == 0 && unlink(m->path) == 0);
		MUST(store_create(m->path, NULL) == ERR_OK);
		MUST(store_open(m->path, 0, &m->inner, NULL, NULL) == ERR_OK);
	}
	return world_of(&m->base);
}

static void meddle(struct world *w, int times, void (*fn)(struct world *w))
{
	struct meddler *m = meddler_of(service_store(w->service));
	m->w = w;
	m->meddle = fn;
	m->times = times;
	m->calls = 0;
	m->refuse = ERR_OK;
}

/* So often, for that reason and with that change to blame. */
static void refuse_sets(struct world *w, int times, enum err e, size_t change)
{
	struct meddler *m = meddler_of(service_store(w->service));
	m->times = times;
	m->calls = 0;
	m->refuse = e;
	m->refused = change;
}

static bool no_trouble(void *arg, const char *finding)
{
	(void)arg;
	check_fail(__FILE__, __LINE__, finding);
	return true;
}

/* The end of a world whose documents all agree with their marks and keys. */
static void world_end(struct world *w)
{
	struct verify_counts counts;
	CHECK_ERR(service_verify(w->service, no_trouble, NULL, NULL, &counts), ERR_OK);
	service_free(w->service);
}

static enum err move_row(struct world *w, const char *from_rk, const char *to_rk, unsigned flags)
{
	struct item p = partition(w, "p");
	const struct dentry from = { .dir = &p, .class = CLASS_KEYED, .key = span_of(from_rk) };
	const struct dentry to = { .dir = &p, .class = CLASS_KEYED, .key = span_of(to_rk) };
	enum err e = tree_move(w->service, &from, &to, flags, NULL, NULL, NULL);
	item_fini(&p);
	return e;
}

static int64_t version_of_row(struct world *w, const char *rk)
{
	struct item it = { 0 };
	MUST(entity_row(w->service, NULL, w->table, SPAN_LIT("p"), span_of(rk), &it) == ERR_OK);
	int64_t version = it.version;
	item_fini(&it);
	return version;
}

static void merge_a(struct world *w)
{
	MUST(apply(w, ENTITY_MERGE, "a", "{\"P\":1}", -1, NULL) == ERR_OK);
}

static void merge_b(struct world *w)
{
	MUST(apply(w, ENTITY_MERGE, "b", "{\"P\":2}", -1, NULL) == ERR_OK);
}

static void write_a_with_its_key(struct world *w)
{
	put_document(w, "a", "{\"RowKey\":\"a\",\"K\":1}");
}

static void remove_b(struct world *w)
{
	MUST(apply(w, ENTITY_DELETE, "b", NULL, -1, NULL) == ERR_OK);
}

#define A_KEYED "{\"PartitionKey\":\"p\",\"RowKey\":\"a\",\"A\":1}"
#define B_KEYED "{\"PartitionKey\":\"p\",\"RowKey\":\"b\",\"B\":1}"

TEST(an_empty_file_goes_to_a_rows_name_where_no_document_is)
{
	struct world w = world_new();
	put_document(&w, "r", "{}");
	struct item p = partition(&w, "p"), there = { 0 };
	struct dentry from = { .dir = &p, .class = CLASS_NAMED, .key = SPAN_LIT("tmp") };
	struct dentry to = { .dir = &p, .class = CLASS_KEYED, .key = SPAN_LIT("x") };
	struct dentry row = { .dir = &p, .class = CLASS_KEYED, .key = SPAN_LIT("r") };
	for (int i = 0; i < 2; i++) { /* onto nothing, and onto the first one */
		uint64_t id = make_empty(&w, p.id, ITEM_PARTITION, CLASS_NAMED, from.key);
		CHECK_ERR(tree_move(w.service, &from, &row, 0, NULL, NULL, NULL), ERR_EMPTY);
		CHECK_ERR(tree_move(w.service, &from, &to, 0, &there, NULL, NULL), ERR_OK);
		CHECK(there.id == id && item_is_empty_row(&there));
		CHECK_ERR(
			tree_file_write(w.service, id, 0, SPAN_LIT("x"), NULL), ERR_INVALID_INPUT);
		item_fini(&there);
	}
	CHECK_ERR(tree_move(w.service, &to, &row, 0, NULL, NULL, NULL), ERR_EMPTY);
	CHECK_ERR(tree_move(w.service, &to, &from, 0, &there, NULL, NULL), ERR_OK);
	CHECK(there.kind == ITEM_FILE && there.size == 0);
	CHECK_EQ_STR(read_row(&w, "r"), "{}");
	item_fini(&there);
	item_fini(&p);
	service_free(w.service);
}

TEST(a_rename_loses_no_change_that_came_between)
{
	for (int engine = 0; engine < ENGINES; engine++) {
		struct world w = world_meddled(engine);
		/* To a free name; onto another row. */
		for (int i = 0; i < 2; i++) {
			put_document(&w, "a", A_KEYED);
			meddle(&w, 1, merge_a);
			CHECK_ERR(move_row(&w, "a", "b", 0), ERR_OK);
			CHECK_EQ_STR(read_row(&w, "a"), "none");
			CHECK_EQ_STR(read_row(&w, "b"), "{\"A\":1,\"P\":1}\n");
		}
		/* A document that had no keys in it when it was looked at. */
		put_document(&w, "a", "{}");
		meddle(&w, 1, write_a_with_its_key);
		CHECK_ERR(move_row(&w, "a", "b", 0), ERR_OK);
		CHECK_EQ_STR(read_row(&w, "b"), "{\"K\":1}\n");
		world_end(&w);
	}
}

TEST(an_exchange_loses_no_change_that_came_between)
{
	static void (*const both[])(struct world * w) = { merge_a, merge_b };
	for (int i = 0; i < 2 * ENGINES; i++) {
		struct world w = world_meddled(i / 2);
		put_document(&w, "a", A_KEYED);
		put_document(&w, "b", B_KEYED);
		meddle(&w, 1, both[i % 2]);
		CHECK_ERR(move_row(&w, "a", "b", TREE_EXCHANGE), ERR_OK);
		CHECK_EQ_STR(read_row(&w, "b"), i % 2 == 0 ? "{\"A\":1,\"P\":1}\n" : "{\"A\":1}\n");
		CHECK_EQ_STR(read_row(&w, "a"), i % 2 == 1 ? "{\"B\":1,\"P\":2}\n" : "{\"B\":1}\n");
		/* Nothing is there any more. */
		meddle(&w, 1, remove_b);
		CHECK_ERR(move_row(&w, "a", "b", TREE_EXCHANGE), ERR_NOT_FOUND);
		world_end(&w);
	}
}

/* An ordinary file of that condition. */
static void make_file(struct world *w, const char *name, const char *content, int64_t match)
{
	struct item p = partition(w, "p"), file = { 0 };
	const struct dentry at = { .dir = &p, .class = CLASS_NAMED, .key = span_of(name) };
	struct attrs attrs = ATTRS_UNSET;
	MUST(tree_create_file(w->service, &at, &attrs, &file, NULL) == ERR_OK);
	if (content[0] != 0)
		MUST(tree_file_write(w->service, file.id, 0, span_of(content), NULL) == ERR_OK);
	attrs.if_match = match;
	MUST(tree_set_attrs(w->service, file.id, &attrs, ATTR_MATCH, NULL) == ERR_OK);
	item_fini(&file);
	item_fini(&p);
}

static enum err look_at_file(struct world *w, const char *name, struct item *ret)
{
	struct item p = partition(w, "p");
	enum err e = store_child(
		service_store(w->service), NULL, p.id, CLASS_NAMED, span_of(name), WANT_ATTRS, ret);
	item_fini(&p);
	return e;
}

static bool has_file(struct world *w, const char *name)
{
	struct item it = { 0 };
	bool there = look_at_file(w, name, &it) == ERR_OK;
	item_fini(&it);
	return there;
}

static void write_tmp(struct world *w)
{
	struct item it = { 0 };
	MUST(look_at_file(w, "tmp", &it) == ERR_OK);
	MUST(tree_file_write(w->service, it.id, 0, SPAN_LIT("{\"T\":2}"), NULL) == ERR_OK);
	item_fini(&it);
}

static void make_b(struct world *w)
{
	put_document(w, "b", B_KEYED);
}

/* An exchange may name the two in either order. */
enum file_move {
	OVER,
	SWAP,
	SWAP_BACK,
	FILE_MOVES,
};

static enum err move_tmp_to_b(struct world *w, enum file_move how)
{
	struct item p = partition(w, "p");
	const struct dentry file = { .dir = &p, .class = CLASS_NAMED, .key = SPAN_LIT("tmp") };
	const struct dentry row = { .dir = &p, .class = CLASS_KEYED, .key = SPAN_LIT("b") };
	enum err e = tree_move(w->service, how == SWAP_BACK ? &row : &file,
		how == SWAP_BACK ? &file : &row, how == OVER ? 0 : TREE_EXCHANGE, NULL, NULL, NULL);
	item_fini(&p);
	return e;
}

TEST(a_file_replaces_the_row_of_its_condition_and_no_other)
{
	for (int i = 0; i < FILE_MOVES * ENGINES; i++) {
		struct world w = world_meddled(i / FILE_MOVES);
		enum file_move how = (enum file_move)(i % FILE_MOVES);
		struct item it = { 0 };
		put_document(&w, "b", B_KEYED);
		make_file(&w, "tmp", "{\"T\":1}", version_of_row(&w, "b"));
		meddle(&w, 1, merge_b);
		CHECK_ERR(move_tmp_to_b(&w, how), ERR_CONDITION_NOT_MET);
		CHECK_EQ_INT(meddler_of(service_store(w.service))->calls, 1);
		CHECK_ERR(move_tmp_to_b(&w, how), ERR_CONDITION_NOT_MET);
		CHECK_EQ_STR(read_row(&w, "b"), "{\"B\":1,\"P\":2}\n");
		CHECK(look_at_file(&w, "tmp", &it) == ERR_OK);
		struct attrs attrs = ATTRS_UNSET;
		attrs.if_match = version_of_row(&w, "b");
		CHECK_ERR(tree_set_attrs(w.service, it.id, &attrs, ATTR_MATCH, NULL), ERR_OK);
		item_fini(&it);
		/* The file changes meanwhile. */
		meddle(&w, 3, write_tmp);
		CHECK_ERR(move_tmp_to_b(&w, how), ERR_OK);
		CHECK_EQ_INT(meddler_of(service_store(w.service))->calls, 4);
		CHECK_EQ_STR(read_row(&w, "b"), "{\"T\":2}");
		CHECK(has_file(&w, "tmp") == (how != OVER));
		world_end(&w);
	}
}

TEST(a_file_may_ask_that_there_is_a_row_or_none)
{
	for (int engine = 0; engine < ENGINES; engine++) {
		struct world w = world_meddled(engine);
		put_document(&w, "a", "{}"); /* so that there is the partition */
		make_file(&w, "tmp", "{\"T\":1}", MATCH_PRESENT);
		CHECK_ERR(move_tmp_to_b(&w, OVER), ERR_CONDITION_NOT_MET);
		make_b(&w);
		meddle(&w, 1, remove_b);
		CHECK_ERR(move_tmp_to_b(&w, OVER), ERR_CONDITION_NOT_MET);
		make_b(&w);
		meddle(&w, 1, merge_b);
		CHECK_ERR(move_tmp_to_b(&w, OVER), ERR_OK);
		CHECK_EQ_STR(read_row(&w, "b"), "{\"T\":1}");
		make_file(&w, "tmp", "{\"T\":1}", MATCH_ABSENT);
		CHECK_ERR(move_tmp_to_b(&w, OVER), ERR_CONDITION_NOT_MET);
		CHECK_ERR(move_tmp_to_b(&w, SWAP), ERR_CONDITION_NOT_MET);
		meddle(&w, 0, NULL);
		remove_b(&w);
		meddle(&w, 1, make_b);
		CHECK_ERR(move_tmp_to_b(&w, OVER), ERR_CONDITION_NOT_MET);
		CHECK_EQ_STR(read_row(&w, "b"), B_KEYED);
		remove_b(&w);
		CHECK_ERR(move_tmp_to_b(&w, OVER), ERR_OK);
		CHECK_EQ_STR(read_row(&w, "b"), "{\"T\":1}");
		world_end(&w);
	}
}

TEST(an_empty_file_waits_for_no_row_that_it_asks_for)
{
	struct world w = world_new();
	const int64_t asked[] = { MATCH_PRESENT, 1, MATCH_ABSENT };
	for (size_t i = 0; i < ARRAY_LEN(asked); i++) {
		put_document(&w, "a", "{}");
		struct item p = partition(&w, "p"), now = { 0 };
		const struct dentry from = {
			.dir = &p, .class = CLASS_NAMED, .key = SPAN_LIT("tmp")
		};
		const struct dentry to = { .dir = &p, .class = CLASS_KEYED, .key = SPAN_LIT("x") };
		if (i == 0)
			make_file(&w, "tmp", "", MATCH_UNSET);
		struct item it = { 0 };
		MUST(look_at_file(&w, "tmp", &it) == ERR_OK);
		struct attrs attrs = ATTRS_UNSET;
		attrs.if_match = asked[i];
		CHECK_ERR(tree_set_attrs(w.service, it.id, &attrs, ATTR_MATCH, NULL), ERR_OK);
		bool met = asked[i] == MATCH_ABSENT;
		CHECK_ERR(tree_move(w.service, &from, &to, 0, &now, NULL, NULL),
			met ? ERR_OK : ERR_CONDITION_NOT_MET);
		CHECK_EQ_INT(now.attrs.if_match, MATCH_UNSET);
		item_fini(&it);
		item_fini(&now);
		item_fini(&p);
	}
	service_free(w.service);
}

TEST(a_rename_that_always_comes_too_late_gives_up_and_changes_nothing)
{
	for (int engine = 0; engine < ENGINES; engine++) {
		struct world w = world_meddled(engine);
		put_document(&w, "a", A_KEYED);
		put_document(&w, "b", B_KEYED);
		meddle(&w, 500, merge_a);
		CHECK_ERR(move_row(&w, "a", "b", 0), ERR_GONE);
		CHECK(meddler_of(service_store(w.service))->calls < 500);
		meddle(&w, 0, NULL);
		CHECK_EQ_STR(read_row(&w, "a"), "{\"A\":1,\"P\":1}\n");
		CHECK_EQ_STR(read_row(&w, "b"), B_KEYED);
		world_end(&w);
	}
}

/* ---- partitions with long keys ---- */

static const char *long_key(char c)
{
	static char key[2][401];
	memset(key[c & 1], c, 400);
	return key[c & 1];
}
#define LONG_K long_key('k')
#define LONG_L long_key('l')

static struct item get_item(struct world *w, uint64_t id)
{
	struct item it = { 0 };
	MUST(store_get(service_store(w->service), NULL, id, WANT_ATTRS, &it) == ERR_OK);
	return it;
}

static enum err move_partition_to(
	struct world *w, const char *from_pk, uint64_t to_table, const char *to_pk, unsigned flags)
{
	struct item table = get_item(w, w->table), other = get_item(w, to_table);
	const struct dentry from = { .dir = &table, .class = CLASS_KEYED, .key = span_of(from_pk) };
	const struct dentry to = { .dir = &other, .class = CLASS_KEYED, .key = span_of(to_pk) };
	enum err e = tree_move(w->service, &from, &to, flags, NULL, NULL, NULL);
	item_fini(&table);
	item_fini(&other);
	return e;
}

static void make_partition(struct world *w, const char *pk)
{
	struct item table = get_item(w, w->table);
	const struct dentry at = { .dir = &table, .class = CLASS_KEYED, .key = span_of(pk) };
	struct attrs attrs = ATTRS_UNSET;
	MUST(tree_mkdir(w->service, &at, &attrs, NULL, NULL) == ERR_OK);
	item_fini(&table);
}

static uint64_t make_table(struct world *w, struct span name)
{
	struct item it = { 0 };
	MUST(table_create(w->service, ORIGIN_COMMAND, w->account, name, &it, NULL) == ERR_OK);
	uint64_t id = it.id;
	item_fini(&it);
	return id;
}

/* The row's document; long keys in it as <k> and <l>. */
static const char *row_in(struct world *w, uint64_t table, const char *pk, const char *rk)
{
	static char text[4096];
	struct item it = { 0 };
	enum err e = entity_row(w->service, NULL, table, span_of(pk), span_of(rk), &it);
	if (e != ERR_OK)
		return err_symbol(e);
	size_t n = 0;
	for (size_t i = 0; i < it.body.n && n < sizeof(text) - 4; i++) {
		char c = it.body.p[i];
		struct span rest = span_make(it.body.p + i, it.body.n - i);
		if ((c == 'k' || c == 'l') && span_starts(rest, span_of(long_key(c)))) {
			n += (size_t)snprintf(text + n, sizeof(text) - n, "<%c>", c);
			i += 399;
		} else {
			text[n++] = c;
		}
	}
	text[n] = 0;
	item_fini(&it);
	return text;
}

static void fill_short(struct world *w)
{
	MUST(apply(w, ENTITY_INSERT, "a", "{\"V\":1}", -1, NULL) == ERR_OK);
	put_document(w, "b", "{ \"V\" : 2 }");
	put_document(w, "c", "{\"RowKey\":\"c\"}");
	/* What no row is stays as it is. */
	struct item p = partition(w, "p"), file = { 0 };
	const struct dentry at[] = {
		{ .dir = &p, .class = CLASS_KEYED, .key = SPAN_LIT("empty") },
		{ .dir = &p, .class = CLASS_NAMED, .key = SPAN_LIT("notes") },
	};
	struct attrs attrs = ATTRS_UNSET;
	for (int i = 0; i < 2; i++) {
		MUST(tree_create_file(w->service, &at[i], &attrs, &file, NULL) == ERR_OK);
		item_fini(&file);
	}
	item_fini(&p);
}

TEST(a_partition_with_a_long_key_has_it_in_every_document)
{
	for (int engine = 0; engine < ENGINES; engine++) {
		struct world w = world_meddled(engine);
		uint64_t other = make_table(&w, SPAN_LIT("Other"));
		fill_short(&w);
		make_partition(&w, LONG_K);
		/* Onto an empty one, to another table, to another long key, and back. */
		CHECK_ERR(move_partition_to(&w, "p", w.table, LONG_K, 0), ERR_OK);
		CHECK_EQ_STR(row_in(&w, w.table, LONG_K, "a"),
			"{\"PartitionKey\":\"<k>\",\"RowKey\":\"a\",\"V\":1}\n");
		CHECK_EQ_STR(row_in(&w, w.table, LONG_K, "b"),
			"{\"PartitionKey\":\"<k>\",\"RowKey\":\"b\",\"V\":2}\n");
		CHECK_EQ_STR(row_in(&w, w.table, LONG_K, "c"),
			"{\"PartitionKey\":\"<k>\",\"RowKey\":\"c\"}\n");
		uint64_t first = w.table;
		CHECK_ERR(move_partition_to(&w, LONG_K, other, LONG_K, 0), ERR_OK);
		CHECK_EQ_STR(row_in(&w, other, LONG_K, "a"),
			"{\"PartitionKey\":\"<k>\",\"RowKey\":\"a\",\"V\":1}\n");
		w.table = other;
		CHECK_ERR(move_partition_to(&w, LONG_K, first, LONG_L, 0), ERR_OK);
		CHECK_EQ_STR(row_in(&w, first, LONG_L, "b"),
			"{\"PartitionKey\":\"<l>\",\"RowKey\":\"b\",\"V\":2}\n");
		w.table = first;
		CHECK_ERR(move_partition_to(&w, LONG_L, other, "q", 0), ERR_OK);
		CHECK_EQ_STR(row_in(&w, other, "q", "b"), "{\"V\":2}\n");
		w.table = other;
		CHECK_ERR(move_partition_to(&w, "q", first, LONG_K, 0), ERR_OK);
		CHECK_EQ_STR(row_in(&w, first, LONG_K, "c"),
			"{\"PartitionKey\":\"<k>\",\"RowKey\":\"c\"}\n");
		world_end(&w);
	}
}

TEST(partitions_with_short_and_long_keys_exchange_them)
{
	for (int engine = 0; engine < ENGINES; engine++) {
		struct world w = world_meddled(engine);
		uint64_t other = make_table(&w, SPAN_LIT("Other"));
		fill_short(&w);
		CHECK_ERR(move_partition_to(&w, "p", w.table, LONG_K, 0), ERR_OK);
		fill_short(&w);
		put_document(&w, "d", "{}");
		for (int i = 0; i < 2; i++) {
			const char *from = i == 0 ? "p" : LONG_K, *to = i == 0 ? LONG_K : "p";
			CHECK_ERR(move_partition_to(&w, from, w.table, to, TREE_EXCHANGE), ERR_OK);
			CHECK_EQ_STR(row_in(&w, w.table, i == 0 ? LONG_K : "p", "d"),
				i == 0 ? "{\"PartitionKey\":\"<k>\",\"RowKey\":\"d\"}\n" : "{}\n");
			CHECK_EQ_STR(row_in(&w, w.table, i == 0 ? "p" : LONG_K, "d"), "NOT_FOUND");
			CHECK_EQ_STR(row_in(&w, w.table, LONG_K, "a"),
				"{\"PartitionKey\":\"<k>\",\"RowKey\":\"a\",\"V\":1}\n");
			CHECK_EQ_STR(row_in(&w, w.table, "p", "b"), "{\"V\":2}\n");
		}
		/* The same over two tables. */
		CHECK_ERR(move_partition_to(&w, "p", other, "q", 0), ERR_OK);
		CHECK_ERR(move_partition_to(&w, LONG_K, other, "q", TREE_EXCHANGE), ERR_OK);
		CHECK_EQ_STR(row_in(&w, w.table, LONG_K, "d"),
			"{\"PartitionKey\":\"<k>\",\"RowKey\":\"d\"}\n");
		CHECK_EQ_STR(row_in(&w, other, "q", "a"), "{\"V\":1}\n");
		world_end(&w);
	}
}

static void insert_z(struct world *w)
{
	MUST(apply(w, ENTITY_INSERT, "z", "{\"Z\":1}", -1, NULL) == ERR_OK);
}

static void delete_a(struct world *w)
{
	MUST(apply(w, ENTITY_DELETE, "a", NULL, -1, NULL) == ERR_OK);
}

TEST(a_partition_that_gets_a_long_key_leaves_no_row_behind)
{
	static void (*const others[])(struct world * w) = { merge_a, insert_z, delete_a };
	for (int i = 0; i < 3 * ENGINES; i++) {
		struct world w = world_meddled(i / 3);
		fill_short(&w);
		meddle(&w, 1, others[i % 3]);
		CHECK_ERR(move_partition_to(&w, "p", w.table, LONG_K, 0), ERR_OK);
		CHECK_EQ_STR(row_in(&w, w.table, LONG_K, "a"),
			i % 3 == 0 ? "{\"PartitionKey\":\"<k>\",\"RowKey\":\"a\",\"V\":1,\"P\":1}\n"
				: i % 3 == 1
				? "{\"PartitionKey\":\"<k>\",\"RowKey\":\"a\",\"V\":1}\n"
				: "NOT_FOUND");
		CHECK_EQ_STR(row_in(&w, w.table, LONG_K, "z"),
			i % 3 == 1 ? "{\"PartitionKey\":\"<k>\",\"RowKey\":\"z\",\"Z\":1}\n"
				   : "NOT_FOUND");
		world_end(&w);

		/* From a long key to a short one, and two that exchange them. */
		w = world_meddled(i / 3);
		fill_short(&w);
		CHECK_ERR(move_partition_to(&w, "p", w.table, LONG_K, 0), ERR_OK);
		fill_short(&w);
		meddle(&w, 1, others[i % 3]);
		CHECK_ERR(move_partition_to(&w, LONG_K, w.table, "p", TREE_EXCHANGE), ERR_OK);
		CHECK_EQ_STR(row_in(&w, w.table, LONG_K, "z"),
			i % 3 == 1 ? "{\"PartitionKey\":\"<k>\",\"RowKey\":\"z\",\"Z\":1}\n"
				   : "NOT_FOUND");
		meddle(&w, 1, merge_a);
		CHECK_ERR(move_partition_to(&w, "p", w.table, "q", 0), ERR_OK);
		CHECK_EQ_STR(row_in(&w, w.table, "q", "a"), "{\"V\":1,\"P\":1}\n");
		world_end(&w);
	}
}

static void write_keyed(struct world *w)
{
	put_document(w, "e", "{\"PartitionKey\":\"p\"}");
	MUST(apply(w, ENTITY_DELETE, "c", NULL, -1, NULL) == ERR_OK);
}

TEST(a_row_that_leaves_a_partition_under_way_is_not_missed)
{
	for (int engine = 0; engine < ENGINES; engine++) {
		struct world w = world_meddled(engine);
		fill_short(&w);
		put_document(&w, "e", "{\"RowKey\":\"e\"}");
		meddle(&w, 1, write_keyed);
		CHECK_ERR(move_partition_to(&w, "p", w.table, "q", 0), ERR_OK);
		CHECK_EQ_STR(row_in(&w, w.table, "q", "c"), "NOT_FOUND");
		CHECK_EQ_STR(row_in(&w, w.table, "q", "e"), "{}\n");
		world_end(&w);
	}
}

TEST(a_folder_that_becomes_a_partition_with_a_long_key_holds_no_rows_yet)
{
	for (int engine = 0; engine < ENGINES; engine++) {
		struct world w = world_meddled(engine);
		struct item table = get_item(&w, w.table), folder = { 0 }, it = { 0 };
		struct attrs attrs = ATTRS_UNSET;
		char name[LIMIT_NAME_BYTES + 1];
		size_t n = filename_encode(span_of(LONG_K), FILENAME_PARTITION, name);
		const struct dentry at = { &table, CLASS_NAMED, span_make(name, n), { 0 } };
		CHECK_ERR(tree_mkdir(w.service, &at, &attrs, &folder, NULL), ERR_OK);
		const struct dentry keyed = { &folder, CLASS_KEYED, SPAN_LIT("r"), { 0 } };
		fill_short(&w);
		struct item p = partition(&w, "p");
		const struct dentry row = { &p, CLASS_KEYED, SPAN_LIT("a"), { 0 } };
		CHECK_ERR(
			tree_move(w.service, &row, &keyed, 0, NULL, NULL, NULL), ERR_NOT_PERMITTED);
		CHECK_ERR(
			adopt_folder(w.service, ORIGIN_MOUNT, &folder, span_of(LONG_K), &it, NULL),
			ERR_OK);
		CHECK_EQ_INT(it.id, folder.id);
		const struct dentry there = { &it, CLASS_KEYED, SPAN_LIT("r"), { 0 } };
		CHECK_ERR(tree_move(w.service, &row, &there, 0, NULL, NULL, NULL), ERR_OK);
		CHECK_EQ_STR(row_in(&w, w.table, LONG_K, "r"),
			"{\"PartitionKey\":\"<k>\",\"RowKey\":\"r\",\"V\":1}\n");
		item_fini(&p);
		item_fini(&it);
		item_fini(&folder);
		item_fini(&table);
		world_end(&w);
	}
}

/* ---- events ---- */

struct seen {
	struct world *w;
	unsigned calls;
	char old[64];
	bool visible;
};

static void on_event(void *arg, enum origin origin, const struct change *changes, size_t n)
{
	struct seen *s = arg;
	s->calls++;
	s->visible = strcmp(read_row(s->w, "r"), "{\"A\":2}\n") == 0;
	snprintf(s->old, sizeof(s->old), "%.*s", (int)changes[0].old.body.n, changes[0].old.body.p);
	CHECK(origin == ORIGIN_COMMAND && n == 1);
}

TEST(a_subscriber_is_told_after_the_commit_and_before_the_answer_with_the_old_bytes)
{
	struct world w = world_new();
	struct seen s = { .w = &w };
	CHECK_ERR(apply(&w, ENTITY_INSERT, "r", "{\"A\":1}", -1, NULL), ERR_OK);
	service_subscribe(w.service, on_event, &s);
	CHECK_ERR(apply(&w, ENTITY_REPLACE, "r", "{\"A\":2}", -1, NULL), ERR_OK);
	CHECK_EQ_INT(s.calls, 1);
	CHECK(s.visible);
	CHECK_EQ_STR(s.old, "{\"A\":1}\n");
	CHECK_ERR(apply(&w, ENTITY_INSERT, "r", "{\"A\":3}", -1, NULL), ERR_ENTITY_EXISTS);
	CHECK_EQ_INT(s.calls, 1);
	service_unsubscribe(w.service);
	CHECK_ERR(apply(&w, ENTITY_REPLACE, "r", "{\"A\":4}", -1, NULL), ERR_OK);
	CHECK_EQ_INT(s.calls, 1);
	service_free(w.service);
}

/* ---- secrets, properties, policies ---- */

/* The body of the account as it is kept. */
static const char *account_body(struct world *w)
{
	static char text[200000];
	struct item it = { 0 };
	MUST(store_get(service_store(w->service), NULL, w->account, WANT_BODY, &it) == ERR_OK);
	MUST(it.body.n < sizeof(text));
	memcpy(text, it.body.p, it.body.n);
	text[it.body.n] = '\0';
	item_fini(&it);
	return text;
}

static void set_account_body(struct world *w, const char *body)
{
	struct change c = { .op = CHANGE_PUT,
		.at = { .id = w->account },
		.kind = ITEM_ACCOUNT,
		.body = span_of(body),
		.attrs = ATTRS_UNSET };
	MUST(service_apply(w->service, ORIGIN_COMMAND, &c, 1, true, NULL) == ERR_OK);
	changes_fini(&c, 1);
}

static enum err replace_with(void *arg, struct span old, struct buf *ret)
{
	const char *text = arg;
	(void)old;
	buf_add_str(ret, text);
	return ERR_OK;
}

static enum err set_properties(struct world *w, const char *text)
{
	char copy[70000];
	(void)snprintf(copy, sizeof(copy), "%s", text);
	return account_properties_change(w->service, ORIGIN_COMMAND, SPAN_LIT("acct"),
		ACCOUNT_TABLES, replace_with, copy, NULL);
}

static const char *get_properties(struct world *w)
{
	static char text[70000];
	struct account_secrets a;
	if (account_secrets_get(w->service, SPAN_LIT("acct"), &a) != ERR_OK)
		return "none";
	(void)snprintf(text, sizeof(text), "%.*s", (int)a.properties[0].len,
		a.properties[0].len > 0 ? a.properties[0].data : "");
	account_secrets_fini(&a);
	return text;
}

TEST(an_accounts_properties_stand_beside_its_keys)
{
	struct world w = world_new();
	struct account_keys keys, again;
	MUST(account_keys_get(w.service, SPAN_LIT("acct"), &keys) == ERR_OK);
	CHECK(strstr(account_body(&w), "properties=") == NULL);
	CHECK_EQ_STR(get_properties(&w), "");

	CHECK_ERR(set_properties(&w, "<one>\n</one>"), ERR_OK);
	CHECK_EQ_STR(get_properties(&w), "<one>\n</one>");
	CHECK(strstr(account_body(&w), "\nproperties=PG9uZT4KPC9vbmU+\n") != NULL);
	CHECK_ERR(account_keys_get(w.service, SPAN_LIT("acct"), &again), ERR_OK);
	CHECK(memcmp(&keys, &again, sizeof(keys)) == 0);

	struct account_secrets a;
	CHECK_ERR(account_secrets_get(w.service, SPAN_LIT("acct"), &a), ERR_OK);
	CHECK_EQ_INT(a.id, w.account);
	CHECK(memcmp(&keys, &a.keys, sizeof(keys)) == 0);
	account_secrets_fini(&a);
	static const struct account_secrets zero;
	CHECK(memcmp(&a, &zero, sizeof(a)) == 0);

	/* Another key keeps them. */
	CHECK_ERR(account_key_regenerate(
			  w.service, ORIGIN_COMMAND, SPAN_LIT("acct"), 1, &again, NULL),
		ERR_OK);
	CHECK(keys.len[0] == again.len[0] && memcmp(keys.key[0], again.key[0], keys.len[0]) == 0);
	CHECK(memcmp(keys.key[1], again.key[1], 32) != 0);
	CHECK_EQ_STR(get_properties(&w), "<one>\n</one>");
	CHECK_ERR(account_keys_get(w.service, SPAN_LIT("acct"), &keys), ERR_OK);
	CHECK(memcmp(&keys, &again, sizeof(keys)) == 0);

	CHECK_ERR(set_properties(&w, ""), ERR_OK);
	CHECK(strstr(account_body(&w), "properties=") == NULL);

	CHECK_ERR(account_secrets_get(w.service, SPAN_LIT("other"), &a), ERR_ACCOUNT_NOT_FOUND);
	char text[] = "x";
	CHECK_ERR(account_properties_change(w.service, ORIGIN_COMMAND, SPAN_LIT("other"),
			  ACCOUNT_TABLES, replace_with, text, NULL),
		ERR_ACCOUNT_NOT_FOUND);
	CHECK_ERR(
		account_key_regenerate(w.service, ORIGIN_COMMAND, SPAN_LIT("other"), 0, NULL, NULL),
		ERR_ACCOUNT_NOT_FOUND);
	service_free(w.service);
}

TEST(properties_have_64_kib)
{
	static char text[65538];
	struct world w = world_new();
	memset(text, 'x', sizeof(text) - 1);
	text[65536] = '\0';
	CHECK_ERR(set_properties(&w, text), ERR_OK);
	CHECK(strcmp(get_properties(&w), text) == 0);
	text[65536] = 'x';
	text[65537] = '\0';
	CHECK(set_properties(&w, text) != ERR_OK);
	text[65536] = '\0';
	CHECK(strcmp(get_properties(&w), text) == 0);
	service_free(w.service);
}

#define KEYS "key1=AAAAAAAAAAAAAAAAAAAAAA==\nkey2=BBBBBBBBBBBBBBBBBBBBBA==\n"

TEST(account_bodies_of_two_or_three_lines_are_read_and_no_others)
{
	static const char *const bad[] = { "", "key1=", "key1=AAAA\n", (KEYS "x"), (KEYS "\n"),
		(KEYS "properties="), (KEYS "properties=\n"), (KEYS "properties=AAA\n"),
		(KEYS "properties=AAAA"), (KEYS "properties=AAAA\nproperties=AAAA\n"),
		(KEYS "other=AAAA\n"), (KEYS "properties=AAAA\nother=AAAA\n"),
		("properties=AAAA\n" KEYS), "key2=AAAA\nkey1=AAAA\n", "key1=\nkey2=AAAA\n",
		"key1=A\nkey2=AAAA\n" };
	struct world w = world_new();
	struct account_secrets a;
	struct account_keys keys;
	set_account_body(&w, KEYS);
	CHECK_ERR(account_secrets_get(w.service, SPAN_LIT("acct"), &a), ERR_OK);
	CHECK_EQ_INT(a.keys.len[1], 16);
	CHECK_EQ_INT(a.properties[0].len, 0);
	account_secrets_fini(&a);
	set_account_body(&w, KEYS "properties=eA==\n");
	CHECK_EQ_STR(get_properties(&w), "x");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		set_account_body(&w, bad[i]);
		CHECK_ERR(account_secrets_get(w.service, SPAN_LIT("acct"), &a), ERR_CORRUPT);
		CHECK_ERR(account_keys_get(w.service, SPAN_LIT("acct"), &keys), ERR_CORRUPT);
		CHECK_ERR(set_properties(&w, "x"), ERR_CORRUPT);
		CHECK_ERR(account_key_regenerate(
				  w.service, ORIGIN_COMMAND, SPAN_LIT("acct"), 0, NULL, NULL),
			ERR_CORRUPT);
		CHECK_EQ_STR(account_body(&w), bad[i]);
	}
	service_free(w.service);
}

static enum err refuse(void *arg, struct span old, struct buf *ret)
{
	struct err_detail *detail = arg;
	(void)old;
	buf_add_str(ret, "half");
	return err_set(detail, ERR_XML_INVALID, "because");
}

struct interloper {
	struct world *w;
	int times; /* it comes between */
	int calls;
};

/* Adds a letter; something else changes the account meanwhile. */
static enum err add_letter(void *arg, struct span old, struct buf *ret)
{
	struct interloper *i = arg;
	i->calls++;
	if (i->times-- > 0)
		MUST(set_properties(i->w, "other") == ERR_OK);
	buf_add_span(ret, old);
	buf_add_char(ret, '!');
	return ERR_OK;
}

TEST(a_change_of_properties_is_refused_or_made_on_what_is_there)
{
	struct world w = world_new();
	struct err_detail detail = { 0 };
	CHECK_ERR(set_properties(&w, "was"), ERR_OK);
	CHECK_ERR(account_properties_change(w.service, ORIGIN_COMMAND, SPAN_LIT("acct"),
			  ACCOUNT_TABLES, refuse, &detail, &detail),
		ERR_XML_INVALID);
	CHECK_EQ_STR(detail.text, "because");
	CHECK_EQ_STR(get_properties(&w), "was");
	struct interloper i = { &w, 1, 0 };
	CHECK_ERR(account_properties_change(w.service, ORIGIN_COMMAND, SPAN_LIT("acct"),
			  ACCOUNT_TABLES, add_letter, &i, NULL),
		ERR_OK);
	CHECK_EQ_INT(i.calls, 2);
	CHECK_EQ_STR(get_properties(&w), "other!");
	i = (struct interloper){ &w, 1000, 0 };
	CHECK_ERR(account_properties_change(w.service, ORIGIN_COMMAND, SPAN_LIT("acct"),
			  ACCOUNT_TABLES, add_letter, &i, NULL),
		ERR_THROTTLED);
	CHECK_EQ_INT(i.calls, 16);
	CHECK_EQ_STR(get_properties(&w), "other");
	service_free(w.service);
}

static void *add_letters(void *arg)
{
	struct world *w = arg;
	for (int n = 0; n < 20;) {
		struct interloper i = { w, 0, 0 };
		enum err e = account_properties_change(w->service, ORIGIN_COMMAND, SPAN_LIT("acct"),
			ACCOUNT_TABLES, add_letter, &i, NULL);
		if (e == ERR_OK)
			n++;
		else if (e != ERR_THROTTLED)
			return w;
	}
	return NULL;
}

TEST(changes_of_properties_by_several_threads_lose_nothing)
{
	struct world w = world_new();
	pthread_t t[4];
	for (size_t i = 0; i < 4; i++)
		MUST(pthread_create(&t[i], NULL, add_letters, &w) == 0);
	for (size_t i = 0; i < 4; i++) {
		void *failed = &w;
		CHECK(pthread_join(t[i], &failed) == 0 && failed == NULL);
	}
	CHECK_EQ_INT(strlen(get_properties(&w)), 80);
	service_free(w.service);
}

static const char *policies(struct world *w)
{
	static char text[1000];
	struct buf out = BUF_INIT(sizeof(text) - 1);
	enum err e = table_policies_get(w->service, w->table, &out);
	(void)snprintf(text, sizeof(text), "%s",
		e != ERR_OK           ? err_symbol(e)
			: out.len > 0 ? out.data
				      : "");
	buf_fini(&out);
	return text;
}

TEST(a_tables_policies_last_as_long_as_the_table)
{
	struct world w = world_new();
	struct item it = { 0 };
	CHECK_EQ_STR(policies(&w), "");
	CHECK_ERR(apply(&w, ENTITY_INSERT, "r", "{}", -1, NULL), ERR_OK);
	CHECK_ERR(table_policies_set(w.service, ORIGIN_COMMAND, w.table, SPAN_LIT("<one/>"), NULL),
		ERR_OK);
	CHECK_EQ_STR(policies(&w), "<one/>");
	CHECK_EQ_STR(read_row(&w, "r"), "{}\n");
	CHECK_ERR(table_find(w.service, SPAN_LIT("acct"), SPAN_LIT("tAB"), &it), ERR_OK);
	CHECK(span_is(it.name, "Tab") && it.id == w.table);
	item_fini(&it);
	CHECK_ERR(table_policies_set(w.service, ORIGIN_COMMAND, w.table, (struct span){ 0 }, NULL),
		ERR_OK);
	CHECK_EQ_STR(policies(&w), "");
	CHECK_ERR(table_policies_set(w.service, ORIGIN_COMMAND, w.table, SPAN_LIT("<two/>"), NULL),
		ERR_OK);
	struct buf small = BUF_INIT(3);
	CHECK_ERR(table_policies_get(w.service, w.table, &small), ERR_NO_MEMORY);
	buf_fini(&small);

	CHECK_ERR(table_delete(w.service, ORIGIN_COMMAND, w.table, NULL), ERR_OK);
	CHECK_EQ_STR(policies(&w), "TABLE_NOT_FOUND");
	CHECK_ERR(table_policies_set(w.service, ORIGIN_COMMAND, w.table, SPAN_LIT("<two/>"), NULL),
		ERR_TABLE_NOT_FOUND);
	struct buf out = BUF_INIT(100);
	CHECK_ERR(table_policies_get(w.service, w.account, &out), ERR_TABLE_NOT_FOUND);
	buf_fini(&out);
	CHECK_ERR(table_create(w.service, ORIGIN_COMMAND, w.account, SPAN_LIT("Tab"), &it, NULL),
		ERR_OK);
	w.table = it.id;
	item_fini(&it);
	CHECK_EQ_STR(policies(&w), "");
	service_free(w.service);
}

#define PROPERTIES "<StorageServiceProperties><Cors /></StorageServiceProperties>"
#define POLICIES "<SignedIdentifiers></SignedIdentifiers>"

static bool no_finding(void *arg, const char *finding)
{
	(void)arg;
	check_fail(__FILE__, __LINE__, finding);
	return true;
}

TEST(properties_and_policies_survive_a_restart_and_the_check_is_clean)
{
	char path[] = "/tmp/rowfs-service-XXXXXX";
	int fd = mkstemp(path);
	struct verify_counts counts;
	struct store *store;
	MUST(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
	MUST(store_create(path, NULL) == ERR_OK);
	for (int i = 0; i < 2; i++) {
		MUST(store_open(path, 0, &store, NULL, NULL) == ERR_OK);
		struct world w = world_of(store);
		if (i == 0) {
			CHECK_ERR(set_properties(&w, PROPERTIES), ERR_OK);
			CHECK_ERR(table_policies_set(w.service, ORIGIN_COMMAND, w.table,
					  SPAN_LIT(POLICIES), NULL),
				ERR_OK);
		}
		CHECK_EQ_STR(get_properties(&w), PROPERTIES);
		CHECK_EQ_STR(policies(&w), POLICIES);
		CHECK_ERR(service_verify(w.service, no_finding, NULL, NULL, &counts), ERR_OK);
		service_free(w.service);
	}
	unlink(path);
}

/* ---- what a mount left under the names of rows and partitions ---- */

#define K100 \
	"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk" \
	"kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk"
#define K300 K100 K100 K100 /* is its own order form */

static uint64_t partition_id(struct world *w, const char *pk)
{
	return id_of_child(w, w->table, CLASS_KEYED, span_of(pk));
}

static uint64_t folder_id(struct world *w, const char *pk)
{
	char name[LIMIT_NAME_BYTES + 1];
	size_t n = filename_encode(span_of(pk), FILENAME_PARTITION, name);
	return id_of_child(w, w->table, CLASS_NAMED, span_make(name, n));
}

static uint64_t make_folder(struct world *w, const char *pk)
{
	char name[LIMIT_NAME_BYTES + 1];
	size_t n = filename_encode(span_of(pk), FILENAME_PARTITION, name);
	struct item table = { .id = w->table, .kind = ITEM_TABLE }, it = { 0 };
	const struct dentry at = { .dir = &table, .class = CLASS_NAMED, .key = span_make(name, n) };
	const struct attrs attrs = ATTRS_UNSET;
	MUST(tree_mkdir(w->service, &at, &attrs, &it, NULL) == ERR_OK);
	uint64_t id = it.id;
	item_fini(&it);
	return id;
}

TEST(what_waits_under_digest_names_is_adopted)
{
	for (int engine = 0; engine < ENGINES; engine++) {
		struct world w = world_meddled(engine);
		static const char k[] = K300 "1";
		char name[LIMIT_NAME_BYTES + 1];
		struct entity e = { 0 };
		struct span digest =
			span_make(name, filename_encode(span_of(k), FILENAME_ROW, name));
		struct item folder = { 0 }, it = { 0 };
		uint64_t dir = make_folder(&w, k);
		uint64_t a = make_empty(&w, dir, ITEM_FOLDER, CLASS_NAMED, SPAN_LIT("a.json"));
		uint64_t d = make_empty(&w, dir, ITEM_FOLDER, CLASS_NAMED, digest);
		uint64_t n = make_empty(&w, dir, ITEM_FOLDER, CLASS_NAMED, SPAN_LIT("notes"));
		struct entity_op op = { .kind = ENTITY_INSERT,
			.pk = span_of(k),
			.rk = span_of(k),
			.entity = &e,
			.attrs = ATTRS_UNSET };
		/* A check adopts nothing. */
		CHECK_ERR(entities_apply(
				  w.service, ORIGIN_REST, w.table, &op, 1, ENTITIES_CHECK, NULL),
			ERR_OK);
		MUST(store_get(service_store(w.service), NULL, dir, WANT_ATTRS, &folder) == ERR_OK);
		CHECK_EQ_INT(folder.kind, ITEM_FOLDER);
		item_fini(&folder);
		CHECK_ERR(
			entities_apply(w.service, ORIGIN_REST, w.table, &op, 1, ENTITIES_SET, NULL),
			ERR_OK);
		CHECK_EQ_INT(op.id, d);
		CHECK_EQ_INT(id_of_child(&w, w.table, CLASS_KEYED, span_of(k)), dir);
		CHECK_EQ_INT(id_of_child(&w, dir, CLASS_KEYED, SPAN_LIT("a")), a);
		CHECK_EQ_INT(id_of_child(&w, dir, CLASS_NAMED, SPAN_LIT("a.json")), 0);
		CHECK_EQ_INT(id_of_child(&w, dir, CLASS_NAMED, SPAN_LIT("notes")), n);
		/* One that comes when the row is there goes. */
		d = make_empty(&w, dir, ITEM_PARTITION, CLASS_NAMED, digest);
		MUST(store_get(service_store(w.service), NULL, d, WANT_ATTRS, &it) == ERR_OK);
		CHECK_ERR(adopt_file(w.service, ORIGIN_MOUNT, &it, dir, span_of(k), NULL), ERR_OK);
		CHECK_EQ_INT(id_of_child(&w, dir, CLASS_NAMED, digest), 0);
		CHECK_ERR(
			adopt_file(w.service, ORIGIN_MOUNT, &it, dir, span_of(k), NULL), ERR_GONE);
		item_fini(&it);
		world_end(&w);
	}
}

static enum err apply_in(struct world *w, enum entity_op_kind kind, const char *pk,
	const char *const *rks, size_t n, bool strict, size_t *ret_op)
{
	struct entity e = { 0 };
	struct entity_op ops[4] = { 0 };
	struct err_detail detail = { 0 };
	for (size_t i = 0; i < n; i++)
		ops[i] = (struct entity_op){ .kind = kind,
			.pk = span_of(pk),
			.rk = span_of(rks[i]),
			.entity = &e,
			.attrs = ATTRS_UNSET };
	enum err result = entities_apply(
		w->service, ORIGIN_REST, w->table, ops, n, strict ? ENTITIES_SET : 0, &detail);
	for (size_t i = 0; result == ERR_OK && i < n; i++) {
		struct item it = { 0 };
		CHECK_ERR(entity_row(w->service, NULL, w->table, span_of(pk), ops[i].rk, &it),
			kind == ENTITY_DELETE ? ERR_NOT_FOUND : ERR_OK);
		CHECK_EQ_INT(it.version, kind == ENTITY_DELETE ? 0 : ops[i].version);
		CHECK_EQ_INT(it.id, kind == ENTITY_DELETE ? 0 : ops[i].id);
		item_fini(&it);
	}
	if (ret_op != NULL)
		*ret_op = detail.op;
	return result;
}

static const char *const three_rows[] = { "a", "b", "c" };
static const char *const twice[] = { "a", "b", "a" };

TEST(a_folder_with_a_digest_name_becomes_the_partition_that_another_front_end_makes)
{
	static const enum entity_op_kind kinds[] = { ENTITY_INSERT, ENTITY_UPSERT,
		ENTITY_UPSERT_MERGE };
	for (int i = 0; i < 6 * ENGINES; i++) {
		struct world w = world_meddled(i / 6);
		enum entity_op_kind kind = kinds[i % 3];
		bool strict = i / 3 % 2 != 0;
		size_t op;
		uint64_t folder = make_folder(&w, K300);
		CHECK(folder != 0 && folder_id(&w, K300) == folder);
		/* Operations that make nothing leave it alone, and one that fails does too. */
		CHECK_ERR(apply_in(&w, ENTITY_REPLACE, K300, three_rows, 1, true, &op),
			ERR_NOT_FOUND);
		CHECK_ERR(
			apply_in(&w, ENTITY_MERGE, K300, three_rows, 1, true, &op), ERR_NOT_FOUND);
		CHECK_ERR(
			apply_in(&w, ENTITY_DELETE, K300, three_rows, 1, true, &op), ERR_NOT_FOUND);
		CHECK_ERR(
			apply_in(&w, ENTITY_INSERT, K300, twice, 3, false, &op), ERR_ENTITY_EXISTS);
		CHECK_EQ_INT(op, 2);
		CHECK_EQ_INT(folder_id(&w, K300), folder);
		CHECK_EQ_INT(partition_id(&w, K300), 0);

		CHECK_ERR(apply_in(&w, kind, K300, three_rows, 3, strict, NULL), ERR_OK);
		CHECK_EQ_INT(folder_id(&w, K300), 0);
		CHECK_EQ_INT(partition_id(&w, K300), folder);
		/* It was made by hand: it stays when it is empty. */
		CHECK_ERR(apply_in(&w, ENTITY_DELETE, K300, three_rows, 3, strict, NULL), ERR_OK);
		CHECK_EQ_INT(partition_id(&w, K300), folder);
		world_end(&w);
	}
}

/* What comes between the look and the commit. */
static void make_the_folder(struct world *w)
{
	if (folder_id(w, K300) == 0)
		(void)make_folder(w, K300);
}

static void remove_the_folder(struct world *w)
{
	MUST(tree_drop(w->service, folder_id(w, K300)) == ERR_OK);
}

static void remake_the_folder(struct world *w)
{
	remove_the_folder(w);
	make_the_folder(w);
}

/* The name of another partition that may come to be. */
static struct span other_name(char name[LIMIT_NAME_BYTES + 1])
{
	size_t n = filename_encode(SPAN_LIT(K300 "x"), FILENAME_PARTITION, name);
	return span_make(name, n);
}

static void rename_the_folder(struct world *w)
{
	char name[LIMIT_NAME_BYTES + 1], other[LIMIT_NAME_BYTES + 1];
	size_t n = filename_encode(SPAN_LIT(K300), FILENAME_PARTITION, name);
	struct item table = { .id = w->table, .kind = ITEM_TABLE };
	const struct dentry from = {
		.dir = &table, .class = CLASS_NAMED, .key = span_make(name, n)
	};
	const struct dentry to = { .dir = &table, .class = CLASS_NAMED, .key = other_name(other) };
	MUST(tree_move(w->service, &from, &to, 0, NULL, NULL, NULL) == ERR_OK);
}

static void make_the_partition(struct world *w)
{
	static const char *const other[] = { "z" };
	MUST(apply_in(w, ENTITY_INSERT, K300, other, 1, true, NULL) == ERR_OK);
}

static void remove_the_table(struct world *w)
{
	MUST(table_delete(w->service, ORIGIN_REST, w->table, NULL) == ERR_OK);
}

TEST(a_partition_never_stands_beside_the_folder_with_its_digest_name)
{
	static const struct {
		bool folder; /* is there from the beginning */
		void (*race)(struct world *w);
		enum err e;
	} cases[] = {
		{ false, make_the_folder, ERR_OK },
		{ false, make_the_partition, ERR_OK },
		{ false, remove_the_table, ERR_TABLE_NOT_FOUND },
		{ true, remove_the_folder, ERR_OK },
		{ true, remake_the_folder, ERR_OK },
		{ true, rename_the_folder, ERR_OK },
		{ true, make_the_partition, ERR_OK },
		{ true, remove_the_table, ERR_TABLE_NOT_FOUND },
	};
	for (size_t i = 0; i < 8 * ENGINES; i++) {
		struct world w = world_meddled((int)(i / 8));
		if (cases[i % 8].folder)
			make_folder(&w, K300);
		meddle(&w, 1, cases[i % 8].race);
		CHECK_ERR(apply_in(&w, ENTITY_INSERT, K300, three_rows, 3, true, NULL),
			cases[i % 8].e);
		CHECK_EQ_INT(folder_id(&w, K300), 0);
		CHECK_EQ_INT(partition_id(&w, K300) != 0, cases[i % 8].e == ERR_OK);
		char other[LIMIT_NAME_BYTES + 1];
		if (cases[i % 8].race == rename_the_folder)
			CHECK(id_of_child(&w, w.table, CLASS_NAMED, other_name(other)) != 0);
		world_end(&w);
	}
}

static void make_row_7(struct world *w)
{
	MUST(apply(w, ENTITY_UPSERT, "7", "{\"B\":1}", -1, NULL) == ERR_OK);
}

static enum err two_at_once(
	struct world *w, enum entity_op_kind kind, const char *rk, struct err_detail *detail)
{
	struct entity e = { 0 };
	struct entity_op ops[2] = { { .kind = ENTITY_UPSERT,
					    .pk = SPAN_LIT("p"),
					    .rk = SPAN_LIT("1"),
					    .entity = &e,
					    .attrs = ATTRS_UNSET },
		{ .kind = kind,
			.pk = SPAN_LIT("p"),
			.rk = span_of(rk),
			.entity = &e,
			.attrs = ATTRS_UNSET } };
	return entities_apply(w->service, ORIGIN_REST, w->table, ops, 2, ENTITIES_SET, detail);
}

static enum err merge_second(struct world *w, struct err_detail *detail)
{
	return two_at_once(w, ENTITY_MERGE, "7", detail);
}

TEST(a_row_that_comes_while_it_is_missed_is_merged_into)
{
	for (int engine = 0; engine < ENGINES; engine++) {
		struct world w = world_meddled(engine);
		struct err_detail detail = { 0 };
		CHECK_ERR(merge_second(&w, &detail), ERR_NOT_FOUND);
		CHECK_EQ_INT(detail.op, 1);
		/* What the store refuses it for is another thing. */
		refuse_sets(&w, 1, ERR_NO_SPACE, 1);
		CHECK_ERR(merge_second(&w, &detail), ERR_NO_SPACE);
		meddle(&w, 1, make_row_7);
		CHECK_ERR(merge_second(&w, &detail), ERR_OK);
		CHECK_EQ_STR(read_row(&w, "7"), "{\"B\":1}\n");
		world_end(&w);
	}
}

TEST(a_set_that_always_loses_ends_at_last)
{
	struct world w = world_meddled(MEMORY);
	refuse_sets(&w, 1000, ERR_NAME_EXISTS, 99);
	CHECK_ERR(apply(&w, ENTITY_UPSERT, "1", "{}", -1, NULL), ERR_NAME_EXISTS);
	CHECK(meddler_of(service_store(w.service))->calls > 10);
	refuse_sets(&w, 1, ERR_NO_SPACE, 99);
	CHECK_ERR(apply(&w, ENTITY_UPSERT, "1", "{}", -1, NULL), ERR_NO_SPACE);
	refuse_sets(&w, 1, ERR_NAME_EXISTS, 99);
	CHECK_ERR(apply(&w, ENTITY_UPSERT, "1", "{}", -1, NULL), ERR_OK);
	world_end(&w);
}

/* A document that cannot be read is no condition that does not hold. */
TEST(a_damaged_row_is_not_merged_into)
{
	struct world w = world_new();
	struct err_detail detail = { 0 };
	make_row_7(&w);
	struct change c = { .op = CHANGE_PUT,
		.kind = ITEM_ROW,
		.at = { .parent = w.table, .has_pk = true, .pk = SPAN_LIT("p") },
		.version = version_of_row(&w, "7") + 1,
		.attrs = ATTRS_UNSET,
		.body = SPAN_LIT("{\"A\":") };
	c.at.key = SPAN_LIT("7");
	MUST(store_apply(service_store(w.service), &c, 1, false, NULL) == ERR_OK);
	changes_fini(&c, 1);
	CHECK_ERR(merge_second(&w, &detail), ERR_CORRUPT);
	CHECK_EQ_INT(detail.op, 1);
	CHECK_EQ_STR(read_row(&w, "1"), "none");
	service_free(w.service);
}

TEST(a_second_operation_that_cannot_be_is_to_blame_at_once)
{
	struct world w = world_new();
	struct err_detail detail = { 0 };
	CHECK_ERR(two_at_once(&w, ENTITY_UPSERT, "a/b", &detail), ERR_KEY_INVALID);
	CHECK_EQ_INT(detail.op, 1);
	service_free(w.service);
}

TEST(no_operations_are_no_change)
{
	struct world w = world_new();
	CHECK_ERR(entities_apply(w.service, ORIGIN_COMMAND, w.table, NULL, 0, 0, NULL), ERR_OK);
	service_free(w.service);
}

TEST(a_folder_that_cannot_be_looked_for_stops_the_set)
{
	static const char *const rk[] = { "1" };
	struct store *inner, *store;
	MUST(store_open_memory(&inner) == ERR_OK);
	MUST(store_open_fault(inner, &store) == ERR_OK);
	struct world w = world_of(store);
	store_fault_arm(store, FAULT_READS, 1, ERR_IO);
	CHECK_ERR(apply_in(&w, ENTITY_INSERT, K300, rk, 1, true, NULL), ERR_IO);
	store_fault_arm(store, FAULT_READS, 0, ERR_OK);
	CHECK_ERR(apply_in(&w, ENTITY_INSERT, K300, rk, 1, true, NULL), ERR_OK);
	world_end(&w);
}

TEST(a_row_of_a_moment_is_what_it_was)
{
	struct world w = world_meddled(SQLITE);
	struct store_view *v;
	struct item it = { 0 };
	make_row_7(&w);
	MUST(store_view_open(service_store(w.service), &v) == ERR_OK);
	CHECK_ERR(apply(&w, ENTITY_DELETE, "7", NULL, -1, NULL), ERR_OK);
	CHECK_ERR(entity_row(w.service, v, w.table, SPAN_LIT("p"), SPAN_LIT("7"), &it), ERR_OK);
	CHECK(span_is(it.body, "{\"B\":1}\n"));
	item_fini(&it);
	store_view_close(service_store(w.service), v);
	CHECK_EQ_STR(read_row(&w, "7"), "none");
	world_end(&w);
}

TEST(a_document_is_given_back_to_who_asks)
{
	struct entity e = { 0 };
	CHECK_ERR(
		document_check(SPAN_LIT("{\"A\":1}"), SPAN_LIT("p"), SPAN_LIT("r"), &e, NULL, NULL),
		ERR_OK);
	CHECK(e.nprops == 1);
	entity_fini(&e);
}

/* Each time there is less of it to do, and as little is done. */
TEST(a_document_that_is_refused_changes_nothing)
{
	struct world w = world_new();
	struct err_detail detail = { 0 };
	struct entity_op op = { .kind = ENTITY_UPSERT,
		.pk = SPAN_LIT("a/b"),
		.rk = SPAN_LIT("r"),
		.document = SPAN_LIT("{}\n"),
		.attrs = ATTRS_UNSET };
	CHECK_ERR(entity_commit_document(
			  w.service, ORIGIN_MOUNT, w.table, &op, false, NULL, NULL, &detail),
		ERR_KEY_INVALID);
	op.pk = SPAN_LIT("p");
	heat_set_target(service_heat(w.service), 1);
	enum err e = ERR_OK;
	for (int i = 0; e == ERR_OK && i < 100000; i++)
		e = entity_commit_document(
			w.service, ORIGIN_MOUNT, w.table, &op, false, NULL, NULL, &detail);
	CHECK_ERR(e, ERR_THROTTLED);
	service_free(w.service);
}

TEST(a_bulk_load_takes_over_the_folders_of_all_its_partitions)
{
	for (int engine = 0; engine < ENGINES; engine++) {
		struct world w = world_meddled(engine);
		static const char *const pks[] = { K300 "1", "p", K300 "2", K300 "1", K300 "3" };
		struct entity e = { 0 };
		struct entity_op ops[5] = { 0 };
		struct err_detail detail = { 0 };
		uint64_t one = make_folder(&w, pks[0]), three = make_folder(&w, pks[4]);
		for (size_t i = 0; i < 5; i++)
			ops[i] = (struct entity_op){ .kind = ENTITY_INSERT,
				.pk = span_of(pks[i]),
				.rk = span_of(i == 3 ? "s" : "r"),
				.entity = &e,
				.attrs = ATTRS_UNSET };
		MUST(apply(&w, ENTITY_INSERT, "r", "{}", -1, NULL) == ERR_OK);
		CHECK_ERR(entities_apply(w.service, ORIGIN_COMMAND, w.table, ops, 5, 0, &detail),
			ERR_ENTITY_EXISTS);
		CHECK_EQ_INT(detail.op, 1);
		MUST(apply(&w, ENTITY_DELETE, "r", NULL, -1, NULL) == ERR_OK);
		CHECK_ERR(entities_apply(w.service, ORIGIN_COMMAND, w.table, ops, 5, 0, &detail),
			ERR_OK);
		CHECK_EQ_INT(partition_id(&w, pks[0]), one);
		CHECK_EQ_INT(partition_id(&w, pks[4]), three);
		CHECK(partition_id(&w, pks[2]) != 0);
		for (size_t i = 0; i < 5; i++) {
			struct item it = { 0 };
			CHECK_EQ_INT(folder_id(&w, pks[i]), 0);
			CHECK_ERR(entity_row(w.service, NULL, w.table, ops[i].pk, ops[i].rk, &it),
				ERR_OK);
			CHECK_EQ_INT(it.id, ops[i].id);
			item_fini(&it);
		}
		world_end(&w);
	}
}

TEST(a_given_key_has_16_to_64_bytes)
{
	static const char bytes[65] =
		"0123456789012345678901234567890123456789012345678901234567890123";
	static const struct {
		const char *name;
		size_t n;
		enum err want;
	} rows[] = { { "short", 15, ERR_INVALID_INPUT }, { "least", 16, ERR_OK },
		{ "most", 64, ERR_OK }, { "more", 65, ERR_INVALID_INPUT },
		{ "no-name", 16, ERR_NAME_INVALID } };
	struct world w = world_new();
	struct account_keys made, kept;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct span name = span_of(rows[i].name), given = { bytes, rows[i].n };
		struct err_detail detail = { 0 };
		CHECK_ERR(account_create(w.service, ORIGIN_COMMAND, name, &given, &made, &detail),
			rows[i].want);
		if (rows[i].want != ERR_OK) {
			CHECK(detail.text[0] != '\0');
			CHECK(account_keys_get(w.service, name, &kept) == ERR_ACCOUNT_NOT_FOUND);
			continue;
		}
		CHECK_ERR(account_keys_get(w.service, name, &kept), ERR_OK);
		CHECK(made.len[0] == rows[i].n && memcmp(made.key[0], bytes, rows[i].n) == 0);
		CHECK(kept.len[0] == rows[i].n && memcmp(kept.key[0], bytes, rows[i].n) == 0);
		CHECK_EQ_INT(kept.len[1], 32);
	}
	service_free(w.service);
}

TEST(a_fresh_accounts_body_holds_two_keys_of_its_own)
{
	struct world w = world_new();
	struct buf one = BUF_INIT(1000), two = BUF_INIT(1000), small = BUF_INIT(40);
	struct account_keys keys;

	CHECK_ERR(account_fresh_body(&one), ERR_OK);
	CHECK_ERR(account_fresh_body(&two), ERR_OK);
	CHECK_ERR(account_fresh_body(&small), ERR_NO_MEMORY);
	CHECK(!span_eq(buf_span(&one), buf_span(&two)));
	set_account_body(&w, one.data);
	CHECK_ERR(account_keys_get(w.service, SPAN_LIT("acct"), &keys), ERR_OK);
	CHECK(keys.len[0] == 32 && keys.len[1] == 32);
	CHECK(memcmp(keys.key[0], keys.key[1], 32) != 0);
	buf_fini(&one);
	buf_fini(&two);
	buf_fini(&small);
	service_free(w.service);
}

TEST(more_properties_than_fit_are_corrupt)
{
	static char text[sizeof(KEYS) + 90000];
	struct world w = world_new();
	struct account_keys keys;

	memset(text, 'A', sizeof(text) - 1);
	memcpy(text, KEYS "properties=", sizeof(KEYS "properties=") - 1);
	text[sizeof(text) - 2] = '\n';
	set_account_body(&w, text);
	CHECK_ERR(account_keys_get(w.service, SPAN_LIT("acct"), &keys), ERR_CORRUPT);
	service_free(w.service);
}

static enum err remove_account(void *arg, struct span old, struct buf *ret)
{
	struct world *w = arg;
	(void)old;
	buf_add_str(ret, "new");
	return account_remove(w->service, ORIGIN_COMMAND, SPAN_LIT("acct"), true, NULL);
}

TEST(an_account_that_goes_under_way_is_not_found)
{
	struct world w = world_new();

	CHECK_ERR(account_remove(w.service, ORIGIN_COMMAND, SPAN_LIT("none"), false, NULL),
		ERR_ACCOUNT_NOT_FOUND);
	CHECK_ERR(account_remove(w.service, ORIGIN_COMMAND, SPAN_LIT("acct"), false, NULL),
		ERR_NOT_EMPTY);
	CHECK_ERR(account_properties_change(w.service, ORIGIN_COMMAND, SPAN_LIT("acct"),
			  ACCOUNT_TABLES, remove_account, &w, NULL),
		ERR_ACCOUNT_NOT_FOUND);
	service_free(w.service);
}

RUN_TESTS(T(versions_increase_while_the_clock_stands_still_and_when_it_steps_back),
	T(versions_increase_over_a_restart_with_the_clock_set_back),
	T(insert_wants_absence_and_replace_merge_and_delete_want_presence),
	T(if_match_holds_for_this_version_only), T(a_merge_past_a_limit_changes_nothing),
	T(a_change_set_holds_1_to_100_operations_of_one_partition_and_each_row_once),
	T(merges_of_several_threads_lose_nothing), T(a_documents_keys_must_be_those_of_the_path),
	T(a_document_under_a_digest_name_must_hold_its_key),
	T(rows_with_keys_too_long_for_a_name_are_rendered_with_them),
	T(a_documents_size_counts_the_keys_of_the_path), T(a_row_that_is_no_document_is_damaged),
	T(a_key_that_no_row_can_have_is_not_looked_for),
	T(a_row_without_a_document_is_none_to_other_front_ends),
	T(a_rename_keeps_the_bytes_unless_they_hold_a_key),
	T(renaming_a_partition_renders_the_rows_that_hold_its_key),
	T(a_file_becomes_a_row_only_with_an_entity_in_it),
	T(an_empty_file_goes_to_a_rows_name_where_no_document_is),
	T(a_rename_loses_no_change_that_came_between),
	T(an_exchange_loses_no_change_that_came_between),
	T(a_file_replaces_the_row_of_its_condition_and_no_other),
	T(a_file_may_ask_that_there_is_a_row_or_none),
	T(an_empty_file_waits_for_no_row_that_it_asks_for),
	T(a_rename_that_always_comes_too_late_gives_up_and_changes_nothing),
	T(a_partition_with_a_long_key_has_it_in_every_document),
	T(partitions_with_short_and_long_keys_exchange_them),
	T(a_partition_that_gets_a_long_key_leaves_no_row_behind),
	T(a_row_that_leaves_a_partition_under_way_is_not_missed),
	T(a_folder_that_becomes_a_partition_with_a_long_key_holds_no_rows_yet),
	T(a_subscriber_is_told_after_the_commit_and_before_the_answer_with_the_old_bytes),
	T(an_accounts_properties_stand_beside_its_keys), T(properties_have_64_kib),
	T(account_bodies_of_two_or_three_lines_are_read_and_no_others),
	T(a_change_of_properties_is_refused_or_made_on_what_is_there),
	T(changes_of_properties_by_several_threads_lose_nothing),
	T(a_tables_policies_last_as_long_as_the_table),
	T(properties_and_policies_survive_a_restart_and_the_check_is_clean),
	T(what_waits_under_digest_names_is_adopted),
	T(a_folder_with_a_digest_name_becomes_the_partition_that_another_front_end_makes),
	T(a_partition_never_stands_beside_the_folder_with_its_digest_name),
	T(a_row_that_comes_while_it_is_missed_is_merged_into),
	T(a_set_that_always_loses_ends_at_last), T(a_damaged_row_is_not_merged_into),
	T(a_second_operation_that_cannot_be_is_to_blame_at_once), T(no_operations_are_no_change),
	T(a_folder_that_cannot_be_looked_for_stops_the_set), T(a_row_of_a_moment_is_what_it_was),
	T(a_document_is_given_back_to_who_asks), T(a_document_that_is_refused_changes_nothing),
	T(a_bulk_load_takes_over_the_folders_of_all_its_partitions),
	T(a_given_key_has_16_to_64_bytes), T(a_fresh_accounts_body_holds_two_keys_of_its_own),
	T(more_properties_than_fit_are_corrupt), T(an_account_that_goes_under_way_is_not_found))
