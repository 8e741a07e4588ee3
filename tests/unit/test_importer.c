/* SPDX-License-Identifier: MIT */
#include "base/compiler.h"
#include "check.h"
#include "model/key.h"
#include "service/check/walk.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/transfer/import_parts.h"
#include "service_table.h"
#include "store/engines.h"

#include <stdlib.h>

#define MUST(cond_) BUG_ON(!(cond_))

struct world {
	struct store *faults;
	struct service *service;
	uint64_t table;
	struct import_options options;
	struct importer *importer;
	struct buf told; /* "LINE:COLUMN CODE\n" */
	unsigned commits;
	unsigned commits_max; /* the next one cancels; 0: none */
};

static void tell(void *arg, enum err e, const struct err_detail *detail)
{
	struct world *w = arg;
	buf_addf(&w->told, "%u:%u %s\n", detail->line, detail->column, err_symbol(e));
}

static bool count_commit(void *arg, const struct import_counts *counts)
{
	struct world *w = arg;
	(void)counts;
	w->commits++;
	return w->commits_max == 0 || w->commits < w->commits_max;
}

static struct world *world_new(enum transfer_format format, bool at_once)
{
	struct world *w = calloc(1, sizeof(*w));
	struct store *memory;
	MUST(w != NULL && store_open_memory(&memory) == ERR_OK);
	MUST(store_open_fault(memory, &w->faults) == ERR_OK);
	MUST(service_new(w->faults, &w->service) == ERR_OK);
	uint64_t account;
	service_table(w->service, &account, &w->table);
	w->told = BUF_INIT(1u << 20);
	w->options = (struct import_options){ .format = format,
		.mode = IMPORT_UPSERT,
		.at_once = at_once,
		.stop_at_error = at_once,
		.on_error = tell,
		.on_progress = count_commit,
		.arg = w };
	return w;
}

static void world_free(struct world *w)
{
	importer_free(w->importer);
	service_free(w->service);
	buf_fini(&w->told);
	free(w);
}

static void begin(struct world *w)
{
	importer_free(w->importer);
	MUST(importer_new(w->service, ORIGIN_COMMAND, w->table, &w->options, &w->importer) ==
		ERR_OK);
}

static enum err feed_span(struct world *w, struct span s, struct err_detail *detail)
{
	if (w->importer == NULL)
		begin(w);
	return importer_feed(w->importer, s, detail);
}

static enum err feed(struct world *w, const char *text)
{
	return feed_span(w, span_of(text), NULL);
}

static enum err end(struct world *w)
{
	return importer_end(w->importer, NULL);
}

/* "PK/RK document" of each row. */
static const char *rows(const struct world *w)
{
	static char text[8192];
	struct buf out = BUF_INIT(1u << 20);
	struct item pk = { 0 }, row = { 0 };
	while (walk_next(w->faults, NULL, w->table, CLASS_KEYED, WANT_ATTRS, &pk) == ERR_OK) {
		item_fini(&row);
		while (walk_next(w->faults, NULL, pk.id, CLASS_KEYED, WANT_BODY, &row) == ERR_OK) {
			char key[LIMIT_KEY_BYTES];
			key_from_order(pk.key.p, pk.key.n, key);
			buf_add(&out, key, pk.key.n);
			buf_add_char(&out, '/');
			key_from_order(row.key.p, row.key.n, key);
			buf_add(&out, key, row.key.n);
			buf_add_char(&out, ' ');
			buf_add_span(&out, row.body);
		}
	}
	item_fini(&row);
	item_fini(&pk);
	(void)snprintf(text, sizeof(text), "%.*s", (int)out.len, out.len > 0 ? out.data : "");
	buf_fini(&out);
	return text;
}

static const char *told(const struct world *w)
{
	return w->told.len > 0 ? w->told.data : "";
}

static const char *rest_of(const struct world *w, const char *bytes)
{
	static char text[256];
	struct buf out = BUF_INIT(sizeof(text) - 1);
	importer_rest(w->importer, span_of(bytes), &out);
	(void)snprintf(text, sizeof(text), "%.*s", (int)out.len, out.len > 0 ? out.data : "");
	buf_fini(&out);
	return text;
}

#define ROW(pk_, rk_, more_) "{\"PartitionKey\":\"" pk_ "\",\"RowKey\":\"" rk_ "\"" more_ "}\n"

/* ---- pieces ---- */

static void check_pieces(enum transfer_format format, const char *text, const char *want)
{
	size_t length = strlen(text);
	for (size_t step = 1; step <= length; step++) {
		struct world *w = world_new(format, step % 2 != 0);
		for (size_t at = 0; at < length; at += step) {
			size_t n = step < length - at ? step : length - at;
			CHECK_ERR(feed_span(w, span_make(text + at, n), NULL), ERR_OK);
		}
		CHECK_ERR(end(w), ERR_OK);
		CHECK_EQ_STR(rows(w), want);
		CHECK_EQ_STR(told(w), "");
		world_free(w);
	}
}

TEST(ndjson_is_the_same_in_pieces_of_any_size)
{
	check_pieces(TRANSFER_NDJSON,
		"\xEF\xBB\xBF" ROW("p", "1", ",\"A\":1") "\r\n \t\n" ROW(
			"p", "2", ",\"A\":\"\xC3\xA9\\n\"")
			ROW("", "", "") "{\"PartitionKey\":\"q\",\"RowKey\":\"\"}",
		"/ {}\np/1 {\"A\":1}\np/2 {\"A\":\"\xC3\xA9\\n\"}\nq/ {}\n");
}

TEST(csv_is_the_same_in_pieces_of_any_size)
{
	check_pieces(TRANSFER_CSV,
		"\xEF\xBB\xBF\"PartitionKey\",RowKey,A,A@type,B@Int32\r\n"
		"p,1,\"a \"\"b\"\"\r\n,c\",,1\r\n\r\n"
		"p,2,,Edm.String,\n"
		"\"\",\"\",\"\",,\n"
		"\"q\",z,\"last\",,",
		"/ {\"A\":\"\"}\np/1 {\"A\":\"a \\\"b\\\"\\r\\n,c\",\"B\":1}\np/2 {\"A\":\"\"}\n"
		"q/z {\"A\":\"last\"}\n");
}

TEST(types_may_stand_before_their_values)
{
	struct world *w = world_new(TRANSFER_CSV, true);
	CHECK_ERR(feed(w, "B@type,RowKey,A@type,A,B,PartitionKey\nInt64,1,Int32,7,8,p\n"), ERR_OK);
	CHECK_EQ_STR(rows(w), "p/1 {\"A\":7,\"B@odata.type\":\"Edm.Int64\",\"B\":\"8\"}\n");
	world_free(w);
}

TEST(a_csv_record_that_was_cut_off_is_no_row)
{
	struct world *w = world_new(TRANSFER_CSV, true);
	CHECK_ERR(feed(w, "RowKey,PartitionKey,A\n1\n"), ERR_KEY_MISSING);
	world_free(w);

	w = world_new(TRANSFER_CSV, true);
	CHECK_ERR(feed(w, "PartitionKey,RowKey,A\np,1\np,2"), ERR_OK);
	CHECK_ERR(end(w), ERR_INVALID_INPUT);
	CHECK_EQ_STR(rest_of(w, ""), "p,2");
	CHECK_EQ_STR(rows(w), "p/1 {}\n");
	CHECK_ERR(feed(w, "2,x"), ERR_OK);
	CHECK_ERR(end(w), ERR_OK);
	CHECK_EQ_STR(rows(w), "p/1 {}\np/22 {\"A\":\"x\"}\n");
	world_free(w);
}

TEST(no_input_is_no_row)
{
	const char *const inputs[] = { "", "\n", "\r\n \n", "\xEF\xBB\xBF", "\xEF\xBB\xBF\r\n" };
	for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
		struct world *w = world_new(TRANSFER_NDJSON, true);
		CHECK_ERR(feed(w, inputs[i]), ERR_OK);
		CHECK_ERR(end(w), ERR_OK);
		CHECK_EQ_INT(importer_counts(w->importer)->lines, 0);
		world_free(w);
	}
	struct world *w = world_new(TRANSFER_CSV, true);
	CHECK_ERR(feed(w, "\nPartitionKey,RowKey"), ERR_OK);
	CHECK_ERR(end(w), ERR_OK);
	CHECK_ERR(end(w), ERR_OK);
	CHECK_EQ_STR(rows(w), "");
	world_free(w);
}

TEST(half_a_byte_order_mark_is_part_of_the_first_record)
{
	struct world *w = world_new(TRANSFER_NDJSON, true);
	CHECK_ERR(feed(w, "\xEF"), ERR_OK);
	CHECK_ERR(feed(w, "\xBB" ROW("p", "1", "")), ERR_INVALID_INPUT);
	CHECK_EQ_STR(told(w), "1:1 INVALID_INPUT\n");
	CHECK_EQ_STR(rest_of(w, "\xBB" ROW("p", "1", "")), "\xEF\xBB" ROW("p", "1", ""));
	world_free(w);

	w = world_new(TRANSFER_NDJSON, true);
	CHECK_ERR(feed(w, "\xEF\xBB"), ERR_OK);
	CHECK_ERR(end(w), ERR_INVALID_INPUT);
	CHECK_EQ_STR(rest_of(w, ""), "\xEF\xBB");
	world_free(w);
}

/* ---- refusals ---- */

TEST(refused_records_are_told_with_their_lines_whatever_the_pieces)
{
	const char *text = ROW("p", "1", "") "\n" /* 3: */ "{\"PartitionKey\":\"p\"}\n" /* 4: */
					     "nonsense\n" ROW("p", "5", "") /* 6: */ ROW(
						     "p", "a/b", "") /* 7: */
		"{\"PartitionKey\":\"p\",\"RowKey\":\"7\",\"x\":[1]}\n" ROW(
			"p", "8", "") /* 9: */ "{";
	size_t length = strlen(text);
	for (size_t step = 1; step <= length; step += step < 8 ? 1 : 13) {
		struct world *w = world_new(TRANSFER_NDJSON, false);
		for (size_t at = 0; at < length; at += step) {
			size_t n = step < length - at ? step : length - at;
			CHECK_ERR(feed_span(w, span_make(text + at, n), NULL), ERR_OK);
		}
		CHECK_ERR(end(w), ERR_OK);
		CHECK_EQ_STR(told(w),
			"3:0 KEY_MISSING\n4:1 INVALID_INPUT\n6:30 KEY_INVALID\n"
			"7:38 INVALID_INPUT\n9:2 INCOMPLETE\n");
		CHECK_EQ_STR(rows(w), "p/1 {}\np/5 {}\np/8 {}\n");
		CHECK_EQ_INT(importer_counts(w->importer)->lines, 8);
		CHECK_EQ_INT(importer_counts(w->importer)->done, 3);
		CHECK_EQ_INT(importer_counts(w->importer)->refused, 5);
		CHECK_EQ_INT(importer_counts(w->importer)->bytes, length);
		world_free(w);
	}
}

TEST(lines_in_fields_count)
{
	struct world *w = world_new(TRANSFER_CSV, false);
	CHECK_ERR(feed(w,
			  "PartitionKey,RowKey,A@Int32\n"
			  "p,1,\"\n1\"\n" /* 2 */ "p,2,2\n" /* 4 */ "p,3,x\n"       /* 5 */
			  "p,4,\"4\"x\n" /* 6 */ "p,5,1,1\n" /* 7 */ "p,\"\n\",1\n" /* 8 */
			  "p,8,8\n" /* 10 */ "p,\xFF,1\n" /* 11 */ "p\n" /* 12 */ "\"p,13"),
		ERR_OK);
	CHECK_ERR(end(w), ERR_OK);
	CHECK_EQ_STR(told(w),
		"2:0 VALUE_INVALID\n5:0 VALUE_INVALID\n6:0 INVALID_INPUT\n7:0 INVALID_INPUT\n"
		"8:0 KEY_INVALID\n11:0 INVALID_INPUT\n12:0 KEY_MISSING\n13:0 INVALID_INPUT\n");
	CHECK_EQ_STR(rows(w), "p/2 {\"A\":2}\np/8 {\"A\":8}\n");
	world_free(w);
}

TEST(the_first_refusal_ends_an_import_that_is_to_stop)
{
	struct err_detail why;
	struct world *w = world_new(TRANSFER_NDJSON, true);
	CHECK_ERR(feed(w, ROW("p", "1", "") "{\"Partition"), ERR_OK);
	CHECK_EQ_STR(rows(w), "p/1 {}\n");
	const char *second = "Key\":\"p\",\"RowKey\":\"2\"}\nbad\n" ROW("p", "3", "") "{";
	CHECK_ERR(feed_span(w, span_of(second), &why), ERR_INVALID_INPUT);
	CHECK_EQ_INT(why.line, 3);
	CHECK_EQ_INT(why.column, 1);
	CHECK_EQ_STR(rest_of(w, second), "bad\n" ROW("p", "3", "") "{");
	CHECK_EQ_STR(rows(w), "p/1 {}\np/2 {}\n");
	why = (struct err_detail){ 0 };
	CHECK_ERR(feed_span(w, SPAN_LIT(ROW("p", "4", "")), &why), ERR_INVALID_INPUT);
	CHECK_EQ_INT(why.line, 3);
	CHECK_ERR(importer_flush(w->importer, NULL), ERR_INVALID_INPUT);
	CHECK_ERR(end(w), ERR_INVALID_INPUT);
	CHECK_EQ_STR(rows(w), "p/1 {}\np/2 {}\n");
	CHECK_EQ_STR(told(w), "3:1 INVALID_INPUT\n");
	world_free(w);
}

TEST(the_rest_begins_in_an_earlier_piece_where_the_bad_record_does)
{
	for (int first = 0; first < 2; first++) {
		struct world *w = world_new(TRANSFER_CSV, true);
		CHECK_ERR(feed(w, "PartitionKey,RowKey,A@Int32\n"), ERR_OK);
		if (!first)
			CHECK_ERR(feed(w, "p,1,1\n"), ERR_OK);
		CHECK_ERR(feed(w, "p,\"2"), ERR_OK);
		CHECK_ERR(feed(w, "\"\"\",x"), ERR_OK);
		CHECK_ERR(feed(w, "y\r\np,3,3\n"), ERR_VALUE_INVALID);
		CHECK_EQ_STR(rest_of(w, "y\r\np,3,3\n"), "p,\"2\"\"\",xy\r\np,3,3\n");
		CHECK_EQ_STR(rows(w), first ? "" : "p/1 {\"A\":1}\n");
		world_free(w);
	}
}

TEST(a_last_record_that_is_refused_can_be_completed)
{
	struct err_detail why = { 0 };
	struct world *w = world_new(TRANSFER_NDJSON, true);
	CHECK_ERR(feed(w, ROW("p", "1", "") "\n{\"PartitionKey\":\"p\","), ERR_OK);
	for (int i = 0; i < 2; i++) {
		CHECK_ERR(importer_end(w->importer, &why), ERR_INCOMPLETE);
		CHECK_EQ_INT(why.line, 3);
		CHECK_EQ_STR(rest_of(w, ""), "{\"PartitionKey\":\"p\",");
		CHECK_EQ_STR(rest_of(w, "more"), "{\"PartitionKey\":\"p\",more");
	}
	CHECK_ERR(feed(w, "\"RowKey\":\"2\"}"), ERR_OK);
	CHECK_EQ_STR(rows(w), "p/1 {}\n");
	CHECK_ERR(end(w), ERR_OK);
	CHECK_EQ_STR(rows(w), "p/1 {}\np/2 {}\n");
	CHECK_EQ_STR(rest_of(w, ""), "");
	/* The line goes on to count as one. */
	CHECK_ERR(importer_feed(w->importer, SPAN_LIT("\n" ROW("p", "4", "") "bad\n"), &why),
		ERR_INVALID_INPUT);
	CHECK_EQ_INT(why.line, 5);
	CHECK_EQ_STR(rows(w), "p/1 {}\np/2 {}\np/4 {}\n");
	world_free(w);
}

TEST(a_record_without_its_end_is_refused_as_soon_as_it_can_be)
{
	const struct {
		const char *good, *bad;
		enum err e;
	} cases[] = {
		{ "", "x", ERR_INVALID_INPUT },
		{ " \t", "[", ERR_INVALID_INPUT },
		{ "{\"a\":", "}", ERR_INVALID_INPUT },
		{ "{\"PartitionKey\":\"p\"", "}", ERR_KEY_MISSING },
		{ "{\"PartitionKey\":\"p\",\"RowKey\":\"a/b\"", "} ", ERR_KEY_INVALID },
		{ "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}", "{", ERR_INVALID_INPUT },
		{ "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"", ",\"1\":1}",
			ERR_PROPERTY_NAME_INVALID },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct world *w = world_new(TRANSFER_NDJSON, true);
		CHECK_ERR(feed(w, "\n"), ERR_OK);
		CHECK_ERR(feed(w, cases[i].good), ERR_OK);
		CHECK_ERR(feed(w, cases[i].bad), cases[i].e);
		CHECK(strncmp(told(w), "2:", 2) == 0);
		CHECK_EQ_INT(strlen(rest_of(w, cases[i].bad)),
			strlen(cases[i].good) + strlen(cases[i].bad));
		CHECK_EQ_STR(rows(w), "");
		world_free(w);
	}
}

TEST(a_header_that_means_nothing_ends_the_import)
{
	struct err_detail why = { 0 };
	struct world *w = world_new(TRANSFER_CSV, false);
	CHECK_ERR(feed_span(w, SPAN_LIT("\nPartitionKey,A\np,1\n"), &why), ERR_KEY_MISSING);
	CHECK_EQ_INT(why.line, 2);
	CHECK(strstr(why.text, "RowKey") != NULL);
	CHECK_EQ_STR(told(w), "");
	world_free(w);
}

/* ---- limits ---- */

/* Blanks, then the record, n bytes in all without the line end. */
static struct buf padded(const char *record, size_t n)
{
	struct buf b = BUF_INIT((size_t)32 << 20);
	MUST(buf_resize(&b, n + 1));
	memset(b.data, ' ', n);
	memcpy(b.data + n - strlen(record), record, strlen(record));
	b.data[n] = '\n';
	return b;
}

#define RECORD_MAX ((size_t)2 * LIMIT_DOCUMENT_BYTES)

static void check_long_record(size_t n, size_t step, bool stop, enum err want)
{
	struct world *w = world_new(TRANSFER_NDJSON, stop);
	struct buf b = padded("{\"PartitionKey\":\"p\",\"RowKey\":\"2\"}", n);
	enum err e = feed(w, ROW("p", "1", ""));
	for (size_t at = 0; e == ERR_OK && at < b.len; at += step)
		e = feed_span(
			w, span_make(b.data + at, step < b.len - at ? step : b.len - at), NULL);
	CHECK_ERR(e, stop ? want : ERR_OK);
	if (e == ERR_OK)
		CHECK_ERR(feed(w, "bad\n" ROW("p", "4", "")), stop ? ERR_INVALID_INPUT : ERR_OK);
	if (!stop)
		CHECK_ERR(end(w), ERR_OK);
	const char *second = want == ERR_OK ? "p/1 {}\np/2 {}\n" : "p/1 {}\n";
	CHECK(strncmp(rows(w), second, strlen(second)) == 0);
	CHECK((strstr(told(w), "2:0 BODY_TOO_LARGE\n") != NULL) == (want != ERR_OK));
	CHECK((strstr(told(w), "3:1 INVALID_INPUT\n") != NULL) == (want == ERR_OK || !stop));
	CHECK((strstr(rows(w), "p/4 {}\n") != NULL) == !stop);
	buf_fini(&b);
	world_free(w);
}

TEST(a_record_may_have_8_MiB)
{
	for (int stop = 0; stop < 2; stop++) {
		check_long_record(RECORD_MAX, 1u << 20, stop, ERR_OK);
		check_long_record(RECORD_MAX + 1, 1u << 20, stop, ERR_BODY_TOO_LARGE);
		check_long_record(RECORD_MAX, (size_t)32 << 20, stop, ERR_OK);
		check_long_record(RECORD_MAX + 1, (size_t)32 << 20, stop, ERR_BODY_TOO_LARGE);
		check_long_record(2 * RECORD_MAX, 777777, stop, ERR_BODY_TOO_LARGE);
	}
}

TEST(many_records_are_many_commits)
{
	struct world *w = world_new(TRANSFER_NDJSON, false);
	for (int i = 0; i < 2500; i++) {
		char line[64];
		(void)snprintf(line, sizeof(line), ROW("p", "%04d", ""), i);
		CHECK_ERR(feed(w, line), ERR_OK);
		CHECK_EQ_INT(importer_counts(w->importer)->done, (i + 1) / 1000 * 1000);
	}
	CHECK_ERR(importer_flush(w->importer, NULL), ERR_OK);
	CHECK_EQ_INT(importer_counts(w->importer)->done, 2500);
	CHECK_EQ_INT(w->commits, 3);
	world_free(w);
}

/* ---- what goes wrong ---- */

static struct buf numbered(int n)
{
	struct buf b = BUF_INIT(1u << 20);
	for (int i = 1; i <= n; i++)
		buf_addf(&b, ROW("p", "%04d", ""), i);
	MUST(buf_ok(&b));
	return b;
}

#define WIDE 250

static void feed_wide(struct world *w, unsigned n)
{
	struct buf text = BUF_INIT(1u << 20);
	buf_add_str(&text, "PartitionKey,RowKey");
	for (unsigned i = 0; i < WIDE; i++)
		buf_addf(&text, ",c%u@Int32", i);
	buf_add_char(&text, '\n');
	for (unsigned row = 0; row < n; row++) {
		buf_addf(&text, "p,%u", row);
		for (unsigned i = 0; i < WIDE; i++)
			buf_add_str(&text, ",7");
		buf_add_char(&text, '\n');
	}
	CHECK_ERR(feed_span(w, buf_span(&text), NULL), ERR_OK);
	buf_fini(&text);
}

TEST(what_a_row_is_decoded_to_is_kept_only_where_it_is_needed)
{
	struct world *w = world_new(TRANSFER_CSV, false);
	feed_wide(w, 900);
	CHECK_EQ_INT(w->importer->chunk->n, 900);
	CHECK_EQ_INT(w->importer->chunk->used, 0);
	CHECK_ERR(end(w), ERR_OK);
	CHECK_EQ_INT(w->commits, 1);
	w->options.mode = IMPORT_MERGE;
	begin(w);
	feed_wide(w, 900);
	CHECK(w->importer->chunk->used > 0);
	CHECK(w->importer->chunk->used * WIDE * sizeof(struct property) < CHUNK_BYTES);
	CHECK_ERR(end(w), ERR_OK);
	CHECK(w->commits > 2);
	CHECK_EQ_INT(importer_counts(w->importer)->done, 900);
	CHECK_EQ_STR(told(w), "");
	world_free(w);
}

TEST(a_full_disk_ends_the_import_behind_what_was_committed)
{
	for (int at_once = 0; at_once < 2; at_once++) {
		struct err_detail why = { 0 };
		struct world *w = world_new(TRANSFER_NDJSON, at_once);
		struct buf b = numbered(2500);
		begin(w);
		store_fault_arm(w->faults, FAULT_APPLY_BEFORE | FAULT_STAYS, 3, ERR_NO_SPACE);
		enum err e = feed_span(w, buf_span(&b), &why);
		if (e == ERR_OK)
			e = importer_end(w->importer, &why);
		CHECK_ERR(e, ERR_NO_SPACE);
		CHECK_EQ_INT(why.line, 2001);
		CHECK_EQ_INT(importer_counts(w->importer)->done, 2000);
		CHECK_EQ_INT(importer_counts(w->importer)->refused, 0);
		struct buf rest = BUF_INIT(1u << 20);
		importer_rest(w->importer, buf_span(&b), &rest);
		if (at_once)
			CHECK(span_eq(buf_span(&rest),
				span_make(b.data + b.len / 2500 * 2000, b.len / 2500 * 500)));
		buf_fini(&rest);
		buf_fini(&b);
		world_free(w);
	}
}

TEST(where_room_is_short_fewer_rows_are_committed_at_once)
{
	struct world *w = world_new(TRANSFER_NDJSON, true);
	struct buf b = numbered(2500);
	begin(w);
	store_fault_arm(w->faults, FAULT_APPLY_BEFORE, 3, ERR_NO_SPACE);
	CHECK_ERR(feed_span(w, buf_span(&b), NULL), ERR_OK);
	CHECK_ERR(end(w), ERR_OK);
	CHECK_EQ_INT(importer_counts(w->importer)->done, 2500);
	CHECK_EQ_STR(told(w), "");
	buf_fini(&b);
	world_free(w);
}

TEST(an_end_that_failed_can_be_tried_again)
{
	struct world *w = world_new(TRANSFER_NDJSON, true);
	CHECK_ERR(feed(w, "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}"), ERR_OK);
	store_fault_arm(w->faults, FAULT_APPLY_BEFORE, 1, ERR_NO_SPACE);
	CHECK_ERR(end(w), ERR_NO_SPACE);
	CHECK_EQ_STR(rest_of(w, ""), "{\"PartitionKey\":\"p\",\"RowKey\":\"1\"}");
	CHECK_ERR(end(w), ERR_OK);
	CHECK_EQ_STR(rows(w), "p/1 {}\n");
	world_free(w);
}

TEST(a_cancelled_import_keeps_what_is_committed)
{
	struct world *w = world_new(TRANSFER_NDJSON, false);
	struct buf b = numbered(2500);
	w->commits_max = 2;
	CHECK_ERR(feed_span(w, buf_span(&b), NULL), ERR_CANCELLED);
	CHECK_EQ_INT(importer_counts(w->importer)->done, 2000);
	CHECK_ERR(end(w), ERR_CANCELLED);
	buf_fini(&b);
	world_free(w);
}

TEST(a_table_that_is_not_there_ends_the_import)
{
	struct world *w = world_new(TRANSFER_NDJSON, true);
	w->table += 1000;
	CHECK_ERR(feed(w, ROW("p", "1", "")), ERR_TABLE_NOT_FOUND);
	CHECK_EQ_STR(rest_of(w, ROW("p", "1", "")), ROW("p", "1", ""));
	world_free(w);
}

/* ---- keys ---- */

TEST(records_with_the_same_keys_act_in_order)
{
	struct world *w = world_new(TRANSFER_NDJSON, true);
	CHECK_ERR(feed(w,
			  ROW("p", "1", ",\"A\":1") ROW("p", "2", "") ROW("p", "1", ",\"B\":1")
				  ROW("p", "1", ",\"C\":\"\\n\"")),
		ERR_OK);
	CHECK_EQ_STR(rows(w), "p/1 {\"C\":\"\\n\"}\np/2 {}\n");
	world_free(w);

	w = world_new(TRANSFER_NDJSON, false);
	w->options.mode = IMPORT_INSERT;
	CHECK_ERR(feed(w, ROW("p", "1", "") ROW("p", "1", ",\"B\":1") ROW("p", "2", "")), ERR_OK);
	CHECK_ERR(end(w), ERR_OK);
	CHECK_EQ_STR(told(w), "2:0 ENTITY_EXISTS\n");
	w->options.mode = IMPORT_MERGE;
	begin(w);
	CHECK_ERR(feed(w, ROW("p", "1", ",\"A\":1") ROW("p", "1", ",\"B\":2") ROW("p", "3", "")),
		ERR_OK);
	CHECK_ERR(end(w), ERR_OK);
	CHECK_EQ_STR(rows(w), "p/1 {\"A\":1,\"B\":2}\np/2 {}\n");
	CHECK_EQ_STR(told(w), "2:0 ENTITY_EXISTS\n3:0 NOT_FOUND\n");
	world_free(w);
}

static struct world *partition_world(enum transfer_format format, const char *pk)
{
	struct world *w = world_new(format, true);
	w->options.in_partition = true;
	begin(w);
	CHECK_ERR(importer_aim(w->importer, w->table, span_of(pk)), ERR_OK);
	return w;
}

TEST(records_of_a_partition_may_leave_its_key_out)
{
	struct err_detail why = { 0 };
	struct world *w = partition_world(TRANSFER_NDJSON, "p");
	CHECK_ERR(feed(w, "{\"RowKey\":\"1\"}\n" ROW("p", "2", "")), ERR_OK);
	CHECK_ERR(importer_aim(w->importer, w->table, SPAN_LIT("q")), ERR_OK);
	CHECK_ERR(feed(w, "{\"RowKey\":\"1\"}\n"), ERR_OK);
	CHECK_ERR(feed_span(w, SPAN_LIT(ROW("p", "3", "")), &why), ERR_KEY_MISMATCH);
	CHECK_EQ_INT(why.line, 4);
	CHECK_EQ_STR(rows(w), "p/1 {}\np/2 {}\nq/1 {}\n");
	world_free(w);

	w = partition_world(TRANSFER_CSV, "");
	CHECK_ERR(feed(w, "RowKey\n1\n"), ERR_OK);
	CHECK_EQ_STR(rows(w), "/1 {}\n");
	begin(w);
	CHECK_ERR(importer_aim(w->importer, w->table, SPAN_LIT("p")), ERR_OK);
	CHECK_ERR(feed(w, "RowKey,PartitionKey\n1,p\n2\n3,\n"), ERR_KEY_MISMATCH);
	CHECK_EQ_STR(rows(w), "/1 {}\np/1 {}\np/2 {}\n");
	world_free(w);
}

static enum err may_change(void *arg, uint64_t table_id, struct span pk)
{
	struct world *w = arg;
	CHECK_EQ_INT(table_id, w->table);
	buf_addf(&w->told, "%.*s?\n", (int)pk.n, pk.p);
	return span_is(pk, "shut") ? ERR_ACCESS : ERR_OK;
}

TEST(who_may_change_a_partition_is_asked_once_for_rows_in_succession)
{
	struct world *w = world_new(TRANSFER_NDJSON, true);
	w->options.may_change = may_change;
	w->options.stop_at_error = false;
	CHECK_ERR(feed(w, ROW("p", "1", "") ROW("p", "2", "") ROW("q", "1", "") ROW("q", "2", "")),
		ERR_OK);
	CHECK_EQ_STR(told(w), "p?\nq?\n");
	/* Anew for what is committed by itself, and never taken over from a row that was refused. */
	CHECK_ERR(feed(w, ROW("q", "3", "") ROW("shut", "1", "") ROW("shut", "2", "")), ERR_OK);
	CHECK_EQ_STR(told(w), "p?\nq?\nq?\nshut?\n6:0 ACCESS\nshut?\n7:0 ACCESS\n");
	CHECK_EQ_STR(rows(w), "p/1 {}\np/2 {}\nq/1 {}\nq/2 {}\nq/3 {}\n");
	world_free(w);
}

/* An entity counts 4 bytes, its keys, and for a string property 8 + 2 * name + 4 + 2 * value. */
static void check_size(size_t more, enum err want)
{
	char key[401];
	memset(key, 'k', 400);
	key[400] = '\0';
	struct world *w = partition_world(TRANSFER_NDJSON, key);
	struct buf b = BUF_INIT(4u << 20);
	size_t left = LIMIT_ENTITY_BYTES + more - 4 - 2 * strlen(key) - 2;
	buf_add_str(&b, "{\"RowKey\":\"1\"");
	for (int i = 10; left > 0; i++) {
		size_t n = left < 50000 + 32 ? left : 50000;
		buf_addf(&b, ",\"p%d\":\"%0*d\"", i, (int)(n - 18) / 2, 0);
		left -= n;
	}
	buf_add_str(&b, "}\n");
	CHECK_ERR(feed_span(w, buf_span(&b), NULL), want);
	buf_fini(&b);
	world_free(w);
}

TEST(a_key_that_is_left_out_counts_for_the_size)
{
	check_size(0, ERR_OK);
	check_size(2, ERR_ENTITY_TOO_LARGE);
}

RUN_TESTS(T(ndjson_is_the_same_in_pieces_of_any_size), T(csv_is_the_same_in_pieces_of_any_size),
	T(types_may_stand_before_their_values), T(a_csv_record_that_was_cut_off_is_no_row),
	T(no_input_is_no_row), T(half_a_byte_order_mark_is_part_of_the_first_record),
	T(refused_records_are_told_with_their_lines_whatever_the_pieces), T(lines_in_fields_count),
	T(the_first_refusal_ends_an_import_that_is_to_stop),
	T(the_rest_begins_in_an_earlier_piece_where_the_bad_record_does),
	T(a_last_record_that_is_refused_can_be_completed),
	T(a_record_without_its_end_is_refused_as_soon_as_it_can_be),
	T(a_header_that_means_nothing_ends_the_import), T(a_record_may_have_8_MiB),
	T(many_records_are_many_commits),
	T(what_a_row_is_decoded_to_is_kept_only_where_it_is_needed),
	T(a_full_disk_ends_the_import_behind_what_was_committed),
	T(where_room_is_short_fewer_rows_are_committed_at_once),
	T(an_end_that_failed_can_be_tried_again), T(a_cancelled_import_keeps_what_is_committed),
	T(a_table_that_is_not_there_ends_the_import), T(records_with_the_same_keys_act_in_order),
	T(records_of_a_partition_may_leave_its_key_out),
	T(who_may_change_a_partition_is_asked_once_for_rows_in_succession),
	T(a_key_that_is_left_out_counts_for_the_size))
