/* SPDX-License-Identifier: MIT
 * codec/uri.h. */
#include "base/text.h"
#include "check.h"
#include "codec/uri.h"

static struct arena arena;
static struct err_detail why;
static struct resource res;

static const char *text_of(struct span s)
{
	struct span copy = arena_copy(&arena, s);

	return copy.p == NULL ? "(out of memory)" : copy.p;
}

static void decodes(struct span in, bool plus, struct span want)
{
	struct span got = { NULL, 0 };

	CHECK_ERR(percent_decode(in, plus, &arena, &got, &why), ERR_OK);
	CHECK_EQ_STR(text_of(got), text_of(want));
	CHECK_EQ_INT(got.n, want.n);
}

TEST(percent_escapes_become_bytes_in_either_case)
{
	decodes(SPAN_LIT("a%20b%2Bc%25d%26e%3Df"), false, SPAN_LIT("a b+c%d&e=f"));
	decodes(SPAN_LIT("%c3%BC%2f"), false, SPAN_LIT("\xc3\xbc/"));
	decodes(SPAN_LIT("%2525"), false, SPAN_LIT("%25"));
	decodes(SPAN_LIT(""), false, SPAN_LIT(""));
	arena_fini(&arena);
}

TEST(a_plus_is_a_blank_only_where_asked)
{
	decodes(SPAN_LIT("a+b%2B"), false, SPAN_LIT("a+b+"));
	decodes(SPAN_LIT("a+b%2B"), true, SPAN_LIT("a b+"));
	arena_fini(&arena);
}

TEST(text_without_escapes_is_borrowed)
{
	struct span in = SPAN_LIT("PartitionKey"), got;

	CHECK_ERR(percent_decode(in, true, &arena, &got, &why), ERR_OK);
	CHECK(got.p == in.p && got.n == in.n);
	CHECK(arena.head == NULL);
	arena_fini(&arena);
}

TEST(bad_escapes_bad_utf8_and_nul_are_refused)
{
	static const struct {
		struct span in;
		const char *says;
	} cases[] = {
		{ SPAN_LIT("%"), "hex digits" },
		{ SPAN_LIT("a%2"), "hex digits" },
		{ SPAN_LIT("%zz"), "hex digits" },
		{ SPAN_LIT("%2g%20"), "hex digits" },
		{ SPAN_LIT("%-1"), "hex digits" },
		{ SPAN_LIT("%%20"), "hex digits" },
		{ SPAN_LIT("a%00b"), "NUL" },
		{ SPAN_LIT("a\0b"), "NUL" },
		{ SPAN_LIT("%c3"), "UTF-8" },
		{ SPAN_LIT("%c3%28"), "UTF-8" },
		{ SPAN_LIT("%ed%a0%80"), "UTF-8" },
		{ SPAN_LIT("%c0%af"), "UTF-8" },
		{ SPAN_LIT("\xff"), "UTF-8" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct span got;
		why.text[0] = '\0';
		CHECK_ERR(
			percent_decode(cases[i].in, false, &arena, &got, &why), ERR_INVALID_INPUT);
		if (strstr(why.text, cases[i].says) == NULL)
			check_fail(__FILE__, __LINE__, why.text);
	}
	arena_fini(&arena);
}

static void key_becomes(struct span key, const char *want)
{
	struct buf out = BUF_INIT(4096);

	percent_encode_key(key, &out);
	CHECK(buf_ok(&out));
	CHECK_EQ_STR(out.data == NULL ? "" : out.data, want);
	buf_fini(&out);
}

TEST(keys_are_encoded_as_a_path_segment)
{
	key_becomes(SPAN_LIT(""), "");
	key_becomes(SPAN_LIT("AZaz09-._~"), "AZaz09-._~");
	key_becomes(SPAN_LIT("!$&()*+,;=:@"), "!$&()*+,;=:@");
	key_becomes(SPAN_LIT("O'Brien''"), "O''Brien''''");
	key_becomes(SPAN_LIT("{a}\"b\" %20"), "%7Ba%7D%22b%22%20%2520");
	key_becomes(SPAN_LIT("/?#\\[]^`|<>"), "%2F%3F%23%5C%5B%5D%5E%60%7C%3C%3E");
	key_becomes(SPAN_LIT("\x01\x7f\xc3\xbc"), "%01%7F%C3%BC");
	key_becomes(span_make("a\0b", 3), "a%00b");
}

TEST(values_keep_unreserved_characters_only)
{
	struct buf out = BUF_INIT(4096);

	percent_encode_value(SPAN_LIT("aZ9-._~'!*()+,&=/\xc3\xbc"), &out);
	CHECK_EQ_STR(out.data, "aZ9-._~%27%21%2A%28%29%2B%2C%26%3D%2F%C3%BC");
	buf_fini(&out);
}

static const char *param(const struct query_params *p, const char *name)
{
	struct span value;

	return query_params_find(p, name, &value) ? text_of(value) : NULL;
}

TEST(a_query_is_decoded_by_name_and_value)
{
	struct query_params p;

	CHECK_ERR(
		query_params_parse(
			SPAN_LIT("%24filter=a%20eq+%27x%26y%27&$top=5&a=b=c&flag&empty=&&$top=6&"),
			&arena, &p, &why),
		ERR_OK);
	CHECK_EQ_INT(p.n, 6);
	CHECK_EQ_STR(param(&p, "$filter"), "a eq 'x&y'");
	CHECK_EQ_STR(param(&p, "$top"), "5");
	CHECK_EQ_STR(param(&p, "a"), "b=c");
	CHECK_EQ_STR(param(&p, "flag"), "");
	CHECK_EQ_STR(param(&p, "empty"), "");
	CHECK(param(&p, "$Top") == NULL);
	CHECK(param(&p, "") == NULL);
	CHECK_EQ_STR(text_of(p.all[5].value), "6");
	arena_fini(&arena);
}

TEST(an_empty_query_has_no_parameters)
{
	static const char *const empty[] = { "", "&", "&&&" };
	struct query_params p;

	for (size_t i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
		CHECK_ERR(query_params_parse(span_of(empty[i]), &arena, &p, &why), ERR_OK);
		CHECK_EQ_INT(p.n, 0);
	}
	CHECK_ERR(query_params_parse((struct span){ NULL, 0 }, &arena, &p, &why), ERR_OK);
	CHECK_EQ_INT(p.n, 0);
	arena_fini(&arena);
}

TEST(a_bad_escape_in_a_query_is_refused)
{
	static const char *const bad[] = { "a=%", "%=a", "a=1&b=%f", "a=%ff", "a=%00" };
	struct query_params p;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_ERR(query_params_parse(span_of(bad[i]), &arena, &p, &why), ERR_INVALID_INPUT);
		CHECK_EQ_INT(p.n, 0);
	}
	arena_fini(&arena);
}

static void is_resource(const char *path, enum resource_kind kind, const char *table,
	const char *pk, const char *rk)
{
	enum err e = resource_parse(span_of(path), &arena, &res, &why);

	CHECK_ERR(e, ERR_OK);
	if (e != ERR_OK || res.kind != kind || strcmp(text_of(res.table), table) != 0 ||
		strcmp(text_of(res.pk), pk) != 0 || strcmp(text_of(res.rk), rk) != 0)
		check_fail(__FILE__, __LINE__, path);
}

TEST(paths_name_resources)
{
	is_resource("", RESOURCE_SERVICE, "", "", "");
	is_resource("/", RESOURCE_SERVICE, "", "", "");
	is_resource("//", RESOURCE_SERVICE, "", "", "");
	is_resource("$metadata", RESOURCE_METADATA, "", "", "");
	is_resource("/%24metadata", RESOURCE_METADATA, "", "", "");
	is_resource("/$batch", RESOURCE_BATCH, "", "", "");
	is_resource("/$batch/", RESOURCE_BATCH, "", "", "");
	is_resource("Tables", RESOURCE_TABLES, "", "", "");
	is_resource("/Tables()", RESOURCE_TABLES, "", "", "");
	is_resource("/Tables/", RESOURCE_TABLES, "", "", "");
	is_resource("/Tables('abc')", RESOURCE_TABLE, "abc", "", "");
	is_resource("//Tables(%27abc%27)", RESOURCE_TABLE, "abc", "", "");
	is_resource("/Tables%28%27abc%27%29", RESOURCE_TABLE, "abc", "", "");
	is_resource("/Tables(TableName='abc')", RESOURCE_TABLE, "abc", "", "");
	is_resource("/Tables('')", RESOURCE_TABLE, "", "", "");
	is_resource("MyTable", RESOURCE_ENTITIES, "MyTable", "", "");
	is_resource("/MyTable()", RESOURCE_ENTITIES, "MyTable", "", "");
	is_resource("/MyTable( )", RESOURCE_ENTITIES, "MyTable", "", "");
	is_resource("/tables", RESOURCE_ENTITIES, "tables", "", "");
	is_resource("/$MetricsHour", RESOURCE_ENTITIES, "$MetricsHour", "", "");
	arena_fini(&arena);
}

TEST(keys_come_in_every_spelling_of_the_clients)
{
	is_resource("/t(PartitionKey='p',RowKey='r')", RESOURCE_ENTITY, "t", "p", "r");
	is_resource("/t(RowKey='r',PartitionKey='p')", RESOURCE_ENTITY, "t", "p", "r");
	is_resource("/t(PartitionKey='p', RowKey='r')", RESOURCE_ENTITY, "t", "p", "r");
	is_resource("/t(PartitionKey='p',%20RowKey='r')", RESOURCE_ENTITY, "t", "p", "r");
	is_resource("/t( PartitionKey = 'p' , RowKey = 'r' )", RESOURCE_ENTITY, "t", "p", "r");
	is_resource("/t%28PartitionKey%3D%27p%27%2CRowKey%3D%27r%27%29", RESOURCE_ENTITY, "t", "p",
		"r");
	is_resource("/t(PartitionKey='',RowKey='')", RESOURCE_ENTITY, "t", "", "");
	CHECK(res.pk.p != NULL && res.rk.p != NULL);
	is_resource(
		"/t(PartitionKey='O''Brien',RowKey='''')", RESOURCE_ENTITY, "t", "O'Brien", "'");
	is_resource("/t(PartitionKey=%27O%27%27Brien%27,RowKey='a%27'%27'b')", RESOURCE_ENTITY, "t",
		"O'Brien", "a''b");
	is_resource("/smoke1795177759090(PartitionKey='a%20b%2Bc%25d%26e%3Df',"
		    "RowKey='a%20b%2Bc%25d%26e%3Df')",
		RESOURCE_ENTITY, "smoke1795177759090", "a b+c%d&e=f", "a b+c%d&e=f");
	is_resource("/t(PartitionKey='a+b',RowKey='%C3%BC,(=)')", RESOURCE_ENTITY, "t", "a+b",
		"\xc3\xbc,(=)");
	is_resource("/t(PartitionKey='a%2Fb',RowKey='a/b')/", RESOURCE_ENTITY, "t", "a/b", "a/b");
	arena_fini(&arena);
}

TEST(paths_that_name_nothing_are_refused)
{
	static const char *const bad[] = {
		"/a/b",
		"/Tables/a",
		"/()",
		"/('a')",
		"/=",
		"/%20",
		"/t(",
		"/t(PartitionKey='p'",
		"/t(PartitionKey='p')",
		"/t(RowKey='p')",
		"/t(PartitionKey='p',PartitionKey='q')",
		"/t(PartitionKey='',PartitionKey='q')",
		"/t(PartitionKey='p',RowKey='r'",
		"/t(PartitionKey='p',RowKey='r)",
		"/t(PartitionKey='p',RowKey='r''",
		"/t(PartitionKey='p',RowKey='r',X='x')",
		"/t(PartitionKey='p',RowKey='r'),",
		"/t(PartitionKey='p',RowKey='r')/Name",
		"/t(PartitionKey='p',RowKey='r')//",
		"/t(PartitionKey='p';RowKey='r')",
		"/t(PartitionKey=p,RowKey='r')",
		"/t(PartitionKey=5,RowKey='r')",
		"/t(partitionkey='p',RowKey='r')",
		"/t(PartitionKey='O'Brien',RowKey='r')",
		"/t('p')",
		"/t(,)",
		"/t()x",
		"/Tables(x)",
		"/Tables('a','b')",
		"/Tables(Name='a')",
		"/Tables(TableName'a')",
		"/t(PartitionKey'p',RowKey='r')",
		"/Tables('a'",
		"/$batch()",
		"/$batch/x",
		"/t'",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		enum err e = resource_parse(span_of(bad[i]), &arena, &res, &why);
		if (e != ERR_INVALID_INPUT)
			check_fail(__FILE__, __LINE__, bad[i]);
		CHECK_EQ_STR(why.text, "Bad Request - Error in query syntax.");
	}
	CHECK_ERR(resource_parse(SPAN_LIT("/t%"), &arena, &res, &why), ERR_INVALID_INPUT);
	CHECK_ERR(resource_parse(SPAN_LIT("/t%00"), &arena, &res, &why), ERR_INVALID_INPUT);
	arena_fini(&arena);
}

TEST(long_keys_are_read_whole)
{
	struct buf path = BUF_INIT(1u << 20);

	buf_add_str(&path, "/t(PartitionKey='");
	for (int i = 0; i < 50000; i++)
		buf_add_str(&path, "%C3%BC");
	buf_add_str(&path, "',RowKey='");
	for (int i = 0; i < 50000; i++)
		buf_add_str(&path, "''");
	buf_add_str(&path, "')");
	REQUIRE(buf_ok(&path));
	CHECK_ERR(resource_parse(buf_span(&path), &arena, &res, &why), ERR_OK);
	CHECK_EQ_INT(res.pk.n, 100000);
	CHECK_EQ_INT(res.rk.n, 50000);
	buf_fini(&path);
	arena_fini(&arena);
}

TEST(what_is_encoded_reads_back_as_the_same_key)
{
	struct buf path = BUF_INIT(4096);
	char key[3];

	for (unsigned c = 1; c < 0x110000; c += c < 0x800 ? 1 : 251) {
		char utf8[4];
		if (c >= 0xd800 && c <= 0xdfff)
			continue;
		struct span want = span_make(utf8, utf8_write(c, utf8));
		buf_clear(&path);
		buf_add_str(&path, "t(PartitionKey='");
		percent_encode_key(want, &path);
		buf_add_str(&path, "',RowKey='')");
		CHECK_ERR(resource_parse(buf_span(&path), &arena, &res, &why), ERR_OK);
		CHECK(span_eq(res.pk, want));
		arena_reset(&arena);
	}
	key[0] = key[1] = key[2] = '\'';
	buf_clear(&path);
	percent_encode_key(span_make(key, 3), &path);
	CHECK_EQ_STR(path.data, "''''''");
	buf_fini(&path);
	arena_fini(&arena);
}

static void check_split(const char *target, const char *host, const char *path, const char *query)
{
	struct url_parts p;
	url_split(span_of(target), &p);
	CHECK((p.host.p == NULL) == (host == NULL));
	CHECK(host == NULL || span_is(p.host, host));
	CHECK(span_is(p.path, path));
	CHECK(span_is(p.query, query));
}

TEST(a_target_is_cut_into_host_path_and_query)
{
	check_split("/acct/t?a=1?b", NULL, "/acct/t", "a=1?b");
	check_split("t", NULL, "t", "");
	check_split("", NULL, "", "");
	check_split("?x", NULL, "", "x");
	check_split("HTTP://h:1/a/b?c", "h:1", "/a/b", "c");
	check_split("https://h", "h", "/", "");
	check_split("https://h?c", "h", "/", "c");
	check_split("http://", "", "/", "");
	check_split("http:/h/a", NULL, "http:/h/a", "");
}

TEST(a_long_bad_escape_is_shown_cut)
{
	char path[300], shown[120];

	memset(path, 'x', sizeof(path));
	memcpy(path, "/t%", 3);
	path[sizeof(path) - 1] = '\0';
	CHECK_ERR(resource_parse(span_of(path), &arena, &res, &why), ERR_INVALID_INPUT);
	(void)snprintf(shown, sizeof(shown), "'%.100s'", path + 2);
	CHECK(strstr(why.text, shown) != NULL);
	arena_fini(&arena);
}

RUN_TESTS(T(a_target_is_cut_into_host_path_and_query),
	T(percent_escapes_become_bytes_in_either_case), T(a_plus_is_a_blank_only_where_asked),
	T(text_without_escapes_is_borrowed), T(bad_escapes_bad_utf8_and_nul_are_refused),
	T(keys_are_encoded_as_a_path_segment), T(values_keep_unreserved_characters_only),
	T(a_query_is_decoded_by_name_and_value), T(an_empty_query_has_no_parameters),
	T(a_bad_escape_in_a_query_is_refused), T(paths_name_resources),
	T(keys_come_in_every_spelling_of_the_clients), T(paths_that_name_nothing_are_refused),
	T(long_keys_are_read_whole), T(what_is_encoded_reads_back_as_the_same_key),
	T(a_long_bad_escape_is_shown_cut))
