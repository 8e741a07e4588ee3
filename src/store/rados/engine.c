/* SPDX-License-Identifier: MIT
 * The RADOS engine: a store in a namespace of a pool of a Ceph cluster.  core.h has the layout. */
#include "store/rados/engine.h"

#include "base/crypto.h"
#include "model/limits.h"
#include "store/engines.h"
#include "store/rados/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "1"

static enum err rados_room(struct store *st, uint64_t bytes, struct err_detail *reterr)
{
	(void)bytes;
	if (rstore_of(st)->read_only)
		return err_set(reterr, ERR_READ_ONLY, NULL);
	return atomic_load(&rstore_of(st)->io.refused)
		? err_set(reterr, ERR_IO, "another daemon has taken the store over")
		: ERR_OK;
}

static enum err rados_sync(struct store *st)
{
	(void)st; /* each operation is durable when it is answered */
	return ERR_OK;
}

static int64_t rados_version_floor(struct store *st)
{
	struct rstore *s = rstore_of(st);
	mutex_lock(&s->lock);
	int64_t high = s->version_high;
	mutex_unlock(&s->lock);
	return high;
}

static enum err rados_view_open(struct store *st, bool held, struct store_view **ret)
{
	(void)st;
	(void)held;
	*ret = NULL;
	return ERR_OK;
}

static void rados_view_close(struct store *st, struct store_view *v)
{
	(void)st;
	(void)v;
}

static void rados_info(struct store *st, struct store_info *ret)
{
	struct rstore *s = rstore_of(st);
	ret->remote = true;
	ret->abilities = STORE_COUNTS_EXACT | (s->read_only ? STORE_READ_ONLY : 0) |
		(s->shared ? STORE_SHARED : 0);
	mutex_lock(&s->lock);
	ret->file_bytes = s->file_bytes;
	ret->piece_limit = UINT64_MAX;
	ret->bytes = s->pool_bytes;
	ret->large_rows = CHILDREN_WARN;
	ret->remote_bytes = s->space;
	ret->remote_free = s->space_free;
	ret->commits = ret->change_sets = ret->syncs = ret->commit_sizes[0] = s->commits;
	ret->changes = s->changes;
	mutex_unlock(&s->lock);
	ret->reclaiming = atomic_load(&s->any_dying) > 0;
}

static enum err note_end(struct rstore *s)
{
	enum err e = owner_note_floor(s, s->version_high);
	for (unsigned i = 0; i < RSTORE_TRIES && e == ERR_OK; i++) {
		rstore_pause(i);
		enum err noted = owner_note_files(s);
		if (noted != ERR_BUSY)
			return noted;
	}
	return e;
}

static void rados_close(struct store *st)
{
	struct rstore *s = rstore_of(st);
	if (s->renews && !s->read_only)
		(void)note_end(s);
	owner_leave(s);
	rio_disconnect(&s->io);
	rwlock_destroy(&s->sets);
	for (unsigned i = 0; i < WRITERS; i++)
		mutex_destroy(&s->writers[i]);
	mutex_destroy(&s->ids);
	mutex_destroy(&s->lock);
	(void)pthread_cond_destroy(&s->wake);
	free(s->homes);
	free(s->dying);
	free(s->pending);
	free(s);
}

static const struct store_ops ops = {
	.name = "rados",
	.get = rados_get,
	.child = rados_child,
	.list = rados_list,
	.file_read = rados_file_read,
	.apply = rados_apply,
	.room = rados_room,
	.sync = rados_sync,
	.version_floor = rados_version_floor,
	.view_open = rados_view_open,
	.view_close = rados_view_close,
	.info = rados_info,
	.check = rados_check,
	.close = rados_close,
};

/* ---- creation ---- */

/* One that an interrupted creation left is as good. */
static int add_fixed(struct rio *io, uint64_t id, const char *key)
{
	struct item it = {
		.id = id,
		.kind = ITEM_FOLDER,
		.class = CLASS_NAMED,
		.flags = ITEM_MADE,
		.attrs = ATTRS_UNSET,
		.key = span_of(key),
		.name = SPAN_LIT(""),
	};
	char object[RIO_NAME_MAX];
	struct buf header = BUF_INIT(KEYS_MAX);
	struct rio_edit e = { 0 };
	record_header(&header, &it);
	int code = -ENOMEM;
	if (buf_ok(&header)) {
		rio_edit_set(&e, SPAN_LIT(KEY_HEADER), buf_span(&header));
		rio_edit_set(&e, SPAN_LIT(KEY_TOKEN), SPAN_LIT("00000000000000000000000000000000"));
		name_dir(object, id);
		code = rio_write(io, object, &e, (struct rio_guard){ .create = true });
	}
	rio_edit_fini(&e);
	buf_fini(&header);
	return code == -EEXIST ? 0 : code;
}

static int fill(struct rio *io)
{
	static const char *const fixed[] = { NULL, "root", "rejected", "trash", "orphans" };
	struct rio_edit edit = { 0 };
	int code = 0;
	for (uint64_t id = STORE_ROOT; code == 0 && id <= STORE_ORPHANS; id++)
		code = add_fixed(io, id, fixed[id]);
	/* The store is there with its own object: that comes last. */
	rio_edit_set(&edit, SPAN_LIT("format"), SPAN_LIT(FORMAT));
	rio_edit_set(&edit, SPAN_LIT("next"), SPAN_LIT("1000"));
	rio_edit_set(&edit, SPAN_LIT("floor"), SPAN_LIT("000000000000000"));
	if (code == 0)
		code = rio_write(io, STORE_OBJECT, &edit, (struct rio_guard){ .create = true });
	rio_edit_fini(&edit);
	return code;
}

enum err rados_store_create(const char *url, struct err_detail *detail)
{
	struct rio io;
	bool alone;
	enum err e = rio_connect(&io, url, &alone, detail);
	if (e != ERR_OK)
		return e;
	int code = fill(&io);
	if (code == -EEXIST)
		e = err_set(detail, ERR_NAME_EXISTS, "%s is a store already", url);
	else if (code < 0)
		e = err_set(detail, rio_error(&io, code), "%s: %s", url, strerrordesc_np(-code));
	rio_disconnect(&io);
	return e;
}

/* ---- opening ---- */

static enum err read_store(struct rstore *s, const char *url, struct err_detail *detail)
{
	char *mem = NULL;
	struct rio_value v[3] = { { .key = SPAN_LIT("format") }, { .key = SPAN_LIT("floor") },
		{ .key = SPAN_LIT("files") } };
	enum err e = rio_get(&s->io, STORE_OBJECT, v, 3, &mem);
	if (e == ERR_NOT_FOUND)
		return err_set(detail, e, "there is no store at %s; rowfs init makes one", url);
	if (e == ERR_OK && !v[0].val.p)
		e = err_set(detail, ERR_NOT_A_STORE, "%s is no store", url);
	if (e == ERR_OK && !span_is(v[0].val, FORMAT))
		e = err_set(detail, ERR_STORE_TOO_NEW, "%s has format %s; this rowfs knows %s", url,
			v[0].val.p, FORMAT);
	if (e == ERR_OK) {
		s->version_high = v[1].val.p ? (int64_t)strtoull(v[1].val.p, NULL, 16) : 0;
		s->file_bytes = v[2].val.p ? strtoull(v[2].val.p, NULL, 16) : 0;
		s->file_bytes_told = s->file_bytes;
		s->reserved = s->version_high;
	}
	free(mem);
	return e;
}

static void name_instance(struct rstore *s)
{
	uint64_t random;
	crypto_random(&random, sizeof(random));
	(void)snprintf(s->instance, sizeof(s->instance), "%016llx", (unsigned long long)random);
}

enum err rados_store_open(
	const char *url, unsigned flags, struct store **ret, struct err_detail *detail)
{
	struct rstore *s = calloc(1, sizeof(*s));
	if (!s)
		return ERR_NO_MEMORY;
	s->base.ops = &ops;
	s->read_only = flags & STORE_OPEN_READ_ONLY;
	s->limit_file = LIMIT_FILE_BYTES;
	s->limit_files = LIMIT_FILES_BYTES;
	s->limit_children = CHILDREN_MAX;
	rwlock_init(&s->sets, RANK_RADOS_SETS);
	for (unsigned i = 0; i < WRITERS; i++)
		mutex_init(&s->writers[i], RANK_RADOS_WRITER);
	mutex_init(&s->ids, RANK_RADOS_IDS);
	mutex_init(&s->lock, RANK_RADOS);
	(void)pthread_cond_init(&s->wake, NULL);
	name_instance(s);
	bool alone;
	enum err e = rio_connect(&s->io, url, &alone, detail);
	s->shared = !alone;
	/* Read before, so that nothing is locked where there is no store; and when it is ours. */
	if (e == ERR_OK)
		e = read_store(s, url, detail);
	if (e == ERR_OK)
		e = owner_take(s, detail);
	if (e == ERR_OK)
		e = read_store(s, url, detail);
	if (e != ERR_OK) {
		s->read_only = true; /* nothing to note */
		rados_close(&s->base);
		return e;
	}
	*ret = &s->base;
	return ERR_OK;
}

void rados_store_digest(const char *url, uint8_t ret[32])
{
	rio_digest(url, ret);
}

bool rados_store_set_file_limits(struct store *st, uint64_t one, uint64_t all)
{
	if (st->ops != &ops)
		return false;
	rstore_of(st)->limit_file = one;
	rstore_of(st)->limit_files = all;
	return true;
}

bool rados_store_set_row_limit(struct store *st, uint64_t limit)
{
	if (st->ops != &ops)
		return false;
	rstore_of(st)->limit_children = limit;
	return true;
}
