/* SPDX-License-Identifier: MIT
 * Moves a row into the trash of the mount, and back: for the page's "Delete" and "Undo".  Requests of REST
 * remove rows for good, so the page asks for this by a path of its own. */
#include "service/tree/trash.h"

#include "codec/json_build.h"
#include "model/etag.h"
#include "model/key.h"
#include "rest/page/page_data.h"
#include "service/core/admission.h"
#include "service/core/tables.h"

struct place {
	struct item table;
	struct span pk, rk;
};

static enum err find_place(const struct page_ask *ask, struct place *ret)
{
	*ret = (struct place){ 0 };
	bool named = query_params_find(&ask->params, "pk", &ret->pk) &&
		query_params_find(&ask->params, "rk", &ret->rk);
	if (!named)
		return err_set(ask->detail, ERR_INVALID_INPUT, "pk and rk are the keys of a row.");
	enum err e = key_check(ret->pk, "PartitionKey", ask->detail);
	if (e == ERR_OK)
		e = key_check(ret->rk, "RowKey", ask->detail);
	if (e == ERR_OK)
		e = table_find(ask->service, ask->account, ask->table, &ret->table);
	if (e == ERR_OK)
		e = admission_entities(
			ask->service, ret->table.id, ret->pk, HEAT_CHANGED, 1, ask->detail);
	return e;
}

static enum err keep_row(const struct page_ask *ask, struct trash *trash, const struct place *place,
	struct json_build *b)
{
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES];
	struct span etag = SPAN_LIT("");
	int64_t version = 0;
	bool any = false;
	struct item partition = { 0 };
	struct trash_name kept;
	(void)query_params_find(&ask->params, "etag", &etag);
	enum err e = etag_parse(etag, &any, &version, ask->detail);
	if (e == ERR_OK && any)
		e = err_set(ask->detail, ERR_INVALID_INPUT, "The page needs the row's ETag.");
	key_to_order(place->pk.p, place->pk.n, pk);
	key_to_order(place->rk.p, place->rk.n, rk);
	if (e == ERR_OK)
		e = store_child(service_store(ask->service), NULL, place->table.id, CLASS_KEYED,
			span_make(pk, place->pk.n), WANT_ATTRS, &partition);
	if (e == ERR_OK) {
		const struct dentry at = { .dir = &partition,
			.class = CLASS_KEYED,
			.key = span_make(rk, place->rk.n),
			.origin = ORIGIN_REST };
		e = trash_keep(trash, &at, version, &kept, ask->detail);
	}
	if (e == ERR_OK) {
		json_add_text(b, "file", span_make(kept.text, kept.n));
		trash_trim(trash);
	}
	item_fini(&partition);
	return e == ERR_NOT_SUPPORTED ? ERR_OK : e; /* without a file: nothing was done */
}

enum err page_trash_change(const struct page_ask *ask, struct json_build *b)
{
	struct trash *trash = service_trash(ask->service);
	struct place place;
	struct span file = SPAN_LIT("");
	if (trash == NULL)
		return ERR_READ_ONLY; /* or the mount is not there yet */
	enum err e = find_place(ask, &place);
	(void)query_params_find(&ask->params, "file", &file);
	if (e == ERR_OK && ask->removes)
		e = keep_row(ask, trash, &place, b);
	else if (e == ERR_OK)
		e = trash_restore(
			trash, ORIGIN_REST, &place.table, file, place.pk, place.rk, ask->detail);
	item_fini(&place.table);
	return e;
}
