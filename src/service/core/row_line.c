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
