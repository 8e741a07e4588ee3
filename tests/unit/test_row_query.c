/* SPDX-License-Identifier: MIT */
#include "check.h"
#include "service/query/row_query.h"

static struct err_detail why;

static enum err parse(const char *text, struct row_query *ret)
{
	why = (struct err_detail){ 0 };
	return row_query_parse(span_of(text), ret, &why);
}

/* The options say what these do; names: with commas, "*": all. */
static void check_query(
	const char *text, enum row_form form, const char *filter, uint64_t top, const char *names)
{
	struct row_query q;
	struct buf printed = BUF_INIT(4096), selected = BUF_INIT(4096);
	printf("# %s\n", text);
	CHECK_ERR(parse(text, &q), ERR_OK);
	CHECK_EQ_STR(why.text, "");
	filter_print(&q.filter, &printed);
	CHECK_EQ_STR(printed.len > 0 ? printed.data : "", filter);
	for (size_t i = 0; i < q.select.n; i++) {
		buf_add_str(&selected, i > 0 ? "," : "");
		buf_add_span(&selected, q.select.names[i]);
	}
	CHECK_EQ_STR(q.select.all ? "*" : selected.data, names);
	CHECK_EQ_INT(q.form, form);
	CHECK_EQ_INT(q.top, top);
	row_query_fini(&q);
	buf_fini(&printed);
	buf_fini(&selected);
}

static void check_refusal(const char *text, const char *reason)
{
	struct row_query q;
	printf("# %s\n", text);
	CHECK_ERR(parse(text, &q), ERR_INVALID_INPUT);
	CHECK_EQ_STR(why.text, reason);
	CHECK_EQ_INT(why.line, 0);
	row_query_fini(&q);
}

TEST(options_come_by_name_in_any_order)
{
	check_query("filter=A eq 1&top=10&select=Text,Rating", ROW_FORM_NONE, "A eq 1", 10,
		"Text,Rating");
	check_query("select=Text&top=1&filter=A eq 1", ROW_FORM_NONE, "A eq 1", 1, "Text");
	check_query("$filter=A eq 1&$top=2&$select=*", ROW_FORM_NONE, "A eq 1", 2, "*");
	check_query("top=5", ROW_FORM_NONE, "", 5, "*");
	check_query("filter=", ROW_FORM_NONE, "", 0, "*");
	check_query("select=", ROW_FORM_NONE, "", 0, "*");
	check_query("select= B , A,B", ROW_FORM_NONE, "", 0, "B,A");
}

TEST(a_lone_expression_is_a_filter)
{
	check_query("Rating ge 4", ROW_FORM_NONE, "Rating ge 4", 0, "*");
	check_query("Rating ge 4&top=3", ROW_FORM_NONE, "Rating ge 4", 3, "*");
	check_query("Good", ROW_FORM_NONE, "Good eq true", 0, "*");
	check_query("A eq 'x=y'", ROW_FORM_NONE, "A eq 'x=y'", 0, "*");
	check_query("(A eq 'top=1')", ROW_FORM_NONE, "A eq 'top=1'", 0, "*");
	check_query("&&Rating ge 4", ROW_FORM_NONE, "Rating ge 4", 0, "*");
}

TEST(no_options_are_all_rows)
{
	check_query("", ROW_FORM_NONE, "", 0, "*");
	check_query(".ndjson", ROW_FORM_NDJSON, "", 0, "*");
	check_query("&.count", ROW_FORM_COUNT, "", 0, "*");
}

TEST(a_suffix_makes_it_text)
{
	check_query("A eq 1.ndjson", ROW_FORM_NDJSON, "A eq 1", 0, "*");
	check_query("A eq 1.json", ROW_FORM_JSON, "A eq 1", 0, "*");
	check_query("A eq 1.5.csv", ROW_FORM_CSV, "A eq 1.5", 0, "*");
	check_query("A eq 1&top=3.count", ROW_FORM_COUNT, "A eq 1", 3, "*");
	check_query("select=A.explain", ROW_FORM_EXPLAIN, "", 0, "A");
	check_query("RowKey eq 'a.json'", ROW_FORM_NONE, "RowKey eq 'a.json'", 0, "*");
	check_query("RowKey eq 'a.json'.json", ROW_FORM_JSON, "RowKey eq 'a.json'", 0, "*");
}

TEST(quotes_keep_an_ampersand_together)
{
	check_query("A eq 'x&y'&top=1", ROW_FORM_NONE, "A eq 'x&y'", 1, "*");
	check_query("A eq 'it''s & so'&top=1", ROW_FORM_NONE, "A eq 'it''s & so'", 1, "*");
	check_query("A eq %27x&y%27&top=1", ROW_FORM_NONE, "A eq 'x&y'", 1, "*");
	check_query("top=1&filter=A eq '&top=2'", ROW_FORM_NONE, "A eq '&top=2'", 1, "*");
}

TEST(bytes_may_be_spelt_with_a_percent_sign)
{
	check_query("A eq 'a%2Fb'", ROW_FORM_NONE, "A eq 'a/b'", 0, "*");
	check_query("A eq '%25'", ROW_FORM_NONE, "A eq '%'", 0, "*");
	check_query("A eq '%2525'", ROW_FORM_NONE, "A eq '%25'", 0, "*");
	check_query("A eq %27a%26b%27", ROW_FORM_NONE, "A eq 'a&b'", 0, "*");
	check_query("A eq 'a+b'", ROW_FORM_NONE, "A eq 'a+b'", 0, "*");
	check_query(
		"%24filter=A eq '%f0%9F%98%80'", ROW_FORM_NONE, "A eq '\xf0\x9f\x98\x80'", 0, "*");
	check_query("filter%3dA eq 1", ROW_FORM_NONE, "A eq 1", 0, "*");
}

TEST(mistakes_are_told_with_their_place)
{
	check_refusal("A eq", "Syntax error at position 4 in 'A eq'.");
	check_refusal("top=1&filter=A eq 'x.json", "Syntax error at position 7 in 'A eq 'x'.");
	check_refusal("A eq 'x&top=1", "Syntax error at position 13 in 'A eq 'x&top=1'.");
	check_refusal("A xx 1.txt", "Syntax error at position 4 in 'A xx 1.txt'.");
	check_refusal("substringof('a',B)",
		"Position 12 in 'substringof('a',B)': filters support neither functions nor arithmetic, "
		"and compare a property only with a literal.");
	check_refusal("A eq null",
		"Position 9: a filter cannot compare with null. No property is null; a row that "
		"lacks a property meets no comparison of it.");
	check_refusal(
		"orderby=A", "There is no option 'orderby'; there are filter, select and top.");
	check_refusal("Top=1", "There is no option 'Top'; there are filter, select and top.");
	check_refusal("$$top=1", "There is no option '$$top'; there are filter, select and top.");
	check_refusal("A eq 1&B eq 2", "'B eq 2' is not an option: it has no name.");
	check_refusal("A eq 1&filter=B eq 2", "The option 'filter' is given twice.");
	check_refusal("top=1&$top=1", "The option 'top' is given twice.");
	check_refusal("A eq '%2'", "A '%' is not followed by two hex digits: '%2''.");
	check_refusal("A eq 'a%", "A '%' is not followed by two hex digits: '%'.");
	check_refusal("A eq '%00'", "It contains a NUL character.");
	check_refusal("A eq '\xff'", "It is not valid UTF-8.");
	check_refusal("select=a,,b", "A name in $select is empty.");
}

TEST(top_is_at_least_one_and_has_no_upper_limit)
{
	check_query("top=1", ROW_FORM_NONE, "", 1, "*");
	check_query("top=18446744073709551615", ROW_FORM_NONE, "", UINT64_MAX, "*");
	check_refusal("top=0", "top is a number of rows, at least 1, not '0'.");
	check_refusal("top=", "top is a number of rows, at least 1, not ''.");
	check_refusal("top=-1", "top is a number of rows, at least 1, not '-1'.");
	check_refusal("top=x", "top is a number of rows, at least 1, not 'x'.");
	check_refusal("top=18446744073709551616",
		"top is a number of rows, at least 1, not '18446744073709551616'.");
}

TEST(a_selection_has_at_most_255_names_of_properties)
{
	struct buf text = BUF_INIT(8192);
	struct row_query q;
	buf_add_str(&text, "select=");
	for (unsigned i = 0; i < 255; i++)
		buf_addf(&text, "%sP%u", i > 0 ? "," : "", i);
	CHECK_ERR(parse(text.data, &q), ERR_OK);
	CHECK_EQ_INT(q.select.n, 255);
	row_query_fini(&q);
	buf_add_str(&text, ",P255");
	check_refusal(text.data, "$select has more than 255 names.");
	buf_fini(&text);
	CHECK_ERR(parse("select=a b", &q), ERR_INVALID_INPUT);
	CHECK(why.text[0] != '\0');
	row_query_fini(&q);
}

TEST(what_it_holds_is_its_own)
{
	char text[] = "filter=A eq 'abc'&select=Name";
	struct row_query q, moved;
	CHECK_ERR(row_query_parse(span_of(text), &q, NULL), ERR_OK);
	memset(text, '#', sizeof(text));
	moved = q;
	CHECK(span_is(moved.select.names[0], "Name"));
	CHECK(span_is(moved.filter.root->literal.bytes, "abc"));
	row_query_fini(&moved);
}

RUN_TESTS(T(options_come_by_name_in_any_order), T(a_lone_expression_is_a_filter),
	T(no_options_are_all_rows), T(a_suffix_makes_it_text), T(quotes_keep_an_ampersand_together),
	T(bytes_may_be_spelt_with_a_percent_sign), T(mistakes_are_told_with_their_place),
	T(top_is_at_least_one_and_has_no_upper_limit),
	T(a_selection_has_at_most_255_names_of_properties), T(what_it_holds_is_its_own))
