/* SPDX-License-Identifier: MIT
 * Rows as text, on each engine. */
#include "base/clock.h"
#include "check.h"
#include "codec/entity_json.h"
#include "service/change/entities.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/query/row_stream.h"
#include "service_table.h"
#include "store/engines.h"

#include <stdlib.h>
#include <unistd.h>

/* What the helpers cannot go on without. */
#define MUST(cond_) BUG_ON(!(cond_))

struct world {
	struct service *service;
	uint64_t table;
	char path[40]; /* "": in memory */
};

static void world_init(struct world *w, struct store *store)
{
	MUST(service_new(store, &w->service) == ERR_OK);
	uint64_t account;
	service_table(w->service, &account, &w->table);
}

static struct world world_memory(void)
{
	struct world w = { 0 };
	struct store *store;
	MUST(store_open_memory(&store) == ERR_OK);
	world_init(&w, store);
	return w;
}

static struct world world_sqlite(void)
{
	struct world w = { .path = "/tmp/rowfs-stream-XXXXXX" };
	struct store *store;
	int fd = mkstemp(w.path);
	MUST(fd >= 0 && close(fd) == 0 && unlink(w.path) == 0);
	MUST(store_create(w.path, NULL) == ERR_OK);
	MUST(store_open(w.path, 0, &store, NULL, NULL) == ERR_OK);
	world_init(&w, store);
	return w;
}

static void world_fini(struct world *w)
{
	service_free(w->service);
	if (w->path[0] != '\0')
		unlink(w->path);
}

static int64_t fixed_time(void)
{
	return TICKS_UNIX_EPOCH;
}

/* In canonical form. */
static void put(struct world *w, const char *pk, const char *rk, const char *json)
{
	struct entity e = { 0 };
	struct entity_op op = { .kind = ENTITY_UPSERT,
		.pk = span_of(pk),
		.rk = span_of(rk),
		.entity = &e,
		.attrs = ATTRS_UNSET };
	MUST(entity_json_decode(span_of(json), ENTITY_JSON_FILE, &e, NULL, NULL) == ERR_OK);
	MUST(entities_apply(w->service, ORIGIN_COMMAND, w->table, &op, 1, 0, NULL) == ERR_OK);
	entity_fini(&e);
}

/* As a file was written. */
static void put_file(struct world *w, const char *pk, const char *rk, const char *json)
{
	service_put_document(w->service, w->table, pk, rk, json);
}

static struct row_stream *open_options(
	struct world *w, const char *options, const struct span *partition)
{
	struct row_query q;
	struct row_stream *s;
	MUST(row_query_parse(span_of(options), &q, NULL) == ERR_OK);
	MUST(row_stream_open(w->service, w->table, partition, &q, SPAN_LIT("a test"), &s, NULL) ==
		ERR_OK);
	return s;
}

/* From the start to the end, n bytes at a time. */
static void read_all(struct row_stream *s, size_t n, struct buf *out)
{
	size_t before;
	do {
		before = out->len;
		MUST(row_stream_read(s, out->len, n, NULL, NULL, out, NULL) == ERR_OK);
		MUST(out->len - before <= n);
	} while (out->len > before);
	MUST(buf_ok(out));
}

static void check_text(struct world *w, const char *options, const char *want)
{
	struct row_stream *s = open_options(w, options, NULL);
	struct buf whole = BUF_INIT(64u << 20), pieces = BUF_INIT(64u << 20);
	read_all(s, 1u << 20, &whole);
	CHECK_EQ_STR(whole.len > 0 ? whole.data : "", want);
	read_all(s, 7, &pieces);
	CHECK(span_eq(buf_span(&whole), buf_span(&pieces)));
	row_stream_close(s);
	buf_fini(&whole);
	buf_fini(&pieces);
}

/* ---- forms ---- */

/* clang-format off */
#define ROW(pk_, rk_, tick_, members_) \
	"{\"PartitionKey\":\"" pk_ "\",\"RowKey\":\"" rk_ "\"," \
	"\"Timestamp@odata.type\":\"Edm.DateTime\"," \
	"\"Timestamp\":\"1970-01-01T00:00:00.000000" tick_ "Z\"" members_ "}"
#define FIRST ROW("p", "1", "2", ",\"Text\":\"Hi, you\",\"N\":5")
#define SECOND ROW("p", "2", "3", ",\"N\":6,\"Big@odata.type\":\"Edm.Int64\",\"Big\":\"7\"")
#define THIRD ROW("q'", "", "4", "")
/* clang-format on */

static void three_rows(struct world *w)
{
	put(w, "p", "1", "{\"Text\":\"Hi, you\",\"N\":5}");
	put_file(w, "p", "2", "{ \"N\" : 6,\n \"Big@odata.type\": \"Edm.Int64\", \"Big\": \"7\" }");
	put(w, "q'", "", "{}");
}

static void forms(struct world *w)
{
	three_rows(w);
	check_text(w, ".ndjson", FIRST "\n" SECOND "\n" THIRD "\n");
	check_text(w, "N gt 4&top=1.json", "[\n" FIRST "\n]\n");
	check_text(w, ".json", "[\n" FIRST ",\n" SECOND ",\n" THIRD "\n]\n");
	check_text(w, "select=N,Gone.json",
		"[\n{\"PartitionKey\":\"p\",\"RowKey\":\"1\",\"N\":5},\n"
		"{\"PartitionKey\":\"p\",\"RowKey\":\"2\",\"N\":6},\n"
		"{\"PartitionKey\":\"q'\",\"RowKey\":\"\"}\n]\n");
	check_text(w, "RowKey eq '1'&select=Timestamp,RowKey,N,Text.ndjson",
		ROW("p", "1", "2", ",\"N\":5,\"Text\":\"Hi, you\"") "\n");
	check_text(w, "RowKey eq 'none'.json", "[\n]\n");
	check_text(w, "RowKey eq 'none'.ndjson", "");
	check_text(w, ".csv",
		"PartitionKey,RowKey,Timestamp,Text,Text@type,N,N@type,Big,Big@type\r\n"
		"p,1,1970-01-01T00:00:00.0000002Z,\"Hi, you\",Edm.String,5,Edm.Int32,,\r\n"
		"p,2,1970-01-01T00:00:00.0000003Z,,,6,Edm.Int32,7,Edm.Int64\r\n"
		"q',\"\",1970-01-01T00:00:00.0000004Z,,,,,,\r\n");
	check_text(w, "N gt 5.csv",
		"PartitionKey,RowKey,Timestamp,N,N@type,Big,Big@type\r\n"
		"p,2,1970-01-01T00:00:00.0000003Z,6,Edm.Int32,7,Edm.Int64\r\n");
	check_text(w, "N gt 5&select=Gone,N,RowKey.csv",
		"PartitionKey,RowKey,Gone,Gone@type,N,N@type\r\np,2,,,6,Edm.Int32\r\n");
	check_text(w, "RowKey eq 'none'.csv", "PartitionKey,RowKey,Timestamp\r\n");
	check_text(w, ".count", "3\n");
	check_text(w, "N ge 5.count", "2\n");
	check_text(w, "N ge 5&top=1.count", "1\n");
	check_text(w, "RowKey eq 'none'.count", "0\n");
}

static void plans(struct world *w)
{
	three_rows(w);
	check_text(w, "N gt 5&top=7&select=N,Text.explain",
		"{\"plan\":\"table scan\",\"filter\":\"N gt 5\",\"top\":7,\"select\":[\"N\",\"Text\"],"
		"\"looked_at\":3,\"matched\":1}\n");
	check_text(w, ".explain",
		"{\"plan\":\"table scan\",\"filter\":null,\"top\":null,\"select\":null,"
		"\"looked_at\":3,\"matched\":3}\n");
	check_text(w, "PartitionKey eq 'p' and (RowKey eq '2').explain",
		"{\"plan\":\"point\",\"filter\":\"PartitionKey eq 'p' and RowKey eq '2'\","
		"\"top\":null,\"select\":null,\"looked_at\":1,\"matched\":1}\n");
	check_text(w, "PartitionKey eq 'p' and N gt 5.explain",
		"{\"plan\":\"row range\",\"filter\":\"PartitionKey eq 'p' and N gt 5\","
		"\"top\":null,\"select\":null,\"looked_at\":2,\"matched\":1}\n");
	check_text(w, "PartitionKey gt 'p'.explain",
		"{\"plan\":\"partition range\",\"filter\":\"PartitionKey gt 'p'\",\"top\":null,"
		"\"select\":null,\"looked_at\":1,\"matched\":1}\n");
}

static void a_partition(struct world *w)
{
	struct span pk = SPAN_LIT("q'"), none = SPAN_LIT("none");
	struct buf out = BUF_INIT(4096);
	struct row_stream *s;
	three_rows(w);
	s = open_options(w, ".count", &pk);
	read_all(s, 100, &out);
	CHECK_EQ_STR(out.data, "1\n");
	row_stream_close(s);
	buf_clear(&out);
	s = open_options(w, ".count", &none);
	read_all(s, 100, &out);
	CHECK_EQ_STR(out.data, "0\n");
	row_stream_close(s);
	buf_fini(&out);
}

/* ---- long streams ---- */

#define MANY 3000

static void many_rows(struct world *w)
{
	for (int i = 0; i < MANY; i++) {
		char pk[16], rk[16], json[128];
		snprintf(pk, sizeof(pk), "p%d", i / 1000);
		snprintf(rk, sizeof(rk), "%05d", i % 1000);
		snprintf(json, sizeof(json), "{\"N\":%d,\"Name%d\":\"%060d\"}", i, i % 7, i);
		if (i % 3 == 0)
			put_file(w, pk, rk, json);
		else
			put(w, pk, rk, json);
	}
}

static void check_offsets(struct world *w, const char *options)
{
	struct row_stream *s = open_options(w, options, NULL);
	struct buf whole = BUF_INIT(64u << 20), part = BUF_INIT(64u << 20);
	static const size_t at[] = { 300000, 0, 131072, 131071, 5, 262144, 262143, 400000, 1, 0 };
	read_all(s, 1u << 20, &whole);
	CHECK(whole.len > 400000);
	for (size_t i = 0; i < ARRAY_LEN(at); i++) {
		buf_clear(&part);
		CHECK_ERR(row_stream_read(s, at[i], 1000, NULL, NULL, &part, NULL), ERR_OK);
		CHECK(part.len > 0 && part.len <= 1000);
		CHECK(at[i] + part.len <= whole.len);
		CHECK(memcmp(part.data, whole.data + at[i], part.len) == 0);
	}
	buf_clear(&part);
	CHECK_ERR(row_stream_read(s, whole.len, 1, NULL, NULL, &part, NULL), ERR_OK);
	CHECK_ERR(row_stream_read(s, whole.len + 1000000, 1, NULL, NULL, &part, NULL), ERR_OK);
	CHECK_EQ_INT(part.len, 0);
	CHECK_ERR(row_stream_read(s, whole.len - 1, 10, NULL, NULL, &part, NULL), ERR_OK);
	CHECK_EQ_INT(part.len, 1);
	buf_clear(&part);
	read_all(s, 1000, &part);
	CHECK(span_eq(buf_span(&whole), buf_span(&part)));
	row_stream_close(s);
	buf_fini(&whole);
	buf_fini(&part);
}

static void any_offset(struct world *w)
{
	many_rows(w);
	check_offsets(w, ".ndjson");
	check_offsets(w, ".json");
	check_offsets(w, ".csv");
	check_offsets(w, "N ge 3.ndjson");
	check_text(w, "N ge 10.count", "2990\n");
	check_text(w, "top=2500.count", "2500\n");
	check_text(w, "N ge 2999&select=N.ndjson",
		"{\"PartitionKey\":\"p2\",\"RowKey\":\"00999\",\"N\":2999}\n");
}

static void one_moment(struct world *w)
{
	struct row_stream *s;
	struct buf out = BUF_INIT(64u << 20);
	many_rows(w);
	s = open_options(w, "select=N.ndjson", NULL);
	CHECK_ERR(row_stream_read(s, 0, 10, NULL, NULL, &out, NULL), ERR_OK);
	put(w, "p2", "00999", "{\"N\":-1}");
	put(w, "p9", "new", "{\"N\":-1}");
	read_all(s, 4096, &out);
	CHECK(strstr(out.data, "\"N\":2999}") != NULL);
	CHECK(strstr(out.data, "\"N\":-1}") == NULL);
	CHECK_EQ_INT(row_stream_rows(s), MANY);
	row_stream_close(s);
	buf_fini(&out);
}

static bool no_more(void *arg)
{
	unsigned *left = arg;
	return (*left)-- == 0;
}

static void interrupted(struct world *w)
{
	struct buf whole = BUF_INIT(64u << 20), out = BUF_INIT(64u << 20);
	struct row_stream *s;
	unsigned left = 0;
	many_rows(w);
	s = open_options(w, ".csv", NULL);
	read_all(s, 4096, &whole);
	row_stream_close(s);

	s = open_options(w, ".csv", NULL);
	CHECK_ERR(row_stream_read(s, 0, 10, no_more, &left, &out, NULL), ERR_CANCELLED);
	CHECK_EQ_INT(out.len, 0);
	for (;;) {
		size_t before = out.len;
		left = 1; /* a little further each time */
		enum err e = row_stream_read(s, out.len, 5000, no_more, &left, &out, NULL);
		CHECK(e == ERR_OK || e == ERR_CANCELLED);
		if (e == ERR_OK && out.len == before)
			break;
	}
	CHECK(span_eq(buf_span(&whole), buf_span(&out)));
	row_stream_close(s);
	buf_fini(&whole);
	buf_fini(&out);
}

/* ---- errors ---- */

static void too_many_names(struct world *w)
{
	struct buf json = BUF_INIT(1u << 20), out = BUF_INIT(4096);
	struct err_detail why = { 0 };
	struct row_stream *s;
	for (int i = 0; i < 131; i++) { /* 131 * 250 = 32,750; 32,766 is the most */
		char rk[16];
		snprintf(rk, sizeof(rk), "%d", i);
		buf_clear(&json);
		buf_add_char(&json, '{');
		for (int k = 0; k < 250; k++)
			buf_addf(&json, "%s\"P%d\":1", k > 0 ? "," : "", i * 250 + k);
		buf_add_char(&json, '}');
		put(w, "p", rk, json.data);
	}
	s = open_options(w, ".csv", NULL);
	CHECK_ERR(row_stream_read(s, 0, 10, NULL, NULL, &out, NULL), ERR_OK);
	row_stream_close(s);
	buf_clear(&json);
	for (int k = 0; k < 17; k++)
		buf_addf(&json, "%s\"Q%d\":1", k > 0 ? "," : "{", k);
	buf_add_char(&json, '}');
	put(w, "q", "", json.data);
	s = open_options(w, ".csv", NULL);
	CHECK_ERR(row_stream_read(s, 0, 10, NULL, NULL, &out, &why), ERR_TOO_MANY_PROPERTIES);
	CHECK(strstr(why.text, "CSV") != NULL);
	row_stream_close(s);
	s = open_options(w, "select=P1.csv", NULL);
	CHECK_ERR(row_stream_read(s, 0, 10, NULL, NULL, &out, NULL), ERR_OK);
	row_stream_close(s);
	buf_fini(&json);
	buf_fini(&out);
}

/* ---- sizes ---- */

/* Rows of about 1 KiB; N counts up. */
static void put_many(struct world *w, int n)
{
	char rk[8], json[1100];
	for (int i = 0; i < n; i++) {
		(void)snprintf(rk, sizeof(rk), "%05d", i);
		(void)snprintf(json, sizeof(json), "{\"N\":%d,\"Text\":\"%01000d\"}", i, i);
		put(w, "p", rk, json);
	}
}

static void check_size(struct world *w, const char *options, size_t read_before)
{
	struct row_stream *s = open_options(w, options, NULL);
	struct buf out = BUF_INIT(64u << 20);
	uint64_t size = 0, again = 0;
	if (read_before > 0)
		CHECK_ERR(row_stream_read(s, 0, read_before, NULL, NULL, &out, NULL), ERR_OK);
	CHECK_ERR(row_stream_size(s, NULL, NULL, &size, NULL), ERR_OK);
	read_all(s, 100000, &out);
	CHECK_EQ_INT(out.len, size);
	CHECK_ERR(row_stream_size(s, NULL, NULL, &again, NULL), ERR_OK);
	CHECK_EQ_INT(again, size);
	buf_clear(&out);
	CHECK_ERR(row_stream_read(s, 0, 10, NULL, NULL, &out, NULL), ERR_OK); /* from the start */
	read_all(s, 1u << 20, &out);
	CHECK_EQ_INT(out.len, size);
	row_stream_close(s);
	buf_fini(&out);
}

static void sizes(struct world *w)
{
	static const char *const options[] = { ".ndjson", ".json", ".csv", ".count", ".explain",
		"N ge 10.ndjson", "N ge 10.json", "N ge 10.csv", "N lt 100.ndjson", "N lt 0.json",
		"select=N.ndjson", "select=Text.csv", "N ge 3000&select=Text.json", "top=7.json" };
	put_many(w, 6000);
	put_file(w, "p", "10", " { \"N\" : 20 } ");
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		for (size_t before = 0; before <= 2000000; before = before * 300 + 5)
			check_size(w, options[i], before);
}

/* Takes the text that was written for the size; then the store must be read. */
static void run_once(struct world *w, const char *options, bool fits)
{
	struct row_stream *s = open_options(w, options, NULL);
	struct buf out = BUF_INIT(64u << 20);
	uint64_t size = 0;
	enum err e = ERR_OK;
	CHECK_ERR(row_stream_size(s, NULL, NULL, &size, NULL), ERR_OK);
	store_fault_arm(service_store(w->service), FAULT_READS | FAULT_STAYS, 1, ERR_IO);
	for (size_t before = 1; e == ERR_OK && before != out.len;) {
		before = out.len;
		e = row_stream_read(s, out.len, 100000, NULL, NULL, &out, NULL);
	}
	CHECK_ERR(e, fits ? ERR_OK : ERR_IO);
	CHECK(fits ? out.len == size : out.len >= 4u << 20 && out.len < size);
	store_fault_arm(service_store(w->service), 0, 0, ERR_OK);
	read_all(s, 100000, &out);
	CHECK_EQ_INT(out.len, size);
	row_stream_close(s);
	buf_fini(&out);
}

TEST(a_query_whose_result_is_kept_runs_once)
{
	struct store *inner, *store;
	struct world w = { 0 };
	MUST(store_open_memory(&inner) == ERR_OK && store_open_fault(inner, &store) == ERR_OK);
	world_init(&w, store);
	put_many(&w, 8000);
	run_once(&w, "N lt 3500.ndjson", true);
	run_once(&w, "N lt 3500.json", true);
	run_once(&w, "N lt 3500&select=Text.csv", true);
	run_once(&w, "N lt 6500.ndjson", false);
	for (int i = 0; i < 8; i++) /* nothing is left of those before */
		run_once(&w, "N ge 4500.ndjson", true);
	world_fini(&w);
}

static void known_columns(struct world *w)
{
	struct buf names = BUF_INIT(1000), whole = BUF_INIT(4000), again = BUF_INIT(4000);
	put(w, "p", "1", "{\"B\":1}");
	put(w, "p", "2", "{\"A\":1,\"B\":2}");
	struct row_stream *first = open_options(w, ".csv", NULL);
	CHECK(!row_stream_columns(first, &names));
	read_all(first, 1000, &whole);
	CHECK(row_stream_columns(first, &names));
	CHECK_EQ_STR(names.data, "B,A,");
	struct row_stream *second = open_options(w, ".csv", NULL);
	CHECK_ERR(row_stream_know_columns(second, buf_span(&names)), ERR_OK);
	CHECK(row_stream_columns(second, &names)); /* without a look at the rows */
	read_all(second, 1000, &again);
	CHECK_EQ_STR(again.data, whole.data);
	uint64_t size = 0;
	CHECK_ERR(row_stream_size(second, NULL, NULL, &size, NULL), ERR_OK);
	CHECK_EQ_INT(size, whole.len);
	struct row_stream *other = open_options(w, ".ndjson", NULL);
	CHECK_ERR(row_stream_know_columns(other, buf_span(&names)), ERR_OK);
	CHECK(!row_stream_columns(other, &names));
	row_stream_close(first);
	row_stream_close(second);
	row_stream_close(other);
	buf_fini(&names);
	buf_fini(&whole);
	buf_fini(&again);
}

static void on_each_engine(void (*check)(struct world *w))
{
	for (int i = 0; i < 2; i++) {
		clock_set_source(fixed_time);
		struct world w = i == 0 ? world_memory() : world_sqlite();
		check(&w);
		world_fini(&w);
		clock_set_source(NULL);
	}
}

TEST(each_form_has_its_text)
{
	on_each_engine(forms);
}

TEST(plans_are_told_with_their_cost)
{
	on_each_engine(plans);
}

TEST(a_partition_is_a_stream_too)
{
	on_each_engine(a_partition);
}

TEST(any_offset_can_be_read)
{
	on_each_engine(any_offset);
}

TEST(all_of_it_is_of_one_moment)
{
	on_each_engine(one_moment);
}

TEST(an_interrupted_read_can_go_on)
{
	on_each_engine(interrupted);
}

TEST(csv_has_as_many_columns_as_can_be_imported)
{
	on_each_engine(too_many_names);
}

TEST(the_size_is_that_of_the_text)
{
	on_each_engine(sizes);
}

TEST(columns_that_are_known_are_not_looked_for)
{
	on_each_engine(known_columns);
}

RUN_TESTS(T(each_form_has_its_text), T(plans_are_told_with_their_cost),
	T(a_partition_is_a_stream_too), T(any_offset_can_be_read), T(all_of_it_is_of_one_moment),
	T(an_interrupted_read_can_go_on), T(csv_has_as_many_columns_as_can_be_imported),
	T(the_size_is_that_of_the_text), T(a_query_whose_result_is_kept_runs_once),
	T(columns_that_are_known_are_not_looked_for))
