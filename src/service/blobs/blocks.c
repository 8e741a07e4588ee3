/* SPDX-License-Identifier: MIT
 * Put Block moves the extent of its upload below the blob.  A commit writes a list of extents, and the
 * record names the list. */
#include "service/blobs/blocks.h"

#include "model/metadata.h"
#include "model/names.h"
#include "service/blobs/staged.h"

#include <stdlib.h>

#define PUT_TRIES 64

/* ---- Put Block ---- */

struct change block_move(struct blob_change *w, uint64_t blob, const struct block_id *id,
	struct blob_upload *upload, char key[STAGED_KEY_CHARS + 1])
{
	const struct staged block = { .id = *id,
		.version = service_next_version(w->service),
		.size = blob_upload_size(upload) };
	return (struct change){ .op = CHANGE_MOVE,
		.flags = CHANGE_NO_REPLACE,
		.at = { .id = blob_upload_extent(upload) },
		.to = blob_place(blob, staged_key(&block, key)),
		.attrs = ATTRS_UNSET };
}

static bool is_full(const struct blob_info *b)
{
	return b->item.size >= BLOCKS_STAGED_MAX + b->record.blocks + (b->record.extent != 0);
}

static enum err check_block(
	struct blob_change *w, const struct blob_info *b, const struct block_id *id)
{
	struct staged other;
	if (b->record.type != BLOB_NONE && b->record.type != BLOB_BLOCK)
		return ERR_BLOB_TYPE;
	enum err e =
		lease_check_write(&b->record.lease, w->conditions->lease, service_now(w->service));
	if (e != ERR_OK)
		return e;
	e = staged_first(w->service, b->id, &other);
	if (e == ERR_OK && other.id.n != id->n)
		return ERR_BLOCK_CONTENT;
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

static enum err put_once(
	struct blob_change *w, const struct block_id *id, struct blob_upload *upload)
{
	char key[STAGED_KEY_CHARS + 1];
	struct blob_info b;
	enum err e = blob_look(w->service, w->container, w->name, &b);
	if (e == ERR_NOT_FOUND) {
		e = blob_make_name(w);
		return e == ERR_OK ? ERR_CONDITION_NOT_MET : e;
	}
	if (e != ERR_OK)
		return e;
	e = check_block(w, &b, id);
	if (e == ERR_OK && is_full(&b))
		e = ERR_BLOCK_COUNT;
	if (e == ERR_OK) {
		struct change c = block_move(w, b.id, id, upload, key);
		e = service_apply(w->service, w->origin, &c, 1, true, w->detail);
		changes_fini(&c, 1);
	}
	if (e == ERR_OK)
		blob_upload_taken(upload);
	blob_info_fini(&b);
	return e;
}

enum err block_put(struct blob_change *w, const struct block_id *id, struct blob_upload *upload)
{
	bool swept = false, again = true;
	enum err e = blob_name_check(w->name, w->detail);
	if (e != ERR_OK)
		return e;
	for (int tries = 0; again && tries < PUT_TRIES; tries++) {
		e = put_once(w, id, upload);
		again = blob_change_overtaken(e);
		if (again && blob_change_lost(w))
			return ERR_CONTAINER_NOT_FOUND;
		/* Blocks that were replaced count until they are swept. */
		if (e == ERR_BLOCK_COUNT && !swept) {
			staged_sweep(w->service, w->origin, w->container, w->name);
			swept = again = true;
		}
	}
	return again ? err_set(w->detail, ERR_THROTTLED, "other changes came faster every time")
		     : e;
}

/* ---- Put Block List ---- */

static int cmp_committed(const void *a, const void *b)
{
	return block_id_cmp(&((const struct block *)a)->id, &((const struct block *)b)->id);
}

static int cmp_staged(const void *a, const void *b)
{
	return block_id_cmp(&((const struct staged *)a)->id, &((const struct staged *)b)->id);
}

static bool choose(
	const struct blob_blocks *have, const struct block_choice *what, struct block *ret)
{
	const struct block old = { .id = what->id };
	const struct staged new = { .id = what->id };
	const struct staged *s = NULL;
	const struct block *c = NULL;
	if (what->where != BLOCK_COMMITTED && have->nstaged > 0)
		s = bsearch(&new, have->staged, have->nstaged, sizeof(new), cmp_staged);
	if (s == NULL && what->where != BLOCK_STAGED && have->ncommitted > 0)
		c = bsearch(&old, have->committed, have->ncommitted, sizeof(old), cmp_committed);
	*ret = (struct block){ .id = what->id,
		.size = s != NULL   ? s->size
			: c != NULL ? c->size
				    : 0,
		.extent = s != NULL ? s->extent
			: c != NULL ? c->extent
				    : 0 };
	return s != NULL || c != NULL;
}

/* Finds the extent of each block; *ret is the list, to be freed. */
static enum err resolve(struct blob_change *w, const struct blocks_new *to, struct block **ret)
{
	struct blob_blocks have;
	uint64_t end = 0;
	struct block *list = calloc(to->n + 1, sizeof(*list));
	enum err e = blob_blocks_load(w->service, &w->there, &have);
	if (e == ERR_OK && list == NULL)
		e = ERR_NO_MEMORY;
	if (e == ERR_GONE) /* another commit was faster */
		e = ERR_CONDITION_NOT_MET;
	if (have.ncommitted > 0)
		qsort(have.committed, have.ncommitted, sizeof(*have.committed), cmp_committed);
	for (size_t i = 0; i < to->n && e == ERR_OK; i++) {
		if (!choose(&have, &to->blocks[i], &list[i]))
			e = ERR_BLOCK_LIST;
		list[i].end = end += list[i].size;
	}
	blob_blocks_fini(&have);
	*ret = list;
	return e;
}

void block_list_drop(struct blob_change *w)
{
	blob_upload_free(w->upload);
	w->upload = NULL;
}

enum err block_list_new(struct blob_change *w, const struct block *blocks, size_t n)
{
	block_list_drop(w);
	enum err e = blob_upload_new(w->service, w->origin, &w->upload);
	if (e == ERR_OK)
		e = blob_upload_make_extent(w->upload, w->detail);
	return e == ERR_OK ? block_list_write(w->service, w->origin, blob_upload_extent(w->upload),
				     blocks, n, w->detail)
			   : e;
}

static enum err make_commit(
	void *arg, struct blob_change *w, const struct blob_record *there, struct blob_record *ret)
{
	const struct blocks_new *to = arg;
	struct block *list = NULL;
	block_list_drop(w);
	if (there != NULL && there->type != BLOB_BLOCK)
		return ERR_BLOB_TYPE;
	*ret = (struct blob_record){ .type = BLOB_BLOCK,
		.tier = to->tier,
		.tier_set = to->tier != TIER_UNSET ? service_now(w->service) : 0,
		.properties = to->properties,
		.metadata = to->metadata,
		.content = SPAN_LIT("") };
	if (to->n == 0)
		return ERR_OK;
	enum err e = resolve(w, to, &list);
	if (e == ERR_OK)
		e = block_list_new(w, list, to->n);
	if (e == ERR_OK) {
		ret->size = list[to->n - 1].end;
		ret->blocks = to->n;
		ret->extent = blob_upload_extent(w->upload);
	}
	free(list);
	return e;
}

enum err blocks_commit(struct blob_change *w, const struct blocks_new *to)
{
	struct blocks_new copy = *to;
	enum err e = blob_name_check(w->name, w->detail);
	if (e == ERR_OK)
		e = metadata_check(to->metadata, w->detail);
	if (e == ERR_OK && to->n > BLOCKS_MAX)
		e = ERR_BLOCK_COUNT;
	if (e == ERR_OK)
		e = blob_change(w, make_commit, &copy);
	block_list_drop(w);
	return e;
}

/* ---- append blobs ---- */

static enum err make_append_blob(
	void *arg, struct blob_change *w, const struct blob_record *there, struct blob_record *ret)
{
	const struct append_new *to = arg;
	(void)there;
	*ret = (struct blob_record){ .type = BLOB_APPEND,
		.properties = to->properties,
		.metadata = to->metadata,
		.content = SPAN_LIT(""),
		.extent = blob_upload_extent(w->upload) };
	return ERR_OK;
}

enum err append_create(struct blob_change *w, const struct append_new *to)
{
	struct append_new copy = *to;
	enum err e = blob_name_check(w->name, w->detail);
	if (e == ERR_OK)
		e = metadata_check(to->metadata, w->detail);
	if (e == ERR_OK)
		e = block_list_new(w, NULL, 0);
	if (e == ERR_OK)
		e = blob_change(w, make_append_blob, &copy);
	block_list_drop(w);
	return e;
}

struct append {
	const struct append_conditions *conditions;
	struct blob_upload *upload;
	struct append_result *result;
	struct change changes[2]; /* the list's last piece, the block */
	struct buf piece;
	char piece_key[EXTENT_KEY_CHARS + 1], key[STAGED_KEY_CHARS + 1];
};

static enum err check_append(const struct append *a, const struct blob_record *there)
{
	uint64_t max = (uint64_t)a->conditions->max_size;
	if (there == NULL)
		return ERR_BLOB_NOT_FOUND;
	if (there->type != BLOB_APPEND)
		return ERR_BLOB_TYPE;
	if (a->conditions->position >= 0 && there->size != (uint64_t)a->conditions->position)
		return ERR_APPEND_POSITION;
	if (a->conditions->max_size >= 0 && there->size + blob_upload_size(a->upload) > max)
		return ERR_APPEND_SIZE;
	return there->blocks < BLOCKS_MAX ? ERR_OK : ERR_BLOCK_COUNT;
}

/* The last piece of the list, with the new block. */
static enum err grow_list(struct blob_change *w, struct append *a, const struct blob_record *there)
{
	struct block some[BLOCKS_OF_PIECE];
	size_t n = there->blocks % BLOCKS_OF_PIECE;
	const struct block new = { .size = blob_upload_size(a->upload),
		.end = there->size + blob_upload_size(a->upload),
		.extent = blob_upload_extent(a->upload) };
	enum err e = block_list_load(
		service_store(w->service), NULL, there->extent, there->blocks - n, n, some);
	buf_clear(&a->piece);
	for (size_t i = 0; i < n && e == ERR_OK; i++)
		block_write(&some[i], &a->piece);
	block_write(&new, &a->piece);
	if (e == ERR_GONE)
		e = ERR_CONDITION_NOT_MET;
	return e == ERR_OK && !buf_ok(&a->piece) ? ERR_NO_MEMORY : e;
}

static enum err make_append(
	void *arg, struct blob_change *w, const struct blob_record *there, struct blob_record *ret)
{
	struct append *a = arg;
	const struct block_id none = { 0 };
	enum err e = check_append(a, there);
	if (e == ERR_OK)
		e = grow_list(w, a, there);
	if (e != ERR_OK)
		return e;
	a->changes[0] = (struct change){ .op = CHANGE_PUT,
		.at = { .parent = there->extent,
			.class = CLASS_BLOB,
			.key = extent_key(there->blocks / BLOCKS_OF_PIECE, a->piece_key) },
		.kind = ITEM_PIECE,
		.body = buf_span(&a->piece),
		.attrs = ATTRS_UNSET };
	a->changes[1] = block_move(w, w->there.id, &none, a->upload, a->key);
	w->more = a->changes;
	w->nmore = 2;
	*ret = *there;
	ret->blocks = there->blocks + 1;
	ret->size = there->size + blob_upload_size(a->upload);
	*a->result = (struct append_result){ there->size, ret->blocks };
	return ERR_OK;
}

enum err append_block(struct blob_change *w, struct blob_upload *upload,
	const struct append_conditions *conditions, struct append_result *ret)
{
	struct append a = { .conditions = conditions,
		.upload = upload,
		.result = ret,
		.piece = BUF_INIT(BLOCKS_OF_PIECE * BLOCK_ENTRY_BYTES + 1) };
	*ret = (struct append_result){ 0 };
	enum err e = blob_change(w, make_append, &a);
	if (e == ERR_OK)
		blob_upload_taken(upload);
	buf_fini(&a.piece);
	return e;
}
