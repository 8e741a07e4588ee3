/* SPDX-License-Identifier: MIT
 * JSON at its three levels of metadata (protocol sections 2.1 to 2.5, 8.1). */
#include "codec/entity_json.h"
#include "codec/json_scan.h"
#include "rest/format.h"

#define URL_LIMIT ((size_t)1 << 20)

static const char *content_type(enum odata_level level, enum body_kind kind)
{
	(void)kind;
	switch (level) {
	case ODATA_NONE:
		return "application/json;odata=nometadata;streaming=true;charset=utf-8";
	case ODATA_FULL:
		return "application/json;odata=fullmetadata;streaming=true;charset=utf-8";
	case ODATA_MINIMAL:
		break;
	}
	return "application/json;odata=minimalmetadata;streaming=true;charset=utf-8";
}

/* Some clients begin with a byte order mark. */
static struct span without_bom(struct span body)
{
	if (span_starts(body, SPAN_LIT("\xef\xbb\xbf")))
		return span_make(body.p + 3, body.n - 3);
	return body;
}

static enum err read_entity(struct span body, struct entity *ret, struct err_detail *detail)
{
	enum err e = entity_json_decode(without_bom(body), ENTITY_JSON_REST, ret, NULL, detail);
	if (e == ERR_EMPTY)
		return err_set(detail, ERR_VALUE_INVALID, "The body is empty.");
	/* The service has one text for whatever cannot be read. */
	return e == ERR_INVALID_INPUT || e == ERR_INCOMPLETE ? ERR_VALUE_INVALID : e;
}

/* Other members are the business of other versions: they are passed over. */
static enum err read_table(
	struct span body, struct arena *arena, struct span *ret_name, struct err_detail *detail)
{
	struct json_scan scan = { 0 };
	struct json_member m;
	enum json_scan_result r;
	body = without_bom(body);
	*ret_name = (struct span){ 0 };
	while ((r = json_scan_next(&scan, body, &m)) == JSON_SCAN_MEMBER) {
		if (!span_is(m.name, "TableName") || m.token != JSON_TOKEN_STRING)
			continue;
		if (ret_name->p != NULL)
			return err_set_at(detail, ERR_PROPERTY_DUPLICATE, body.p, m.offset,
				"The property 'TableName' is specified more than one time.");
		char *name = arena_alloc(arena, m.value.n + 1);
		if (name == NULL)
			return ERR_NO_MEMORY;
		*ret_name = span_make(name, json_unescape(m.value, name));
	}
	if (r == JSON_SCAN_BAD)
		return err_set_at(detail, ERR_VALUE_INVALID, body.p, scan.bad_at,
			"Not a valid document: %s.", scan.why);
	if (r == JSON_SCAN_MORE)
		return err_set_at(
			detail, ERR_VALUE_INVALID, body.p, body.n, "%s", err_text(ERR_INCOMPLETE));
	return ret_name->p != NULL
		? ERR_OK
		: err_set(detail, ERR_KEY_MISSING, "The body has no string member 'TableName'.");
}

static enum err write_entity(
	const struct odata_style *style, const struct odata_row *row, struct buf *out)
{
	return entity_odata_render(style, row, out);
}

/* The members of one table, behind what the caller wrote. */
static void table_members(const struct odata_style *style, struct span name, struct buf *out)
{
	if (style->level == ODATA_FULL) {
		buf_add_str(out, "\"odata.type\":\"");
		buf_add_span(out, style->account);
		buf_add_str(out, ".Tables\",\"odata.id\":\"");
		buf_add_span(out, style->base);
		buf_add_str(out, "Tables('");
		buf_add_span(out, name);
		buf_add_str(out, "')\",\"odata.editLink\":\"Tables('");
		buf_add_span(out, name);
		buf_add_str(out, "')\",");
	}
	buf_add_str(out, "\"TableName\":\"");
	buf_add_span(out, name);
	buf_add_str(out, "\"}");
}

static void write_table(const struct odata_style *style, struct span name, struct buf *out)
{
	buf_add_char(out, '{');
	if (style->level != ODATA_NONE) {
		buf_add_str(out, "\"odata.metadata\":\"");
		buf_add_span(out, style->base);
		buf_add_str(out, "$metadata#Tables/@Element\",");
	}
	table_members(style, name, out);
}

static void begin_feed(struct odata_style *style, struct span what, struct span select,
	struct arena *arena, struct buf *out)
{
	(void)arena;
	buf_add_char(out, '{');
	if (style->level != ODATA_NONE) {
		struct buf url = BUF_INIT(URL_LIMIT);
		buf_add_span(&url, style->base);
		buf_add_str(&url, "$metadata#");
		buf_add_span(&url, what);
		if (select.p != NULL) {
			buf_add_str(&url, "&$select=");
			buf_add_span(&url, select);
		}
		buf_add_str(out, "\"odata.metadata\":");
		buf_add_json(out, buf_span(&url));
		buf_add_char(out, ',');
		buf_fini(&url);
	}
	buf_add_str(out, "\"value\":[");
}

static enum err feed_entity(
	const struct odata_style *style, const struct odata_row *row, bool first, struct buf *out)
{
	if (!first)
		buf_add_char(out, ',');
	return entity_odata_render(style, row, out);
}

static void feed_table(
	const struct odata_style *style, struct span name, bool first, struct buf *out)
{
	buf_add_str(out, first ? "{" : ",{");
	table_members(style, name, out);
}

static void end_feed(const struct odata_style *style, struct buf *out)
{
	(void)style;
	buf_add_str(out, "]}");
}

static void write_service(const struct odata_style *style, struct buf *out)
{
	buf_add_char(out, '{');
	if (style->level != ODATA_NONE) {
		buf_add_str(out, "\"odata.metadata\":\"");
		buf_add_span(out, style->base);
		buf_add_str(out, "$metadata\",");
	}
	buf_add_str(out, "\"value\":[{\"name\":\"Tables\",\"url\":\"Tables\"}]}");
}

static void write_error(const char *code, struct span message, struct buf *out)
{
	buf_add_str(out, "{\"odata.error\":{\"code\":\"");
	buf_add_str(out, code);
	buf_add_str(out, "\",\"message\":{\"lang\":\"en-US\",\"value\":");
	buf_add_json(out, message);
	buf_add_str(out, "}}}");
}

const struct format format_json = {
	.name = "JSON",
	.version = "3.0",
	.content_type = content_type,
	.read_entity = read_entity,
	.read_table = read_table,
	.write_entity = write_entity,
	.write_table = write_table,
	.begin_feed = begin_feed,
	.feed_entity = feed_entity,
	.feed_table = feed_table,
	.end_feed = end_feed,
	.write_service = write_service,
	.write_error = write_error,
};
