/* SPDX-License-Identifier: MIT */
#include "fs/virtual/stream_file.h"

#include "fs/cache/stream_sizes.h"
#include "fs/core/nid.h"
#include "fs/tree/control_names.h"
#include "fs/tree/names.h"
#include "fs/tree/requester.h"
#include "model/key.h"
#include "service/query/row_stream.h"

#include <stdlib.h>

#define MOMENT_TRIES 4

struct stream_file {
	struct vfile file;
	struct row_stream *stream;
	struct stream_moment moment; /* not known where not all rows are shown */
	bool columns_kept;
	struct requester requester;
};

static bool asked(void *arg)
{
	const struct caller *const *call = arg;
	return caller_interrupted(*call);
}

/* The next open of the same rows needs no pass to find them. */
static void keep_columns(struct stream_file *s)
{
	struct buf names = BUF_INIT(SIZE_MAX / 2);
	if (s->columns_kept || !row_stream_columns(s->stream, &names))
		return;
	if (buf_ok(&names))
		stream_sizes_add_columns(s->file.fs->stream_sizes, &s->moment, buf_span(&names));
	buf_fini(&names);
	s->columns_kept = true;
}

static enum err know_columns(struct stream_file *s)
{
	struct buf names = BUF_INIT(SIZE_MAX / 2);
	enum err e = ERR_OK;
	if (stream_sizes_find_columns(s->file.fs->stream_sizes, &s->moment, &names)) {
		s->columns_kept = true;
		e = buf_full(&names);
		if (e == ERR_OK)
			e = row_stream_know_columns(s->stream, buf_span(&names));
	}
	buf_fini(&names);
	return e;
}

static enum err stream_read(
	struct vfile *f, const struct caller *call, uint64_t offset, size_t n, struct buf *out)
{
	struct stream_file *s = (struct stream_file *)f;
	enum err e = row_stream_read(s->stream, offset, n, asked, &call, out, call->detail);
	keep_columns(s);
	return e;
}

static enum err stream_size(struct vfile *f, const struct caller *call, uint64_t *ret)
{
	struct stream_file *s = (struct stream_file *)f;
	if (stream_sizes_find(f->fs->stream_sizes, &s->moment, ret))
		return ERR_OK;
	enum err e = row_stream_size(s->stream, asked, &call, ret, call->detail);
	if (e == ERR_OK)
		stream_sizes_add(f->fs->stream_sizes, &s->moment, *ret);
	keep_columns(s);
	return e;
}

static void stream_free(struct vfile *f)
{
	struct stream_file *s = (struct stream_file *)f;
	row_stream_close(s->stream);
	free(s);
}

static const struct vfile_ops stream_ops = {
	.pool = VPOOL_SCAN,
	.resumes = true,
	.read = stream_read,
	.size = stream_size,
	.free = stream_free,
};

struct source {
	uint64_t nid;
	const struct caller *call;
	uint64_t table_id, dir_id;
	const struct span *partition;
	struct span what;
};

static struct stream_moment moment_now(struct fs *fs, const struct source *from)
{
	return stream_sizes_now(fs->stream_sizes, from->nid, from->table_id, from->dir_id);
}

/* Others may commit while the view is opened: then it is opened once more, some times. */
static enum err find_moment(
	struct stream_file *s, const struct source *from, struct stream_moment before)
{
	struct fs *fs = s->file.fs;
	enum err e = ERR_OK;
	for (int i = 0; e == ERR_OK && i < MOMENT_TRIES; i++) {
		struct stream_moment after = moment_now(fs, from);
		if (stream_moment_is(&after, &before)) {
			s->moment = after;
			return ERR_OK;
		}
		service_wait_retained(fs->service);
		before = moment_now(fs, from);
		e = row_stream_renew(s->stream, from->what, from->call->detail);
	}
	return e;
}

/* Takes over *query. */
static enum err open_stream(
	struct fs *fs, const struct source *from, struct row_query *query, struct vfile **ret)
{
	struct stream_file *s = calloc(1, sizeof(*s));
	if (s == NULL) {
		row_query_fini(query);
		return ERR_NO_MEMORY;
	}
	*s = (struct stream_file){ .file = { .ops = &stream_ops, .fs = fs } };
	struct stream_moment before = moment_now(fs, from);
	enum err e = row_stream_open(fs->service, from->table_id, from->partition, query,
		from->what, &s->stream, from->call->detail);
	if (e == ERR_OK && from->call->requester == NULL)
		e = find_moment(s, from, before);
	if (e == ERR_OK)
		e = know_columns(s);
	if (e != ERR_OK) {
		row_stream_close(s->stream);
		free(s);
		return e;
	}
	if (from->call->requester != NULL) {
		s->requester = *from->call->requester;
		row_stream_for(s->stream, &s->requester.base);
	}
	*ret = &s->file;
	return ERR_OK;
}

static enum err open_rows_of(struct fs *fs, uint64_t nid, const struct item *dir,
	const struct caller *call, struct vfile **ret)
{
	bool csv = nid_dir_control(nid) == DIR_CONTROL_ROWS_CSV;
	struct row_query query = ROW_QUERY_ALL(csv ? ROW_FORM_CSV : ROW_FORM_NDJSON);
	struct source from = { .nid = nid, .call = call };
	char key[LIMIT_KEY_BYTES], path[SHOWN_PATH_MAX];
	struct span pk = { key, dir->key.n };
	if (dir->kind == ITEM_PARTITION) {
		key_from_order(dir->key.p, dir->key.n, key);
		from.partition = &pk;
	} else if (dir->kind != ITEM_TABLE) {
		return ERR_GONE;
	}
	from.table_id = dir->kind == ITEM_PARTITION ? dir->parent : dir->id;
	from.dir_id = dir->id;
	name_path(fs->store, dir->id, dir_control_name(nid), path);
	from.what = span_of(path);
	return open_stream(fs, &from, &query, ret);
}

enum err stream_file_open_rows(
	struct fs *fs, uint64_t nid, const struct caller *call, struct vfile **ret)
{
	struct item dir = { 0 };
	enum err e = store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, &dir);
	if (e == ERR_OK)
		e = open_rows_of(fs, nid, &dir, call, ret);
	item_fini(&dir);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

enum err stream_file_open_query(struct fs *fs, uint64_t nid, uint64_t table_id, struct span options,
	const struct caller *call, struct vfile **ret)
{
	uint64_t control = nid_of_dir_control(DIR_CONTROL_QUERY, table_id);
	struct source from = { .nid = nid, .call = call, .table_id = table_id, .dir_id = table_id };
	struct row_query query;
	char path[SHOWN_PATH_MAX];
	struct buf what = BUF_INIT(SHOWN_PATH_MAX + options.n + 1);
	enum err e = row_query_parse(options, &query, call->detail);
	if (e == ERR_OK && query.form == ROW_FORM_NONE)
		e = ERR_IS_A_DIRECTORY;
	if (e != ERR_OK) {
		row_query_fini(&query);
		return e;
	}
	name_path(fs->store, table_id, dir_control_name(control), path);
	buf_add_str(&what, path);
	buf_add_char(&what, '/');
	buf_add_span(&what, options);
	from.what = buf_ok(&what) ? buf_span(&what) : span_of(path);
	e = open_stream(fs, &from, &query, ret);
	buf_fini(&what);
	return e;
}
