/* SPDX-License-Identifier: MIT */
#include "cloudstore/question.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/may_block.h"
#include "cloudstore/outage.h"
#include "codec/entity_json.h"
#include "model/filename.h"
#include "model/key.h"

#include <stdio.h>

#define DOCUMENT_LIMIT ((size_t)16 << 20)

struct span refresh_pk(const struct refresh *r)
{
	return span_make(r->pk, r->pk_len);
}

static uint64_t table_of(const struct item *dir)
{
	return dir->kind == ITEM_TABLE ? dir->id : dir->parent;
}

/* Names are the shadow's: a directory that it lacks by now is gone. */
static enum err name_directory(struct refresh *r)
{
	struct store *shadow = r->s->shadow;
	if (r->dir->kind == ITEM_ACCOUNT)
		return ERR_OK;
	if (r->dir->kind == ITEM_PARTITION) {
		r->pk_len = r->dir->key.n;
		key_from_order(r->dir->key.p, r->dir->key.n, r->pk);
	}
	return store_get(shadow, NULL, table_of(r->dir), WANT_ATTRS, &r->table);
}

/* The lock is held. */
static enum err open_question(struct refresh *r, struct span from)
{
	r->asked_us = clock_mono_us();
	merge_begin(&r->merge, r->s->shadow, r->dir->id, from);
	enum err e = name_directory(r);
	return e == ERR_OK ? clients_take(&r->s->clients, &r->client, &r->why) : e;
}

enum err refresh_begin(
	struct refresh *r, struct cloudstore *s, const struct item *dir, struct span from)
{
	*r = (struct refresh){ .s = s, .dir = dir };
	may_block(BLOCK_SURE);
	if (dir->kind == ITEM_PARTITION) {
		r->rows = dir->key;
		r->has_rows = true;
		cloudstore_lock_rows(s, dir->parent, r->rows);
	} else {
		cloudstore_lock_names(s, dir->id);
	}
	return open_question(r, from);
}

enum err refresh_begin_name(
	struct refresh *r, struct cloudstore *s, const struct item *table, struct span pk)
{
	*r = (struct refresh){ .s = s, .dir = table, .rows = pk, .has_rows = true };
	may_block(BLOCK_SURE);
	cloudstore_lock_rows(s, table->id, pk);
	return open_question(r, pk);
}

enum err refresh_error(struct cloudstore *s, enum err e, const struct err_detail *why)
{
	e = e == ERR_OUTCOME_UNKNOWN ? ERR_IO : cloudstore_error(e);
	if (e == ERR_TABLE_NOT_FOUND)
		e = ERR_NOT_FOUND;
	if (e != ERR_OK && e != ERR_NOT_FOUND && e != ERR_CANCELLED)
		log_warning("%s: %s", s->clients.at.url, err_message(e, why));
	return e;
}

enum err refresh_end(struct refresh *r, enum err e)
{
	if (r->client != NULL)
		clients_give(&r->s->clients, r->client);
	merge_fini(&r->merge);
	item_fini(&r->table);
	if (r->has_rows)
		cloudstore_unlock_rows(r->s, table_of(r->dir), r->rows);
	else
		cloudstore_unlock_names(r->s, r->dir->id);
	return refresh_error(r->s, e, &r->why);
}

void refresh_add_comparison(struct buf *out, const char *what, struct span key)
{
	buf_addf(out, "%s%s ", out->len > 0 ? " and " : "", what);
	cloud_add_literal(key, out);
}

void refresh_add_from(struct buf *out, const char *property, struct span from)
{
	char key[LIMIT_KEY_BYTES], what[32];
	bool behind = from.n > 0 && from.p[from.n - 1] == 0;
	size_t n = from.n - behind;
	if (from.n == 0)
		return;
	key_from_order(from.p, n, key);
	(void)snprintf(what, sizeof(what), "%s %s", property, behind ? "gt" : "ge");
	refresh_add_comparison(out, what, span_make(key, n));
}

static enum err read_rows(struct refresh *r, struct row_scan *rows, unsigned most,
	refresh_take_fn take, bool *ret_end)
{
	struct cloud_row row = { 0 };
	enum err e = ERR_OK;
	for (unsigned n = 0; e == ERR_OK && (most == 0 || n < most); n++) {
		e = row_scan_next(rows, &row, &r->why);
		r->away = outage_is(e);
		if (e == ERR_OK)
			e = take(r, &row);
	}
	*ret_end = e == ERR_NOT_FOUND;
	cloud_row_fini(&row);
	return *ret_end ? ERR_OK : e;
}

enum err refresh_read(struct refresh *r, struct row_scan *rows, refresh_take_fn take, bool *ret_end)
{
	return read_rows(r, rows, 0, take, ret_end);
}

enum err refresh_scan(struct refresh *r, const struct buf *filter, const char *select,
	unsigned most, refresh_take_fn take, bool *ret_end)
{
	const struct row_scan_query q = { .table = r->table.name,
		.filter = buf_span(filter),
		.select = span_of(select),
		.top = most };
	struct row_scan rows;
	*ret_end = false;
	enum err e = row_scan_begin(r->client, &q, &rows);
	if (e == ERR_OK)
		e = buf_full(filter);
	if (e == ERR_OK)
		e = read_rows(r, &rows, most, take, ret_end);
	row_scan_end(&rows);
	return e;
}

enum err refresh_take_row(struct refresh *r, const struct cloud_row *row)
{
	char key[LIMIT_KEY_BYTES];
	struct buf text = BUF_INIT(DOCUMENT_LIMIT);
	const struct entity *e = &row->entity;
	int64_t known;
	if (e->timestamp == 0)
		return err_set(
			&r->why, ERR_NOT_SUPPORTED, "the service sends rows without Timestamp");
	enum err err = key_check(e->rk, "RowKey", &r->why);
	if (err != ERR_OK)
		return err;
	key_to_order(e->rk.p, e->rk.n, key);
	struct span order = span_make(key, e->rk.n);
	cloudstore_note_etag(r->s, row->etag, e->timestamp);
	err = merge_name(&r->merge, order, &known);
	if (err == ERR_OK && known > e->timestamp)
		err = merge_drop(&r->merge);
	if (err != ERR_OK || known == e->timestamp)
		return err;
	/* A key that its file's name does not hold stands in the document (N6). */
	struct entity keyed = *e;
	keyed.has_pk = keyed.has_rk = true;
	bool inside = filename_is_long(e->pk, FILENAME_PARTITION) ||
		filename_is_long(e->rk, FILENAME_ROW);
	unsigned keys = inside ? (unsigned)(ENTITY_JSON_PK | ENTITY_JSON_RK) : 0;
	entity_json_encode(&keyed, keys | ENTITY_JSON_NEWLINE, &text);
	const struct change put = { .kind = ITEM_ROW,
		.version = e->timestamp,
		.item_flags = inside ? ITEM_KEYS_INSIDE : ITEM_CANONICAL,
		.body = buf_span(&text) };
	err = buf_full(&text);
	if (err == ERR_OK)
		err = merge_put(&r->merge, order, &put);
	buf_fini(&text);
	return err;
}

enum err refresh_end_part(struct refresh *r, uint64_t dir, struct span from, struct refreshed *ret)
{
	enum err e = merge_end(&r->merge, ret->end);
	struct span last = buf_span(&r->merge.next); /* with a NUL behind it */
	if (e == ERR_OK && !ret->end)
		buf_add(&ret->to, last.p, last.n - 1);
	if (e == ERR_OK)
		confirmed_add(
			r->s->confirmed, dir, from, buf_span(&ret->to), ret->end, r->asked_us);
	return e;
}
