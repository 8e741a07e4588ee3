/* SPDX-License-Identifier: MIT
 * Names of objects and keys, and items as bytes. */
#ifndef STORE_RADOS_RECORD_H
#define STORE_RADOS_RECORD_H

#include "base/buf.h"
#include "store/rados/io.h"
#include "store/store.h"

#define KEYS_MAX ((size_t)1 << 20) /* bytes of keys, or of one record */
#define TOKEN_LEN 32 /* hex digits: the daemon, and a number that it never uses twice */

#define KEY_HEADER "!" /* the directory itself */
#define KEY_TOKEN "t"  /* of the last change of the object: the guard of each write */
#define KEY_ABOVE "v"  /* version of the last removal: what is made has a later one */
#define KEY_LAST "w"   /* the last token of each of the last writers, latest first */
#define LAST_MAX 8     /* writers; no daemon's lost answer is older */
#define LAST_LEN (LAST_MAX * TOKEN_LEN)
#define WRITER_LEN 17  /* of a token: the daemon, and which of its writers */
#define TOKEN_DEAD 'x' /* first letter of the last token of a directory */

/* Names; each is at most RIO_NAME_MAX - 1 long. */
void name_dir(char out[RIO_NAME_MAX], uint64_t id);
void name_body(char out[RIO_NAME_MAX], uint64_t id, const char *token);
void name_stripe(char out[RIO_NAME_MAX], uint64_t id, uint64_t stripe, const char *token);
void name_ids(char out[RIO_NAME_MAX], uint64_t id);

/* A child's place in its directory: a letter for the class, and the key. */
void key_place(struct buf *out, enum item_class class, struct span key);
/* Of "ID", so that a child is found by id. */
void key_id(struct buf *out, uint64_t id);
#define KEY_STRIPES_LEN 11
/* Of one stripe of a file; the first KEY_STRIPES_LEN bytes are those of all its stripes. */
void key_stripe(struct buf *out, uint64_t id, uint64_t stripe);
#define CLASS_LETTERS "knqb" /* in the order of enum item_class */
char class_letter(enum item_class class);

/* An item as bytes.  Without place: parent, class and key are those of its entry. */
struct record {
	struct item it; /* borrows from the bytes */
	bool link;      /* a directory: only id and kind are here, the rest is in its object */
	char token[TOKEN_LEN + 1]; /* the body is an object of its own; else empty */
};

void record_link(struct buf *out, uint64_t id, enum item_kind kind);
/* token: as in struct record; NULL: the body goes inside. */
void record_item(struct buf *out, const struct item *it, const char *token);
/* With the place, for the directory's own object. */
void record_header(struct buf *out, const struct item *it);
/* ERR_CORRUPT. */
enum err record_decode(struct span bytes, struct record *ret);

#endif
