/* SPDX-License-Identifier: MIT
 * Names: a name that means a key is the name of that key; a legal key has a name that
 * means it, and fits. */
#include "fuzz.h"
#include "model/filename.h"
#include "model/key.h"

static void name_to_key(struct span name, enum filename_kind kind)
{
	char again[LIMIT_NAME_BYTES + 1];
	struct filename f;
	enum err e = filename_decode(name, kind, &f, NULL);

	if (e != ERR_OK || f.form == FILENAME_ORDINARY)
		return;
	MUST(f.key_len <= LIMIT_KEY_BYTES && f.key[f.key_len] == '\0');
	MUST(key_check(span_make(f.key, f.key_len), "key", NULL) == ERR_OK);
	if (f.form == FILENAME_DIGEST)
		return;
	MUST(span_eq(
		span_make(again, filename_encode(span_make(f.key, f.key_len), kind, again)), name));
}

static void key_to_name(struct span key, enum filename_kind kind)
{
	char name[LIMIT_NAME_BYTES + 1];
	struct filename f;
	struct span got;
	size_t n;

	if (key_check(key, "key", NULL) != ERR_OK)
		return;
	n = filename_encode(key, kind, name);
	MUST(n > 0 && n <= LIMIT_NAME_BYTES && name[n] == '\0' && name[0] != '.');
	MUST(memchr(name, '/', n) == NULL);
	MUST(filename_decode(span_make(name, n), kind, &f, NULL) == ERR_OK);
	got = span_make(f.key, f.key_len);
	MUST(f.form == (filename_is_long(key, kind) ? FILENAME_DIGEST : FILENAME_KEY));
	MUST(f.form == FILENAME_DIGEST ? span_starts(key, got) : span_eq(key, got));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span s = span_make(data, size);

	name_to_key(s, FILENAME_ROW);
	name_to_key(s, FILENAME_PARTITION);
	key_to_name(s, FILENAME_ROW);
	key_to_name(s, FILENAME_PARTITION);
	return 0;
}
