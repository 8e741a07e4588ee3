/* SPDX-License-Identifier: MIT */
#include "cloudstore/sending.h"

#include "codec/entity_json.h"
#include "model/key.h"

#include <stdatomic.h>

bool sending_is_row(const struct item *it)
{
	return it->kind == ITEM_ROW && !item_is_empty_row(it);
}

static enum err make_etag(struct sending *w, int64_t version, char etag[ETAG_MAX], struct span *ret)
{
	int form = atomic_load(&w->s->etag_form);
	if (form == ETAG_OPAQUE)
		return err_set(w->why, ERR_NOT_SUPPORTED,
			"the service's ETags do not hold the Timestamp; use rowfs put and rm");
	if (version <= 0)
		return ERR_CONDITION_NOT_MET;
	int n = form == ETAG_FULL ? etag_format_full(version, etag) : etag_format(version, etag);
	*ret = span_make(etag, (size_t)n);
	return ERR_OK;
}

static enum err set_if_match(struct sending *w, int64_t version)
{
	return make_etag(w, version, w->if_match, &w->changes[0].if_match);
}

/* The row is of this version.  A name that waits for a document has one of the shadow's alone: the
 * service has no row then. */
static enum err set_version(struct sending *w, int64_t version)
{
	if (w->at.there.kind == ITEM_NONE && version <= 0)
		return ERR_NOT_FOUND;
	if (!item_is_empty_row(&w->at.there) || w->changes[0].kind == CLOUD_DELETE)
		return set_if_match(w, version);
	w->changes[0].kind = CLOUD_INSERT;
	return version == w->at.there.version ? ERR_OK : ERR_CONDITION_NOT_MET;
}

/* Of a PUT or a DELETE. */
static enum err set_condition(struct sending *w)
{
	const struct change *c = w->c;
	bool waits = item_is_empty_row(&w->at.there), put = c->op == CHANGE_PUT;
	w->changes[0].kind = put ? CLOUD_REPLACE : CLOUD_DELETE;
	switch (c->cond) {
	case COND_NONE:
		w->changes[0].kind = put ? CLOUD_UPSERT : CLOUD_DELETE;
		break;
	case COND_ABSENT:
		w->changes[0].kind = CLOUD_INSERT;
		break;
	case COND_PRESENT:
		break;
	case COND_VERSION:
		return set_version(w, c->cond_version);
	case COND_ID:
		if (w->at.there.kind == ITEM_NONE)
			return ERR_NOT_FOUND;
		if ((int64_t)w->at.there.id != c->cond_version)
			return ERR_GONE;
		/* The service knows no ids: another row of the same keys may be there. */
		w->changes[0].kind = waits ? CLOUD_INSERT : w->changes[0].kind;
		break;
	}
	/* The caller is given the removed row from the shadow, so the service must have the same. */
	bool handed = c->op == CHANGE_DELETE && c->flags & (CHANGE_TO_FILE | CHANGE_WANT_OLD);
	return handed && w->at.there.kind != ITEM_NONE ? set_if_match(w, w->at.there.version)
						       : ERR_OK;
}

/* Of a file or a row that comes to stand there. */
static enum err set_condition_of_move(struct sending *w)
{
	const struct change *c = w->c;
	w->changes[0].kind = c->flags & CHANGE_NO_REPLACE ? CLOUD_INSERT : CLOUD_UPSERT;
	if (!c->to_match)
		return ERR_OK;
	if (w->at.there.kind == ITEM_NONE)
		return ERR_CONDITION_NOT_MET;
	w->changes[0].kind = CLOUD_REPLACE;
	return set_version(w, c->to_version);
}

/* The row under the old key is deleted only as it was when it was read. */
static enum err set_removal(struct sending *w)
{
	struct cloud_change *removal = &w->changes[1];
	enum err e = store_get(w->s->shadow, NULL, w->from.there.id, WANT_BODY, &w->source);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_GONE : e;
	if (w->c->cond == COND_VERSION && w->source.version != w->c->cond_version)
		return ERR_CONDITION_NOT_MET;
	key_from_order(w->from.rk.data, w->from.rk.len, w->from_rk);
	*removal = (struct cloud_change){ .kind = CLOUD_DELETE,
		.pk = w->changes[0].pk,
		.rk = span_make(w->from_rk, w->from.rk.len) };
	w->n = 2;
	return make_etag(w, w->source.version, w->from_match, &removal->if_match);
}

static enum err set_move(struct sending *w)
{
	enum err e = cloudstore_place_find(w->s->shadow, &w->c->at, &w->from);
	if (e == ERR_OK)
		e = set_condition_of_move(w);
	return e == ERR_OK && sending_is_row(&w->from.there) ? set_removal(w) : e;
}

static enum err name_table(struct sending *w)
{
	enum err e = store_get(w->s->shadow, NULL, w->at.table, WANT_ATTRS, &w->table);
	bool none = e == ERR_NOT_FOUND || (e == ERR_OK && w->table.kind != ITEM_TABLE);
	return none ? ERR_TABLE_NOT_FOUND : e;
}

enum err sending_prepare(struct sending *w)
{
	struct cloudstore_place *at = &w->at;
	size_t pk = at->pk.len, rk = at->rk.len;
	key_from_order(at->pk.data, pk, w->pk);
	key_from_order(at->rk.data, rk, w->rk);
	w->n = 1;
	w->changes[0].pk = span_make(w->pk, pk);
	w->changes[0].rk = span_make(w->rk, rk);
	w->changes[0].entity = &w->entity;
	w->changes[0].again = w->attempt->again;
	enum err e = w->c->op == CHANGE_MOVE ? set_move(w) : set_condition(w);
	struct span document = w->c->body.n > 0 ? w->c->body : w->source.body;
	if (e == ERR_OK && w->c->op != CHANGE_DELETE)
		e = entity_json_decode(document, ENTITY_JSON_FILE, &w->entity, NULL, w->why);
	return e == ERR_OK ? name_table(w) : e;
}

void sending_fini(struct sending *w)
{
	entity_fini(&w->entity);
	item_fini(&w->table);
	item_fini(&w->source);
	cloudstore_place_fini(&w->at);
	cloudstore_place_fini(&w->from);
}
