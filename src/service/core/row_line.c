/* SPDX-License-Identifier: MIT */
#include "service/core/row_line.h"

#include "model/limits.h"

/* "{}\n": a canonical document without members. */
#define DOCUMENT_MIN 3

void row_line_fini(struct row_line *l)
{
	buf_fini(&l->text);
	entity_fini(&l->entity);
}

static enum err decode(struct row_line *l, struct span document)
{
	if (document.p == NULL)
		return ERR_NOT_FOUND;
	enum err e = entity_json_decode(document, ENTITY_JSON_FILE, &l->entity, NULL, NULL);
	return e == ERR_OK || e == ERR_NO_MEMORY ? e : ERR_CORRUPT;
}

enum err row_line_bytes(struct row_line *l, const struct item *row, struct span pk, struct span rk,
	unsigned json_flags, struct span document, uint64_t *ret)
{
	bool canonical = (row->flags & ITEM_CANONICAL) != 0;
	struct entity keys = { 0 };
	struct entity *e = canonical ? &keys : &l->entity;
	*ret = 0;
	if (item_is_empty_row(row))
		return ERR_OK;
	enum err err = canonical ? ERR_OK : decode(l, document);
	if (err != ERR_OK)
		return err;
	e->pk = pk;
	e->rk = rk;
	e->has_pk = e->has_rk = true;
	e->timestamp = row->version;
	l->text.limit = 8 * LIMIT_DOCUMENT_BYTES;
	buf_clear(&l->text);
	entity_json_encode(e, json_flags, &l->text);
	*ret = l->text.len;
	if (canonical && row->size > DOCUMENT_MIN)
		*ret += sizeof(",") - 1 + row->size - DOCUMENT_MIN;
	return buf_ok(&l->text) ? ERR_OK : ERR_NO_MEMORY;
}

enum err row_line_splice(
	const struct entity *keys, struct span document, unsigned json_flags, struct buf *out)
{
	struct span members;
	if (!entity_json_members(document, &members))
		return ERR_CORRUPT;
	entity_json_encode(keys, json_flags, out);
	if (members.n == 0 || !buf_ok(out))
		return ERR_OK;
	out->data[out->len - 1] = ',';
	buf_add_span(out, members);
	buf_add_char(out, '}');
	return ERR_OK;
}

enum err row_line_write(struct row_line *l, const struct item *row, struct span pk, struct span rk,
	unsigned json_flags, struct buf *out)
{
	const struct entity keys = {
		.pk = pk, .rk = rk, .has_pk = true, .has_rk = true, .timestamp = row->version
	};
	if ((row->flags & ITEM_CANONICAL) != 0)
		return row_line_splice(&keys, row->body, json_flags, out);
	enum err e = decode(l, row->body);
	if (e != ERR_OK)
		return e;
	l->entity.pk = pk;
	l->entity.rk = rk;
	l->entity.has_pk = l->entity.has_rk = true;
	l->entity.timestamp = row->version;
	entity_json_encode(&l->entity, json_flags, out);
	return ERR_OK;
}
