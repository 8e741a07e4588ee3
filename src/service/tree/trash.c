/* SPDX-License-Identifier: MIT
 * Names begin with the time of the removal, so they sort by age.  A file's version is that time
 * too: it is never written again. */
#include "service/tree/trash.h"

#include "base/lock.h"
#include "base/text.h"
#include "model/filename.h"
#include "model/key.h"

#include <stdlib.h>

/* How often a removal is repeated after a lost race. */
#define RETRIES 64
/* The most files that one change set removes. */
#define TRIM_BATCH 256
/* The same on a full disk, where a large change set may find no room. */
#define TRIM_BATCH_FULL 16
/* If a limit is exceeded, 1/SLACK of it is freed in addition. */
#define SLACK 64
/* The files that stay on a full disk.  A user who removed a row to write a new one, and then could
 * not, still has the old one. */
#define FULL_FILES 8
#define FULL_BYTES ((uint64_t)512 << 10)
#define FULL_ROW_BYTES (FULL_BYTES / FULL_FILES)

struct trash {
	struct service *service;
	struct trash_limits limits;
	struct mutex lock;
	uint64_t files, bytes; /* guarded by lock, like the members below */
	int64_t oldest;        /* no file is older; INT64_MAX: no file */
	bool trimming;
	bool full; /* a file found no space: only the last few may stay */
	struct trash_watch watch;
};

/* ---- life ---- */

static bool is_never_in_use(void *arg, uint64_t id)
{
	(void)arg;
	(void)id;
	return false;
}

static void on_over(void *arg, uint64_t id)
{
	(void)arg;
	(void)id;
}

static void on_gone(void *arg, struct span name)
{
	(void)arg;
	(void)name;
}

static bool count_one(void *arg, const struct item *it)
{
	struct trash *t = arg;
	t->files++;
	t->bytes += it->size;
	if (it->version < t->oldest)
		t->oldest = it->version;
	return true;
}

enum err trash_new(struct service *s, const struct trash_limits *limits, struct trash **ret)
{
	struct trash *t = calloc(1, sizeof(*t));
	if (t == NULL)
		return ERR_NO_MEMORY;
	t->service = s;
	t->limits = *limits;
	t->oldest = INT64_MAX;
	t->watch = (struct trash_watch){ is_never_in_use, on_over, on_gone, NULL };
	mutex_init(&t->lock, RANK_TRASH);
	enum err e = store_list(service_store(s), NULL, STORE_TRASH, CLASS_NAMED,
		(struct span){ 0 }, false, WANT_ATTRS, count_one, t);
	if (e != ERR_OK) {
		trash_free(t);
		return e;
	}
	service_set_trash(s, t);
	*ret = t;
	return ERR_OK;
}

void trash_free(struct trash *t)
{
	if (t == NULL)
		return;
	if (service_trash(t->service) == t)
		service_set_trash(t->service, NULL);
	mutex_destroy(&t->lock);
	free(t);
}

void trash_set_watch(struct trash *t, const struct trash_watch *watch)
{
	mutex_lock(&t->lock);
	t->watch = *watch;
	mutex_unlock(&t->lock);
}

static void take_out(struct trash *t, uint64_t size)
{
	t->files -= t->files > 0;
	t->bytes -= size < t->bytes ? size : t->bytes;
	if (t->files == 0)
		t->oldest = INT64_MAX;
}

void trash_left(struct trash *t, uint64_t size)
{
	mutex_lock(&t->lock);
	take_out(t, size);
	mutex_unlock(&t->lock);
}

/* ---- names ---- */

/* Adds as much of the component as fits with `after` bytes behind it. */
static void add_component(struct trash_name *name, char before, struct span s, size_t after)
{
	size_t room = LIMIT_FILE_NAME_BYTES - after - name->n;
	if (room < 2)
		return;
	name->text[name->n++] = before;
	size_t n = s.n < room - 1 ? s.n : room - 1;
	n = utf8_valid_prefix(span_make(s.p, n));
	memcpy(name->text + name->n, s.p, n);
	name->n += n;
}

static void add_key(
	struct trash_name *name, struct span order, enum filename_kind kind, struct span tail)
{
	char key[LIMIT_KEY_BYTES], text[LIMIT_NAME_BYTES + 1];
	key_from_order(order.p, order.n, key);
	size_t n = filename_encode(span_make(key, order.n), kind, text);
	add_component(name, '-', span_make(text, n - (kind == FILENAME_ROW ? tail.n : 0)), tail.n);
}

static enum err name_of(
	struct trash *t, const struct dentry *at, int64_t now, struct trash_name *ret)
{
	static const struct span tail = { ".json", 5 };
	struct item table = { 0 };
	enum err e =
		store_get(service_store(t->service), NULL, at->dir->parent, WANT_ATTRS, &table);
	if (e != ERR_OK)
		return e == ERR_NOT_FOUND ? ERR_GONE : e;
	ret->n = (size_t)clock_format_full(now, ret->text);
	add_component(ret, '-', table.name, tail.n);
	add_key(ret, at->dir->key, FILENAME_PARTITION, tail);
	add_key(ret, at->key, FILENAME_ROW, tail);
	memcpy(ret->text + ret->n, tail.p, tail.n);
	ret->n += tail.n;
	item_fini(&table);
	return ERR_OK;
}

/* ---- removing a row ---- */

static void set_full(struct trash *t)
{
	mutex_lock(&t->lock);
	t->full = true;
	mutex_unlock(&t->lock);
}

static bool is_no_room(enum err e)
{
	return e == ERR_QUOTA || e == ERR_NO_SPACE || e == ERR_FILE_TOO_LARGE;
}

/* Removes the row and keeps its bytes, if it has any, in one change set. */
static enum err move_row(struct trash *t, const struct dentry *at, const struct item *row,
	struct span name, uint32_t flags, struct err_detail *detail)
{
	struct change c = { .op = CHANGE_DELETE,
		.at = { .parent = at->dir->id, .class = at->class, .key = at->key },
		.flags = (at->origin == ORIGIN_MOUNT ? CHANGE_KEEP_DIR : 0) | flags,
		.cond = COND_VERSION,
		.cond_version = row->version,
		.offset = row->size,
		.to = { .parent = STORE_TRASH, .class = CLASS_NAMED, .key = name } };
	if (!item_is_empty_row(row))
		c.flags |= CHANGE_TO_FILE;
	enum err e = service_apply(t->service, at->origin, &c, 1, false, detail);
	int64_t removed = c.version;
	changes_fini(&c, 1);
	if (e == ERR_CONDITION_NOT_MET) /* changed since it was read */
		return ERR_GONE;
	if (e != ERR_OK || item_is_empty_row(row))
		return e;
	mutex_lock(&t->lock);
	t->files++;
	t->bytes += row->size;
	if (removed < t->oldest)
		t->oldest = removed;
	mutex_unlock(&t->lock);
	return ERR_OK;
}

static enum err unlink_once(
	struct trash *t, const struct dentry *at, bool *ret_kept, struct err_detail *detail)
{
	struct item row = { 0 };
	struct trash_name name;
	enum err e = store_child(
		service_store(t->service), NULL, at->dir->id, at->class, at->key, WANT_ATTRS, &row);
	bool keep = e == ERR_OK && row.size <= t->limits.bytes;
	if (e == ERR_OK && keep) {
		e = name_of(t, at, service_next_version(t->service), &name);
		bool named = e == ERR_OK;
		if (named)
			e = move_row(t, at, &row, span_make(name.text, name.n), 0, detail);
		if (named && e == ERR_NO_SPACE) {
			set_full(t);
			if (row.size <= FULL_ROW_BYTES)
				e = move_row(t, at, &row, span_make(name.text, name.n),
					CHANGE_FREED, detail);
		}
		keep = !is_no_room(e);
	}
	if (!keep && (e == ERR_OK || is_no_room(e)))
		e = tree_unlink(t->service, at, NULL, detail);
	*ret_kept = keep && e == ERR_OK && !item_is_empty_row(&row);
	item_fini(&row);
	return e;
}

enum err trash_unlink(
	struct trash *t, const struct dentry *at, bool *ret_kept, struct err_detail *detail)
{
	*ret_kept = false;
	if (t->limits.bytes == 0 || !service_can(t->service, STORE_CAN_SPAN))
		return tree_unlink(t->service, at, NULL, detail);
	enum err e = ERR_GONE;
	for (int tries = 0; tries < RETRIES && e == ERR_GONE; tries++)
		e = unlink_once(t, at, ret_kept, detail);
	return e;
}

/* ---- a row there and back ---- */

enum err trash_keep(struct trash *t, const struct dentry *at, int64_t version,
	struct trash_name *ret, struct err_detail *detail)
{
	struct item row = { 0 };
	enum err e = store_child(
		service_store(t->service), NULL, at->dir->id, at->class, at->key, WANT_ATTRS, &row);
	if (e == ERR_OK && (row.kind != ITEM_ROW || item_is_empty_row(&row)))
		e = ERR_NOT_FOUND;
	if (e == ERR_OK && row.version != version)
		e = ERR_CONDITION_NOT_MET;
	if (e == ERR_OK && (row.size > t->limits.bytes || !service_can(t->service, STORE_CAN_SPAN)))
		e = ERR_NOT_SUPPORTED;
	if (e == ERR_OK)
		e = name_of(t, at, service_next_version(t->service), ret);
	if (e == ERR_OK)
		e = move_row(t, at, &row, span_make(ret->text, ret->n), 0, detail);
	item_fini(&row);
	return e == ERR_GONE ? ERR_CONDITION_NOT_MET : is_no_room(e) ? ERR_NOT_SUPPORTED : e;
}

/* The partition of a table by its key in order form; *ret_made: it was missing. */
static enum err find_or_make(struct service *s, enum origin origin, const struct item *table,
	struct span key, struct item *ret, bool *ret_made)
{
	const struct dentry at = {
		.dir = table, .class = CLASS_KEYED, .key = key, .origin = origin
	};
	const struct attrs attrs = ATTRS_UNSET;
	enum err e =
		store_child(service_store(s), NULL, table->id, CLASS_KEYED, key, WANT_ATTRS, ret);
	*ret_made = e == ERR_NOT_FOUND;
	return *ret_made ? tree_mkdir(s, &at, &attrs, ret, NULL) : e;
}

static enum err move_back(struct trash *t, const struct item *file, struct span name,
	const struct dentry *to, struct err_detail *detail)
{
	const struct item trash = { .id = STORE_TRASH, .kind = ITEM_FOLDER };
	const struct dentry from = {
		.dir = &trash, .class = CLASS_NAMED, .key = name, .origin = to->origin
	};
	enum err e = tree_move(t->service, &from, to, TREE_NO_REPLACE, NULL, NULL, detail);
	if (e == ERR_OK)
		trash_left(t, file->size);
	return e == ERR_NAME_EXISTS ? ERR_ENTITY_EXISTS : e;
}

enum err trash_restore(struct trash *t, enum origin origin, const struct item *table,
	struct span name, struct span pk, struct span rk, struct err_detail *detail)
{
	char pk_order[LIMIT_KEY_BYTES], rk_order[LIMIT_KEY_BYTES];
	struct item file = { 0 }, partition = { 0 };
	bool made = false;
	key_to_order(pk.p, pk.n, pk_order);
	key_to_order(rk.p, rk.n, rk_order);
	const struct span pk_key = span_make(pk_order, pk.n);
	enum err e = store_child(
		service_store(t->service), NULL, STORE_TRASH, CLASS_NAMED, name, WANT_ATTRS, &file);
	if (e == ERR_OK)
		e = find_or_make(t->service, origin, table, pk_key, &partition, &made);
	if (e == ERR_OK) {
		const struct dentry to = { .dir = &partition,
			.class = CLASS_KEYED,
			.key = span_make(rk_order, rk.n),
			.origin = origin };
		e = move_back(t, &file, name, &to, detail);
	}
	if (e != ERR_OK && made) {
		const struct dentry at = {
			.dir = table, .class = CLASS_KEYED, .key = pk_key, .origin = origin
		};
		(void)tree_rmdir(t->service, &at, NULL); /* unless a row came into it */
	}
	item_fini(&file);
	item_fini(&partition);
	return e;
}

/* ---- the bounds ---- */

/* The oldest files that must be removed. */
struct batch {
	uint64_t files, bytes; /* what remains without them */
	uint64_t files_max, bytes_max;
	int64_t expired;
	bool slack, all;
	const struct trash_watch *watch;
	struct item item[TRIM_BATCH];
	size_t n;
	int64_t oldest_left;
	enum err error;
};

static bool is_beyond(const struct batch *b, uint64_t files_max, uint64_t bytes_max)
{
	return b->files > files_max || b->bytes > bytes_max;
}

/* Files removed only for the slack must be small: otherwise it would cost more than it saves. */
static bool goes(const struct batch *b, const struct item *it)
{
	uint64_t files = b->files_max / SLACK, bytes = b->bytes_max / SLACK;
	return (b->all && is_beyond(b, FULL_FILES, FULL_BYTES)) || it->version < b->expired ||
		is_beyond(b, b->files_max, b->bytes_max) ||
		(b->slack && it->size <= bytes &&
			is_beyond(b, b->files_max - files, b->bytes_max - bytes));
}

static bool pick(void *arg, const struct item *it)
{
	struct batch *b = arg;
	bool wanted = b->n < (b->all ? TRIM_BATCH_FULL : TRIM_BATCH) && goes(b, it);
	if (!wanted || b->watch->in_use(b->watch->arg, it->id)) {
		if (it->version < b->oldest_left)
			b->oldest_left = it->version;
		return wanted;
	}
	b->item[b->n] = (struct item){ 0 };
	b->error = item_copy(&b->item[b->n], it);
	if (b->error != ERR_OK) {
		b->watch->over(b->watch->arg, it->id);
		return false;
	}
	b->n++;
	b->files -= b->files > 0;
	b->bytes -= it->size < b->bytes ? it->size : b->bytes;
	return true;
}

/* ERR_GONE: a file was removed or moved out meanwhile. */
static enum err remove_batch(struct trash *t, const struct batch *b)
{
	struct change *c = calloc(b->n, sizeof(*c));
	if (c == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < b->n; i++)
		c[i] = (struct change){ .op = CHANGE_DELETE,
			.at = { .parent = STORE_TRASH,
				.class = CLASS_NAMED,
				.key = b->item[i].key },
			.cond = COND_ID,
			.cond_version = (int64_t)b->item[i].id,
			.attrs = ATTRS_UNSET };
	enum err e = service_apply(t->service, ORIGIN_MOUNT, c, b->n, false, NULL);
	changes_fini(c, b->n);
	free(c);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

/* A limit of 0 bytes is never exceeded: it means that no more files are added. */
static bool is_over(const struct trash *t, int64_t expired)
{
	return (t->full && t->files > 0) || t->files > t->limits.files ||
		(t->limits.bytes != 0 && t->bytes > t->limits.bytes) || t->oldest < expired;
}

/* b->n is 0 if there was nothing to remove. */
static enum err trim_batch(struct trash *t, struct batch *b)
{
	mutex_lock(&t->lock);
	b->all = b->all || t->full;
	bool over = b->all || is_over(t, b->expired);
	b->files = t->files;
	b->bytes = t->bytes;
	b->files_max = t->limits.files;
	b->bytes_max = t->limits.bytes != 0 ? t->limits.bytes : UINT64_MAX;
	b->slack = is_beyond(b, b->files_max, b->bytes_max);
	t->full = false;
	mutex_unlock(&t->lock);
	b->n = 0;
	if (!over)
		return ERR_OK;
	b->oldest_left = INT64_MAX;
	enum err e = store_list(service_store(t->service), NULL, STORE_TRASH, CLASS_NAMED,
		(struct span){ 0 }, false, WANT_ATTRS, pick, b);
	if (e == ERR_OK)
		e = b->error;
	if (e == ERR_OK && b->n > 0)
		e = remove_batch(t, b);
	mutex_lock(&t->lock);
	for (size_t i = 0; e == ERR_OK && i < b->n; i++)
		take_out(t, b->item[i].size);
	/* Files that arrived meanwhile are younger. */
	if (e == ERR_OK && t->files > 0)
		t->oldest = b->oldest_left == INT64_MAX ? b->expired : b->oldest_left;
	mutex_unlock(&t->lock);
	for (size_t i = 0; i < b->n; i++) {
		if (e == ERR_OK)
			b->watch->gone(b->watch->arg, b->item[i].key);
		b->watch->over(b->watch->arg, b->item[i].id);
		item_fini(&b->item[i]);
	}
	return e;
}

void trash_trim(struct trash *t)
{
	int64_t expired = clock_ticks() - t->limits.age_ticks;
	mutex_lock(&t->lock);
	const struct trash_watch watch = t->watch;
	bool mine = !t->trimming && is_over(t, expired);
	if (mine)
		t->trimming = true;
	mutex_unlock(&t->lock);
	if (!mine)
		return;
	struct batch *b = calloc(1, sizeof(*b));
	if (b != NULL) {
		b->expired = expired;
		b->watch = &watch;
		enum err e = trim_batch(t, b);
		for (int lost = 0; (e == ERR_OK && b->n > 0) || (e == ERR_GONE && lost < RETRIES);
			e = trim_batch(t, b))
			lost += e == ERR_GONE;
	}
	free(b);
	mutex_lock(&t->lock);
	t->trimming = false;
	mutex_unlock(&t->lock);
}
