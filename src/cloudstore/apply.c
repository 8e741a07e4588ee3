/* SPDX-License-Identifier: MIT
 * Changes.  Those of rows and tables are the service's: it is asked first, with the condition of the
 * change.  The shadow then makes the same change, with the version that the service chose.  All else is
 * the shadow's alone. */
#include "base/clock.h"
#include "base/may_block.h"
#include "cloud/change.h"
#include "cloudstore/place.h"
#include "cloudstore/refresh.h"
#include "codec/entity_json.h"
#include "model/etag.h"
#include "model/key.h"
#include "model/limits.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static bool is_row(const struct item *it)
{
	return it->kind == ITEM_ROW && !item_is_empty_row(it);
}

/* ---- what a change is ---- */

enum target {
	TARGET_SHADOW,
	TARGET_ROW,
	TARGET_TABLE,
};

static enum err refuse(struct err_detail *why, enum err e, const char *text)
{
	return err_set(why, e, "%s", text);
}

static enum err target_of_put(const struct change *c, enum target *ret, struct err_detail *why)
{
	switch (c->kind) {
	case ITEM_ROW:
		*ret = c->body.n > 0 ? TARGET_ROW : TARGET_SHADOW;
		return ERR_OK;
	case ITEM_TABLE:
		*ret = TARGET_TABLE;
		return ERR_OK;
	case ITEM_PARTITION:
	case ITEM_FILE:
	case ITEM_FOLDER:
		*ret = TARGET_SHADOW;
		return ERR_OK;
	case ITEM_NONE:
	case ITEM_ACCOUNT:
	case ITEM_QUEUE:
	case ITEM_MESSAGE:
	case ITEM_CONTAINER:
	case ITEM_BLOB:
	case ITEM_EXTENT:
	case ITEM_PIECE:
		break;
	}
	return refuse(why, ERR_NOT_PERMITTED,
		"the mount of an account elsewhere has tables and rows, and one account");
}

static enum err target_of_delete(
	const struct change *c, const struct item *there, enum target *ret, struct err_detail *why)
{
	*ret = is_row(there) ? TARGET_ROW : TARGET_SHADOW;
	if (there->kind == ITEM_TABLE)
		*ret = TARGET_TABLE;
	if (there->kind == ITEM_ACCOUNT)
		return refuse(why, ERR_NOT_PERMITTED, "the account of this mount");
	if (item_is_dir(there->kind) && there->kind != ITEM_FOLDER && c->flags & CHANGE_RECURSIVE)
		return refuse(why, ERR_NOT_SUPPORTED,
			"an account elsewhere removes rows one by one; use rm -r");
	return ERR_OK;
}

/* A row becomes another one, or a file, by a copy: mv(1) makes it. */
static enum err target_of_move(const struct change *c, const struct item *from, enum target *ret)
{
	bool dir = item_is_dir(from->kind) &&
		(from->kind != ITEM_FOLDER || c->to_kind == ITEM_PARTITION);
	if (dir || is_row(from) || c->flags & CHANGE_EXCHANGE)
		return ERR_CROSS_DEVICE;
	*ret = c->to_kind == ITEM_ROW && c->body.n > 0 ? TARGET_ROW : TARGET_SHADOW;
	return ERR_OK;
}

static enum err target_of(
	struct cloudstore *s, const struct change *c, enum target *ret, struct err_detail *why)
{
	struct cloudstore_place at;
	*ret = TARGET_SHADOW;
	if (c->op == CHANGE_PUT)
		return target_of_put(c, ret, why);
	if (c->op != CHANGE_DELETE && c->op != CHANGE_MOVE)
		return ERR_OK;
	enum err e = cloudstore_place_find(s->shadow, &c->at, &at);
	if (e == ERR_OK)
		e = c->op == CHANGE_DELETE ? target_of_delete(c, &at.there, ret, why)
					   : target_of_move(c, &at.there, ret);
	cloudstore_place_fini(&at);
	return e;
}

/* ---- rows ---- */

/* One change of a row, on its way to the service. */
struct sending {
	struct cloudstore *s;
	struct change *c;           /* a copy: becomes what the shadow does */
	size_t index;               /* of the change in its set */
	struct cloudstore_place at; /* of the row */
	struct item table;
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES], if_match[ETAG_MAX];
	struct entity entity;
	struct cloud_change change;
	struct err_detail *why;
};

static enum err set_if_match(struct sending *w, int64_t version)
{
	int form = atomic_load(&w->s->etag_form);
	if (form == ETAG_OPAQUE)
		return refuse(w->why, ERR_NOT_SUPPORTED,
			"the service's ETags do not hold the Timestamp; use rowfs put and rm");
	if (version <= 0)
		return ERR_CONDITION_NOT_MET;
	int n = form == ETAG_FULL ? etag_format_full(version, w->if_match)
				  : etag_format(version, w->if_match);
	w->change.if_match = span_make(w->if_match, (size_t)n);
	return ERR_OK;
}

/* The row is of this version.  A name that waits for a document has one of the shadow's alone: the
 * service has no row then. */
static enum err set_version(struct sending *w, int64_t version)
{
	if (!item_is_empty_row(&w->at.there) || w->change.kind == CLOUD_DELETE)
		return set_if_match(w, version);
	w->change.kind = CLOUD_INSERT;
	return version == w->at.there.version ? ERR_OK : ERR_CONDITION_NOT_MET;
}

/* Of a PUT or a DELETE. */
static enum err set_condition(struct sending *w)
{
	const struct change *c = w->c;
	bool waits = item_is_empty_row(&w->at.there), put = c->op == CHANGE_PUT;
	w->change.kind = put ? CLOUD_REPLACE : CLOUD_DELETE;
	switch (c->cond) {
	case COND_NONE:
		w->change.kind = put ? CLOUD_UPSERT : CLOUD_DELETE;
		break;
	case COND_ABSENT:
		w->change.kind = CLOUD_INSERT;
		break;
	case COND_PRESENT:
		break;
	case COND_VERSION:
		return set_version(w, c->cond_version);
	case COND_ID:
		if ((int64_t)w->at.there.id != c->cond_version)
			return ERR_GONE;
		/* The service knows no ids: another row of the same keys may be there. */
		w->change.kind = waits ? CLOUD_INSERT : w->change.kind;
		break;
	}
	/* The caller is given the removed row from the shadow, so the service must have the same. */
	bool handed = c->op == CHANGE_DELETE && c->flags & (CHANGE_TO_FILE | CHANGE_WANT_OLD);
	return handed ? set_if_match(w, w->at.there.version) : ERR_OK;
}

/* Of a file that becomes a row. */
static enum err set_condition_of_move(struct sending *w)
{
	const struct change *c = w->c;
	w->change.kind = c->flags & CHANGE_NO_REPLACE ? CLOUD_INSERT : CLOUD_UPSERT;
	if (!c->to_match)
		return ERR_OK;
	w->change.kind = CLOUD_REPLACE;
	return set_version(w, c->to_version);
}

static enum err set_row(struct sending *w)
{
	struct cloudstore_place *at = &w->at;
	size_t pk = at->pk.len, rk = at->rk.len;
	key_from_order(at->pk.data, pk, w->pk);
	key_from_order(at->rk.data, rk, w->rk);
	w->change.pk = span_make(w->pk, pk);
	w->change.rk = span_make(w->rk, rk);
	w->change.entity = &w->entity;
	enum err e = w->c->op == CHANGE_MOVE ? set_condition_of_move(w) : set_condition(w);
	if (e == ERR_OK && w->c->op != CHANGE_DELETE)
		e = entity_json_decode(w->c->body, ENTITY_JSON_FILE, &w->entity, NULL, w->why);
	return e == ERR_OK ? store_get(w->s->shadow, NULL, at->table, WANT_ATTRS, &w->table) : e;
}

/* The service has checked the conditions: the shadow does not check them again. */
static enum err take_answer(struct sending *w, const char *etag)
{
	struct change *c = w->c;
	bool any;
	c->to_match = false;
	c->flags &= ~(uint32_t)CHANGE_NO_REPLACE;
	if (c->op != CHANGE_MOVE)
		c->cond = COND_NONE;
	c->version = cloudstore_new_version(w->s->shadow);
	if (c->op == CHANGE_DELETE)
		return ERR_OK;
	enum err e = etag_parse(span_of(etag), &any, &c->version, NULL);
	if (e != ERR_OK || any || c->version <= 0)
		return ERR_OUTCOME_UNKNOWN;
	cloudstore_note_etag(w->s, etag, c->version);
	return ERR_OK;
}

/* After a lost answer. */
static enum err read_etag(struct sending *w, struct client *client, char etag[CLOUD_ETAG_MAX])
{
	struct cloud_row row = { 0 };
	struct buf body;
	enum err e =
		cloud_get(client, w->table.name, w->change.pk, w->change.rk, &row, &body, w->why);
	/* Somebody may have changed it since: that version is not ours. */
	if (e == ERR_OK && !cloud_same_properties(&row.entity, w->change.entity))
		e = ERR_OUTCOME_UNKNOWN;
	memcpy(etag, row.etag, CLOUD_ETAG_MAX);
	cloud_row_fini(&row);
	buf_fini(&body);
	return e == ERR_OK ? ERR_OK : ERR_OUTCOME_UNKNOWN;
}

static enum err send_group(struct sending *w, size_t n, struct client *client)
{
	struct cloud_change *changes = calloc(n, sizeof(*changes));
	char(*etags)[CLOUD_ETAG_MAX] = calloc(n, sizeof(*etags));
	enum err e = changes != NULL && etags != NULL ? ERR_OK : ERR_NO_MEMORY;
	for (size_t i = 0; e == ERR_OK && i < n; i++)
		changes[i] = w[i].change;
	if (e == ERR_OK)
		e = cloud_change_group(client, w->table.name, changes, n, etags, w->why);
	if (e != ERR_OK && w->why->op < n)
		w->why->op = w[w->why->op].index;
	for (size_t i = 0; e == ERR_OK && i < n; i++) {
		if (etags[i][0] == 0 && w[i].c->op != CHANGE_DELETE)
			e = read_etag(&w[i], client, etags[i]);
		if (e == ERR_OK)
			e = take_answer(&w[i], etags[i]);
	}
	free(changes);
	free(etags);
	return e;
}

static enum err send_rows(struct sending *w, size_t n)
{
	struct client *client;
	char etag[CLOUD_ETAG_MAX];
	enum err e = clients_take(&w->s->clients, &client, w->why);
	if (e != ERR_OK)
		return e;
	if (n > 1)
		e = send_group(w, n, client);
	else
		e = cloud_change(client, w->table.name, &w->change, etag, w->why);
	clients_give(&w->s->clients, client);
	e = cloudstore_error(e);
	if (e == ERR_OK && n == 1)
		e = take_answer(w, etag);
	/* The shadow is out of date, or may be. */
	if (e != ERR_OK)
		confirmed_forget(w->s->confirmed, w->at.dir.id != 0 ? w->at.dir.id : w->at.table);
	return e;
}

/* ---- the shadow ---- */

static void take_results(struct change *to, struct change *from)
{
	to->version = from->version;
	to->now = from->now;
	to->old = from->old;
	to->left = from->left;
	to->made_partition = from->made_partition;
}

/* The service's clock is behind the shadow's item: another item takes its place. */
static enum err replace(struct store *shadow, struct change *c, const struct item_ref *to)
{
	struct change both[2] = { { .op = CHANGE_DELETE,
					  .flags = CHANGE_KEEP_DIR,
					  .at = c->at,
					  .version = cloudstore_new_version(shadow),
					  .attrs = ATTRS_UNSET },
		{ .op = CHANGE_PUT,
			.kind = ITEM_ROW,
			.at = *to,
			.version = c->version,
			.item_flags = c->item_flags,
			.body = c->body,
			.attrs = ATTRS_UNSET } };
	struct err_detail why = { 0 };
	enum err e = store_apply(shadow, both, 2, false, &why);
	if (e != ERR_OK)
		return e;
	take_results(c, &both[1]);
	both[1] = (struct change){ 0 };
	changes_fini(both, 2);
	return ERR_OK;
}

/* The service has done it: a failure here leaves a shadow that the next read mends. */
static enum err follow(
	struct sending *w, size_t k, struct change *set, size_t n, bool durable, uint64_t asked_us)
{
	struct store *shadow = w->s->shadow;
	const struct item_ref *to = w->c->op == CHANGE_MOVE ? &w->c->to : &w->c->at;
	struct err_detail why = { 0 };
	enum err e = store_apply(shadow, set, n, durable, &why);
	if (e == ERR_STALE_VERSION && n == 1 && w->c->op != CHANGE_DELETE)
		e = replace(shadow, w->c, to);
	for (size_t i = 0; e == ERR_OK && i < k; i++)
		confirmed_add(w->s->confirmed, w[i].c->now.parent, buf_span(&w[i].at.rk),
			buf_span(&w[i].at.rk), false, asked_us);
	if (e == ERR_OK)
		return ERR_OK;
	confirmed_forget(w->s->confirmed, w->at.dir.id);
	return err_set(w->why, ERR_OUTCOME_UNKNOWN,
		"the service made the change, but the mount could not keep it: %s", err_text(e));
}

static const struct item_ref *row_ref(const struct change *c)
{
	return c->op == CHANGE_MOVE ? &c->to : &c->at;
}

/* All rows are of the partition that is locked. */
static enum err set_rows(
	struct sending *w, size_t n, const struct cloudstore_place *locked, struct err_detail *why)
{
	enum err e = ERR_OK;
	for (size_t i = 0; e == ERR_OK && i < n; i++) {
		why->op = w[i].index;
		e = cloudstore_place_find(w->s->shadow, row_ref(w[i].c), &w[i].at);
		bool same = w[i].at.table == locked->table &&
			span_eq(buf_span(&w[i].at.pk), buf_span(&locked->pk));
		if (e == ERR_OK)
			e = same ? set_row(&w[i]) : ERR_CROSS_DEVICE;
	}
	return e;
}

static void sendings_free(struct sending *w, size_t n)
{
	for (size_t i = 0; w != NULL && i < n; i++) {
		entity_fini(&w[i].entity);
		item_fini(&w[i].table);
		cloudstore_place_fini(&w[i].at);
	}
	free(w);
}

/* w has the k changes of rows in the set. */
static enum err change_rows(struct cloudstore *s, struct sending *w, size_t k, struct change *set,
	size_t n, bool durable)
{
	struct cloudstore_place first;
	struct err_detail *why = w->why;
	enum err e = cloudstore_place_find(s->shadow, row_ref(w->c), &first);
	if (e == ERR_OK && first.table == 0)
		e = ERR_NOT_PERMITTED;
	if (e == ERR_OK) {
		may_block(BLOCK_SURE);
		cloudstore_lock_rows(s, first.table, buf_span(&first.pk));
		uint64_t asked_us = clock_mono_us();
		e = set_rows(w, k, &first, why);
		if (e == ERR_OK)
			e = send_rows(w, k);
		if (e == ERR_OK)
			e = follow(w, k, set, n, durable, asked_us);
		cloudstore_unlock_rows(s, first.table, buf_span(&first.pk));
	}
	cloudstore_place_fini(&first);
	return e;
}

/* ---- tables ---- */

/* ERR_NOT_EMPTY: the service has rows in the table, or the shadow directories. */
static enum err check_empty(struct cloudstore *s, const struct item *table)
{
	struct refreshed part;
	struct item now;
	enum err e = refresh_listing(s, table, SPAN_LIT(""), &part);
	buf_fini(&part.to);
	if (e == ERR_OK)
		e = store_get(s->shadow, NULL, table->id, WANT_ATTRS, &now);
	if (e != ERR_OK)
		return e;
	e = now.size > 0 ? ERR_NOT_EMPTY : ERR_OK;
	item_fini(&now);
	return e;
}

static enum err change_table(
	struct cloudstore *s, struct change *c, bool durable, struct err_detail *why)
{
	struct cloudstore_place at;
	struct client *client = NULL;
	bool put = c->op == CHANGE_PUT;
	enum err e = cloudstore_place_find(s->shadow, &c->at, &at);
	if (e == ERR_OK && put && at.there.kind != ITEM_NONE)
		e = c->cond == COND_ABSENT ? ERR_TABLE_EXISTS : ERR_NOT_SUPPORTED;
	if (e == ERR_OK && !put) {
		confirmed_forget(s->confirmed, at.there.id);
		e = check_empty(s, &at.there);
	}
	if (e == ERR_OK)
		e = clients_take(&s->clients, &client, why);
	may_block(BLOCK_SURE);
	cloudstore_lock_names(s, s->account);
	if (e == ERR_OK)
		e = cloudstore_error(put ? cloud_table_create(client, c->name, why)
					 : cloud_table_delete(client, at.there.name, why));
	if (e == ERR_OK) {
		c->version = cloudstore_new_version(s->shadow);
		e = store_apply(s->shadow, c, 1, durable, why);
	}
	if (e != ERR_OK)
		confirmed_forget(s->confirmed, s->account);
	cloudstore_unlock_names(s, s->account);
	if (client != NULL)
		clients_give(&s->clients, client);
	cloudstore_place_fini(&at);
	return e;
}

/* ---- sets ---- */

/* Fills w with the changes of rows.  *ret_table: the only change is one of a table. */
static enum err sort_out(struct cloudstore *s, struct change *set, size_t n, struct sending *w,
	size_t *ret_rows, bool *ret_table, struct err_detail *why)
{
	*ret_rows = 0;
	*ret_table = false;
	for (size_t i = 0; i < n; i++) {
		enum target t;
		why->op = i;
		enum err e = target_of(s, &set[i], &t, why);
		if (e != ERR_OK)
			return e;
		if (t == TARGET_ROW)
			w[(*ret_rows)++] =
				(struct sending){ .s = s, .c = &set[i], .index = i, .why = why };
		*ret_table = t == TARGET_TABLE;
		if (*ret_table && n > 1)
			return refuse(why, ERR_NOT_SUPPORTED, "one table at a time");
	}
	why->op = *ret_rows > 0 ? w->index : 0;
	return ERR_OK;
}

static enum err apply_copy(
	struct cloudstore *s, struct change *set, size_t n, bool durable, struct err_detail *why)
{
	struct sending *w = calloc(n, sizeof(*w));
	size_t rows = 0;
	bool table;
	if (w == NULL)
		return ERR_NO_MEMORY;
	enum err e = sort_out(s, set, n, w, &rows, &table, why);
	if (e == ERR_OK && rows > LIMIT_BATCH_OPS)
		e = ERR_BATCH_TOO_LARGE;
	else if (e == ERR_OK && rows > 0)
		e = change_rows(s, w, rows, set, n, durable);
	else if (e == ERR_OK && table)
		e = change_table(s, set, durable, why);
	else if (e == ERR_OK)
		e = store_apply(s->shadow, set, n, durable, why);
	sendings_free(w, rows);
	return e;
}

enum err cloudstore_apply(
	struct store *store, struct change *changes, size_t n, bool durable, struct err_detail *why)
{
	struct err_detail unused = { 0 };
	struct change *set = calloc(n, sizeof(*set));
	if (set == NULL)
		return ERR_NO_MEMORY;
	memcpy(set, changes, n * sizeof(*set));
	enum err e = apply_copy(
		(struct cloudstore *)store, set, n, durable, why != NULL ? why : &unused);
	for (size_t i = 0; e == ERR_OK && i < n; i++)
		take_results(&changes[i], &set[i]);
	free(set);
	return e;
}
