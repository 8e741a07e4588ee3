/* SPDX-License-Identifier: MIT */
#include "cloudstore/refresh.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/may_block.h"
#include "cloud/change.h"
#include "cloud/row_scan.h"
#include "cloudstore/merge.h"
#include "codec/entity_json.h"
#include "model/filename.h"
#include "model/key.h"
#include "model/limits.h"
#include "model/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FILTER_LIMIT ((size_t)16 << 10)
#define DOCUMENT_LIMIT ((size_t)16 << 20)
#define NAMES_LIMIT ((size_t)64 << 20)
#define PAGE_ROWS 1000 /* of the service, at most */

/* ---- requests ---- */

/* Names in one buffer of tables, each with a NUL. */
struct names {
	struct buf text;
	const char **v;
	size_t n;
};

/* One refresh of a directory. */
struct refresh {
	struct cloudstore *s;
	const struct item *dir; /* of the shadow: the account, a table or a partition */
	struct client *client;
	struct item table; /* a copy */
	char pk[LIMIT_KEY_BYTES];
	size_t pk_len;
	uint64_t asked_us;
	struct merge merge;
	struct names *names; /* of list_tables() */
	struct err_detail why;
};

static struct span pk_of(const struct refresh *r)
{
	return span_make(r->pk, r->pk_len);
}

/* Names are the shadow's: a directory that it lacks by now is gone. */
static enum err name_directory(struct refresh *r)
{
	struct store *shadow = r->s->shadow;
	uint64_t table = r->dir->kind == ITEM_TABLE ? r->dir->id : r->dir->parent;
	if (r->dir->kind == ITEM_ACCOUNT)
		return ERR_OK;
	if (r->dir->kind == ITEM_PARTITION) {
		r->pk_len = r->dir->key.n;
		key_from_order(r->dir->key.p, r->dir->key.n, r->pk);
	}
	return store_get(shadow, NULL, table, WANT_ATTRS, &r->table);
}

/* Locks the directory. */
static enum err begin(
	struct refresh *r, struct cloudstore *s, const struct item *dir, struct span from)
{
	*r = (struct refresh){ .s = s, .dir = dir };
	may_block(BLOCK_SURE);
	if (dir->kind == ITEM_PARTITION)
		cloudstore_lock_rows(s, dir->parent, dir->key);
	else
		cloudstore_lock_names(s, dir->id);
	r->asked_us = clock_mono_us();
	merge_begin(&r->merge, s->shadow, dir->id, from);
	enum err e = name_directory(r);
	return e == ERR_OK ? clients_take(&s->clients, &r->client, &r->why) : e;
}

static enum err end(struct refresh *r, enum err e)
{
	if (r->client != NULL)
		clients_give(&r->s->clients, r->client);
	merge_fini(&r->merge);
	item_fini(&r->table);
	if (r->dir->kind == ITEM_PARTITION)
		cloudstore_unlock_rows(r->s, r->dir->parent, r->dir->key);
	else
		cloudstore_unlock_names(r->s, r->dir->id);
	e = e == ERR_OUTCOME_UNKNOWN ? ERR_IO : cloudstore_error(e);
	if (e == ERR_TABLE_NOT_FOUND)
		e = ERR_NOT_FOUND;
	if (e != ERR_OK && e != ERR_NOT_FOUND)
		log_warning("%s: %s", r->s->clients.at.url, err_message(e, &r->why));
	return e;
}

static void add_comparison(struct buf *out, const char *what, struct span key)
{
	buf_addf(out, "%s%s ", out->len > 0 ? " and " : "", what);
	cloud_add_literal(key, out);
}

/* `from` is in order form; a NUL at its end: behind the key before it. */
static void add_from(struct buf *out, const char *property, struct span from)
{
	char key[LIMIT_KEY_BYTES], what[32];
	bool behind = from.n > 0 && from.p[from.n - 1] == 0;
	size_t n = from.n - behind;
	if (from.n == 0)
		return;
	key_from_order(from.p, n, key);
	(void)snprintf(what, sizeof(what), "%s %s", property, behind ? "gt" : "ge");
	add_comparison(out, what, span_make(key, n));
}

typedef enum err (*take_fn)(struct refresh *r, const struct cloud_row *row);

/* Takes the rows of a query, `most` at most (0: all).  *ret_end: there were no more. */
static enum err scan(struct refresh *r, const struct buf *filter, const char *select, unsigned most,
	take_fn take, bool *ret_end)
{
	const struct row_scan_query q = { .table = r->table.name,
		.filter = buf_span(filter),
		.select = span_of(select),
		.top = most };
	struct row_scan rows;
	struct cloud_row row = { 0 };
	enum err e = row_scan_begin(r->client, &q, &rows);
	if (e == ERR_OK)
		e = buf_full(filter);
	for (unsigned n = 0; e == ERR_OK && (most == 0 || n < most); n++) {
		e = row_scan_next(&rows, &row, &r->why);
		if (e == ERR_OK)
			e = take(r, &row);
	}
	*ret_end = e == ERR_NOT_FOUND;
	cloud_row_fini(&row);
	row_scan_end(&rows);
	return *ret_end ? ERR_OK : e;
}

/* ---- rows ---- */

static enum err take_row(struct refresh *r, const struct cloud_row *row)
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

static enum err list_rows(struct refresh *r, struct span from, bool *ret_end)
{
	struct buf filter = BUF_INIT(FILTER_LIMIT);
	add_comparison(&filter, "PartitionKey eq", pk_of(r));
	add_from(&filter, "RowKey", from);
	enum err e = scan(r, &filter, "", PAGE_ROWS, take_row, ret_end);
	buf_fini(&filter);
	return e;
}

static enum err read_row(struct refresh *r, struct span key)
{
	char rk[LIMIT_KEY_BYTES];
	struct cloud_row row = { 0 };
	struct buf body;
	key_from_order(key.p, key.n, rk);
	enum err e = cloud_get(
		r->client, r->table.name, pk_of(r), span_make(rk, key.n), &row, &body, &r->why);
	if (e == ERR_OK)
		e = take_row(r, &row);
	else if (e == ERR_NOT_FOUND)
		e = merge_forget(&r->merge, key);
	cloud_row_fini(&row);
	buf_fini(&body);
	return e;
}

/* ---- partitions ---- */

static enum err take_partition(struct refresh *r, struct span order)
{
	static const struct change put = { .kind = ITEM_PARTITION };
	int64_t known;
	enum err e = merge_name(&r->merge, order, &known);
	return e == ERR_OK && known == 0 ? merge_put(&r->merge, order, &put) : e;
}

/* Many rows of one partition follow each other. */
static enum err take_key(struct refresh *r, const struct cloud_row *row)
{
	char key[LIMIT_KEY_BYTES];
	struct span pk = row->entity.pk;
	enum err e = key_check(pk, "PartitionKey", &r->why);
	if (e != ERR_OK)
		return e;
	key_to_order(pk.p, pk.n, key);
	struct span order = span_make(key, pk.n), last = buf_span(&r->merge.next);
	bool same = last.n == pk.n + 1 && last.p[pk.n] == 0 && memcmp(last.p, key, pk.n) == 0;
	return same ? ERR_OK : take_partition(r, order);
}

/* One page of keys has many small partitions.  The next page begins behind the last of them. */
static enum err list_partitions(struct refresh *r, struct span from, bool *ret_end)
{
	struct buf filter = BUF_INIT(FILTER_LIMIT);
	add_from(&filter, "PartitionKey", from);
	enum err e = scan(r, &filter, "PartitionKey,RowKey", PAGE_ROWS, take_key, ret_end);
	buf_fini(&filter);
	return e;
}

static enum err find_partition(struct refresh *r, struct span key)
{
	char pk[LIMIT_KEY_BYTES];
	bool none;
	struct buf filter = BUF_INIT(FILTER_LIMIT);
	key_from_order(key.p, key.n, pk);
	add_comparison(&filter, "PartitionKey eq", span_make(pk, key.n));
	enum err e = scan(r, &filter, "PartitionKey,RowKey", 1, take_key, &none);
	if (e == ERR_OK && none)
		e = merge_forget(&r->merge, key);
	buf_fini(&filter);
	return e;
}

/* ---- tables ---- */

static int compare(const void *a, const void *b)
{
	return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

static enum err take_name(struct refresh *r, const struct cloud_row *row)
{
	const struct property *p = entity_find(&row->entity, SPAN_LIT("TableName"));
	if (p == NULL || p->value.type != EDM_STRING)
		return ERR_OK;
	buf_add_span(&r->names->text, p->value.bytes);
	buf_add_char(&r->names->text, 0);
	r->names->n++;
	return buf_full(&r->names->text);
}

static enum err sort_names(struct names *names)
{
	names->v = calloc(names->n + 1, sizeof(*names->v));
	if (names->v == NULL)
		return ERR_NO_MEMORY;
	const char *at = names->text.data;
	for (size_t i = 0; i < names->n; i++, at += strlen(at) + 1)
		names->v[i] = at;
	qsort(names->v, names->n, sizeof(*names->v), compare);
	return ERR_OK;
}

static enum err take_table(struct refresh *r, const char *name)
{
	char key[LIMIT_TABLE_NAME_MAX];
	const struct change put = { .kind = ITEM_TABLE, .name = span_of(name) };
	size_t n = put.name.n;
	int64_t known;
	if (table_name_check(put.name, NULL) != ERR_OK)
		return ERR_OK; /* the service's own metrics, such as $MetricsCapacityBlob */
	table_name_fold(put.name, key);
	enum err e = merge_name(&r->merge, span_make(key, n), &known);
	return e == ERR_OK && known == 0 ? merge_put(&r->merge, span_make(key, n), &put) : e;
}

static enum err list_tables(struct refresh *r)
{
	struct names names = { .text = BUF_INIT(NAMES_LIMIT) };
	const struct buf no_filter = BUF_INIT(0);
	bool end;
	r->names = &names;
	enum err e = scan(r, &no_filter, "", 0, take_name, &end);
	if (e == ERR_OK)
		e = sort_names(&names);
	for (size_t i = 0; e == ERR_OK && i < names.n; i++)
		e = take_table(r, names.v[i]);
	if (e == ERR_OK)
		e = merge_end(&r->merge, true);
	free(names.v);
	buf_fini(&names.text);
	return e;
}

/* ---- calls ---- */

static const struct span first = SPAN_LIT("");

enum err refresh_tables(struct cloudstore *s)
{
	const struct item account = { .id = s->account, .kind = ITEM_ACCOUNT };
	struct refresh r;
	if (confirmed_covers(s->confirmed, s->account, first, NULL, NULL))
		return ERR_OK;
	enum err e = begin(&r, s, &account, first);
	/* Another thread may have asked while this one waited. */
	bool known = confirmed_covers(s->confirmed, s->account, first, NULL, NULL);
	if (e == ERR_OK && !known)
		e = list_tables(&r);
	if (e == ERR_OK && !known)
		confirmed_add(
			s->confirmed, s->account, first, (struct span){ 0 }, true, r.asked_us);
	return end(&r, e);
}

/* Another client deleted the table: the directory has no rows, and may have ordinary files. */
static bool is_without_table(enum err e)
{
	return e == ERR_TABLE_NOT_FOUND;
}

enum err refresh_listing(
	struct cloudstore *s, const struct item *dir, struct span from, struct refreshed *ret)
{
	struct refresh r;
	*ret = (struct refreshed){ .to = BUF_INIT(LIMIT_KEY_BYTES + 1) };
	if (confirmed_covers(s->confirmed, dir->id, from, &ret->to, &ret->end))
		return ERR_OK;
	enum err e = begin(&r, s, dir, from);
	if (e == ERR_OK)
		e = (dir->kind == ITEM_TABLE ? list_partitions : list_rows)(&r, from, &ret->end);
	if (is_without_table(e)) {
		ret->end = true;
		e = ERR_OK;
	}
	if (e == ERR_OK)
		e = merge_end(&r.merge, ret->end);
	struct span last = buf_span(&r.merge.next); /* with a NUL behind it */
	if (e == ERR_OK && !ret->end)
		buf_add(&ret->to, last.p, last.n - 1);
	if (e == ERR_OK)
		confirmed_add(
			s->confirmed, dir->id, from, buf_span(&ret->to), ret->end, r.asked_us);
	return end(&r, e);
}

enum err refresh_child(struct cloudstore *s, const struct item *dir, struct span key)
{
	struct refresh r;
	if (confirmed_covers(s->confirmed, dir->id, key, NULL, NULL))
		return ERR_OK;
	enum err e = begin(&r, s, dir, key);
	bool known = confirmed_covers(s->confirmed, dir->id, key, NULL, NULL);
	if (e == ERR_OK && !known)
		e = (dir->kind == ITEM_TABLE ? find_partition : read_row)(&r, key);
	if (is_without_table(e))
		e = ERR_OK;
	if (e == ERR_OK && !known)
		e = merge_end(&r.merge, false);
	if (e == ERR_OK && !known)
		confirmed_add(s->confirmed, dir->id, key, key, false, r.asked_us);
	return end(&r, e);
}
