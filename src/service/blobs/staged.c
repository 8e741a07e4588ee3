/* SPDX-License-Identifier: MIT */
#include "service/blobs/staged.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWEPT_AT_ONCE 1024
#define SWEEP_TRIES 256
#define STAGED_TICKS (7 * 24 * 3600 * TICKS_PER_SECOND)

/* ---- keys ---- */

struct span staged_key(const struct staged *b, char out[STAGED_KEY_CHARS + 1])
{
	size_t n = 1;
	out[0] = STAGED_PREFIX[0];
	for (size_t i = 0; i < b->id.n; i++, n += 2)
		(void)snprintf(out + n, 3, "%02x", (unsigned char)b->id.bytes[i]);
	n += (size_t)snprintf(out + n, STAGED_KEY_CHARS + 1 - n, ".%016" PRIx64 ".%016" PRIx64,
		(uint64_t)b->version, b->size);
	return span_make(out, n);
}

static bool read_hex(struct span *text, size_t digits, uint64_t *ret)
{
	*ret = 0;
	if (text->n < digits)
		return false;
	for (size_t i = 0; i < digits; i++) {
		const char *all = "0123456789abcdef", *at = memchr(all, text->p[i], 16);
		if (at == NULL)
			return false;
		*ret = *ret << 4 | (uint64_t)(at - all);
	}
	*text = span_make(text->p + digits, text->n - digits);
	return true;
}

static bool read_dot(struct span *text)
{
	bool there = text->n > 0 && text->p[0] == '.';
	*text = span_make(text->p + there, text->n - there);
	return there;
}

bool staged_key_read(struct span key, struct staged *ret)
{
	uint64_t byte, version;
	*ret = (struct staged){ 0 };
	if (!span_starts(key, SPAN_LIT(STAGED_PREFIX)) || key.n > STAGED_KEY_CHARS)
		return false;
	key = span_make(key.p + 1, key.n - 1);
	while (ret->id.n < BLOCK_ID_BYTES && read_hex(&key, 2, &byte))
		ret->id.bytes[ret->id.n++] = (char)byte;
	bool ok = read_dot(&key) && read_hex(&key, 16, &version) && version <= INT64_MAX &&
		read_dot(&key) && read_hex(&key, 16, &ret->size) && key.n == 0;
	ret->version = ok ? (int64_t)version : 0;
	return ok;
}

/* ---- finding ---- */

struct found {
	struct staged *all;
	size_t n, room, max;
	bool failed;
};

static bool on_block(void *arg, const struct item *it)
{
	struct found *f = arg;
	if (f->n == f->room) {
		size_t room = f->room == 0 ? 64 : 2 * f->room;
		struct staged *more = reallocarray(f->all, room, sizeof(*more));
		f->failed = more == NULL;
		if (f->failed)
			return false;
		f->all = more;
		f->room = room;
	}
	if (it->kind == ITEM_EXTENT && staged_key_read(it->key, &f->all[f->n]))
		f->all[f->n++].extent = it->id;
	return f->n < f->max;
}

static enum err find_blocks(struct service *s, uint64_t blob, struct found *f)
{
	enum err e = store_list(service_store(s), NULL, blob, CLASS_BLOB, SPAN_LIT(STAGED_PREFIX),
		true, WANT_KEYS, on_block, f);
	return f->failed ? ERR_NO_MEMORY : e;
}

enum err staged_first(struct service *s, uint64_t blob, struct staged *ret)
{
	struct found f = { .max = 1 };
	enum err e = find_blocks(s, blob, &f);
	if (e == ERR_OK && f.n == 1)
		*ret = f.all[0];
	e = e == ERR_OK && f.n == 0 ? ERR_NOT_FOUND : e;
	free(f.all);
	return e;
}

static int cmp_numbers(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* The extents that the list names, sorted. */
static enum err named_extents(const struct blob_blocks *b, uint64_t **ret)
{
	*ret = calloc(b->ncommitted + 1, sizeof(**ret));
	if (*ret == NULL)
		return ERR_NO_MEMORY;
	for (size_t i = 0; i < b->ncommitted; i++)
		(*ret)[i] = b->committed[i].extent;
	qsort(*ret, b->ncommitted, sizeof(**ret), cmp_numbers);
	return ERR_OK;
}

/* Leaves of the extents those that the list does not name, and that are or are not obsolete.  They are
 * sorted by id and version. */
static enum err filter(struct service *s, const struct blob_info *blob, const struct blob_blocks *b,
	struct found *f, bool obsolete)
{
	uint64_t *named;
	int64_t since = service_now(s) - STAGED_TICKS;
	enum err e = named_extents(b, &named);
	if (e != ERR_OK)
		return e;
	since = blob->record.made > since ? blob->record.made : since;
	size_t n = 0;
	for (size_t i = 0; i < f->n; i++) {
		bool replaced = i + 1 < f->n && block_id_cmp(&f->all[i].id, &f->all[i + 1].id) == 0;
		bool old = f->all[i].version < since || (f->all[i].id.n > 0 && replaced);
		if (old == obsolete &&
			bsearch(&f->all[i].extent, named, b->ncommitted, sizeof(*named),
				cmp_numbers) == NULL)
			f->all[n++] = f->all[i];
	}
	f->n = n;
	free(named);
	return ERR_OK;
}

static enum err load_committed(
	struct service *s, const struct blob_record *r, struct blob_blocks *ret)
{
	if (!blob_has_blocks(r))
		return ERR_OK;
	ret->committed = calloc(r->blocks + 1, sizeof(*ret->committed));
	if (ret->committed == NULL)
		return ERR_NO_MEMORY;
	ret->ncommitted = r->blocks;
	return block_list_load(
		service_store(s), NULL, r->extent, 0, ret->ncommitted, ret->committed);
}

enum err blob_blocks_load(struct service *s, const struct blob_info *b, struct blob_blocks *ret)
{
	struct found f = { .max = SIZE_MAX };
	*ret = (struct blob_blocks){ 0 };
	if (b->id == 0)
		return ERR_OK;
	enum err e = load_committed(s, &b->record, ret);
	if (e == ERR_OK)
		e = find_blocks(s, b->id, &f);
	if (e == ERR_OK)
		e = filter(s, b, ret, &f, false);
	ret->staged = f.all;
	ret->nstaged = f.n;
	return e;
}

void blob_blocks_fini(struct blob_blocks *b)
{
	free(b->committed);
	free(b->staged);
	*b = (struct blob_blocks){ 0 };
}

/* ---- sweeping ---- */

/* Removes some extents, if the blob is as it was read. */
static enum err remove_some(struct service *s, enum origin origin, uint64_t container,
	const struct blob_info *b, const struct staged *some, size_t n)
{
	struct change *changes = calloc(n + 1, sizeof(*changes));
	if (changes == NULL)
		return ERR_NO_MEMORY;
	changes[0] = (struct change){ .op = CHANGE_PUT,
		.at = blob_place(container, b->name),
		.cond = COND_VERSION,
		.cond_version = b->item.version,
		.kind = ITEM_BLOB,
		.item_flags = ITEM_MADE,
		.body = b->item.body,
		.attrs = ATTRS_UNSET };
	for (size_t i = 0; i < n; i++)
		changes[i + 1] = (struct change){ .op = CHANGE_DELETE,
			.flags = CHANGE_RECURSIVE,
			.at = { .id = some[i].extent },
			.attrs = ATTRS_UNSET };
	enum err e = service_apply(s, origin, changes, n + 1, false, NULL);
	changes_fini(changes, n + 1);
	free(changes);
	return e;
}

/* One step.  *ret_again: there may be more to remove, or the blob was changed meanwhile. */
static enum err sweep_some(struct service *s, enum origin origin, uint64_t container,
	struct span name, bool *ret_again)
{
	struct found f = { .max = SIZE_MAX };
	struct blob_blocks have = { 0 };
	struct blob_info b;
	*ret_again = false;
	enum err e = blob_look(s, container, name, &b);
	if (e != ERR_OK)
		return e;
	e = load_committed(s, &b.record, &have);
	if (e == ERR_OK)
		e = find_blocks(s, b.id, &f);
	if (e == ERR_OK)
		e = filter(s, &b, &have, &f, true);
	if (e == ERR_OK && f.n > 0) {
		size_t n = f.n < SWEPT_AT_ONCE ? f.n : SWEPT_AT_ONCE;
		e = remove_some(s, origin, container, &b, f.all, n);
		*ret_again = e == ERR_OK ? n < f.n : e == ERR_CONDITION_NOT_MET;
	}
	free(f.all);
	blob_blocks_fini(&have);
	blob_info_fini(&b);
	return e;
}

void staged_sweep(struct service *s, enum origin origin, uint64_t container_id, struct span name)
{
	bool again = true;
	for (int tries = 0; again && tries < SWEEP_TRIES; tries++)
		(void)sweep_some(s, origin, container_id, name, &again);
}
