/* SPDX-License-Identifier: MIT
 * JSON at its three levels of metadata (protocol sections 2.1 to 2.5, 8.1). */
#include "codec/entity_json.h"
#include "codec/json_build.h"
#include "codec/json_scan.h"
#include "rest/tables/format.h"

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

/* Some clients send a byte order mark. */
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
	/* The service has one message for all unreadable input. */
	return e == ERR_INVALID_INPUT || e == ERR_INCOMPLETE ? ERR_VALUE_INVALID : e;
}

/* Ignores unknown members, which other protocol versions may have.  jansson is not used here: it
 * reports a syntax error if memory runs out in a string. */
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

/* Adds a URL: the base of the request, then path, last and end. */
static void add_url(struct json_build *b, const char *name, const struct odata_style *style,
	const char *path, struct span last, const char *end)
{
	struct buf url = BUF_INIT(URL_LIMIT);
	buf_add_span(&url, style->base);
	buf_add_str(&url, path);
	buf_add_span(&url, last);
	buf_add_str(&url, end);
	if (!buf_ok(&url))
		b->failed = true;
	json_add_text(b, name, buf_span(&url));
	buf_fini(&url);
}

static void table_members(struct json_build *b, const struct odata_style *style, struct span name)
{
	char text[256];
	if (style->level == ODATA_FULL) {
		(void)snprintf(
			text, sizeof(text), "%.*s.Tables", (int)style->account.n, style->account.p);
		json_add_str(b, "odata.type", text);
		add_url(b, "odata.id", style, "Tables('", name, "')");
		(void)snprintf(text, sizeof(text), "Tables('%.*s')", (int)name.n, name.p);
		json_add_str(b, "odata.editLink", text);
	}
	json_add_text(b, "TableName", name);
}

static void write_table(const struct odata_style *style, struct span name, struct buf *out)
{
	struct json_build b;
	json_begin(&b);
	if (style->level != ODATA_NONE)
		add_url(&b, "odata.metadata", style, "$metadata#Tables/@Element", SPAN_LIT(""), "");
	table_members(&b, style, name);
	json_end(&b, out);
}

/* The frame of a feed is written piece by piece, since its rows are copied into it. */
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
	struct json_build b;
	if (!first)
		buf_add_char(out, ',');
	json_begin(&b);
	table_members(&b, style, name);
	json_end(&b, out);
}

static void end_feed(const struct odata_style *style, struct buf *out)
{
	(void)style;
	buf_add_str(out, "]}");
}

static void write_service(const struct odata_style *style, struct buf *out)
{
	struct json_build b;
	json_begin(&b);
	if (style->level != ODATA_NONE)
		add_url(&b, "odata.metadata", style, "$metadata", SPAN_LIT(""), "");
	json_open_array(&b, "value");
	json_open_object(&b, NULL);
	json_add_str(&b, "name", "Tables");
	json_add_str(&b, "url", "Tables");
	json_end(&b, out);
}

static void write_error(const char *code, struct span message, struct buf *out)
{
	struct json_build b;
	json_begin(&b);
	json_open_object(&b, "odata.error");
	json_add_str(&b, "code", code);
	json_open_object(&b, "message");
	json_add_str(&b, "lang", "en-US");
	json_add_text(&b, "value", message);
	json_end(&b, out);
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
