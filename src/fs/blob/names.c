/* SPDX-License-Identifier: MIT */
#include "fs/blob/names.h"

#include "base/crypto.h"
#include "base/text.h"
#include "service/blobs/snapshot_key.h"

#include <stdio.h>
#include <string.h>

/* How many bytes of a long component its file's name begins with. */
#define LONG_BEGINS 200
#define BESIDE ".%blob"

enum word {
	WORD_NONE,
	WORD_EMPTY,
	WORD_DOT,
	WORD_BLOB,
	WORD_SNAPSHOTS,
	WORD_HASH, /* "~" and the digits */
};
static const struct {
	const char *text;
	enum word word;
} words[] = { { "empty", WORD_EMPTY }, { "dot", WORD_DOT }, { "blob", WORD_BLOB },
	{ "snapshots", WORD_SNAPSHOTS } };

static bool ends_with_hash(struct span s)
{
	if (s.n < BLOB_HASH_CHARS + 1 || s.p[s.n - BLOB_HASH_CHARS - 1] != '~')
		return false;
	for (size_t i = s.n - BLOB_HASH_CHARS; i < s.n; i++)
		if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f')))
			return false;
	return true;
}

/* The word at the end of s, behind one "%" or more.  *ret_before: how many bytes stand before the first
 * of these, *ret_marks: how many they are. */
static enum word last_word(struct span s, size_t *ret_before, size_t *ret_marks)
{
	enum word word = WORD_NONE;
	size_t n = 0;
	for (size_t i = 0; i < ARRAY_LEN(words) && word == WORD_NONE; i++)
		if (span_ends(s, span_of(words[i].text))) {
			word = words[i].word;
			n = strlen(words[i].text);
		}
	if (word == WORD_NONE && ends_with_hash(s)) {
		word = WORD_HASH;
		n = BLOB_HASH_CHARS + 1;
	}
	size_t before = s.n - n;
	while (before > 0 && s.p[before - 1] == '%')
		before--;
	*ret_before = before;
	*ret_marks = s.n - n - before;
	return *ret_marks > 0 ? word : WORD_NONE;
}

static bool is_dots(struct span s)
{
	return span_is(s, ".") || span_is(s, "..");
}

/* ---- writing ---- */

static void add_plain(struct span c, struct buf *out)
{
	size_t before, marks;
	if (c.n == 0) {
		buf_add_str(out, "%empty");
	} else if (is_dots(c)) {
		buf_add_span(out, c);
		buf_add_str(out, "%dot");
	} else if (last_word(c, &before, &marks) != WORD_NONE) {
		buf_add(out, c.p, before);
		buf_add_char(out, '%');
		buf_add(out, c.p + before, c.n - before);
	} else {
		buf_add_span(out, c);
	}
}

static void write_hash(struct span component, char out[BLOB_HASH_CHARS + 1])
{
	uint8_t digest[32];
	crypto_sha256(component, digest);
	for (size_t i = 0; i < BLOB_HASH_CHARS / 2; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

/* Returns how many bytes add_plain() adds. */
static size_t plain_bytes(struct span c)
{
	size_t before, marks;
	if (c.n == 0 || is_dots(c))
		return c.n + (c.n == 0 ? strlen("%empty") : strlen("%dot"));
	return c.n + (last_word(c, &before, &marks) != WORD_NONE);
}

/* Returns with how many bytes of a long component its file's name begins. */
static size_t long_begins(struct span c)
{
	size_t n = LONG_BEGINS < c.n ? LONG_BEGINS : c.n;
	while (n > 0 && n < c.n && ((unsigned char)c.p[n] & 0xC0) == 0x80) /* whole characters */
		n--;
	while (n > 0 && c.p[n - 1] == '%') /* they would join the one before the hash */
		n--;
	return n;
}

static bool is_long(struct span c, size_t suffix_bytes)
{
	return plain_bytes(c) > LIMIT_FILE_NAME_BYTES - suffix_bytes;
}

static void write_before(struct span component, struct span suffix, struct buf *out)
{
	char hash[BLOB_HASH_CHARS + 1];
	if (is_long(component, suffix.n)) {
		write_hash(component, hash);
		buf_add(out, component.p, long_begins(component));
		buf_addf(out, "%%~%s", hash);
	} else {
		add_plain(component, out);
	}
	buf_add_span(out, suffix);
}

void blob_component_write(struct span component, bool beside_dir, struct buf *out)
{
	write_before(component, beside_dir ? SPAN_LIT(BESIDE) : SPAN_LIT(""), out);
}

void blob_component_write_snapshot(struct span component, struct span time, struct buf *out)
{
	char suffix[1 + SNAPSHOT_TIME_CHARS + 1];
	int n = snprintf(suffix, sizeof(suffix), "@%.*s", (int)time.n, time.p);
	write_before(component, span_make(suffix, (size_t)n), out);
}

/* ---- reading ---- */

bool blob_component_split_snapshot(struct span shown, struct span *ret_name, struct span *ret_time)
{
	if (shown.n <= SNAPSHOT_TIME_CHARS)
		return false;
	size_t at = shown.n - SNAPSHOT_TIME_CHARS;
	*ret_name = span_make(shown.p, at - 1);
	*ret_time = span_make(shown.p + at, SNAPSHOT_TIME_CHARS);
	return shown.p[at - 1] == '@' && snapshot_time_check(*ret_time);
}

static bool read_special(
	enum word word, struct span before, struct span shown, struct blob_component *ret)
{
	switch (word) {
	case WORD_EMPTY:
		ret->n = 0;
		return before.n == 0;
	case WORD_DOT:
		break;
	case WORD_HASH:
		memcpy(ret->hash, shown.p + shown.n - BLOB_HASH_CHARS, BLOB_HASH_CHARS);
		break;
	case WORD_BLOB:
	case WORD_SNAPSHOTS:
	case WORD_NONE:
		return false;
	}
	memcpy(ret->text, before.p, before.n);
	ret->n = before.n;
	return word == WORD_HASH || is_dots(before);
}

bool blob_component_read(struct span shown, struct blob_component *ret)
{
	size_t before, marks;
	*ret = (struct blob_component){ 0 };
	if (shown.n > LIMIT_FILE_NAME_BYTES)
		return false;
	/* No blob's name has one, but the key of a snapshot does. */
	for (size_t i = 0; i < shown.n; i++)
		if ((unsigned char)shown.p[i] < 0x20)
			return false;
	enum word word = last_word(shown, &before, &marks);
	if (word == WORD_BLOB && marks == 1 && before > 0 && shown.p[before - 1] == '.') {
		ret->is_file = true;
		ret->suffix = strlen(BESIDE);
		shown = span_make(shown.p, before - 1);
		word = last_word(shown, &before, &marks);
	}
	if (word != WORD_NONE && marks == 1)
		return read_special(word, span_make(shown.p, before), shown, ret);
	if (word == WORD_NONE && is_dots(shown))
		return false;
	if (word == WORD_NONE)
		before = shown.n;
	memcpy(ret->text, shown.p, before);
	ret->n = before;
	if (word != WORD_NONE) { /* one "%" less */
		memcpy(ret->text + before, shown.p + before + 1, shown.n - before - 1);
		ret->n = shown.n - 1;
	}
	return ret->n > 0;
}

bool blob_component_is(const struct blob_component *c, struct span component)
{
	char hash[BLOB_HASH_CHARS + 1];
	if (c->hash[0] == '\0')
		return span_eq(component, span_make(c->text, c->n));
	/* Else a component would have two names. */
	if (!is_long(component, c->suffix) || long_begins(component) != c->n ||
		memcmp(component.p, c->text, c->n) != 0)
		return false;
	write_hash(component, hash);
	return strcmp(c->hash, hash) == 0;
}
