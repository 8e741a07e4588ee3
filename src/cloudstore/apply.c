/* SPDX-License-Identifier: MIT
 * Changes.  Those of rows and tables are the service's: it is asked first, with the condition of the
 * change.  The shadow then makes the same change, with the version that the service chose.  All else is
 * the shadow's alone. */
#include "base/clock.h"
#include "base/may_block.h"
#include "cloudstore/crossing.h"
#include "cloudstore/outage.h"
#include "cloudstore/refresh.h"
#include "cloudstore/sending.h"
#include "cloudstore/target.h"
#include "cloudstore/walk.h"
#include "model/etag.h"

#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

/* The service has checked the conditions: the shadow does not check them again. */
static enum err take_response(struct sending *w, const char *etag)
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

/* The requests of n changes, in their order. */
struct group {
	struct cloud_change *changes;
	struct sending **of;           /* by request: its change */
	char (*etags)[CLOUD_ETAG_MAX]; /* by request */
	size_t n;
};

static void group_fini(struct group *g)
{
	free(g->changes);
	free(g->of);
	free(g->etags);
}

/* Call group_fini() also after an error. */
static enum err group_init(struct group *g, struct sending *w, size_t n)
{
	size_t most = n * SENDING_MAX;
	*g = (struct group){ .changes = calloc(most, sizeof(*g->changes)),
		.of = calloc(most, sizeof(*g->of)),
		.etags = calloc(most, sizeof(*g->etags)) };
	if (g->changes == NULL || g->of == NULL || g->etags == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < w[i].n; k++, g->n++) {
			g->changes[g->n] = w[i].changes[k];
			g->of[g->n] = &w[i];
		}
	return g->n > LIMIT_BATCH_OPS ? ERR_BATCH_TOO_LARGE : ERR_OK;
}

static enum err take_group_response(const struct group *g)
{
	enum err e = ERR_OK;
	for (size_t i = 0; e == ERR_OK && i < g->n; i++) {
		struct sending *w = g->of[i];
		if (i > 0 && w == g->of[i - 1])
			continue; /* the row under its old key */
		e = take_response(w, g->etags[i]);
	}
	return e;
}

static enum err send_group(struct sending *w, size_t n, struct client *client)
{
	struct group g;
	enum err e = group_init(&g, w, n);
	w->why->op = 0; /* counts requests here, not changes of the set */
	if (e == ERR_OK)
		e = cloudstore_error(
			cloud_change_group(client, w->table.name, g.changes, g.n, g.etags, w->why));
	if (e != ERR_OK && g.of != NULL && w->why->op < g.n)
		w->why->op = g.of[w->why->op]->index;
	if (e == ERR_OK)
		e = take_group_response(&g);
	group_fini(&g);
	return e;
}

static enum err send_one(struct sending *w, struct client *client)
{
	char etag[CLOUD_ETAG_MAX];
	enum err e =
		cloudstore_error(cloud_change(client, w->table.name, &w->changes[0], etag, w->why));
	return e == ERR_OK ? take_response(w, etag) : e;
}

static void forget(struct sending *w)
{
	confirmed_forget(w->s->confirmed, w->at.dir.id != 0 ? w->at.dir.id : w->at.table);
	walk_forget(w->s, w->at.table);
}

static enum err send_rows(struct sending *w, size_t n)
{
	struct client *client;
	enum err e = clients_take(&w->s->clients, &client, w->why);
	if (e != ERR_OK)
		return e;
	e = n == 1 && w->n == 1 ? send_one(w, client) : send_group(w, n, client);
	clients_give(&w->s->clients, client);
	w->attempt->away = outage_is(e);
	/* The shadow is out of date, or may be. */
	if (e != ERR_OK)
		forget(w);
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
static enum err replace(struct sending *w)
{
	struct store *shadow = w->s->shadow;
	struct change *c = w->c, steps[3];
	bool moved = c->op == CHANGE_MOVE;
	const struct change removal = { .op = CHANGE_DELETE,
		.flags = CHANGE_KEEP_DIR,
		.version = cloudstore_new_version(shadow),
		.attrs = ATTRS_UNSET };
	size_t n = 0;
	if (moved) {
		steps[n] = removal;
		steps[n++].at = c->at;
	}
	if (w->at.there.kind != ITEM_NONE) {
		steps[n] = removal;
		steps[n++].at = (struct item_ref){ .id = w->at.there.id };
	}
	steps[n++] = (struct change){ .op = CHANGE_PUT,
		.kind = ITEM_ROW,
		.at = moved ? c->to : c->at,
		.version = c->version,
		.item_flags = c->item_flags,
		.body = c->body.n > 0 ? c->body : w->source.body,
		.attrs = ATTRS_UNSET };
	struct err_detail why = { 0 };
	enum err e = store_apply(shadow, steps, n, false, &why);
	if (e != ERR_OK)
		return e;
	take_results(c, &steps[n - 1]);
	steps[n - 1] = (struct change){ 0 };
	changes_fini(steps, n);
	return ERR_OK;
}

/* Makes each change by itself.  A row that replaces a newer item becomes another item. */
static enum err follow_each(struct sending *w, size_t k, struct change *set, size_t n, bool durable)
{
	struct err_detail why = { 0 };
	enum err e = ERR_OK;
	for (size_t i = 0, row = 0; i < n; i++) {
		bool is_row = row < k && w[row].c == &set[i];
		e = store_apply(w->s->shadow, &set[i], 1, durable, &why);
		if (e == ERR_STALE_VERSION && is_row && set[i].op != CHANGE_DELETE)
			e = replace(&w[row]);
		row += is_row;
		if (e != ERR_OK) {
			changes_fini(set, i);
			return e;
		}
	}
	return e;
}

/* The service has removed a row that the shadow lacked.  The shadow gets one, so that the change removes it. */
static enum err add_removed(struct sending *w)
{
	struct err_detail why = { 0 };
	if (w->c->op != CHANGE_DELETE || w->at.there.kind != ITEM_NONE)
		return ERR_OK;
	struct change put = { .op = CHANGE_PUT,
		.kind = ITEM_ROW,
		.at = w->c->at,
		.version = w->c->version - 1,
		.body = SPAN_LIT("{}"),
		.attrs = ATTRS_UNSET };
	enum err e = store_apply(w->s->shadow, &put, 1, false, &why);
	changes_fini(&put, 1);
	return e;
}

/* The service has done it: a failure here leaves a shadow that the next read mends. */
static enum err follow(
	struct sending *w, size_t k, struct change *set, size_t n, bool durable, uint64_t asked_us)
{
	struct store *shadow = w->s->shadow;
	struct err_detail why = { 0 };
	enum err e = ERR_OK;
	for (size_t i = 0; e == ERR_OK && i < k; i++)
		e = add_removed(&w[i]);
	if (e == ERR_OK)
		e = store_apply(shadow, set, n, durable, &why);
	if (e == ERR_STALE_VERSION)
		e = follow_each(w, k, set, n, durable);
	for (size_t i = 0; e == ERR_OK && i < k; i++)
		confirmed_add(w->s->confirmed, w[i].c->now.parent, buf_span(&w[i].at.rk),
			buf_span(&w[i].at.rk), false, asked_us);
	if (e == ERR_OK)
		return ERR_OK;
	forget(w);
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
			e = same ? sending_prepare(&w[i]) : ERR_CROSS_DEVICE;
	}
	return e;
}

static void sendings_free(struct sending *w, size_t n)
{
	for (size_t i = 0; w != NULL && i < n; i++)
		sending_fini(&w[i]);
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
		found_forget(s->found, first.table);
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

static enum err change_table(struct cloudstore *s, struct change *c, bool durable,
	struct attempt *attempt, struct err_detail *why)
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
	attempt->away = client != NULL && outage_is(e);
	if (attempt->again && e == (put ? ERR_TABLE_EXISTS : ERR_TABLE_NOT_FOUND))
		e = ERR_OK; /* the earlier one was done */
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

/* Fills w with the changes of rows.  *ret: TARGET_TABLE or TARGET_CROSSING, if that is the only change, else
 * TARGET_ROW or TARGET_SHADOW. */
static enum err sort_out(struct cloudstore *s, struct change *set, size_t n, struct sending *w,
	struct attempt *attempt, size_t *ret_rows, enum target *ret, struct err_detail *why)
{
	*ret_rows = 0;
	*ret = TARGET_SHADOW;
	for (size_t i = 0; i < n; i++) {
		enum target t;
		why->op = i;
		enum err e = target_of(s, &set[i], &t, why);
		if (e != ERR_OK)
			return e;
		if (t == TARGET_ROW)
			w[(*ret_rows)++] = (struct sending){
				.s = s, .c = &set[i], .attempt = attempt, .index = i, .why = why
			};
		if (t == TARGET_TABLE && n > 1)
			return err_set(why, ERR_NOT_SUPPORTED, "one table at a time");
		if (t == TARGET_CROSSING && n > 1)
			return ERR_CROSS_DEVICE;
		if (t != TARGET_SHADOW)
			*ret = t;
	}
	why->op = *ret_rows > 0 ? w->index : 0;
	return ERR_OK;
}

static enum err apply_copy(struct cloudstore *s, struct change *set, size_t n, bool durable,
	struct attempt *attempt, struct err_detail *why)
{
	struct sending *w = calloc(n, sizeof(*w));
	size_t rows = 0;
	enum target target;
	if (w == NULL)
		return ERR_NO_MEMORY;
	enum err e = sort_out(s, set, n, w, attempt, &rows, &target, why);
	if (e == ERR_OK && rows > LIMIT_BATCH_OPS)
		e = ERR_BATCH_TOO_LARGE;
	else if (e == ERR_OK && rows > 0)
		e = change_rows(s, w, rows, set, n, durable);
	else if (e == ERR_OK && target == TARGET_TABLE)
		e = change_table(s, set, durable, attempt, why);
	else if (e == ERR_OK && target == TARGET_CROSSING)
		e = cloudstore_cross(s, set, durable, why);
	else if (e == ERR_OK)
		e = store_apply(s->shadow, set, n, durable, why);
	sendings_free(w, rows);
	return e;
}

enum err cloudstore_apply(
	struct store *store, struct change *changes, size_t n, bool durable, struct err_detail *why)
{
	struct err_detail unused = { 0 };
	struct outage p = { .s = (struct cloudstore *)store };
	struct attempt attempt = { 0 };
	struct change *set = calloc(n, sizeof(*set));
	enum err e;
	if (set == NULL)
		return ERR_NO_MEMORY;
	do {
		memcpy(set, changes, n * sizeof(*set));
		attempt.away = false;
		e = apply_copy(p.s, set, n, durable, &attempt, why != NULL ? why : &unused);
		attempt.again |= e == ERR_OUTCOME_UNKNOWN;
		p.away = attempt.away;
	} while (outage_retry(&p, &e));
	if (attempt.again && (attempt.away || e == ERR_CANCELLED))
		e = ERR_OUTCOME_UNKNOWN;
	for (size_t i = 0; e == ERR_OK && i < n; i++)
		take_results(&changes[i], &set[i]);
	free(set);
	return e;
}
