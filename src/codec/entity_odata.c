/* SPDX-License-Identifier: MIT
 * Rows as OData elements.  A page has up to a thousand rows, so a canonical document is not
 * decoded.  Its members are copied, all at once if the level keeps all annotations.  Only documents
 * in another form are decoded to an entity. */
#include "codec/entity_odata.h"

#include "base/clock.h"
#include "codec/document_walk.h"
#include "codec/entity_json.h"
#include "codec/uri.h"
#include "model/etag.h"

static const struct span annotation = { "@odata.type", 11 };

/* out may hold earlier elements, so the writer tracks the commas itself. */
struct writer {
	const struct odata_style *style;
	const struct odata_row *row;
	struct buf *out;
	bool begun; /* the object has a member */
};

static void separate(struct writer *w)
{
	if (w->begun)
		buf_add_char(w->out, ',');
	w->begun = true;
}

static void put_url(struct span table, struct span pk, struct span rk, struct buf *out)
{
	buf_add_span(out, table);
	buf_add_str(out, "(PartitionKey='");
	percent_encode_key(pk, out);
	buf_add_str(out, "',RowKey='");
	percent_encode_key(rk, out);
	buf_add_str(out, "')");
}

void entity_odata_url(
	struct span base, struct span table, struct span pk, struct span rk, struct buf *out)
{
	buf_add_span(out, base);
	put_url(table, pk, rk, out);
}

/* The selected names come from the client, so they are percent-encoded. */
static void put_metadata(struct writer *w)
{
	const struct odata_style *s = w->style;

	separate(w);
	buf_add_str(w->out, "\"odata.metadata\":\"");
	buf_add_span(w->out, s->base);
	buf_add_str(w->out, "$metadata#");
	buf_add_span(w->out, s->table);
	buf_add_str(w->out, "/@Element");
	for (size_t i = 0; !s->all && i < s->nselect; i++) {
		buf_add_str(w->out, i == 0 ? "&$select=" : ",");
		percent_encode_value(s->select[i], w->out);
	}
	buf_add_char(w->out, '"');
}

static void put_type_and_id(struct writer *w)
{
	const struct odata_row *row = w->row;

	separate(w);
	buf_add_str(w->out, "\"odata.type\":\"");
	buf_add_span(w->out, w->style->account);
	buf_add_char(w->out, '.');
	buf_add_span(w->out, w->style->table);
	buf_add_str(w->out, "\",\"odata.id\":\"");
	entity_odata_url(w->style->base, w->style->table, row->pk, row->rk, w->out);
	buf_add_char(w->out, '"');
}

static void put_etag(struct writer *w)
{
	char etag[ETAG_MAX];
	int n = etag_format(w->row->version, etag);

	separate(w);
	buf_add_str(w->out, "\"odata.etag\":");
	buf_add_json(w->out, span_make(etag, (size_t)n));
}

static void put_edit_link(struct writer *w)
{
	separate(w);
	buf_add_str(w->out, "\"odata.editLink\":\"");
	put_url(w->style->table, w->row->pk, w->row->rk, w->out);
	buf_add_char(w->out, '"');
}

static void put_control(struct writer *w)
{
	if (w->style->level == ODATA_NONE)
		return;
	if (w->style->single)
		put_metadata(w);
	if (w->style->level == ODATA_FULL)
		put_type_and_id(w);
	put_etag(w);
	if (w->style->level == ODATA_FULL)
		put_edit_link(w);
}

static void put_key(struct writer *w, const char *name, struct span key)
{
	separate(w);
	buf_add_char(w->out, '"');
	buf_add_str(w->out, name);
	buf_add_str(w->out, "\":");
	buf_add_json(w->out, key);
}

static void put_timestamp(struct writer *w)
{
	char text[CLOCK_TEXT_MAX];
	int n = clock_format(w->row->version, text);

	separate(w);
	if (w->style->level == ODATA_FULL)
		buf_add_str(w->out, "\"Timestamp@odata.type\":\"Edm.DateTime\",");
	buf_add_str(w->out, "\"Timestamp\":\"");
	buf_add(w->out, text, (size_t)n);
	buf_add_char(w->out, '"');
}

/* Returns false if this is not a system property. */
static bool put_system(struct writer *w, struct span name)
{
	if (span_is(name, "PartitionKey"))
		put_key(w, "PartitionKey", w->row->pk);
	else if (span_is(name, "RowKey"))
		put_key(w, "RowKey", w->row->rk);
	else if (span_is(name, "Timestamp"))
		put_timestamp(w);
	else
		return false;
	return true;
}

static void put_null(struct writer *w, struct span name)
{
	separate(w);
	buf_add_json(w->out, name);
	buf_add_str(w->out, ":null");
}

static void put_all_system(struct writer *w)
{
	put_key(w, "PartitionKey", w->row->pk);
	put_key(w, "RowKey", w->row->rk);
	put_timestamp(w);
}

/* ---- a canonical document ---- */

static void put_members(struct writer *w, struct span members)
{
	if (members.n == 0)
		return;
	separate(w);
	buf_add_span(w->out, members);
}

static enum err splice_annotated(struct writer *w)
{
	struct span members;

	if (!entity_json_members(w->row->document, &members))
		return ERR_CORRUPT;
	put_members(w, members);
	return ERR_OK;
}

/* Copies "X":1.  annotated: with "X@odata.type":"..." before it, if the document has that. */
static void put_member(struct writer *w, const struct document_property *p, bool annotated)
{
	const char *from = p->name.p - 1, *end = p->text.p + p->text.n;

	if (annotated && p->type.n > 0)
		from = p->type.p - 3 - annotation.n - p->name.n - 1;
	put_members(w, span_make(from, (size_t)(end - from)));
}

static enum err splice_bare(struct writer *w, struct document_walk *walk)
{
	struct document_property p;
	enum err e;

	while ((e = document_walk_next(walk, &p)) == ERR_OK)
		put_member(w, &p, false);
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
		put_member(w, p, w->style->level != ODATA_NONE);
	return ERR_OK;
}

static enum err splice(struct writer *w)
{
	struct document_walk walk;

	if (w->style->all)
		put_all_system(w);
	if (w->style->all && w->style->level != ODATA_NONE)
		return splice_annotated(w);
	if (!document_walk_begin(w->row->document, &walk))
		return ERR_CORRUPT;
	return w->style->all
		? splice_bare(w, &walk)
		: document_select(&walk, w->style->select, w->style->nselect, put_one, w);
}

/* ---- any other document ---- */

static void put_property(struct writer *w, const struct property *p)
{
	/* The function puts its own comma, as there always is a member before it. */
	entity_json_encode_property(p->name, &p->value, w->style->level != ODATA_NONE, w->out);
	w->begun = true;
}

static void render_selected(struct writer *w, const struct entity *e)
{
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

static void render_entity(struct writer *w, const struct entity *e)
{
	if (!w->style->all) {
		render_selected(w, e);
		return;
	}
	put_all_system(w);
	for (size_t i = 0; i < e->nprops; i++)
		put_property(w, &e->props[i]);
}

static enum err decode_and_render(struct writer *w)
{
	struct entity entity = { 0 };
	enum err e = entity_json_decode(w->row->document, ENTITY_JSON_FILE, &entity, NULL, NULL);

	if (e == ERR_OK)
		render_entity(w, &entity);
	entity_fini(&entity);
	return e == ERR_OK || e == ERR_NO_MEMORY ? e : ERR_CORRUPT;
}

enum err entity_odata_render(
	const struct odata_style *style, const struct odata_row *row, struct buf *out)
{
	struct writer w = { .style = style, .row = row, .out = out };
	enum err e = ERR_OK;

	buf_add_char(out, '{');
	put_control(&w);
	if (row->canonical)
		e = splice(&w);
	else if (row->entity != NULL)
		render_entity(&w, row->entity);
	else
		e = decode_and_render(&w);
	buf_add_char(out, '}');
	return e;
}
