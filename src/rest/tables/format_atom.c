/* SPDX-License-Identifier: MIT
 * ATOM (protocol sections 2.1 to 2.6, 8.1).  It has one level of metadata: all. */
#include "codec/atom_entry.h"
#include "codec/atom_tags.h"
#include "codec/entity_atom.h"
#include "codec/xml.h"
#include "rest/tables/format.h"

#define DECLARATION "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>"
#define APP "http://www.w3.org/2007/app"

static const char *content_type(enum odata_level level, enum body_kind kind)
{
	(void)level;
	switch (kind) {
	case BODY_SERVICE:
		return "application/atomsvc+xml;charset=utf-8";
	case BODY_ERROR:
		return "application/xml";
	case BODY_ELEMENTS:
		break;
	}
	return "application/atom+xml;charset=utf-8";
}

static enum err read_entity(struct span body, struct entity *ret, struct err_detail *detail)
{
	return entity_atom_decode(body, ret, detail);
}

static enum err read_table(
	struct span body, struct arena *arena, struct span *ret_name, struct err_detail *detail)
{
	return table_atom_decode(body, arena, ret_name, detail);
}

static enum err write_entity(
	const struct odata_style *style, const struct odata_row *row, struct buf *out)
{
	return entity_atom_render(style, row, out);
}

static void write_table(const struct odata_style *style, struct span name, struct buf *out)
{
	table_atom_render(style, name, out);
}

/* The head of a feed does not name the selected properties. */
static void begin_feed(struct odata_style *style, struct span what, struct span select,
	struct arena *arena, struct buf *out)
{
	(void)select;
	style->tags = atom_tags_new(arena);
	atom_feed_begin(style, what, out);
}

static enum err feed_entity(
	const struct odata_style *style, const struct odata_row *row, bool first, struct buf *out)
{
	(void)first;
	return entity_atom_render(style, row, out);
}

static void feed_table(
	const struct odata_style *style, struct span name, bool first, struct buf *out)
{
	(void)first;
	table_atom_render(style, name, out);
}

static void end_feed(const struct odata_style *style, struct buf *out)
{
	(void)style;
	atom_feed_end(out);
}

static void write_service(const struct odata_style *style, struct buf *out)
{
	buf_add_str(out, DECLARATION "<service xml:base=\"");
	buf_add_span(out, style->base);
	buf_add_str(out,
		"\" xmlns:atom=\"" ATOM_SPACE "\" xmlns:app=\"" APP "\" xmlns=\"" APP "\">"
		"<workspace><atom:title>Default</atom:title><collection href=\"Tables\">"
		"<atom:title>Tables</atom:title></collection></workspace></service>");
}

static void write_error(const char *code, struct span message, struct buf *out)
{
	buf_add_str(out, DECLARATION "<error xmlns=\"" ATOM_METADATA "\"><code>");
	buf_add_str(out, code);
	buf_add_str(out, "</code><message xml:lang=\"en-US\">");
	xml_add_message(out, message);
	buf_add_str(out, "</message></error>");
}

const struct format format_atom = {
	.name = "ATOM",
	.version = "1.0",
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
