/* SPDX-License-Identifier: MIT
 * Keys as file names.  Each key has exactly one name, and each name stands for exactly one key
 * (docs/semantics.md, "Names and keys"):
 * - The name is the key in UTF-8.  '%', '/', control characters and a leading '.' become %XX, in
 *   upper case.
 * - A row's name ends in ".json", which is not part of the key.
 * - The empty key is "%_".
 * - A name over 240 bytes, ".json" included, becomes a digest name.  It is cut at a character
 *   boundary and ends in "%~" and 52 base32 characters of SHA-256(key).  With ".json" it fits into
 *   240 bytes. */
#ifndef MODEL_FILENAME_H
#define MODEL_FILENAME_H

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
	FILENAME_DIGEST,   /* a digest name: key is the part before the cut */
	FILENAME_ORDINARY, /* only in a partition: the name of an ordinary file */
};

struct filename {
	enum filename_form form;
	char key[LIMIT_KEY_BYTES + 1]; /* UTF-8, followed by a NUL */
	size_t key_len;
};

/* Writes the name of a valid key and a NUL, at most LIMIT_NAME_BYTES and one.  Returns the
 * length. */
size_t filename_encode(struct span key, enum filename_kind kind, char out[LIMIT_NAME_BYTES + 1]);

/* Returns true if the name of the key is a digest name. */
bool filename_is_long(struct span key, enum filename_kind kind);

/* Interprets a name.  In a partition, a row's name ends in ".json" and does not begin with '.'; any
 * other name is FILENAME_ORDINARY.  In a table tmp_.rows.ndjson and tmp_.rows.csv are: partitions of these
 * keys have names that begin with %74.
 *
 * A name that no key has is ERR_NAME_INVALID, ERR_NAME_NOT_UTF8, ERR_KEY_INVALID, ERR_KEY_TOO_LARGE
 * or ERR_NAME_TOO_LONG.
 *
 * The form of a digest name is checked, but not the digest.  The caller must find the key and
 * compare its filename_encode(). */
enum err filename_decode(
	struct span name, enum filename_kind kind, struct filename *ret, struct err_detail *detail);

#endif
