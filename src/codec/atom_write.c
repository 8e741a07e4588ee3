/* SPDX-License-Identifier: MIT
 * Writes Atom entries and feeds.  A page has up to a thousand rows, so a canonical document is not
 * decoded.  It is walked, and its values are copied and escaped.
 *
 * The prefixes are always d and m, and Atom has none: old clients look names up by their prefix. */
#include "base/clock.h"
#include "codec/atom_entry.h"
#include "codec/atom_tags.h"
#include "codec/atom_text.h"
#include "codec/document_walk.h"
#include "codec/edm_text.h"
#include "codec/entity_atom.h"
#include "codec/entity_json.h"
#include "codec/uri.h"
#include "codec/xml_names.h"
#include "model/etag.h"

#define DECLARATION "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>"

struct writer {
	const struct odata_style *style;
	const struct odata_row *row;
	struct buf *out;
	char time[CLOCK_TEXT_MAX]; /* the row's Timestamp */
};

#define ATTRIBUTES_ROOM 64
#define ELEMENT_ROOM(el_) \
	(2 * (el_)->name.n + (el_)->type.n + ATOM_TEXT_ROOM((el_)->text.n) + ATTRIBUTES_ROOM + 16)

/* The position of an element's name in the output. */
struct tag {
	size_t at, n;
};

/* ---- entries ---- */

static void put_etag(struct writer *w)
{
	char etag[ETAG_MAX];
	size_t n = (size_t)etag_format(w->row->version, etag);

	/* Without the quotes of W/"...". */
	buf_add_str(w->out, " m:etag=\"W/&quot;");
	buf_add(w->out, etag + 3, n - 4);
	buf_add_str(w->out, "&quot;\"");
}

static void put_root(struct writer *w, const char *name)
{
	buf_add_str(w->out, DECLARATION "<");
	buf_add_str(w->out, name);
	buf_add_str(w->out, " xml:base=\"");
	buf_add_span(w->out, w->style->base);
	buf_add_str(w->out, "\" xmlns:d=\"" ATOM_DATA "\" xmlns:m=\"" ATOM_METADATA "\"");
	if (w->row != NULL)
		put_etag(w);
	buf_add_str(w->out, " xmlns=\"" ATOM_SPACE "\">");
}

/* In whole seconds, as the service does. */
static void put_updated(struct writer *w)
{
	buf_add_str(w->out, "<updated>");
	buf_add(w->out, w->time, sizeof("2008-10-01T15:26:04") - 1);
	buf_add_str(w->out, "Z</updated>");
}

/* Makes the bytes up to `end`, which are already in the buffer, part of its content. */
static void end_at(struct buf *out, char *end)
{
	out->len = (size_t)(end - out->data);
	*end = '\0';
}

/* Appends n bytes of the output from `from` on once more. */
static void repeat(struct buf *out, size_t from, size_t n)
{
	if (buf_reserve(out, n))
		buf_add(out, out->data + from, n);
}

/* Writes from <id> to the properties.  The caller has just written the link, which is the URL
 * without its base. */
static void put_head(struct writer *w, struct span set, size_t link, size_t n)
{
	struct buf *out = w->out;

	buf_add_str(out, "</id><title type=\"text\"></title>");
	put_updated(w);
	buf_add_str(out, "<author><name /></author><link rel=\"edit\" title=\"");
	buf_add_span(out, set);
	buf_add_str(out, "\" href=\"");
	repeat(out, link, n);
	buf_add_str(out, "\" /><category term=\"");
	buf_add_span(out, w->style->account);
	buf_add_char(out, '.');
	buf_add_span(out, set);
	buf_add_str(out,
		"\" scheme=\"" ATOM_DATA
		"/scheme\" /><content type=\"application/xml\"><m:properties>");
}

static void put_tail(struct writer *w)
{
	buf_add_str(w->out, "</m:properties></content></entry>");
}

/* Writes a key in a URL.  Of the characters that percent_encode_key() leaves, only & must be
 * escaped. */
static void put_url_key(struct buf *out, struct span key)
{
	for (;;) {
		const char *amp = key.n == 0 ? NULL : memchr(key.p, '&', key.n);
		size_t n = amp == NULL ? key.n : (size_t)(amp - key.p);
		percent_encode_key(span_make(key.p, n), out);
		if (amp == NULL)
			return;
		buf_add_str(out, "&amp;");
		key = span_make(amp + 1, key.n - n - 1);
	}
}

static void put_row_head(struct writer *w)
{
	struct buf *out = w->out;

	(void)clock_format(w->row->version, w->time);
	if (w->style->single) {
		put_root(w, "entry");
	} else {
		buf_add_str(out, "<entry");
		put_etag(w);
		buf_add_char(out, '>');
	}
	buf_add_str(out, "<id>");
	buf_add_span(out, w->style->base);
	size_t link = out->len;
	buf_add_span(out, w->style->table);
	buf_add_str(out, "(PartitionKey='");
	put_url_key(out, w->row->pk);
	buf_add_str(out, "',RowKey='");
	put_url_key(out, w->row->rk);
	buf_add_str(out, "')");
	put_head(w, w->style->table, link, out->len - link);
}

void table_atom_render(const struct odata_style *style, struct span name, struct buf *out)
{
	struct writer w = { .style = style, .out = out };

	(void)clock_format(clock_ticks(), w.time);
	if (style->single)
		put_root(&w, "entry");
	else
		buf_add_str(out, "<entry>");
	buf_add_str(out, "<id>");
	buf_add_span(out, style->base);
	size_t link = out->len;
	buf_add_str(out, "Tables('");
	buf_add_span(out, name);
	buf_add_str(out, "')");
	put_head(&w, SPAN_LIT("Tables"), link, out->len - link);
	buf_add_str(out, "<d:TableName>");
	buf_add_span(out, name);
	buf_add_str(out, "</d:TableName>");
	put_tail(&w);
}

/* ---- properties ---- */

struct element {
	struct span name;
	struct span type; /* empty for a String */
	struct span text;
	bool json;     /* a JSON string of a document, with its escapes */
	bool preserve; /* begins or ends with a blank */
};

static char *put(char *to, struct span s)
{
	memcpy(to, s.p, s.n);
	return to + s.n;
}

/* Writes from behind the name to the text.  Needs ATTRIBUTES_ROOM and the room of the type. */
static char *put_attributes(char *to, const struct element *el)
{
	if (el->preserve)
		to = put(to, SPAN_LIT(" xml:space=\"preserve\""));
	if (el->type.n > 0) {
		to = put(to, SPAN_LIT(" m:type=\""));
		to = put(to, el->type);
		*to++ = '"';
	}
	*to++ = '>';
	return to;
}

/* Writes elements with a plain name and a short text: nearly all.  A page has tens of thousands, so
 * the room is reserved once. */
static char *put_short(char *to, const struct element *el)
{
	to = put(to, SPAN_LIT("<d:"));
	to = put(to, el->name);
	to = put_attributes(to, el);
	if (el->type.n > 0)
		to = put(to, el->text);
	else
		to = atom_put_text(to, el->text, el->json);
	if (to == NULL)
		return NULL;
	to = put(to, SPAN_LIT("</d:"));
	to = put(to, el->name);
	*to++ = '>';
	return to;
}

/* Begins an element.  Returns where its name is, for the end tag. */
static struct tag open_tag(struct writer *w, const struct element *el)
{
	struct buf *out = w->out;
	struct tag t;

	buf_add_str(out, "<d:");
	t.at = out->len;
	xml_name_add(out, el->name);
	t.n = out->len - t.at;
	if (buf_reserve(out, ATTRIBUTES_ROOM + el->type.n))
		end_at(out, put_attributes(out->data + out->len, el));
	return t;
}

static void close_tag(struct writer *w, struct tag t)
{
	buf_add_str(w->out, "</d:");
	repeat(w->out, t.at, t.n);
	buf_add_char(w->out, '>');
}

static enum err put_long(struct writer *w, const struct element *el)
{
	struct tag t = open_tag(w, el);

	if (el->type.n > 0)
		buf_add_span(w->out, el->text);
	else if (!el->json)
		atom_add_text(w->out, el->text);
	else if (!atom_add_json_text(w->out, el->text))
		return ERR_CORRUPT;
	close_tag(w, t);
	return ERR_OK;
}

static enum err put_element(struct writer *w, const struct element *el)
{
	struct buf *out = w->out;

	if (el->text.n > ATOM_SHORT || !xml_name_is_plain(el->name))
		return put_long(w, el);
	if (!buf_reserve(out, ELEMENT_ROOM(el)))
		return ERR_OK;
	char *end = put_short(out->data + out->len, el);
	end_at(out, end != NULL ? end : out->data + out->len);
	return end != NULL ? ERR_OK : ERR_CORRUPT;
}

static void put_string(struct writer *w, struct span name, struct span s)
{
	const struct element el = { .name = name, .text = s, .preserve = atom_has_blank_ends(s) };

	(void)put_element(w, &el);
}

/* XML spells one value differently from JSON. */
static struct span spell(struct span type, struct span text)
{
	if (!span_is(type, "Edm.Double"))
		return text;
	if (span_is(text, "Infinity"))
		return SPAN_LIT("INF");
	return span_is(text, "-Infinity") ? SPAN_LIT("-INF") : text;
}

/* The text must need no escapes. */
static void put_typed(struct writer *w, struct span name, struct span type, struct span text)
{
	const struct element el = { .name = name, .type = type, .text = spell(type, text) };

	(void)put_element(w, &el);
}

static void put_null(struct writer *w, struct span name)
{
	buf_add_str(w->out, "<d:");
	xml_name_add(w->out, name);
	buf_add_str(w->out, " m:null=\"true\" />");
}

static void put_timestamp(struct writer *w)
{
	put_typed(w, SPAN_LIT("Timestamp"), SPAN_LIT("Edm.DateTime"), span_of(w->time));
}

/* Returns false if this is not a system property. */
static bool put_system(struct writer *w, struct span name)
{
	if (span_is(name, "PartitionKey"))
		put_string(w, name, w->row->pk);
	else if (span_is(name, "RowKey"))
		put_string(w, name, w->row->rk);
	else if (span_is(name, "Timestamp"))
		put_timestamp(w);
	else
		return false;
	return true;
}

static void put_all_system(struct writer *w)
{
	put_string(w, SPAN_LIT("PartitionKey"), w->row->pk);
	put_string(w, SPAN_LIT("RowKey"), w->row->rk);
	put_timestamp(w);
}

/* ---- a canonical document ---- */

static struct span literal_type(struct span text)
{
	enum atom_value kind = atom_value_of(text, false);

	if (kind == ATOM_BOOLEAN)
		return SPAN_LIT("Edm.Boolean");
	return kind == ATOM_INT32 ? SPAN_LIT("Edm.Int32") : SPAN_LIT("Edm.Double");
}

static enum err put_slot(struct writer *w, const struct document_property *p)
{
	struct span text = p->text;

	if (text.p[0] != '"') {
		put_typed(w, p->name, literal_type(text), text);
		return ERR_OK;
	}
	text = span_make(text.p + 1, text.n - 2);
	if (p->type.n > 0) {
		put_typed(w, p->name, p->type, text);
		return ERR_OK;
	}
	const struct element el = { .name = p->name,
		.text = text,
		.json = true,
		.preserve = atom_json_has_blank_ends(text) };
	return put_element(w, &el);
}

/* Writes the next property, whose tags are not cached at this position. */
static enum err put_new(struct writer *w, struct document_walk *walk, struct atom_place *place)
{
	struct document_property p;
	const char *from = walk->p;
	size_t len = w->out->len;
	enum err e = document_walk_next(walk, &p);

	if (e == ERR_OK)
		e = put_slot(w, &p);
	if (e == ERR_OK && place != NULL && buf_ok(w->out))
		atom_tags_learn(w->style->tags, place, span_make(from, (size_t)(p.text.p - from)),
			&p, span_make(w->out->data + len, w->out->len - len));
	return e;
}

static enum err put_document(struct writer *w, struct document_walk *walk)
{
	struct atom_place at, *place = atom_tags_begin(w->style->tags, &at) ? &at : NULL;
	enum err e = ERR_OK;

	put_all_system(w);
	while (e == ERR_OK) {
		if (place != NULL)
			atom_tags_put(place, walk, w->out);
		e = put_new(w, walk, place);
	}
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err put_one(void *arg, struct document_properties *all, struct span name)
{
	struct writer *w = arg;

	if (put_system(w, name))
		return ERR_OK;
	const struct document_property *p = document_find(all, name);
	if (p == NULL)
		put_null(w, name);
	else
		return put_slot(w, p);
	return ERR_OK;
}

static enum err put_canonical(struct writer *w)
{
	struct document_walk walk;

	if (!document_walk_begin(w->row->document, &walk))
		return ERR_CORRUPT;
	return w->style->all
		? put_document(w, &walk)
		: document_select(&walk, w->style->select, w->style->nselect, put_one, w);
}

/* ---- any other document ---- */

static void put_property(struct writer *w, const struct property *p)
{
	if (p->value.type == EDM_STRING) {
		put_string(w, p->name, p->value.bytes);
		return;
	}
	struct span type = span_of(edm_name(p->value.type));
	if (p->value.type == EDM_DOUBLE && __builtin_isinf(p->value.dbl)) {
		put_typed(w, p->name, type, p->value.dbl > 0 ? SPAN_LIT("INF") : SPAN_LIT("-INF"));
		return;
	}
	const struct element el = { .name = p->name, .type = type };
	struct tag t = open_tag(w, &el);
	edm_text_format(&p->value, w->out);
	close_tag(w, t);
}

static void put_entity(struct writer *w, const struct entity *e)
{
	if (w->style->all) {
		put_all_system(w);
		for (size_t i = 0; i < e->nprops; i++)
			put_property(w, &e->props[i]);
		return;
	}
	for (size_t i = 0; i < w->style->nselect; i++) {
		struct span name = w->style->select[i];
		if (put_system(w, name))
			continue;
		const struct property *p = entity_find(e, name);
		if (p == NULL)
			put_null(w, name);
		else
			put_property(w, p);
	}
}

static enum err decode_and_put(struct writer *w)
{
	struct entity entity = { 0 };
	enum err e = entity_json_decode(w->row->document, ENTITY_JSON_FILE, &entity, NULL, NULL);

	if (e == ERR_OK)
		put_entity(w, &entity);
	entity_fini(&entity);
	return e == ERR_OK || e == ERR_NO_MEMORY ? e : ERR_CORRUPT;
}

enum err entity_atom_render(
	const struct odata_style *style, const struct odata_row *row, struct buf *out)
{
	struct writer w = { .style = style, .row = row, .out = out };
	enum err e = ERR_OK;

	put_row_head(&w);
	if (row->canonical)
		e = put_canonical(&w);
	else if (row->entity != NULL)
		put_entity(&w, row->entity);
	else
		e = decode_and_put(&w);
	put_tail(&w);
	return e;
}

/* ---- feeds ---- */

void atom_feed_begin(const struct odata_style *style, struct span what, struct buf *out)
{
	struct writer w = { .style = style, .out = out };

	(void)clock_format(clock_ticks(), w.time);
	put_root(&w, "feed");
	buf_add_str(out, "<title type=\"text\">");
	buf_add_span(out, what);
	buf_add_str(out, "</title><id>");
	buf_add_span(out, style->base);
	buf_add_span(out, what);
	buf_add_str(out, "</id>");
	put_updated(&w);
	buf_add_str(out, "<link rel=\"self\" title=\"");
	buf_add_span(out, what);
	buf_add_str(out, "\" href=\"");
	buf_add_span(out, what);
	buf_add_str(out, "\" />");
}

void atom_feed_end(struct buf *out)
{
	buf_add_str(out, "</feed>");
}
