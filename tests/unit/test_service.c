/* SPDX-License-Identifier: MIT
 * The service over the in-memory engine, and over SQLite where a restart matters. */
#include "base/clock.h"
#include "check.h"
#include "codec/filename.h"
#include "model/key.h"
#include "service/accounts.h"
#include "service/entities.h"
#include "service/tables.h"
#include "service/tree.h"
#include "service/verify.h"
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
		entities_apply(w->service, ORIGIN_COMMAND, w->table, &op, 1, true, false, NULL);
	if (ret_version != NULL)
		*ret_version = op.version;
	entity_fini(&e);
	return result;
}

static const char *read_row(struct world *w, const char *rk)
{
	static char text[4096];
	struct item it = { 0 };
	enum err e = entity_row(w->service, NULL, w->table, SPAN_LIT("p"), span_of(rk), &it);
	snprintf(text, sizeof(text), "%.*s", e == ERR_OK ? (int)it.body.n : 4,
		e == ERR_OK ? it.body.p : "none");
	item_fini(&it);
	return text;
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
		entities_apply(w->service, ORIGIN_COMMAND, w->table, ops, n, true, false, &detail);
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
	bool has_keys = true;
	struct span p = SPAN_LIT("p"), r = SPAN_LIT("r");
	CHECK_ERR(document_check(SPAN_LIT("{}"), p, r, NULL, &has_keys, NULL), ERR_OK);
	CHECK(!has_keys);
	CHECK_ERR(document_check(SPAN_LIT("{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}"), p, r, NULL,
			  &has_keys, NULL),
		ERR_OK);
	CHECK(has_keys);
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
	bool has_keys;
	MUST(document_check(span_of(json), SPAN_LIT("p"), span_of(rk), NULL, &has_keys, NULL) ==
		ERR_OK);
	struct entity_op op = { .kind = ENTITY_UPSERT,
		.pk = SPAN_LIT("p"),
		.rk = span_of(rk),
		.document = span_of(json),
		.document_has_keys = has_keys,
		.attrs = ATTRS_UNSET };
	MUST(entity_commit_document(w->service, ORIGIN_COMMAND, w->table, &op, NULL, false, NULL,
		     NULL, NULL) == ERR_OK);
}

TEST(a_rename_keeps_the_bytes_unless_they_hold_a_key)
{
	struct world w = world_new();
	put_document(&w, "a", "{ \"X\" : 1.50 }");
	put_document(&w, "b", "{ \"X\" : 1.50, \"RowKey\":\"b\" }");
	struct item p = partition(&w, "p");
	struct spot from = { .dir = &p, .class = CLASS_KEYED, .key = SPAN_LIT("a") };
	struct spot to = { .dir = &p, .class = CLASS_KEYED, .key = SPAN_LIT("c") };
	struct item before = { 0 }, now = { 0 };
	MUST(entity_row(w.service, NULL, w.table, SPAN_LIT("p"), SPAN_LIT("a"), &before) == ERR_OK);
	CHECK_ERR(tree_move(w.service, &from, &to, 0, -1, &now, NULL, NULL), ERR_OK);
	CHECK_EQ_STR(read_row(&w, "c"), "{ \"X\" : 1.50 }");
	CHECK_EQ_INT(now.id, before.id);
	CHECK_EQ_INT(now.edition, before.edition);
	CHECK(now.version > before.version);
	item_fini(&now);
	item_fini(&before);
	from.key = SPAN_LIT("b");
	to.key = SPAN_LIT("d");
	CHECK_ERR(tree_move(w.service, &from, &to, 0, -1, NULL, NULL, NULL), ERR_OK);
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
	const struct spot from = { .dir = &table, .class = CLASS_KEYED, .key = SPAN_LIT("p") };
	const struct spot to = { .dir = &table, .class = CLASS_KEYED, .key = SPAN_LIT("q") };
	CHECK_ERR(tree_move(w.service, &from, &to, 0, -1, NULL, NULL, NULL), ERR_OK);
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
	struct spot from = { .dir = &p, .class = CLASS_NAMED, .key = SPAN_LIT("tmp") };
	struct spot to = { .dir = &p, .class = CLASS_KEYED, .key = SPAN_LIT("r") };
	struct attrs attrs = ATTRS_UNSET;
	struct err_detail detail = { 0 };
	CHECK_ERR(tree_create_file(w.service, &from, &attrs, &file, NULL), ERR_OK);
	CHECK_ERR(tree_move(w.service, &from, &to, 0, -1, NULL, NULL, NULL), ERR_EMPTY);
	uint64_t id = file.id;
	item_fini(&file);
	CHECK_ERR(tree_file_write(w.service, id, 0, SPAN_LIT("{\"A\":[]}"), &file), ERR_OK);
	item_fini(&file);
	CHECK_ERR(tree_move(w.service, &from, &to, 0, -1, NULL, NULL, &detail), ERR_INVALID_INPUT);
	CHECK_EQ_STR(read_row(&w, "r"), "{}");
	CHECK_ERR(tree_file_write(w.service, id, 0, SPAN_LIT("{\"A\":12}"), &file), ERR_OK);
	item_fini(&file);
	CHECK_ERR(tree_move(w.service, &from, &to, 0, -1, &file, NULL, NULL), ERR_OK);
	CHECK_EQ_INT(file.id, id);
	CHECK_EQ_STR(read_row(&w, "r"), "{\"A\":12}");
	item_fini(&file);
	item_fini(&p);
	service_free(w.service);
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
	return account_properties_change(
		w->service, ORIGIN_COMMAND, SPAN_LIT("acct"), replace_with, copy, NULL);
}

static const char *get_properties(struct world *w)
{
	static char text[70000];
	struct account_secrets a;
	if (account_secrets_get(w->service, SPAN_LIT("acct"), &a) != ERR_OK)
		return "none";
	(void)snprintf(text, sizeof(text), "%.*s", (int)a.properties.len,
		a.properties.len > 0 ? a.properties.data : "");
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
	CHECK_ERR(account_properties_change(
			  w.service, ORIGIN_COMMAND, SPAN_LIT("other"), replace_with, text, NULL),
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
	CHECK_EQ_INT(a.properties.len, 0);
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
	CHECK_ERR(account_properties_change(
			  w.service, ORIGIN_COMMAND, SPAN_LIT("acct"), refuse, &detail, &detail),
		ERR_XML_INVALID);
	CHECK_EQ_STR(detail.text, "because");
	CHECK_EQ_STR(get_properties(&w), "was");
	struct interloper i = { &w, 1, 0 };
	CHECK_ERR(account_properties_change(
			  w.service, ORIGIN_COMMAND, SPAN_LIT("acct"), add_letter, &i, NULL),
		ERR_OK);
	CHECK_EQ_INT(i.calls, 2);
	CHECK_EQ_STR(get_properties(&w), "other!");
	i = (struct interloper){ &w, 1000, 0 };
	CHECK_ERR(account_properties_change(
			  w.service, ORIGIN_COMMAND, SPAN_LIT("acct"), add_letter, &i, NULL),
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
		enum err e = account_properties_change(
			w->service, ORIGIN_COMMAND, SPAN_LIT("acct"), add_letter, &i, NULL);
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
			CHECK_ERR(set_properties(&w, "<p/>"), ERR_OK);
			CHECK_ERR(table_policies_set(w.service, ORIGIN_COMMAND, w.table,
					  SPAN_LIT("<one/>"), NULL),
				ERR_OK);
		}
		CHECK_EQ_STR(get_properties(&w), "<p/>");
		CHECK_EQ_STR(policies(&w), "<one/>");
		CHECK_ERR(service_verify(w.service, no_finding, NULL, NULL, &counts), ERR_OK);
		service_free(w.service);
	}
	unlink(path);
}

RUN_TESTS(T(versions_increase_while_the_clock_stands_still_and_when_it_steps_back),
	T(versions_increase_over_a_restart_with_the_clock_set_back),
	T(insert_wants_absence_and_replace_merge_and_delete_want_presence),
	T(if_match_holds_for_this_version_only), T(a_merge_past_a_limit_changes_nothing),
	T(a_change_set_holds_1_to_100_operations_of_one_partition_and_each_row_once),
	T(merges_of_several_threads_lose_nothing), T(a_documents_keys_must_be_those_of_the_path),
	T(a_document_under_a_digest_name_must_hold_its_key),
	T(rows_with_keys_too_long_for_a_name_are_rendered_with_them),
	T(a_rename_keeps_the_bytes_unless_they_hold_a_key),
	T(renaming_a_partition_renders_the_rows_that_hold_its_key),
	T(a_file_becomes_a_row_only_with_an_entity_in_it),
	T(a_subscriber_is_told_after_the_commit_and_before_the_answer_with_the_old_bytes),
	T(an_accounts_properties_stand_beside_its_keys), T(properties_have_64_kib),
	T(account_bodies_of_two_or_three_lines_are_read_and_no_others),
	T(a_change_of_properties_is_refused_or_made_on_what_is_there),
	T(changes_of_properties_by_several_threads_lose_nothing),
	T(a_tables_policies_last_as_long_as_the_table),
	T(properties_and_policies_survive_a_restart_and_the_check_is_clean))
