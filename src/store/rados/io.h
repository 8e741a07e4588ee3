/* SPDX-License-Identifier: MIT
 * Objects of a Ceph cluster: the few operations of librados that the engine uses, with our errors
 * and our memory.  An object has a name, bytes, and an ordered map (omap).  One write operation on
 * one object is atomic, whatever it holds. */
#ifndef STORE_RADOS_IO_H
#define STORE_RADOS_IO_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "store/rados/functions.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RIO_NAME_MAX 64

struct rio {
	rados_t cluster;
	rados_ioctx_t io;    /* the store's namespace in its pool */
	atomic_bool refused; /* the cluster refuses all that this process asks: it was shut out */
};

/* Connects to what a URL "rados:POOL/NAME[?conf=FILE&id=USER&mode=MODE]" names;
 * *ret_alone: the mode is `exclusive`.  ERR_INVALID_INPUT: no such
 * URL; ERR_NOT_FOUND: no such pool; ERR_NOT_SUPPORTED: a pool without omap. */
enum err rio_connect(struct rio *r, const char *url, bool *ret_alone, struct err_detail *detail);
void rio_disconnect(struct rio *r);
/* A digest of what the URL names: cluster, pool and name.  The configuration tells the cluster from
 * others, by its monitors and its number; nothing is asked of it. */
void rio_digest(const char *url, uint8_t ret[32]);

/* Of a negative code of librados; notes if the cluster refuses this process. */
enum err rio_error(struct rio *r, int code);

/* ---- reading ---- */

struct rio_value {
	struct span key;
	struct span val; /* p NULL: the object has no such key */
};

/* The values of n keys at one moment.  ERR_NOT_FOUND: there is no such object.  *ret_mem owns what
 * the spans point to; free() it. */
enum err rio_get(struct rio *r, const char *object, struct rio_value *v, size_t n, char **ret_mem);

struct rio_page {
	struct rio_value *v;
	size_t n;
	bool more; /* of those behind `after` */
	char *mem;
};

/* At most `max` entries whose key begins with `prefix`, in order, behind `after`; before them those
 * with one of the n keys `exact`, in order too.  ERR_NOT_FOUND. */
enum err rio_list(struct rio *r, const char *object, const struct span *exact, size_t n,
	const char *after, const char *prefix, unsigned max, struct rio_page *ret);
void rio_page_fini(struct rio_page *p);
/* Sets `after` to the last key of the page, for the next one.  *ret_more: there is a next page.
 * ERR_NO_MEMORY. */
enum err rio_page_next(const struct rio_page *p, struct buf *after, bool *ret_more);

/* n bytes at the offset; *ret_n is less at the end.  ERR_NOT_FOUND. */
enum err rio_read(
	struct rio *r, const char *object, uint64_t offset, void *out, size_t n, size_t *ret_n);

/* ---- writing ---- */

struct rio_entry {
	char *key, *val; /* owned; val NULL: the key goes */
	size_t key_n, val_n;
};

/* One write operation that is being collected. */
struct rio_edit {
	struct rio_entry *v;
	size_t n, cap;
	bool failed; /* out of memory: it will not be sent */
};

void rio_edit_set(struct rio_edit *e, struct span key, struct span val);
void rio_edit_remove(struct rio_edit *e, struct span key);
void rio_edit_fini(struct rio_edit *e);

/* What must be so, or else nothing is changed and the answer is -ECANCELED (-EEXIST: `create`). */
struct rio_guard {
	bool create;         /* there is no such object */
	bool exists;         /* there is; else the answer is -ENOENT */
	struct span key, is; /* a key that is not there is as an empty value */
	bool less;           /* or what is there is less than `is` */
};

/* Sends it and waits.  The code of librados, so that the caller can tell a lost answer. */
int rio_write(struct rio *r, const char *object, const struct rio_edit *e, struct rio_guard g);

/* Operations under way. */
struct rio_batch {
	rados_completion_t *v;
	size_t n, cap;
	struct rio *rio;
	enum err failed;
};

void rio_batch_write(struct rio_batch *b, struct rio *r, const char *object,
	const struct rio_edit *e, bool create);
/* The bytes of an object that nobody made before. */
void rio_batch_put(struct rio_batch *b, struct rio *r, const char *object, struct span bytes);
/* An object that is not there is fine. */
void rio_batch_remove(struct rio_batch *b, struct rio *r, const char *object);
/* Waits for all of them; the first error. */
enum err rio_batch_wait(struct rio_batch *b);

#endif
