/* SPDX-License-Identifier: MIT */
#include "cloudstore/refresh.h"

#include "cloud/change.h"
#include "cloudstore/outage.h"
#include "cloudstore/question.h"
#include "cloudstore/walk.h"
#include "model/key.h"
#include "model/names.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAMES_LIMIT ((size_t)64 << 20)

/* Names in one buffer of tables, each with a NUL. */
struct names {
	struct buf text;
	const char **v;
	size_t n;
};

/* ---- rows ---- */

static enum err list_rows(struct refresh *r, struct span from, bool *ret_end)
{
	struct buf filter = BUF_INIT(FILTER_LIMIT);
	refresh_add_comparison(&filter, "PartitionKey eq", refresh_pk(r));
	refresh_add_from(&filter, "RowKey", from);
	enum err e = refresh_scan(r, &filter, "", PAGE_ROWS, refresh_take_row, ret_end);
	buf_fini(&filter);
	return e;
}

static enum err read_row(struct refresh *r, struct span key)
{
	char rk[LIMIT_KEY_BYTES];
	struct cloud_row row = { 0 };
	struct buf body;
	key_from_order(key.p, key.n, rk);
	enum err e = cloud_get(r->client, r->table.name, refresh_pk(r), span_make(rk, key.n), &row,
		&body, &r->why);
	r->away = outage_is(e);
	if (e == ERR_OK)
		e = refresh_take_row(r, &row);
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
	refresh_add_from(&filter, "PartitionKey", from);
	enum err e = refresh_scan(r, &filter, "PartitionKey,RowKey", PAGE_ROWS, take_key, ret_end);
	buf_fini(&filter);
	return e;
}

static enum err find_partition(struct refresh *r, struct span key)
{
	char pk[LIMIT_KEY_BYTES];
	bool none;
	struct buf filter = BUF_INIT(FILTER_LIMIT);
	key_from_order(key.p, key.n, pk);
	refresh_add_comparison(&filter, "PartitionKey eq", span_make(pk, key.n));
	enum err e = refresh_scan(r, &filter, "PartitionKey,RowKey", 1, take_key, &none);
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
	struct names *names = r->arg;
	const struct property *p = entity_find(&row->entity, SPAN_LIT("TableName"));
	if (p == NULL || p->value.type != EDM_STRING)
		return ERR_OK;
	buf_add_span(&names->text, p->value.bytes);
	buf_add_char(&names->text, 0);
	names->n++;
	return buf_full(&names->text);
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
	r->arg = &names;
	enum err e = refresh_scan(r, &no_filter, "", 0, take_name, &end);
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

static enum err ask_tables(struct cloudstore *s, bool *ret_away)
{
	const struct item account = { .id = s->account, .kind = ITEM_ACCOUNT };
	struct refresh r;
	enum err e = refresh_begin(&r, s, &account, first);
	/* Another thread may have asked while this one waited. */
	bool known = confirmed_covers(s->confirmed, s->account, first, NULL, NULL);
	if (e == ERR_OK && !known)
		e = list_tables(&r);
	if (e == ERR_OK && !known)
		confirmed_add(
			s->confirmed, s->account, first, (struct span){ 0 }, true, r.asked_us);
	e = refresh_end(&r, e);
	*ret_away = r.away;
	return e;
}

enum err refresh_tables(struct cloudstore *s)
{
	struct outage p = { .s = s };
	enum err e = ERR_OK;
	if (confirmed_covers(s->confirmed, s->account, first, NULL, NULL))
		return ERR_OK;
	do
		e = ask_tables(s, &p.away);
	while (outage_retry(&p, &e));
	return e;
}

/* Another client deleted the table: the directory has no rows, and may have ordinary files. */
static bool is_without_table(enum err e)
{
	return e == ERR_TABLE_NOT_FOUND;
}

static enum err ask_listing(
	struct cloudstore *s, const struct item *dir, struct span from, struct refreshed *ret)
{
	struct refresh r;
	enum err e = refresh_begin(&r, s, dir, from);
	if (e == ERR_OK)
		e = (dir->kind == ITEM_TABLE ? list_partitions : list_rows)(&r, from, &ret->end);
	if (is_without_table(e)) {
		ret->end = true;
		e = ERR_OK;
	}
	if (e == ERR_OK)
		e = refresh_end_part(&r, dir->id, from, ret);
	e = refresh_end(&r, e);
	ret->away = r.away;
	return e;
}

static enum err refresh_rows(
	struct cloudstore *s, const struct item *dir, struct span from, struct refreshed *ret)
{
	enum err e = ERR_NOT_FOUND;
	ret->end = walk_covers(s, dir);
	if (ret->end)
		e = ERR_OK;
	else if (from.n == 0 && walk_follows(s, dir))
		e = walk_read(s, dir, ret);
	if (e == ERR_NOT_FOUND)
		e = ask_listing(s, dir, from, ret);
	if (e == ERR_OK && ret->end)
		walk_note(s, dir);
	return e;
}

enum err refresh_listing(
	struct cloudstore *s, const struct item *dir, struct span from, struct refreshed *ret)
{
	struct outage p = { .s = s };
	enum err e = ERR_OK;
	*ret = (struct refreshed){ .to = BUF_INIT(LIMIT_KEY_BYTES + 1) };
	if (confirmed_covers(s->confirmed, dir->id, from, &ret->to, &ret->end))
		return ERR_OK;
	do {
		e = dir->kind == ITEM_TABLE ? ask_listing(s, dir, from, ret)
					    : refresh_rows(s, dir, from, ret);
		p.away = ret->away;
	} while (outage_retry(&p, &e));
	return e;
}

static bool is_known(struct cloudstore *s, const struct item *dir, struct span key)
{
	const struct span any = { 0 };
	if (confirmed_covers(s->confirmed, dir->id, key, NULL, NULL))
		return true;
	if (dir->kind == ITEM_TABLE)
		return found_has(s->found, dir->id, key, any);
	return walk_covers(s, dir) || found_has(s->found, dir->parent, dir->key, key);
}

static enum err ask_child(
	struct cloudstore *s, const struct item *dir, struct span key, bool *ret_away)
{
	struct refresh r;
	enum err e = dir->kind == ITEM_TABLE ? refresh_begin_name(&r, s, dir, key)
					     : refresh_begin(&r, s, dir, key);
	bool known = is_known(s, dir, key);
	if (e == ERR_OK && !known)
		e = (dir->kind == ITEM_TABLE ? find_partition : read_row)(&r, key);
	if (is_without_table(e))
		e = ERR_OK;
	if (e == ERR_OK && !known)
		e = merge_end(&r.merge, false);
	if (e == ERR_OK && !known)
		confirmed_add(s->confirmed, dir->id, key, key, false, r.asked_us);
	e = refresh_end(&r, e);
	*ret_away = r.away;
	return e;
}

enum err refresh_child(struct cloudstore *s, const struct item *dir, struct span key)
{
	struct outage p = { .s = s };
	enum err e = ERR_OK;
	if (is_known(s, dir, key))
		return ERR_OK;
	do
		e = ask_child(s, dir, key, &p.away);
	while (outage_retry(&p, &e));
	return e;
}
