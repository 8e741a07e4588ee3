/* SPDX-License-Identifier: MIT
 * Keys as file names.  Only one function writes names.  The decoder undoes the escapes loosely,
 * writes the key again and compares.  So the two directions cannot differ. */
#include "model/filename.h"

#include "base/crypto.h"
#include "base/text.h"
#include "model/key.h"

#include <stdint.h>

#define SUFFIX_LEN 5                        /* ".json" */
#define DIGEST_TAIL (2 + BASE32_SHA256_LEN) /* "%~" and the digest */

static const struct span suffix = { ".json", SUFFIX_LEN };
static const struct span empty_stem = { "%_", 2 };

static size_t suffix_len(enum filename_kind kind)
{
	return kind == FILENAME_ROW ? SUFFIX_LEN : 0;
}

/* DuckDB's COPY TO writes such a file beside .rows.ndjson and .rows.csv, then renames it. */
static bool is_temporary(struct span name, enum filename_kind kind)
{
	return kind == FILENAME_PARTITION &&
		(span_is(name, "tmp_.rows.ndjson") || span_is(name, "tmp_.rows.csv"));
}

/* What a name never begins with, though a key can. */
#define ESCAPED_FIRST(c) ((c) == '.' || (c) == 't')

static bool is_escaped(unsigned char c, bool special)
{
	return c == '%' || c == '/' || c < 0x20 || c == 0x7f || (special && ESCAPED_FIRST(c));
}

/* Whether a name would not be a key's: the character at i is written otherwise then. */
static bool is_special(struct span key, size_t i, enum filename_kind kind)
{
	return i == 0 && (key.p[0] == '.' || is_temporary(key, kind));
}

/* Writes the character at key[i] as it stands in a name.  Returns its length in the key. */
static size_t escape_at(
	struct span key, size_t i, enum filename_kind kind, char out[4], size_t *ret_len)
{
	static const char hex[] = "0123456789ABCDEF";
	unsigned char c = (unsigned char)key.p[i];
	uint32_t cp;
	size_t n;

	if (is_escaped(c, is_special(key, i, kind))) {
		memcpy(out, (const char[]){ '%', hex[c >> 4], hex[c & 15] }, 3);
		*ret_len = 3;
		return 1;
	}
	n = utf8_decode(span_make(key.p + i, key.n - i), &cp);
	if (n == 0)
		n = 1;
	memcpy(out, key.p + i, n);
	*ret_len = n;
	return n;
}

/* Writes whole characters up to max bytes and returns the length.  *ret_all: the whole key did
 * fit. */
static size_t escape(struct span key, size_t max, enum filename_kind kind, char *out, bool *ret_all)
{
	size_t len = 0, i = 0;

	while (i < key.n) {
		char one[4];
		size_t n, used;
		if ((unsigned char)key.p[i] < 0x7f &&
			!is_escaped((unsigned char)key.p[i], is_special(key, i, kind))) {
			if (len == max)
				break;
			out[len++] = key.p[i++];
			continue;
		}
		used = escape_at(key, i, kind, one, &n);
		if (len + n > max)
			break;
		memcpy(out + len, one, n);
		len += n;
		i += used;
	}
	*ret_all = i == key.n;
	return len;
}

static size_t digest_stem(struct span key, size_t room, enum filename_kind kind, char *out)
{
	uint8_t digest[32];
	bool all;
	size_t len = escape(key, room - DIGEST_TAIL, kind, out, &all);

	crypto_sha256(key, digest);
	out[len++] = '%';
	out[len++] = '~';
	base32_sha256(digest, out + len);
	return len + BASE32_SHA256_LEN;
}

size_t filename_encode(struct span key, enum filename_kind kind, char out[LIMIT_NAME_BYTES + 1])
{
	size_t room = LIMIT_NAME_BYTES - suffix_len(kind);
	bool all;
	size_t len = escape(key, room, kind, out, &all);

	if (!all)
		len = digest_stem(key, room, kind, out);
	if (key.n == 0) {
		memcpy(out, empty_stem.p, empty_stem.n);
		len = empty_stem.n;
	}
	memcpy(out + len, suffix.p, suffix_len(kind));
	len += suffix_len(kind);
	out[len] = '\0';
	return len;
}

bool filename_is_long(struct span key, enum filename_kind kind)
{
	char stem[LIMIT_NAME_BYTES];
	size_t room = LIMIT_NAME_BYTES - suffix_len(kind);
	bool all;

	if (key.n <= room / 3)
		return false;
	(void)escape(key, room, kind, stem, &all);
	return !all;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Accepts all characters that the encoder escapes anywhere.  The caller's comparison checks their
 * positions. */
static bool unescape(struct span stem, struct filename *ret)
{
	size_t len = 0;

	for (size_t i = 0; i < stem.n; i++) {
		char c = stem.p[i];
		if (c == '%') {
			int high = i + 2 < stem.n ? hex_digit(stem.p[i + 1]) : -1;
			int low = i + 2 < stem.n ? hex_digit(stem.p[i + 2]) : -1;
			if (high < 0 || low < 0 ||
				!is_escaped((unsigned char)(high << 4 | low), true))
				return false;
			c = (char)(high << 4 | low);
			i += 2;
		}
		ret->key[len++] = c;
	}
	ret->key[len] = '\0';
	ret->key_len = len;
	return true;
}

static enum err refuse(struct err_detail *detail, struct span name)
{
	return err_set(detail, ERR_NAME_INVALID, "'%.*s' is not the file name of a key.",
		(int)name.n, name.p);
}

/* Decodes stem as a key, or as the start of one.  Only the encoder's spelling is valid. */
static enum err decode_stem(
	struct span stem, enum filename_kind kind, struct filename *ret, struct err_detail *detail)
{
	char again[LIMIT_FILE_NAME_BYTES + 4];
	struct span key;
	bool all;
	size_t len;
	enum err e;

	if (!unescape(stem, ret))
		return refuse(detail, stem);
	key = span_make(ret->key, ret->key_len);
	e = key_check(key, kind == FILENAME_ROW ? "RowKey" : "PartitionKey", detail);
	if (e != ERR_OK)
		return e;
	len = escape(key, stem.n, kind, again, &all);
	if (!all || !span_eq(span_make(again, len), stem))
		return refuse(detail, stem);
	return ERR_OK;
}

/* The last of the 52 characters holds one bit. */
static bool is_base32_digest(const char *p)
{
	for (size_t i = 0; i < BASE32_SHA256_LEN; i++) {
		if (!(p[i] >= 'A' && p[i] <= 'Z') && !(p[i] >= '2' && p[i] <= '7'))
			return false;
	}
	return p[BASE32_SHA256_LEN - 1] == 'A' || p[BASE32_SHA256_LEN - 1] == 'Q';
}

static bool has_digest_tail(struct span stem)
{
	return stem.n >= DIGEST_TAIL && memcmp(stem.p + stem.n - DIGEST_TAIL, "%~", 2) == 0;
}

static enum err decode_digest(
	struct span stem, enum filename_kind kind, struct filename *ret, struct err_detail *detail)
{
	size_t room = LIMIT_NAME_BYTES - suffix_len(kind);
	enum err e;

	/* The name is shorter than the limit only if the next character, of up to 4 bytes, did not
	 * fit. */
	if (stem.n > room || stem.n + 4 <= room)
		return refuse(detail, stem);
	if (!is_base32_digest(stem.p + stem.n - BASE32_SHA256_LEN))
		return refuse(detail, stem);
	e = decode_stem(span_make(stem.p, stem.n - DIGEST_TAIL), kind, ret, detail);
	ret->form = FILENAME_DIGEST;
	return e;
}

static enum err decode_key(
	struct span stem, enum filename_kind kind, struct filename *ret, struct err_detail *detail)
{
	/* stem is not empty: the caller refuses an empty name and ".json". */
	if (stem.p[0] == '.')
		return refuse(detail, stem);
	if (span_eq(stem, empty_stem))
		return ERR_OK;
	if (has_digest_tail(stem))
		return decode_digest(stem, kind, ret, detail);
	if (stem.n + suffix_len(kind) > LIMIT_NAME_BYTES)
		return err_set(detail, ERR_NAME_TOO_LONG,
			"The name is longer than %d bytes: such a key has a digest name.",
			LIMIT_NAME_BYTES);
	return decode_stem(stem, kind, ret, detail);
}

enum err filename_decode(
	struct span name, enum filename_kind kind, struct filename *ret, struct err_detail *detail)
{
	bool row = kind == FILENAME_ROW;

	ret->form = FILENAME_KEY;
	ret->key[0] = '\0';
	ret->key_len = 0;
	if (name.n > LIMIT_FILE_NAME_BYTES)
		return err_set(detail, ERR_NAME_TOO_LONG, "The name is longer than %d bytes.",
			LIMIT_FILE_NAME_BYTES);
	if (name.n == 0)
		return err_set(detail, ERR_NAME_INVALID, "The name is empty.");
	if ((row && (name.p[0] == '.' || !span_ends(name, suffix))) || is_temporary(name, kind)) {
		ret->form = FILENAME_ORDINARY;
		return ERR_OK;
	}
	if (!utf8_valid(name))
		return err_set(detail, ERR_NAME_NOT_UTF8, "%s", err_text(ERR_NAME_NOT_UTF8));
	return decode_key(span_make(name.p, name.n - suffix_len(kind)), kind, ret, detail);
}
