/* SPDX-License-Identifier: MIT
 * Key <-> file name.  One key has exactly one name and one name means exactly one key
 * (docs/semantics.md, "Names and keys"):
 *   - the key in UTF-8; '%', '/', control characters and a leading '.' as %XX, upper case;
 *   - a row's name ends in ".json", which is not part of the key;
 *   - the empty key is "%_";
 *   - a name over 240 bytes (".json" counted) is cut at a character boundary so that with
 *     "%~", the 52 base32 characters of SHA-256(key) and ".json" it fits into 240. */
#ifndef CODEC_FILENAME_H
#define CODEC_FILENAME_H

#include "base/err.h"
#include "base/span.h"
#include "model/limits.h"

#include <stdbool.h>

enum filename_kind {
	FILENAME_PARTITION, /* a directory in a table */
	FILENAME_ROW,       /* NAME.json in a partition */
};

enum filename_form {
	FILENAME_KEY,      /* key is complete */
	FILENAME_DIGEST,   /* a digest name: key holds the part before the cut */
	FILENAME_ORDINARY, /* FILENAME_ROW only: the name of an ordinary file */
};

struct filename {
	enum filename_form form;
	char key[LIMIT_KEY_BYTES + 1]; /* UTF-8, NUL behind it */
	size_t key_len;
};

/* The one name of a legal key.  Writes at most LIMIT_NAME_BYTES bytes and a NUL; returns
 * the length. */
size_t filename_encode(struct span key, enum filename_kind kind, char out[LIMIT_NAME_BYTES + 1]);

/* Whether the key's name takes the digest form. */
bool filename_is_long(struct span key, enum filename_kind kind);

/* What a name means.  Row names: those that end in ".json" and do not begin with '.';
 * every other name in a partition is FILENAME_ORDINARY.  A name that is no key's name:
 * ERR_NAME_INVALID, ERR_NAME_NOT_UTF8, ERR_KEY_INVALID, ERR_KEY_TOO_LARGE or
 * ERR_NAME_TOO_LONG.  For FILENAME_DIGEST the form of the name is checked (length 240 or
 * a shorter one only because the next character would not have fitted; 52 base32
 * characters) but not the digest: the caller finds or is given the key and asks
 * filename_encode() whether it has this name. */
enum err filename_decode(
	struct span name, enum filename_kind kind, struct filename *ret, struct err_detail *detail);

#endif
