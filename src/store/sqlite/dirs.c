/* SPDX-License-Identifier: MIT
 * Directories touched lately, by id.  Their counters and versions are changed here and
 * written once per change set: a thousand new rows of a partition are one update of it.
 * Between commits the entries are clean copies of the file; after a rollback all are
 * forgotten. */
#include "store/sqlite/rows.h"
#include "store/sqlite/writer.h"

#include <stdlib.h>

#define DIRS_MAX 2048

static struct sql_dir **slot_of(struct sql_writer *w, uint64_t id)
{
	struct sql_dir **p = &w->buckets[id % SQL_DIR_BUCKETS];
	while (*p && (*p)->it.id != id)
		p = &(*p)->next;
	return p;
}

enum err sql_dir_get(struct sql_writer *w, uint64_t id, struct sql_dir **ret)
{
	struct sql_dir **p = slot_of(w, id);
	if (*p) {
		*ret = *p;
		return ERR_OK;
	}
	struct sql_dir *d = calloc(1, sizeof(*d));
	if (!d)
		return ERR_NO_MEMORY;
	enum err e = sql_get(w->conn, id, WANT_ATTRS, &d->it);
	if (e == ERR_OK && !item_is_dir(d->it.kind)) {
		item_fini(&d->it);
		e = ERR_NOT_PERMITTED;
	}
	if (e != ERR_OK) {
		free(d);
		return e;
	}
	*p = d;
	w->ndirs++;
	*ret = d;
	return ERR_OK;
}

const struct item *sql_dir_known(struct sql_writer *w, uint64_t id)
{
	const struct sql_dir *d = *slot_of(w, id);
	return d ? &d->it : NULL;
}

static void overlay(struct sql_writer *w, struct item *it)
{
	struct sql_dir *d = item_is_dir(it->kind) ? *slot_of(w, it->id) : NULL;
	if (!d)
		return;
	it->flags = d->it.flags;
	it->version = d->it.version;
	it->attrs = d->it.attrs;
	it->size = d->it.size;
}

enum err sql_item_get(struct sql_writer *w, uint64_t id, unsigned want, struct item *ret)
{
	enum err e = sql_get(w->conn, id, want, ret);
	if (e == ERR_OK)
		overlay(w, ret);
	return e;
}

enum err sql_item_child(struct sql_writer *w, uint64_t parent, enum item_class class,
	struct span key, unsigned want, struct item *ret)
{
	enum err e = sql_child(w->conn, parent, class, key, want, ret);
	if (e == ERR_OK)
		overlay(w, ret);
	return e;
}

void sql_dir_touch(struct sql_dir *d, int64_t version, int delta)
{
	if (version > d->it.version)
		d->it.version = version;
	d->it.attrs.mtime_ns = TIME_UNSET;
	d->it.attrs.ctime_ns = TIME_UNSET;
	d->it.size += (uint64_t)(int64_t)delta;
	d->dirty = true;
}

static enum err flush(struct sql_writer *w, struct sql_dir *d)
{
	if (!d->dirty)
		return ERR_OK;
	enum err e = sql_item_update(w, &d->it, (struct span){ NULL, 0 });
	if (e == ERR_OK)
		d->dirty = false;
	return e;
}

static void forget(struct sql_writer *w, struct sql_dir **p)
{
	struct sql_dir *d = *p;
	*p = d->next;
	w->ndirs--;
	item_fini(&d->it);
	free(d);
}

enum err sql_dir_release(struct sql_writer *w, uint64_t id)
{
	struct sql_dir **p = slot_of(w, id);
	if (w->memo_partition == id)
		w->memo_partition = 0;
	if (!*p)
		return ERR_OK;
	enum err e = flush(w, *p);
	if (e == ERR_OK)
		forget(w, p);
	return e;
}

enum err sql_dirs_flush(struct sql_writer *w)
{
	for (size_t i = 0; i < SQL_DIR_BUCKETS; i++) {
		for (struct sql_dir *d = w->buckets[i]; d; d = d->next) {
			enum err e = flush(w, d);
			if (e != ERR_OK)
				return e;
		}
	}
	if (w->ndirs > DIRS_MAX)
		sql_dirs_drop(w);
	return ERR_OK;
}

void sql_dirs_drop(struct sql_writer *w)
{
	for (size_t i = 0; i < SQL_DIR_BUCKETS; i++) {
		while (w->buckets[i])
			forget(w, &w->buckets[i]);
	}
	w->memo_partition = 0;
	w->conn->has_removed = SQL_UNKNOWN;
	w->conn->stands = 0;
}

enum err sql_partition_find(struct sql_writer *w, uint64_t table, struct span pk, uint64_t *ret)
{
	if (w->memo_partition && w->memo_table == table && span_eq(w->memo_key.key, pk)) {
		*ret = w->memo_partition;
		return ERR_OK;
	}
	struct item it;
	enum err e = sql_child(w->conn, table, CLASS_KEYED, pk, WANT_ATTRS, &it);
	if (e != ERR_OK)
		return e;
	item_fini(&w->memo_key);
	w->memo_key = it;
	w->memo_table = table;
	w->memo_partition = it.id;
	*ret = it.id;
	return ERR_OK;
}
