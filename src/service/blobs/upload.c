/* SPDX-License-Identifier: MIT
 * An extent of bytes is made with its first piece.  Its pieces are full but for the last one. */
#include "service/blobs/upload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIECES_AT_ONCE 16

struct blob_upload {
	struct service *service;
	enum origin origin;
	uint64_t size;
	uint64_t extent; /* 0: not made yet */
	char key[24];    /* of the extent while it is an orphan */
	uint64_t pieces; /* written */
	bool taken;
	struct buf rest; /* not written yet */
};

struct span extent_key(uint64_t number, char out[EXTENT_KEY_CHARS + 1])
{
	(void)snprintf(out, EXTENT_KEY_CHARS + 1, "%08" PRIx32, (uint32_t)number);
	return span_make(out, EXTENT_KEY_CHARS);
}

enum err blob_upload_new(struct service *s, enum origin origin, struct blob_upload **ret)
{
	struct blob_upload *u = calloc(1, sizeof(*u));
	if (u == NULL)
		return ERR_NO_MEMORY;
	u->service = s;
	u->origin = origin;
	u->rest = BUF_INIT(2 * PIECES_AT_ONCE * EXTENT_PIECE_BYTES);
	*ret = u;
	return ERR_OK;
}

static struct item_ref orphan_place(const struct blob_upload *u)
{
	return (struct item_ref){
		.parent = STORE_ORPHANS, .class = CLASS_BLOB, .key = span_of(u->key)
	};
}

enum err blob_upload_make_extent(struct blob_upload *u, struct err_detail *detail)
{
	(void)snprintf(
		u->key, sizeof(u->key), "%016" PRIx64, (uint64_t)service_next_version(u->service));
	struct change c = { .op = CHANGE_PUT,
		.at = orphan_place(u),
		.cond = COND_ABSENT,
		.kind = ITEM_EXTENT,
		.attrs = ATTRS_UNSET };
	enum err e = service_apply(u->service, u->origin, &c, 1, false, detail);
	u->extent = e == ERR_OK ? c.now.id : 0;
	changes_fini(&c, 1);
	return e;
}

static bool is_zeros(struct span s)
{
	return s.p[0] == 0 && memcmp(s.p, s.p + 1, s.n - 1) == 0;
}

/* Writes n bytes from the front of the rest. */
static enum err write_pieces(struct blob_upload *u, size_t n, struct err_detail *detail)
{
	struct change changes[PIECES_AT_ONCE];
	char keys[PIECES_AT_ONCE][EXTENT_KEY_CHARS + 1];
	size_t count = 0;
	enum err e = u->extent == 0 ? blob_upload_make_extent(u, detail) : ERR_OK;
	for (size_t at = 0; at < n; at += EXTENT_PIECE_BYTES, count++) {
		size_t len = n - at < EXTENT_PIECE_BYTES ? n - at : EXTENT_PIECE_BYTES;
		struct span bytes = span_make(u->rest.data + at, len);
		changes[count] = (struct change){ .op = CHANGE_PUT,
			.at = { .parent = u->extent,
				.class = CLASS_BLOB,
				.key = extent_key(u->pieces + count, keys[count]) },
			.kind = ITEM_PIECE,
			.body = is_zeros(bytes) ? SPAN_LIT("") : bytes,
			.attrs = ATTRS_UNSET };
	}
	if (e == ERR_OK) {
		e = service_apply(u->service, u->origin, changes, count, false, detail);
		changes_fini(changes, count);
	}
	if (e != ERR_OK)
		return e;
	u->pieces += count;
	memmove(u->rest.data, u->rest.data + n, u->rest.len - n);
	u->rest.len -= n;
	return ERR_OK;
}

enum err blob_upload_add(struct blob_upload *u, struct span bytes, struct err_detail *detail)
{
	enum err e = ERR_OK;
	u->size += bytes.n;
	while (bytes.n > 0 && e == ERR_OK) {
		size_t room = PIECES_AT_ONCE * EXTENT_PIECE_BYTES - u->rest.len;
		size_t n = bytes.n < room ? bytes.n : room;
		buf_add(&u->rest, bytes.p, n);
		if (!buf_ok(&u->rest))
			return ERR_NO_MEMORY;
		bytes = span_make(bytes.p + n, bytes.n - n);
		if (n == room)
			e = write_pieces(u, u->rest.len, detail);
	}
	return e;
}

enum err blob_upload_end(struct blob_upload *u, struct err_detail *detail)
{
	return u->rest.len > 0 ? write_pieces(u, u->rest.len, detail) : ERR_OK;
}

static enum err drop_extent(struct service *s, enum origin origin, struct item_ref at)
{
	struct change c = {
		.op = CHANGE_DELETE, .flags = CHANGE_RECURSIVE, .at = at, .attrs = ATTRS_UNSET
	};
	enum err e = service_apply(s, origin, &c, 1, false, NULL);
	changes_fini(&c, 1);
	return e;
}

void blob_upload_free(struct blob_upload *u)
{
	if (u == NULL)
		return;
	if (u->extent != 0 && !u->taken) {
		/* By its place: a blob may have it if the outcome of its commit is unknown. */
		(void)drop_extent(u->service, u->origin, orphan_place(u));
	}
	buf_fini(&u->rest);
	free(u);
}

uint64_t blob_upload_size(const struct blob_upload *u)
{
	return u->size;
}

uint64_t blob_upload_extent(const struct blob_upload *u)
{
	return u->extent;
}

void blob_upload_taken(struct blob_upload *u)
{
	u->taken = true;
}

/* ---- reading ---- */

static enum err read_piece(struct service *s, uint64_t extent, uint64_t size, uint64_t number,
	size_t from, char *out, size_t n)
{
	char key[EXTENT_KEY_CHARS + 1];
	struct item it = { 0 };
	uint64_t left = size - number * EXTENT_PIECE_BYTES;
	enum err e = store_child(service_store(s), NULL, extent, CLASS_BLOB,
		extent_key(number, key), WANT_BODY, &it);
	if (e == ERR_NOT_FOUND) {
		e = store_get(service_store(s), NULL, extent, WANT_ATTRS, &it);
		e = e == ERR_OK ? ERR_CORRUPT : e == ERR_NOT_FOUND ? ERR_GONE : e;
	} else if (e == ERR_OK) {
		size_t full = left < EXTENT_PIECE_BYTES ? (size_t)left : EXTENT_PIECE_BYTES;
		if (it.kind != ITEM_PIECE || (it.body.n > 0 && it.body.n < full))
			e = ERR_CORRUPT;
		else if (it.body.n > 0)
			memcpy(out, it.body.p + from, n);
		else
			memset(out, 0, n);
	}
	item_fini(&it);
	return e;
}

enum err extent_read(
	struct service *s, uint64_t extent, uint64_t size, uint64_t offset, char *out, size_t n)
{
	enum err e = ERR_OK;
	while (n > 0 && e == ERR_OK) {
		size_t from = (size_t)(offset % EXTENT_PIECE_BYTES);
		size_t part = EXTENT_PIECE_BYTES - from < n ? EXTENT_PIECE_BYTES - from : n;
		e = read_piece(s, extent, size, offset / EXTENT_PIECE_BYTES, from, out, part);
		offset += part;
		out += part;
		n -= part;
	}
	return e;
}

/* ---- after a crash ---- */

static bool first_id(void *arg, const struct item *it)
{
	*(uint64_t *)arg = it->id;
	return false;
}

enum err blob_uploads_drop(struct service *s)
{
	for (;;) {
		uint64_t id = 0;
		enum err e = store_list(service_store(s), NULL, STORE_ORPHANS, CLASS_BLOB,
			(struct span){ 0 }, false, WANT_KEYS, first_id, &id);
		if (e != ERR_OK || id == 0)
			return e;
		e = drop_extent(s, ORIGIN_MOUNT, (struct item_ref){ .id = id });
		if (e != ERR_OK && e != ERR_GONE && e != ERR_NOT_FOUND)
			return e;
	}
}
