/* SPDX-License-Identifier: MIT
 * Change sets as texts: the JSON codec, the three syntaxes read into operations, applied over
 * the in-memory engine, and their results as text. */
#include "base/compiler.h"
#include "check.h"
#include "codec/change_set_json.h"
#include "codec/json_scan.h"
#include "service/change/change_set.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/queue/messages.h"
#include "service/queue/queues.h"
#include "service_table.h"
#include "store/engines.h"

#include <stdio.h>
#include <stdlib.h>

#define MUST(cond_) BUG_ON(!(cond_))

/* ---- the codec ---- */

static struct err_detail why;

static enum err codec(const char *text, size_t max, size_t want_n)
{
	struct arena arena = { 0 };
	struct change_set_json json;
	why = (struct err_detail){ 0 };
	enum err e = change_set_json_parse(span_of(text), max, &arena, &json, &why);
	CHECK_EQ_INT(json.n, want_n);
	arena_fini(&arena);
	return e;
}

TEST(an_array_and_lines_are_the_same_operations)
{
	static const char *const texts[] = {
		"[{\"insert\":{\"A\":1}},{\"if_match\":\"*\",\"delete\":{}}]",
		" [ {\"insert\" : {\"A\":1} } ,\n{\"if_match\":\"*\" , \"delete\":{ } } ]\r\n",
		"{\"insert\":{\"A\":1}}\n{\"delete\":{},\"if_match\":\"*\"}\n",
		"{\"insert\":{\"A\":1}}{\"delete\":{},\"if_match\":\"*\"}",
		"{\"\\u0069nsert\":{\"A\":1}}\t{\"delete\":{},\"if\\u005fmatch\":\"\\u002a\"}",
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct arena arena = { 0 };
		struct change_set_json json;
		CHECK_ERR(change_set_json_parse(span_of(texts[i]), 2, &arena, &json, NULL), ERR_OK);
		REQUIRE(json.n == 2);
		CHECK(json.ops[0].verb == CHANGE_VERB_INSERT);
		CHECK(span_is(json.ops[0].entity, "{\"A\":1}"));
		CHECK(json.ops[0].if_match.p == NULL);
		CHECK(json.ops[1].verb == CHANGE_VERB_DELETE);
		CHECK(span_is(json.ops[1].if_match, "*"));
		CHECK_EQ_INT(texts[i][json.ops[1].offset], '{');
		CHECK_EQ_INT(texts[i][json.ops[1].if_match_offset], '"');
		arena_fini(&arena);
	}
}

TEST(every_verb_is_known_by_its_text)
{
	for (enum change_verb v = 0; v < CHANGE_VERB_COUNT_; v++) {
		char text[64];
		struct arena arena = { 0 };
		struct change_set_json json;
		snprintf(text, sizeof(text), "{\"%s\":{}}", change_verb_text(v));
		CHECK_ERR(change_set_json_parse(span_of(text), 1, &arena, &json, NULL), ERR_OK);
		REQUIRE(json.n == 1);
		CHECK(json.ops[0].verb == v);
		arena_fini(&arena);
	}
}

/* Where the text first differs from a change set, and what is said. */
static void check_bad(const char *text, unsigned line, unsigned column, const char *part)
{
	struct arena arena = { 0 };
	struct change_set_json json;
	why = (struct err_detail){ 0 };
	CHECK_ERR(
		change_set_json_parse(span_of(text), 100, &arena, &json, &why), ERR_INVALID_INPUT);
	if (why.line != line || why.column != column || strstr(why.text, part) == NULL) {
		printf("# %s: %u:%u %s\n", text, why.line, why.column, why.text);
		check_fail(__FILE__, __LINE__, part);
	}
	arena_fini(&arena);
}

TEST(what_is_no_change_set_is_refused_with_its_place)
{
	check_bad("x", 1, 1, "expected [ or {");
	check_bad("\n\n  7", 3, 3, "expected [ or {");
	check_bad("[1]", 1, 2, "expected {");
	check_bad("[[]]", 1, 2, "expected {");
	check_bad("[{\"insert\":{}}}", 1, 15, "expected , or ]");
	check_bad("[{\"insert\":{}},]", 1, 16, "expected {");
	check_bad("[,", 1, 2, "expected {");
	check_bad("[] x", 1, 4, "only white space");
	check_bad("[{\"insert\":{}}]\n{", 2, 1, "only white space");
	check_bad("{\"insert\":{}},", 1, 14, "expected {");
	check_bad("{\"insert\":{}}\n[", 2, 1, "expected {");
	check_bad("{\"Insert\":{}}", 1, 2, "expected insert");
	check_bad("{\"insert \":{}}", 1, 2, "expected insert");
	check_bad("{\"\":{}}", 1, 2, "expected insert");
	check_bad("{}", 1, 1, "must name a change");
	check_bad("{\"if_match\":\"*\"}", 1, 1, "must name a change");
	check_bad("{\"insert\":1}", 1, 11, "expected the row");
	check_bad("{\"insert\":\"x\"}", 1, 11, "expected the row");
	check_bad("{\"insert\":null}", 1, 11, "expected the row");
	check_bad("{\"insert\":[]}", 1, 11, "object or array");
	check_bad("{\"insert\":{\"a\":{}}}", 1, 16, "object or array");
	check_bad("{\"insert\":{\"a\":[]}}", 1, 16, "object or array");
	check_bad("{\"insert\":{},\"insert\":{}}", 1, 14, "one change");
	check_bad("{\"insert\":{},\"delete\":{}}", 1, 14, "one change");
	check_bad("{\"insert\":{},\"put_message\":{}}", 1, 14, "one change");
	check_bad("{\"put_message\":1}", 1, 16, "message, an object");
	check_bad("{\"delete\":{},\"if_match\":1}", 1, 25, "must be a string");
	check_bad("{\"delete\":{},\"if_match\":{}}", 1, 25, "must be a string");
	check_bad("{\"if_match\":\"*\",\"if_match\":\"*\"", 1, 17, "twice");
	check_bad("{\"insert\":{\"a\":\"\xff\"}}", 1, 17, "UTF-8");
	check_bad("{\"insert\":{\"a\":01}}", 1, 17, "must not begin with 0");
}

TEST(a_beginning_is_incomplete_wherever_it_is_cut)
{
	static const char text[] = " [{\"insert\":{\"A\":\"\\u00e9\xc3\xa9\",\"B\":-1.5e3}},\n"
				   "{\"if_match\":\"W/\\\"x\\\"\",\"merge\":{\"C\":null}}]";
	struct arena arena = { 0 };
	struct change_set_json json;
	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		CHECK_ERR(change_set_json_parse(span_make(text, n), 100, &arena, &json, NULL),
			ERR_INCOMPLETE);
		arena_reset(&arena);
	}
	CHECK_ERR(
		change_set_json_parse(span_make(text, sizeof(text) - 1), 100, &arena, &json, NULL),
		ERR_OK);
	arena_fini(&arena);
}

TEST(lines_cut_behind_an_operation_are_a_shorter_set)
{
	static const char text[] = "{\"insert\":{}}\n{\"insert\":{}}\n";
	for (size_t n = 0; n < sizeof(text); n++) {
		char cut[sizeof(text)];
		snprintf(cut, sizeof(cut), "%.*s", (int)n, text);
		size_t ops = n >= 27 ? 2 : n >= 13 ? 1 : 0;
		bool whole = n == 13 || n == 14 || n >= 27;
		CHECK_ERR(codec(cut, 100, ops), whole ? ERR_OK : ERR_INCOMPLETE);
	}
}

TEST(the_operation_behind_the_last_one_allowed_is_too_many)
{
	CHECK_ERR(codec("{\"insert\":{}}{\"insert\":{}}", 2, 2), ERR_OK);
	CHECK_ERR(codec("{\"insert\":{}}{\"insert\":{}}{", 2, 2), ERR_BATCH_TOO_LARGE);
	CHECK_EQ_INT(why.column, 27);
	CHECK_ERR(codec("[{\"insert\":{}},{\"insert\":{}}]", 2, 2), ERR_OK);
	CHECK_ERR(codec("[{\"insert\":{}},{\"insert\":{}},{", 2, 2), ERR_BATCH_TOO_LARGE);
	CHECK_ERR(codec("[]", 0, 0), ERR_OK);
}

TEST(a_part_of_a_text_ends_at_its_brace)
{
	static const char text[] = "xx{\"a\":{\"b\":1}} }";
	struct json_scan s = { .pos = 2, .part = true, .objects = true };
	struct json_member m;
	CHECK(json_scan_next(&s, span_of(text), &m) == JSON_SCAN_MEMBER);
	CHECK(m.token == JSON_TOKEN_OBJECT);
	CHECK(span_is(m.value, "{\"b\":1}"));
	CHECK(json_scan_next(&s, span_of(text), &m) == JSON_SCAN_END);
	CHECK_EQ_INT(s.pos, 15);
	s = (struct json_scan){ .pos = 2, .part = true };
	CHECK(json_scan_next(&s, span_of(text), &m) == JSON_SCAN_BAD);
	CHECK_EQ_INT(s.bad_at, 7);
}

/* ---- a service with one table ---- */

struct world {
	struct service *service;
	uint64_t account, table;
};

static struct world world_of(struct store *store)
{
	struct world w = { 0 };
	MUST(service_new(store, &w.service) == ERR_OK);
	service_table(w.service, &w.account, &w.table);
	return w;
}

/* Over a layer that fails on demand; *ret: that. */
static struct world world_failing(struct store **ret)
{
	struct store *inner;
	MUST(store_open_memory(&inner) == ERR_OK);
	MUST(store_open_fault(inner, ret) == ERR_OK);
	return world_of(*ret);
}

static struct world world_new(void)
{
	struct store *unused;
	return world_failing(&unused);
}

static char result[1 << 16];

/* Parses and applies; the outcome stands in result and why. */
static enum err apply(struct world *w, const char *pk, const char *text, unsigned flags)
{
	struct change_set_place at = { .account = SPAN_LIT("acct"), .table = SPAN_LIT("Tab") };
	struct change_set set;
	struct buf out = BUF_INIT(sizeof(result) - 1);
	char key[16];
	snprintf(key, sizeof(key), "%s", pk != NULL ? pk : "");
	if (pk != NULL)
		at.pk = span_of(key);
	why = (struct err_detail){ 0 };
	enum err e = change_set_parse(span_of(text), &at, &set, &why);
	memset(key, 'x', sizeof(key)); /* the set has no need of it any more */
	if (e == ERR_OK)
		e = change_set_apply(w->service, ORIGIN_COMMAND, w->table, &set, flags, &why);
	change_set_result(&set, e, &why, (flags & ENTITIES_CHECK) != 0, &out);
	MUST(buf_ok(&out));
	snprintf(result, sizeof(result), "%s", out.data);
	buf_fini(&out);
	change_set_fini(&set);
	return e;
}

static enum err table(struct world *w, const char *text)
{
	return apply(w, NULL, text, 0);
}

static enum err part(struct world *w, const char *text)
{
	return apply(w, "p", text, 0);
}

static const char *read_row(struct world *w, const char *rk)
{
	return service_row_text(w->service, w->table, "p", rk);
}

#define SAYS(part_) CHECK(strstr(result, (part_)) != NULL ? true : (printf("# %s", result), false))

TEST(every_operation_does_what_its_name_says)
{
	struct world w = world_new();
	CHECK_ERR(
		part(&w,
			"[{\"insert\":{\"RowKey\":\"1\",\"A\":1}},{\"insert\":{\"RowKey\":\"2\",\"A\":1}},"
			"{\"upsert\":{\"RowKey\":\"3\",\"A\":1}},{\"upsert_merge\":{\"RowKey\":\"4\",\"A\":1}}]"),
		ERR_OK);
	CHECK_ERR(
		part(&w,
			"{\"merge\":{\"RowKey\":\"1\",\"B\":2}}\n{\"replace\":{\"RowKey\":\"2\",\"B\":2}}\n"
			"{\"upsert\":{\"RowKey\":\"3\",\"B\":2}}\n{\"upsert_merge\":{\"RowKey\":\"4\",\"B\":2}}\n"
			"{\"upsert\":{\"RowKey\":\"5\",\"B\":9007199254740993}}"),
		ERR_OK);
	CHECK_EQ_STR(read_row(&w, "1"), "{\"A\":1,\"B\":2}\n");
	CHECK_EQ_STR(read_row(&w, "2"), "{\"B\":2}\n");
	CHECK_EQ_STR(read_row(&w, "3"), "{\"B\":2}\n");
	CHECK_EQ_STR(read_row(&w, "4"), "{\"A\":1,\"B\":2}\n");
	CHECK_EQ_STR(
		read_row(&w, "5"), "{\"B@odata.type\":\"Edm.Int64\",\"B\":\"9007199254740993\"}\n");
	CHECK_ERR(part(&w, "{\"delete\":{\"RowKey\":\"1\"}}"), ERR_OK);
	CHECK_EQ_STR(result,
		"{\"committed\":true,\"operations\":[\n{\"operation\":\"delete\","
		"\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"status\":204}\n]}\n");
	CHECK_EQ_STR(read_row(&w, "1"), "none");
	service_free(w.service);
}

/* ---- messages ---- */

static void make_queue(struct world *w, const char *name)
{
	bool created;
	MUST(queue_create(w->service, ORIGIN_COMMAND, w->account, span_of(name), SPAN_LIT(""),
		     &created, NULL) == ERR_OK);
}

struct seen {
	unsigned n;
	int64_t ttl; /* seconds, of the last one */
	char id[MESSAGE_ID_CHARS + 1], text[4096];
};

static bool on_seen(void *arg, const struct queue_message *m)
{
	struct seen *s = arg;
	s->n++;
	s->ttl = m->expires == MESSAGE_EXPIRES_NEVER
		? MESSAGE_NEVER
		: (m->expires - m->inserted) / TICKS_PER_SECOND;
	snprintf(s->id, sizeof(s->id), "%s", m->id);
	snprintf(s->text, sizeof(s->text), "%.*s", (int)m->text.n, m->text.p);
	return true;
}

static struct seen look(struct world *w, const char *name)
{
	struct seen s = { 0 };
	uint64_t id;
	MUST(queue_id(w->service, w->account, span_of(name), &id) == ERR_OK);
	MUST(message_peek(w->service, id, LIMIT_MESSAGES_TAKEN, on_seen, &s) == ERR_OK);
	return s;
}

TEST(a_set_puts_messages_beside_its_rows)
{
	struct world w = world_new();
	make_queue(&w, "jobs");
	CHECK_ERR(part(&w,
			  "[{\"put_message\":{\"queue\":\"jobs\",\"text\":\"a\\u00e4\\u0001\"}},"
			  "{\"insert\":{\"RowKey\":\"1\",\"A\":1}}]"),
		ERR_OK);
	struct seen s = look(&w, "jobs");
	CHECK_EQ_INT(s.n, 1);
	CHECK_EQ_STR(s.text, "a\xc3\xa4\x01");
	CHECK_EQ_INT(s.ttl, MESSAGE_TTL_DEFAULT_S);
	SAYS("{\"operation\":\"put_message\",\"queue\":\"jobs\",\"status\":201,\"id\":\"");
	SAYS(s.id);
	CHECK_EQ_STR(read_row(&w, "1"), "{\"A\":1}\n");
	/* Alone, and from a table's file. */
	CHECK_ERR(
		table(&w, "{\"put_message\":{\"queue\":\"jobs\",\"text\":\"\",\"messagettl\":-1}}"),
		ERR_OK);
	s = look(&w, "jobs");
	CHECK_EQ_INT(s.n, 2);
	CHECK_EQ_INT(s.ttl, MESSAGE_NEVER);
	CHECK_EQ_STR(s.text, "");
	CHECK_ERR(table(&w,
			  "{\"put_message\":{\"queue\":\"jobs\",\"text\":\"later\","
			  "\"visibilitytimeout\":50,\"messagettl\":51}}"),
		ERR_OK);
	CHECK_EQ_INT(look(&w, "jobs").n, 2);
	service_free(w.service);
}

TEST(a_set_with_a_message_is_all_or_nothing)
{
	struct world w = world_new();
	make_queue(&w, "jobs");
	CHECK_ERR(part(&w,
			  "{\"insert\":{\"RowKey\":\"1\"}}\n"
			  "{\"put_message\":{\"queue\":\"other\",\"text\":\"x\"}}"),
		ERR_QUEUE_NOT_FOUND);
	CHECK_EQ_STR(result,
		"{\"committed\":false,\"index\":1,\"operation\":\"put_message\",\"queue\":\"other\","
		"\"status\":404,\"code\":\"QueueNotFound\","
		"\"message\":\"The specified queue does not exist.\",\"line\":2,\"column\":1,"
		"\"errno\":\"ENOENT\"}\n");
	CHECK_EQ_STR(read_row(&w, "1"), "none");
	CHECK_ERR(part(&w,
			  "{\"put_message\":{\"queue\":\"jobs\",\"text\":\"x\"}}\n"
			  "{\"delete\":{\"RowKey\":\"1\"}}"),
		ERR_NOT_FOUND);
	SAYS("\"index\":1");
	SAYS("\"operation\":\"delete\"");
	CHECK_EQ_INT(look(&w, "jobs").n, 0);
	CHECK_ERR(apply(&w, "p",
			  "{\"put_message\":{\"queue\":\"jobs\",\"text\":\"x\"}}\n"
			  "{\"insert\":{\"RowKey\":\"1\"}}",
			  ENTITIES_CHECK),
		ERR_OK);
	SAYS("\"would_commit\":true");
	SAYS("{\"operation\":\"put_message\",\"queue\":\"jobs\",\"status\":201},");
	CHECK_EQ_INT(look(&w, "jobs").n, 0);
	service_free(w.service);
}

TEST(messages_count_among_the_operations_of_a_set)
{
	struct world w = world_new();
	make_queue(&w, "jobs");
	for (int n = LIMIT_BATCH_OPS; n <= LIMIT_BATCH_OPS + 1; n++) {
		struct buf text = BUF_INIT((size_t)1 << 20);
		buf_add_str(&text, "{\"insert\":{\"RowKey\":\"1\"}}");
		for (int i = 1; i < n; i++)
			buf_add_str(&text, "{\"put_message\":{\"queue\":\"jobs\",\"text\":\"x\"}}");
		buf_add_char(&text, '\0');
		MUST(buf_ok(&text));
		CHECK_ERR(part(&w, text.data), n > LIMIT_BATCH_OPS ? ERR_BATCH_TOO_LARGE : ERR_OK);
		buf_fini(&text);
	}
	struct collection q;
	MUST(queue_find(w.service, w.account, SPAN_LIT("jobs"), &q) == ERR_OK);
	CHECK_EQ_INT(q.children, LIMIT_BATCH_OPS - 1);
	collection_fini(&q);
	service_free(w.service);
}

TEST(rows_of_a_set_are_of_one_partition_whatever_messages_stand_between)
{
	struct world w = world_new();
	make_queue(&w, "jobs");
#define MESSAGE_ "{\"put_message\":{\"queue\":\"jobs\",\"text\":\"x\"}}"
#define ROW_(pk_, rk_) "{\"upsert\":{\"PartitionKey\":\"" pk_ "\",\"RowKey\":\"" rk_ "\"}}"
	CHECK_ERR(table(&w, MESSAGE_ ROW_("a", "1") MESSAGE_ ROW_("b", "2")), ERR_BATCH_PARTITIONS);
	CHECK_ERR(table(&w, MESSAGE_ ROW_("a", "1") MESSAGE_ ROW_("a", "1")), ERR_BATCH_DUPLICATE);
	CHECK_EQ_INT(look(&w, "jobs").n, 0);
	CHECK_ERR(table(&w, MESSAGE_ ROW_("a", "1") MESSAGE_ "{\"upsert\":{\"RowKey\":\"2\"}}"),
		ERR_OK);
	CHECK_EQ_INT(look(&w, "jobs").n, 2);
	service_free(w.service);
}

static enum err put_text(struct world *w, size_t n)
{
	struct buf text = BUF_INIT((size_t)1 << 20);
	buf_add_str(&text, "{\"put_message\":{\"queue\":\"jobs\",\"text\":\"");
	for (size_t i = 0; i < n; i++)
		buf_add_char(&text, 'x');
	buf_add_str(&text, "\"}}");
	buf_add_char(&text, '\0');
	MUST(buf_ok(&text));
	enum err e = part(w, text.data);
	buf_fini(&text);
	return e;
}

TEST(a_message_of_a_set_has_the_limits_of_a_message)
{
	struct world w = world_new();
	make_queue(&w, "jobs");
	CHECK_ERR(put_text(&w, LIMIT_MESSAGE_BYTES), ERR_OK);
	CHECK_ERR(put_text(&w, LIMIT_MESSAGE_BYTES + 1), ERR_MESSAGE_TOO_LARGE);
	SAYS("\"operation\":\"put_message\"");
	static const struct {
		const char *members;
		enum err want;
		unsigned column; /* 0: of the operation */
	} cases[] = {
		{ "\"visibilitytimeout\":0", ERR_OK, 0 },
		{ "\"visibilitytimeout\":-1", ERR_QUERY_RANGE, 1 },
		{ "\"visibilitytimeout\":604800,\"messagettl\":604801", ERR_OK, 0 },
		{ "\"visibilitytimeout\":604801,\"messagettl\":-1", ERR_QUERY_RANGE, 1 },
		{ "\"visibilitytimeout\":60,\"messagettl\":60", ERR_QUERY_RANGE, 1 },
		{ "\"messagettl\":1", ERR_OK, 0 },
		{ "\"messagettl\":0", ERR_QUERY_RANGE, 1 },
		{ "\"messagettl\":-2", ERR_QUERY_RANGE, 1 },
		{ "\"messagettl\":9223372036854775807", ERR_OK, 0 },
		{ "\"messagettl\":9223372036854775808", ERR_INVALID_INPUT, 56 },
		{ "\"messagettl\":-9223372036854775808", ERR_INVALID_INPUT, 56 },
		{ "\"messagettl\":1.5", ERR_INVALID_INPUT, 56 },
		{ "\"messagettl\":\"1\"", ERR_INVALID_INPUT, 56 },
		{ "\"messagettl\":1,\"messagettl\":1", ERR_INVALID_INPUT, 58 },
		{ "\"visibilitytimeout\":1,\"visibilitytimeout\":1", ERR_INVALID_INPUT, 65 },
		{ "\"text\":\"x\"", ERR_INVALID_INPUT, 43 },
		{ "\"queue\":\"x\"", ERR_INVALID_INPUT, 43 },
		{ "\"delay\":1", ERR_INVALID_INPUT, 43 },
		{ "\"\\u006dessagettl\":60", ERR_OK, 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[256];
		snprintf(text, sizeof(text),
			"{\"put_message\":{\"queue\":\"jobs\",\"text\":\"x\",%s}}",
			cases[i].members);
		enum err e = part(&w, text);
		if (e != cases[i].want || why.column != cases[i].column)
			printf("# %s %u %s\n", text, why.column, why.text);
		CHECK_ERR(e, cases[i].want);
		CHECK_EQ_INT(why.column, cases[i].column);
		if (e != ERR_OK)
			SAYS("\"index\":0,\"operation\":\"put_message\"");
	}
	CHECK_ERR(part(&w, "{\"put_message\":{\"text\":\"x\"}}"), ERR_INVALID_INPUT);
	SAYS("must have queue and text");
	CHECK_ERR(part(&w, "{\"put_message\":{\"queue\":\"jobs\"}}"), ERR_INVALID_INPUT);
	CHECK_ERR(part(&w, "{\"put_message\":{\"queue\":1}}"), ERR_INVALID_INPUT);
	CHECK_ERR(
		part(&w, "{\"put_message\":{\"queue\":\"\",\"text\":\"\"}}"), ERR_QUEUE_NOT_FOUND);
	CHECK_ERR(
		part(&w, "{\"put_message\":{\"queue\":\"jobs\",\"text\":\"\"},\"if_match\":\"*\"}"),
		ERR_INVALID_INPUT);
	service_free(w.service);
}

TEST(an_engine_that_cannot_span_refuses_rows_with_messages)
{
	for (int first = 0; first < 2; first++) {
		struct store *store;
		MUST(store_open_memory_with(0, &store) == ERR_OK);
		struct world w = world_of(store);
		make_queue(&w, "jobs");
		CHECK_ERR(part(&w,
				  first ? MESSAGE_ "{\"insert\":{\"RowKey\":\"1\"}}"
					: "{\"insert\":{\"RowKey\":\"1\"}}" MESSAGE_),
			ERR_CROSS_DEVICE);
		SAYS("\"index\":1,\"operation\":");
		SAYS("engine cannot change rows and queues in one commit");
		CHECK_EQ_STR(read_row(&w, "1"), "none");
		CHECK_EQ_INT(look(&w, "jobs").n, 0);
		CHECK_ERR(part(&w, MESSAGE_ MESSAGE_), ERR_OK);
		CHECK_EQ_INT(look(&w, "jobs").n, 2);
		service_free(w.service);
	}
}

TEST(conditions_hold_or_the_whole_set_fails)
{
	struct world w = world_new();
	char text[512], etag[128];
	CHECK_ERR(part(&w, "{\"insert\":{\"RowKey\":\"1\"}}"), ERR_OK);
	const char *at = strstr(result, "W/");
	REQUIRE(at != NULL);
	snprintf(etag, sizeof(etag), "%.*s", (int)(strstr(at, "\"}") - at), at);
	snprintf(text, sizeof(text), "{\"merge\":{\"RowKey\":\"1\",\"A\":1},\"if_match\":\"%s\"}",
		etag);
	CHECK_ERR(part(&w, text), ERR_OK);
	CHECK_ERR(part(&w, text), ERR_CONDITION_NOT_MET);
	snprintf(text, sizeof(text),
		"{\"insert\":{\"RowKey\":\"2\"}}\n\n {\"if_match\":\"%s\",\"delete\":{\"RowKey\":\"1\"}}",
		etag);
	CHECK_ERR(part(&w, text), ERR_CONDITION_NOT_MET);
	CHECK_EQ_STR(result,
		"{\"committed\":false,\"index\":1,\"operation\":\"delete\",\"PartitionKey\":\"p\","
		"\"RowKey\":\"1\",\"status\":412,\"code\":\"UpdateConditionNotSatisfied\","
		"\"message\":\"The update condition specified in the request was not satisfied.\","
		"\"line\":3,\"column\":2,\"errno\":\"ESTALE\"}\n");
	CHECK_EQ_STR(read_row(&w, "2"), "none");
	CHECK_ERR(part(&w, "{\"replace\":{\"RowKey\":\"1\"},\"if_match\":\"W/\\\"other\\\"\"}"),
		ERR_CONDITION_NOT_MET);
	CHECK_ERR(part(&w, "{\"replace\":{\"RowKey\":\"1\"},\"if_match\":\"*\"}"), ERR_OK);
	CHECK_ERR(part(&w, "{\"delete\":{\"RowKey\":\"1\"},\"if_match\":\"nonsense\"}"),
		ERR_INVALID_INPUT);
	CHECK_EQ_INT(why.column, 37);
	CHECK_ERR(part(&w, "{\"delete\":{\"RowKey\":\"9\"},\"if_match\":\"*\"}"), ERR_NOT_FOUND);
	service_free(w.service);
}

TEST(a_condition_goes_with_changes_of_what_exists_only)
{
	struct world w = world_new();
	static const char *const verbs[] = { "insert", "upsert", "upsert_merge" };
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		char text[128];
		snprintf(text, sizeof(text), "{\"%s\":{\"RowKey\":\"1\"},\"if_match\":\"*\"}",
			verbs[i]);
		CHECK_ERR(part(&w, text), ERR_INVALID_INPUT);
		SAYS("if_match goes with merge, replace and delete only.");
	}
	service_free(w.service);
}

TEST(what_existence_forbids_is_told_with_the_operation)
{
	struct world w = world_new();
	CHECK_ERR(part(&w, "{\"insert\":{\"RowKey\":\"1\"}}"), ERR_OK);
	CHECK_ERR(part(&w, "{\"upsert\":{\"RowKey\":\"2\"}}{\"insert\":{\"RowKey\":\"1\"}}"),
		ERR_ENTITY_EXISTS);
	SAYS("\"index\":1,\"operation\":\"insert\",\"PartitionKey\":\"p\",\"RowKey\":\"1\",");
	SAYS("\"status\":409,\"code\":\"EntityAlreadyExists\"");
	SAYS("\"errno\":\"EEXIST\"}");
	CHECK_EQ_STR(read_row(&w, "2"), "none");
	CHECK_ERR(part(&w, "{\"merge\":{\"RowKey\":\"7\"}}"), ERR_NOT_FOUND);
	SAYS("\"code\":\"ResourceNotFound\"");
	SAYS("\"errno\":\"ENOENT\"}");
	service_free(w.service);
}

TEST(the_partition_key_may_be_left_out)
{
	struct world w = world_new();
	CHECK_ERR(
		part(&w,
			"{\"insert\":{\"RowKey\":\"1\"}}{\"insert\":{\"PartitionKey\":\"p\",\"RowKey\":\"2\"}}"),
		ERR_OK);
	CHECK_ERR(part(&w, "{\"insert\":{\"RowKey\":\"3\",\"PartitionKey\":\"q\"}}"),
		ERR_KEY_MISMATCH);
	CHECK_ERR(table(&w, "{\"insert\":{\"RowKey\":\"3\"}}"), ERR_KEY_MISSING);
	SAYS("The PartitionKey is missing.");
	CHECK_ERR(
		table(&w,
			"{\"insert\":{\"RowKey\":\"3\",\"PartitionKey\":\"p\"}}{\"insert\":{\"RowKey\":\"4\"}}"),
		ERR_OK);
	SAYS("\"PartitionKey\":\"p\",\"RowKey\":\"4\"");
	CHECK_ERR(table(&w, "{\"insert\":{\"PartitionKey\":\"p\"}}"), ERR_KEY_MISSING);
	SAYS("The RowKey is missing.");
	CHECK_ERR(apply(&w, "", "{\"insert\":{\"RowKey\":\"\"}}", 0), ERR_OK);
	SAYS("\"PartitionKey\":\"\",\"RowKey\":\"\"");
	service_free(w.service);
}

TEST(one_partition_and_each_row_once)
{
	struct world w = world_new();
	CHECK_ERR(table(&w,
			  "{\"insert\":{\"PartitionKey\":\"a\",\"RowKey\":\"1\"}}\n"
			  "{\"insert\":{\"PartitionKey\":\"b\",\"RowKey\":\"1\"}}"),
		ERR_BATCH_PARTITIONS);
	SAYS("\"index\":1");
	SAYS("\"line\":2,\"column\":1");
	CHECK_ERR(part(&w, "{\"insert\":{\"RowKey\":\"1\"}}{\"delete\":{\"RowKey\":\"1\"}}"),
		ERR_BATCH_DUPLICATE);
	SAYS("\"code\":\"InvalidDuplicateRow\"");
	service_free(w.service);
}

static char *many(size_t n)
{
	struct buf b = BUF_INIT(1 << 20);
	for (size_t i = 0; i < n; i++)
		buf_addf(&b, "{\"upsert\":{\"RowKey\":\"%zu\"}}\n", i);
	MUST(buf_ok(&b));
	return b.data;
}

TEST(a_hundred_operations_are_the_most)
{
	struct world w = world_new();
	for (size_t n = 99; n <= 101; n++) {
		char *text = many(n);
		CHECK_ERR(part(&w, text), n <= 100 ? ERR_OK : ERR_BATCH_TOO_LARGE);
		free(text);
	}
	SAYS("\"line\":101,\"column\":1,\"errno\":\"E2BIG\"");
	CHECK_ERR(part(&w, "[]"), ERR_INVALID_INPUT);
	SAYS("holds no operation");
	service_free(w.service);
}

TEST(what_a_row_cannot_hold_is_told_where_it_stands)
{
	struct world w = world_new();
	CHECK_ERR(
		part(&w,
			"[{\"insert\":{\"RowKey\":\"1\"}},\n {\"insert\":{\"RowKey\":\"2\",\"a-\":1}}]"),
		ERR_PROPERTY_NAME_INVALID);
	SAYS("\"index\":1");
	SAYS("\"line\":2");
	CHECK_ERR(part(&w, "[{\"insert\":{\"RowKey\":\"a/b\"}}]"), ERR_KEY_INVALID);
	CHECK_ERR(part(&w, "[{\"insert\":{\"RowKey\":\"1\",\"A\":1,\"A\":2}}]"),
		ERR_PROPERTY_DUPLICATE);
	CHECK_ERR(
		part(&w, "[{\"insert\":{\"RowKey\":\"1\",\"A\":\"x\" \"B\"}}]"), ERR_INVALID_INPUT);
	SAYS("\"index\":0,\"status\":400");
	CHECK_ERR(
		part(&w, "{\"delete\":{\"RowKey\":\"1\",\"if_match\":\"*\"}}"), ERR_INVALID_INPUT);
	SAYS("no other property");
	CHECK_ERR(
		part(&w,
			"{\"delete\":{\"RowKey\":\"1\",\"odata.etag\":\"x\",\"Timestamp\":\"y\"}}"),
		ERR_NOT_FOUND);
	CHECK_ERR(part(&w, "[{\"insert\":{\"RowKey\":\"1\"}"), ERR_INCOMPLETE);
	SAYS("{\"committed\":false,\"status\":400,");
	service_free(w.service);
}

TEST(a_check_judges_and_keeps_nothing)
{
	struct world w = world_new();
	CHECK_ERR(apply(&w, "p", "{\"insert\":{\"RowKey\":\"1\"}}", ENTITIES_CHECK), ERR_OK);
	CHECK_EQ_STR(result,
		"{\"committed\":false,\"would_commit\":true,\"operations\":[\n"
		"{\"operation\":\"insert\",\"PartitionKey\":\"p\",\"RowKey\":\"1\","
		"\"status\":201}\n]}\n");
	CHECK_EQ_STR(read_row(&w, "1"), "none");
	CHECK_ERR(part(&w, "{\"insert\":{\"RowKey\":\"1\",\"A\":1}}"), ERR_OK);
	CHECK_ERR(apply(&w, "p", "{\"insert\":{\"RowKey\":\"1\"}}", ENTITIES_CHECK),
		ERR_ENTITY_EXISTS);
	SAYS("{\"committed\":false,\"would_commit\":false,\"index\":0,");
	CHECK_ERR(apply(&w, "p", "{\"delete\":{\"RowKey\":\"1\"}}", ENTITIES_CHECK), ERR_OK);
	CHECK_EQ_STR(read_row(&w, "1"), "{\"A\":1}\n");
	service_free(w.service);
}

/* What must have been there was found missing before the operations in front were judged. */
TEST(the_first_operation_that_fails_is_the_one_to_blame)
{
	struct world w = world_new();
	CHECK_ERR(part(&w, "{\"insert\":{\"RowKey\":\"1\"}}"), ERR_OK);
	CHECK_ERR(part(&w, "{\"upsert\":{\"RowKey\":\"2\"}}{\"merge\":{\"RowKey\":\"9\"}}"),
		ERR_NOT_FOUND);
	SAYS("\"index\":1,\"operation\":\"merge\"");
	CHECK_ERR(part(&w, "{\"insert\":{\"RowKey\":\"1\"}}{\"merge\":{\"RowKey\":\"9\"}}"),
		ERR_ENTITY_EXISTS);
	SAYS("\"index\":0,\"operation\":\"insert\"");
	CHECK_ERR(part(&w,
			  "{\"upsert\":{\"RowKey\":\"2\"}}{\"merge\":{\"RowKey\":\"1\"},"
			  "\"if_match\":\"W/\\\"datetime'2001-01-01T00%3A00%3A00.0000000Z'\\\"\"}"),
		ERR_CONDITION_NOT_MET);
	SAYS("\"index\":1,\"operation\":\"merge\"");
	CHECK_ERR(apply(&w, "p",
			  "{\"upsert\":{\"RowKey\":\"2\"}}"
			  "{\"delete\":{\"RowKey\":\"9\"},\"if_match\":\"*\"}",
			  ENTITIES_CHECK),
		ERR_NOT_FOUND);
	SAYS("\"index\":1,\"operation\":\"delete\"");
	CHECK_EQ_STR(read_row(&w, "2"), "none");
	service_free(w.service);
}

TEST(what_is_the_stores_fault_is_no_operations)
{
	static const struct {
		enum err e;
		bool blames;
	} cases[] = { { ERR_IO, false }, { ERR_NO_SPACE, false }, { ERR_TABLE_NOT_FOUND, false },
		{ ERR_GONE, false }, { ERR_NOT_SUPPORTED, true }, { ERR_ENTITY_TOO_LARGE, true } };
	struct store *store;
	struct world w = world_failing(&store);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		store_fault_arm(store, FAULT_APPLY_BEFORE, 1, cases[i].e);
		CHECK_ERR(part(&w, "{\"upsert\":{\"RowKey\":\"1\"}}"), cases[i].e);
		CHECK_EQ_INT(strstr(result, "\"index\":0") != NULL, cases[i].blames);
	}
	CHECK_ERR(part(&w, "{\"upsert\":{\"RowKey\":\"1\"}}"), ERR_OK);
	service_free(w.service);
}

TEST(every_error_has_the_name_of_an_errno)
{
	for (int e = 0; e < ERR_COUNT_; e++)
		CHECK(strerrorname_np(err_errno((enum err)e)) != NULL);
}

TEST(what_nobody_knows_is_neither_committed_nor_not)
{
	const struct change_set none = { 0 };
	struct buf out = BUF_INIT(sizeof(result) - 1);
	why = (struct err_detail){ 0 };
	change_set_result(&none, ERR_OUTCOME_UNKNOWN, &why, false, &out);
	REQUIRE(buf_ok(&out));
	snprintf(result, sizeof(result), "%s", out.data);
	SAYS("{\"committed\":null,\"status\":500,\"code\":\"OperationTimedOut\",");
	SAYS("\"errno\":\"EIO\"}");
	buf_fini(&out);
}

/* ---- $batch bodies ---- */

#define HEAD "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n"
#define OP(request_) \
	"--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" request_ \
	"\r\n"
#define TAIL "--c--\r\n--b--\r\n"
#define ROW(n_) "{\"PartitionKey\":\"p\",\"RowKey\":\"" n_ "\",\"A\":1}"
#define INSERT(n_) OP("POST http://x/acct/Tab HTTP/1.1\r\n\r\n" ROW(n_))
#define ON(n_) "/acct/Tab(PartitionKey='p',RowKey='" n_ "') HTTP/1.1\r\n"

TEST(a_batch_body_is_read_as_the_service_reads_it)
{
	struct world w = world_new();
	CHECK_ERR(table(&w, HEAD INSERT("1") INSERT("2") INSERT("3") INSERT("4") TAIL), ERR_OK);
	CHECK_ERR(table(&w,
			  HEAD OP("PUT " ON("1") "If-Match: *\r\n\r\n{\"B\":2}")
				  OP("PATCH " ON("2") "if-match: *\r\n\r\n{\"B\":2}")
					  OP("DELETE " ON("3") "If-Match: *\r\n") OP("POST " ON(
						  "4") "X-HTTP-Method: MERGE\r\n\r\n{\"B\":2}")
						  OP("PUT " ON("5") "\r\n{\"B\":2}") TAIL),
		ERR_OK);
	CHECK_EQ_STR(read_row(&w, "1"), "{\"B\":2}\n");
	CHECK_EQ_STR(read_row(&w, "2"), "{\"A\":1,\"B\":2}\n");
	CHECK_EQ_STR(read_row(&w, "3"), "none");
	CHECK_EQ_STR(read_row(&w, "4"), "{\"A\":1,\"B\":2}\n");
	SAYS("\"operation\":\"replace\"");
	SAYS("\"operation\":\"upsert_merge\"");
	CHECK_ERR(table(&w, HEAD OP("PUT " ON("9") "If-Match: *\r\n\r\n{}") TAIL), ERR_NOT_FOUND);
	CHECK_ERR(table(&w, HEAD OP("DELETE " ON("1") "\r\n") TAIL), ERR_HEADER_MISSING);
	CHECK_ERR(table(&w, HEAD INSERT("1") TAIL), ERR_ENTITY_EXISTS);
	service_free(w.service);
}

TEST(paths_in_a_batch_body_name_this_table)
{
	struct world w = world_new();
	static const char *const good[] = { "Tab", "/Tab", "/Tab()", "acct/Tab", "/acct/Tab",
		"/acct/acct/Tab", "http://h:1/acct/Tab", "https://acct.host/tab?$format=json",
		"/acct/TAB()" };
	static const char *const bad[] = { "http://h", "?a=b", "/acctx/Tab", "/acct/Tax",
		"/other/Tab", "/acct/Tables", "/acct/$batch", "/acct/acct/acct/Tab", "/acct/",
		"/acct/Tab('x')", "/Tables('Tab')" };
	for (size_t i = 0; i < ARRAY_LEN(good) + ARRAY_LEN(bad); i++) {
		char text[1024];
		bool is_good = i < ARRAY_LEN(good);
		const char *path = is_good ? good[i] : bad[i - ARRAY_LEN(good)];
		snprintf(text, sizeof(text),
			HEAD OP("POST %s HTTP/1.1\r\n\r\n{\"PartitionKey\":\"p\",\"RowKey\":\"%zu\"}")
				TAIL,
			path, i);
		enum err e = table(&w, text);
		if (e != (is_good ? ERR_OK : ERR_INVALID_INPUT)) {
			printf("# %s: %s %s\n", path, err_symbol(e), why.text);
			check_fail(__FILE__, __LINE__, "path");
		}
	}
	service_free(w.service);
}

TEST(what_a_batch_body_may_not_hold_is_refused)
{
	struct world w = world_new();
	CHECK_ERR(
		table(&w,
			"--b\nContent-Type: application/http\n\nGET /acct/Tab() HTTP/1.1\n\n--b--\n"),
		ERR_INVALID_INPUT);
	SAYS(".query");
	CHECK_ERR(table(&w, HEAD OP("GET " ON("1") "\r\n") TAIL), ERR_INVALID_INPUT);
	SAYS("operations that change one entity");
	CHECK_ERR(table(&w, HEAD INSERT("1") "--c--\r\n" HEAD INSERT("2") TAIL), ERR_INVALID_INPUT);
	SAYS("\"index\":1");
	CHECK_EQ_STR(read_row(&w, "1"), "none");
	CHECK_ERR(table(&w, HEAD OP("PUT " ON("1") "\r\n{\"RowKey\":\"2\"}") TAIL),
		ERR_INVALID_INPUT);
	CHECK_ERR(table(&w, HEAD OP("PUT " ON("1") "\r\n") TAIL), ERR_VALUE_INVALID);
	CHECK_ERR(table(&w, HEAD OP("PUT " ON("1") "\r\n{\"A\":") TAIL), ERR_VALUE_INVALID);
	CHECK_ERR(table(&w, HEAD OP("PUT " ON("1") "\r\n{\"A-\":1}") TAIL),
		ERR_PROPERTY_NAME_INVALID);
	CHECK_ERR(table(&w, HEAD OP("POST /acct/Tab HTTP/1.1\r\n\r\n{") TAIL), ERR_VALUE_INVALID);
	CHECK_ERR(table(&w, HEAD OP("PUT /acct/Tab HTTP/1.1\r\n\r\n{}") TAIL), ERR_INVALID_INPUT);
	CHECK_ERR(table(&w, HEAD "no part\r\n" TAIL), ERR_INVALID_INPUT);
	CHECK_ERR(table(&w, "--b\r\nno header\r\n--b--\r\n"), ERR_INVALID_INPUT);
	CHECK_ERR(part(&w, HEAD OP("POST /acct/Tab HTTP/1.1\r\n\r\n{\"RowKey\":\"own\"}") TAIL),
		ERR_OK);
	CHECK_EQ_STR(read_row(&w, "own"), "{}\n");
	CHECK_ERR(table(&w, HEAD OP("PUT " ON("1") "If-None-Match: *\r\n\r\n{}") TAIL),
		ERR_INVALID_INPUT);
	CHECK_ERR(table(&w, HEAD OP("PUT " ON("1") "X-HTTP-Method: PUT\r\n\r\n{}") TAIL),
		ERR_XMETHOD_VERB);
	CHECK_ERR(apply(&w, "q", HEAD INSERT("1") TAIL, 0), ERR_KEY_MISMATCH);
	CHECK_ERR(
		table(&w, HEAD OP("POST /acct/Tab HTTP/1.1\r\n\r\n{\"PartitionKey\":\"p\"}") TAIL),
		ERR_KEY_MISSING);
	CHECK_ERR(table(&w, HEAD OP("POST /acct/Tab HTTP/1.1\r\n\r\n{\"RowKey\":\"1\"}") TAIL),
		ERR_KEY_MISSING);
	CHECK_ERR(table(&w, HEAD OP("PUT " ON("a%2Fb") "\r\n{}") TAIL), ERR_KEY_INVALID);
	SAYS("\"line\":");
	CHECK_ERR(table(&w, HEAD TAIL), ERR_INVALID_INPUT);
	CHECK_ERR(table(&w, "-\n"), ERR_INVALID_INPUT);
	CHECK_ERR(table(&w, "--\n"), ERR_INVALID_INPUT);
	CHECK_ERR(table(&w, "--a\"b\n"), ERR_INVALID_INPUT);
	service_free(w.service);
}

TEST(what_begins_with_one_hyphen_is_no_batch_body)
{
	struct world w = world_new();
	CHECK_ERR(part(&w, "-"), ERR_INCOMPLETE);
	CHECK_ERR(part(&w, "--b"), ERR_INCOMPLETE);
	CHECK_ERR(part(&w, "\n-1"), ERR_INVALID_INPUT);
	SAYS("\"line\":2,\"column\":1");
	CHECK_ERR(part(&w, "-\n"), ERR_INVALID_INPUT);
	CHECK_ERR(part(&w, "--\n"), ERR_INVALID_INPUT);
	SAYS("not a MIME boundary");
	service_free(w.service);
}

TEST(a_batch_body_is_incomplete_up_to_its_closing_delimiter)
{
	static const char text[] = HEAD INSERT("1") INSERT("2") "--c--\r\n--b--";
	struct world w = world_new();
	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		char cut[sizeof(text)];
		snprintf(cut, sizeof(cut), "%.*s", (int)n, text);
		CHECK_ERR(table(&w, cut), ERR_INCOMPLETE);
		CHECK_EQ_STR(read_row(&w, "1"), "none");
	}
	CHECK_ERR(table(&w, text), ERR_OK);
	service_free(w.service);
}

RUN_TESTS(T(an_array_and_lines_are_the_same_operations), T(every_verb_is_known_by_its_text),
	T(what_is_no_change_set_is_refused_with_its_place),
	T(a_beginning_is_incomplete_wherever_it_is_cut),
	T(lines_cut_behind_an_operation_are_a_shorter_set),
	T(the_operation_behind_the_last_one_allowed_is_too_many),
	T(a_part_of_a_text_ends_at_its_brace), T(every_operation_does_what_its_name_says),
	T(a_set_puts_messages_beside_its_rows), T(a_set_with_a_message_is_all_or_nothing),
	T(messages_count_among_the_operations_of_a_set),
	T(rows_of_a_set_are_of_one_partition_whatever_messages_stand_between),
	T(a_message_of_a_set_has_the_limits_of_a_message),
	T(an_engine_that_cannot_span_refuses_rows_with_messages),
	T(conditions_hold_or_the_whole_set_fails),
	T(a_condition_goes_with_changes_of_what_exists_only),
	T(what_existence_forbids_is_told_with_the_operation), T(the_partition_key_may_be_left_out),
	T(one_partition_and_each_row_once), T(a_hundred_operations_are_the_most),
	T(what_a_row_cannot_hold_is_told_where_it_stands), T(a_check_judges_and_keeps_nothing),
	T(the_first_operation_that_fails_is_the_one_to_blame),
	T(what_is_the_stores_fault_is_no_operations), T(every_error_has_the_name_of_an_errno),
	T(what_nobody_knows_is_neither_committed_nor_not),
	T(a_batch_body_is_read_as_the_service_reads_it), T(paths_in_a_batch_body_name_this_table),
	T(what_a_batch_body_may_not_hold_is_refused),
	T(what_begins_with_one_hyphen_is_no_batch_body),
	T(a_batch_body_is_incomplete_up_to_its_closing_delimiter))
