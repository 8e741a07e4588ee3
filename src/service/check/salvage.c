/* SPDX-License-Identifier: MIT
 * Reads each row by itself, so that a damaged row does not affect others. */
#include "service/check/salvage.h"

#include "codec/entity_json.h"
#include "model/key.h"
#include "service/check/walk.h"
#include "service/view/views.h"

#include <stdio.h>
#include <string.h>

#define KEY_SHOWN 80
#define LINE_MAX ((size_t)16 << 20)

struct work {
	struct store *store;
	struct view *view;
	struct salvage *to;
	struct entity entity;
	struct buf line;
	char pk[LIMIT_KEY_BYTES], rk[LIMIT_KEY_BYTES];
};

static struct span key_of(const struct item *it, char out[LIMIT_KEY_BYTES])
{
	size_t n = it->key.n < LIMIT_KEY_BYTES ? it->key.n : LIMIT_KEY_BYTES;
	key_from_order(it->key.p, n, out);
	return span_make(out, n);
}

static void lose(struct work *w, struct span pk, struct span rk, const char *why)
{
	char text[3 * KEY_SHOWN + 200];
	(void)snprintf(text, sizeof(text), "PartitionKey '%.*s', RowKey '%.*s': %s",
		pk.n < KEY_SHOWN ? (int)pk.n : KEY_SHOWN, pk.p,
		rk.n < KEY_SHOWN ? (int)rk.n : KEY_SHOWN, rk.p ? rk.p : "", why);
	w->to->losses++;
	w->to->lost(w->to->arg, text);
}

static enum err put_row(struct work *w, const struct item *row, struct span pk, struct span rk)
{
	struct entity *e = &w->entity;
	enum err err = entity_json_decode(row->body, ENTITY_JSON_FILE, e, NULL, NULL);
	if (err == ERR_NO_MEMORY)
		return err;
	if (err != ERR_OK) {
		lose(w, pk, rk, "its document is invalid; left out");
		return ERR_OK;
	}
	e->pk = pk;
	e->rk = rk;
	e->has_pk = e->has_rk = true;
	e->timestamp = row->version;
	buf_clear(&w->line);
	entity_json_encode(e,
		ENTITY_JSON_PK | ENTITY_JSON_RK | ENTITY_JSON_TIMESTAMP | ENTITY_JSON_NEWLINE,
		&w->line);
	if (!buf_ok(&w->line))
		return ERR_NO_MEMORY;
	w->to->rows++;
	return w->to->row(w->to->arg, buf_span(&w->line)) ? ERR_OK : ERR_CANCELLED;
}

/* A bad checksum or a bad sector. */
static bool is_damage(enum err e)
{
	return e == ERR_CORRUPT || e == ERR_IO;
}

/* Takes the next child.  The view is in use only during the call.  A slow reader of the output must
 * not keep the log on disk from restarting. */
static enum err next(struct work *w, uint64_t directory, struct item *at)
{
	struct store_view *v;
	enum err e = view_begin(w->view, &v);
	if (e != ERR_OK)
		return e;
	e = walk_next(w->store, v, directory, CLASS_KEYED, WANT_ATTRS, at);
	view_end(w->view);
	return e;
}

static enum err try_row(struct work *w, const struct item *at, struct span pk)
{
	struct store_view *v;
	struct item row = { 0 };
	struct span rk = key_of(at, w->rk);
	if (at->kind != ITEM_ROW || item_is_empty_row(at))
		return ERR_OK;
	enum err e = view_begin(w->view, &v);
	if (e != ERR_OK)
		return e;
	e = store_child(w->store, v, at->parent, CLASS_KEYED, at->key, WANT_BODY, &row);
	view_end(w->view);
	if (e == ERR_OK)
		e = put_row(w, &row, pk, rk);
	else if (is_damage(e) || e == ERR_NOT_FOUND) {
		lose(w, pk, rk, "it cannot be read; left out");
		e = ERR_OK;
	}
	item_fini(&row);
	return e;
}

static enum err try_partition(struct work *w, const struct item *partition)
{
	struct item at = { 0 };
	struct span pk = key_of(partition, w->pk);
	enum err e;
	w->rk[0] = 0;
	struct span last = { 0 };
	while ((e = next(w, partition->id, &at)) == ERR_OK) {
		last = key_of(&at, w->rk);
		e = try_row(w, &at, pk);
		if (e != ERR_OK)
			break;
	}
	item_fini(&at);
	if (is_damage(e)) {
		lose(w, pk, last, "the rows behind it cannot be listed; left out");
		return ERR_OK;
	}
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

enum err service_salvage(struct service *s, uint64_t table_id, struct salvage *to)
{
	struct work w = { .store = service_store(s), .to = to, .line = BUF_INIT(LINE_MAX) };
	struct item at = { 0 };
	enum err e = views_open(service_views(s), SPAN_LIT("rowfs export --skip-damaged"), &w.view);
	if (e != ERR_OK)
		return e;
	while ((e = next(&w, table_id, &at)) == ERR_OK) {
		e = try_partition(&w, &at);
		if (e != ERR_OK)
			break;
	}
	item_fini(&at);
	views_close(w.view);
	entity_fini(&w.entity);
	buf_fini(&w.line);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}
