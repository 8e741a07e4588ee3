/* SPDX-License-Identifier: MIT
 * Changes of the open store. */
#include "base/clock.h"
#include "daemon/core/place.h"
#include "daemon/rows/row_feed.h"
#include "daemon/rows/rows.h"
#include "service/core/change_signal.h"

#include <stdlib.h>

/* A caller who is gone is noticed after so long. */
#define LOOK_US UINT64_C(200000)

struct store_feed {
	struct row_feed base; /* first */
	struct feed feed;
	uint64_t seen; /* of the signal, before the last read */
};

static enum err read(struct row_feed *base, struct buf *out, bool *ret_more, struct err_detail *why)
{
	struct store_feed *f = (struct store_feed *)base;
	f->seen = change_signal_seen(service_change_signal(f->feed.service));
	f->feed.passed = base->passed;
	enum err e = feed_read(&f->feed, out, ret_more, why);
	(void)feed_position(&f->feed, base->position);
	base->passed = f->feed.passed;
	return e;
}

static void wait(struct row_feed *base)
{
	struct store_feed *f = (struct store_feed *)base;
	change_signal_wait(
		service_change_signal(f->feed.service), f->seen, clock_mono_us() + LOOK_US);
}

static void close(struct row_feed *base)
{
	feed_close(&((struct store_feed *)base)->feed);
	free(base);
}

/* The partition need not be there: it comes with its first row. */
static enum err find(struct cmd_env *env, const char *path, struct place *p, struct span *ret_pk,
	struct err_detail *why)
{
	*ret_pk = (struct span){ NULL, 0 };
	enum err e = place_find(env->service, path, true, p, why);
	if (e != ERR_OK || p->item.kind == ITEM_TABLE)
		return e;
	if (p->item.kind == ITEM_NONE && p->name.dir.id == STORE_ROOT)
		return ERR_ACCOUNT_NOT_FOUND;
	if (p->item.kind == ITEM_NONE && p->name.dir.kind == ITEM_ACCOUNT)
		return ERR_TABLE_NOT_FOUND;
	if (p->name.dir.kind != ITEM_TABLE || p->name.class != CLASS_KEYED || p->name.digest)
		return rows_not_table(why);
	*ret_pk = span_make(p->name.key, p->name.key_len);
	return ERR_OK;
}

enum err store_feed_open(struct cmd_env *env, const char *path, const struct row_feed_options *o,
	struct row_feed **ret, struct err_detail *why)
{
	struct place p = { 0 };
	struct span pk;
	struct store_feed *f = calloc(1, sizeof(*f));
	if (f == NULL)
		return ERR_NO_MEMORY;
	f->base = (struct row_feed){ .read = read, .wait = wait, .close = close };
	enum err e = find(env, path, &p, &pk, why);
	if (e == ERR_OK)
		e = feed_open(env->service, p.table, pk, o->start, o->position, o->with_rows,
			&f->feed, why);
	place_fini(&p);
	if (e != ERR_OK) {
		close(&f->base);
		return e;
	}
	(void)feed_position(&f->feed, f->base.position);
	*ret = &f->base;
	return ERR_OK;
}

enum err row_feed_open(struct cmd_env *env, const char *path, const struct row_feed_options *o,
	struct row_feed **ret, struct err_detail *why)
{
	return env->client != NULL ? cloud_feed_open(env, path, o, ret, why)
				   : store_feed_open(env, path, o, ret, why);
}
