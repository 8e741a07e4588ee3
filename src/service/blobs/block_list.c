/* SPDX-License-Identifier: MIT
 * An entry is size, end and extent as 8 bytes each, least significant first, then the length of the id
 * and the id, filled up with zeros. */
#include "service/blobs/block_list.h"

#include "service/blobs/upload.h"

#include <endian.h>
#include <string.h>

#define PIECES_AT_ONCE 64

int block_id_cmp(const struct block_id *a, const struct block_id *b)
{
	return span_cmp(span_make(a->bytes, a->n), span_make(b->bytes, b->n));
}

void block_write(const struct block *b, struct buf *out)
{
	const uint64_t numbers[] = { htole64(b->size), htole64(b->end), htole64(b->extent) };
	buf_add(out, numbers, sizeof(numbers));
	buf_add(out, &b->id.n, 1);
	buf_add(out, b->id.bytes, BLOCK_ID_BYTES);
}

static bool read_entry(const char *p, struct block *ret)
{
	uint64_t numbers[3];
	*ret = (struct block){ 0 };
	memcpy(numbers, p, sizeof(numbers));
	ret->size = le64toh(numbers[0]);
	ret->end = le64toh(numbers[1]);
	ret->extent = le64toh(numbers[2]);
	ret->id.n = (uint8_t)p[sizeof(numbers)];
	memcpy(ret->id.bytes, p + sizeof(numbers) + 1, BLOCK_ID_BYTES);
	return ret->id.n <= BLOCK_ID_BYTES && ret->size > 0 && ret->size <= ret->end;
}

/* ---- writing ---- */

static enum err write_some(struct service *s, enum origin origin, uint64_t list, uint64_t first,
	const struct block *blocks, size_t n, struct err_detail *detail)
{
	struct change changes[PIECES_AT_ONCE];
	char keys[PIECES_AT_ONCE][EXTENT_KEY_CHARS + 1];
	struct buf bodies = BUF_INIT(PIECES_AT_ONCE * BLOCKS_OF_PIECE * BLOCK_ENTRY_BYTES + 1);
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		block_write(&blocks[i], &bodies);
	if (!buf_ok(&bodies)) {
		buf_fini(&bodies);
		return ERR_NO_MEMORY;
	}
	for (size_t i = 0; i < n; i += BLOCKS_OF_PIECE, count++) {
		size_t some = n - i < BLOCKS_OF_PIECE ? n - i : BLOCKS_OF_PIECE;
		changes[count] = (struct change){ .op = CHANGE_PUT,
			.at = { .parent = list,
				.class = CLASS_BLOB,
				.key = extent_key(first / BLOCKS_OF_PIECE + count, keys[count]) },
			.kind = ITEM_PIECE,
			.body = span_make(
				bodies.data + i * BLOCK_ENTRY_BYTES, some * BLOCK_ENTRY_BYTES),
			.attrs = ATTRS_UNSET };
	}
	enum err e = service_apply(s, origin, changes, count, false, detail);
	changes_fini(changes, count);
	buf_fini(&bodies);
	return e;
}

enum err block_list_write(struct service *s, enum origin origin, uint64_t list,
	const struct block *blocks, size_t n, struct err_detail *detail)
{
	const size_t most = (size_t)PIECES_AT_ONCE * BLOCKS_OF_PIECE;
	enum err e = ERR_OK;
	for (size_t at = 0; at < n && e == ERR_OK; at += most)
		e = write_some(
			s, origin, list, at, blocks + at, n - at < most ? n - at : most, detail);
	return e;
}

/* ---- reading ---- */

/* Reads the first n entries of a piece; an append may have added some since. */
static enum err load_piece(struct store *s, struct store_view *v, uint64_t list, uint64_t number,
	size_t n, struct block *ret)
{
	char key[EXTENT_KEY_CHARS + 1];
	struct item it = { 0 };
	enum err e = store_child(s, v, list, CLASS_BLOB, extent_key(number, key), WANT_BODY, &it);
	if (e == ERR_NOT_FOUND) {
		e = store_get(s, v, list, WANT_ATTRS, &it);
		e = e == ERR_OK ? ERR_CORRUPT : e == ERR_NOT_FOUND ? ERR_GONE : e;
	} else if (e == ERR_OK && it.body.n < n * BLOCK_ENTRY_BYTES) {
		e = ERR_CORRUPT;
	}
	for (size_t i = 0; i < n && e == ERR_OK; i++)
		if (!read_entry(it.body.p + i * BLOCK_ENTRY_BYTES, &ret[i]))
			e = ERR_CORRUPT;
	item_fini(&it);
	return e;
}

enum err block_list_load(struct store *s, struct store_view *v, uint64_t list, uint64_t first,
	size_t n, struct block *ret)
{
	struct block some[BLOCKS_OF_PIECE];
	enum err e = ERR_OK;
	while (n > 0 && e == ERR_OK) {
		size_t from = (size_t)(first % BLOCKS_OF_PIECE);
		size_t part = BLOCKS_OF_PIECE - from < n ? BLOCKS_OF_PIECE - from : n;
		e = load_piece(s, v, list, first / BLOCKS_OF_PIECE, from + part, some);
		if (e == ERR_OK)
			memcpy(ret, some + from, part * sizeof(*ret));
		first += part;
		ret += part;
		n -= part;
	}
	return e;
}

static size_t entries_of(uint64_t blocks, uint64_t piece)
{
	uint64_t left = blocks - piece * BLOCKS_OF_PIECE;
	return left < BLOCKS_OF_PIECE ? (size_t)left : BLOCKS_OF_PIECE;
}

/* Finds the block that has the byte at `offset`.  Most lists have blocks of one size, so the first
 * guess is usually right. */
static enum err find(
	struct service *s, const struct blob_record *r, uint64_t offset, struct block *ret)
{
	struct block some[BLOCKS_OF_PIECE];
	uint64_t low = 0, high = block_list_pieces(r->blocks);
	uint64_t at = (uint64_t)((double)offset / (double)r->size * (double)high);
	at = at < high ? at : high - 1;
	while (low < high) {
		size_t n = entries_of(r->blocks, at);
		enum err e = load_piece(service_store(s), NULL, r->extent, at, n, some);
		if (e != ERR_OK)
			return e;
		if (offset < some[0].end - some[0].size) {
			high = at;
		} else if (offset >= some[n - 1].end) {
			low = at + 1;
		} else {
			size_t i = 0;
			while (offset >= some[i].end)
				i++;
			*ret = some[i];
			return offset >= ret->end - ret->size ? ERR_OK : ERR_CORRUPT;
		}
		at = low + (high - low) / 2;
	}
	return ERR_CORRUPT;
}

enum err block_list_read(
	struct service *s, const struct blob_record *r, uint64_t offset, char *out, size_t n)
{
	struct block b;
	enum err e = ERR_OK;
	while (n > 0 && e == ERR_OK) {
		e = find(s, r, offset, &b);
		if (e != ERR_OK)
			break;
		size_t part = b.end - offset < n ? (size_t)(b.end - offset) : n;
		e = extent_read(s, b.extent, b.size, offset - (b.end - b.size), out, part);
		offset += part;
		out += part;
		n -= part;
	}
	return e;
}

/* ---- checking ---- */

/* Whether a block's extent has another place, or is too short. */
static enum err check_block(struct store *s, struct store_view *v, uint64_t blob,
	const struct block *b, const char **ret)
{
	struct item it = { 0 };
	enum err e = store_get(s, v, b->extent, WANT_ATTRS, &it);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && it.parent != blob))
		*ret = "a block of the blob is missing";
	else if (e == ERR_OK && it.size != extent_pieces(b->size))
		*ret = "a part of a block is missing";
	item_fini(&it);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

enum err blob_blocks_wrong(
	struct store *s, struct store_view *v, const struct item *it, const char **ret)
{
	struct blob_record r;
	uint64_t end = 0;
	*ret = NULL;
	enum err e = ERR_OK;
	if (blob_record_read(it->body, &r) != ERR_OK || !blob_has_blocks(&r))
		return ERR_OK;
	for (uint64_t i = 0; i < r.blocks && e == ERR_OK && *ret == NULL; i++) {
		struct block b;
		e = block_list_load(s, v, r.extent, i, 1, &b);
		if (e != ERR_OK)
			break;
		if (b.end != end + b.size)
			*ret = "the list of its blocks has a gap";
		else
			e = check_block(s, v, it->id, &b, ret);
		end = b.end;
	}
	if (e == ERR_CORRUPT)
		*ret = "the list of its blocks cannot be read";
	else if (e == ERR_OK && *ret == NULL && end != r.size)
		*ret = "its blocks have another size than it has";
	return e == ERR_CORRUPT ? ERR_OK : e;
}
