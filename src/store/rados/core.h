/* SPDX-License-Identifier: MIT
 * The RADOS engine inside: what its files share.  The layout of a store:
 *
 *   store        the store itself: format, lock, daemons, next range of ids, version floor
 *   d.ID         a directory: its header, its token, an entry for each child, and for each child
 *                that is no directory its place by id
 *   b.ID.TOKEN   the body of a row or message over STORE_SMALL_BODY; never changed
 *   c.ID.N.TOKEN 512 KiB of an ordinary file; never changed
 *   ids.K        which directory the ids of a block belong to
 *
 * A change set changes one directory object, by one write operation that asks for the token which
 * the set's reads found.  So several daemons may serve one store: of two sets that cross, one reads
 * again.  Objects that a set names are made before; those that it forgets go after.
 *
 * A directory goes by an operation on its own object: its token says from then on that it is dead,
 * and no operation on it succeeds any more.  Its entry in its parent goes next (bury()).  With
 * CHANGE_RECURSIVE the entry goes first. */
#ifndef STORE_RADOS_CORE_H
#define STORE_RADOS_CORE_H

#include "base/lock.h"
#include "store/rados/io.h"
#include "store/rados/record.h"
#include "store/store.h"

#include <stdatomic.h>

#define STORE_OBJECT "store"
#define STRIPE_BYTES ((uint64_t)512 << 10)
#define GRANULE 16 /* ids; each block is made of whole ones */
#define WRITERS 16
/* Children of a directory.  Ceph recovers an object as a whole, and its writers wait meanwhile: 12 s
 * with 200,000 rows, each of which is two entries.  A change set gives up after 30 s. */
#define CHILDREN_WARN 200000
#define CHILDREN_MAX 500000

struct id_block {
	uint64_t home; /* a directory; 0: the ids are of directories */
	uint64_t first, last;
};

struct id_slot { /* ids that may be given in one directory */
	uint64_t home, next, end, size;
};

struct rstore {
	struct store base;
	struct rio io;
	char instance[17];
	bool read_only, locked;
	bool shared; /* other daemons may serve the store too */
	uint64_t limit_file, limit_files, limit_children;
	atomic_uint_fast64_t tokens;

	/* For reading: a change set; for writing: check(), so that nothing is half made. */
	struct rwlock sets;
	/* One for sets of the same directory, as a rule: so they do not cross.  Held while the
	 * cluster works. */
	struct mutex writers[WRITERS];

	struct mutex ids;                    /* held while the cluster gives a range */
	uint64_t range_next, range_end;      /* guarded by ids, as are the next four */
	struct id_slot dir_slot, slots[256]; /* of directories; of their children */
	struct id_block *pending;            /* given, and not written yet */
	size_t npending, cap_pending;

	struct mutex lock; /* guards what follows; memory only */
	int64_t reserved;  /* the version floor that the cluster knows */
	pthread_cond_t wake;
	bool stop;
	struct {
		uint64_t granule, home;
	} * homes;       /* a direct-mapped cache; granule + 1, so that 0 is empty */
	uint64_t *dying; /* removed directories that are being emptied */
	size_t ndying, cap_dying;
	atomic_size_t any_dying;
	int64_t version_high;
	uint64_t file_bytes, commits, changes;
	uint64_t file_bytes_told;   /* file_bytes when the cluster was last told */
	uint64_t space, space_free; /* of the cluster, as of the last renewal */
	uint64_t pool_bytes;        /* of all that is in the pool; 0: nobody tells */

	pthread_t renewer;
	bool renews;
};

static inline struct rstore *rstore_of(struct store *s)
{
	return (struct rstore *)s;
}

#define RSTORE_TRIES 30 /* of what another daemon may change meanwhile */
/* Before try number i: no pause before the first, then longer ones, at random. */
void rstore_pause(unsigned i);
/* Makes room for one more in an array of n of that size. */
enum err rstore_grow(void *array, size_t n, size_t *cap, size_t size);
void rstore_token(struct rstore *s, char out[TOKEN_LEN + 1]);
/* The same for a change set of that writer (< WRITERS). */
void rstore_set_token(struct rstore *s, unsigned writer, char out[TOKEN_LEN + 1]);

/* Raises what version_floor() answers. */
void rstore_saw(struct rstore *s, int64_t version);
/* Sets KEY_ABOVE. */
void rstore_set_above(struct rio_edit *e, int64_t version);

/* ---- find.c ---- */

struct found {
	struct record r;          /* it.parent, it.class, it.key are set */
	char seal[TOKEN_LEN + 1]; /* token of the object that it was found in */
	char last[LAST_LEN + 1];  /* see KEY_LAST */
	int64_t above;            /* what is made there has a version above this one */
	uint64_t dir;             /* whose object that is */
	char *mem, *body;
};

void found_fini(struct found *f);
/* Each: ERR_NOT_FOUND. */
enum err find_dir(struct rstore *s, uint64_t id, struct found *f);
enum err find_child(
	struct rstore *s, uint64_t parent, enum item_class class, struct span key, struct found *f);
/* The same by the entry's key: class letter and key. */
enum err find_place(struct rstore *s, uint64_t parent, struct span place, struct found *f);
/* Those of the n keys v[].key (class letter and key) that are there, of one moment, in one operation.
 * Calls `fn` with each, which borrows it; its first error ends this.  v has room for FIND_SEALS more;
 * the values are void afterwards.  The children are not directories. */
#define FIND_SEALS 3
typedef enum err (*found_fn)(void *arg, struct found *f);
enum err find_children(struct rstore *s, uint64_t parent, enum item_class class,
	struct rio_value *v, size_t n, found_fn fn, void *arg);
enum err find_id(struct rstore *s, uint64_t id, struct found *f);
/* Reads a body that is an object of its own.  ERR_NOT_FOUND: it was replaced meanwhile. */
enum err find_body(struct rstore *s, struct found *f);
/* Whether the directory, or one above it, was removed and is being emptied. */
enum err find_gone(struct rstore *s, uint64_t dir, bool *ret);

/* ---- ids.c ---- */

/* An id for a child of `home`; 0: for a directory. */
enum err ids_take(struct rstore *s, uint64_t home, uint64_t *ret);
/* Writes the blocks that were taken, the last of which is *ret_last; ids_flushed() with it when
 * the batch went well. */
void ids_flush(struct rstore *s, struct rio_batch *b, uint64_t *ret_last);
void ids_flushed(struct rstore *s, uint64_t last);
/* *ret: 0 for a directory's.  ERR_NOT_FOUND: nobody was given this id. */
enum err ids_home(struct rstore *s, uint64_t id, uint64_t *ret);

/* ---- read.c ---- */

enum err rados_get(
	struct store *s, struct store_view *v, uint64_t id, unsigned want, struct item *ret);
enum err rados_child(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	struct span key, unsigned want, struct item *ret);
enum err rados_list(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	struct span after, bool inclusive, unsigned want, store_list_fn fn, void *arg,
	bool *ret_more);
enum err rados_file_read(struct store *s, struct store_view *v, uint64_t id, uint64_t offset,
	void *out, size_t n, size_t *ret_n);

/* ---- apply.c ---- */

enum err rados_apply(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *reterr);

/* ---- reclaim.c ---- */

/* Hides the directory and all below it from now on; reclaim_tree() removes what is there. */
enum err reclaim_begin(struct rstore *s, uint64_t dir);
/* files: the sizes of ordinary files in it were not given back yet. */
enum err reclaim_tree(struct rstore *s, uint64_t dir, bool files);
/* Takes the entry of a dead directory out of its parent, at the place `key` there.  Anybody may,
 * any number of times.  ERR_BUSY: others changed the parent every time. */
enum err bury(struct rstore *s, uint64_t parent, struct span place, uint64_t dir);

/* ---- check.c ---- */

enum err rados_check(struct store *s, store_check_fn fn, store_progress_fn progress, void *arg);

/* ---- owner.c ---- */

/* Becomes the one daemon of the store, or with s->shared one of several.  ERR_BUSY: another daemon
 * is alone, or is there and this one wants to be alone. */
enum err owner_take(struct rstore *s, struct err_detail *detail);
void owner_leave(struct rstore *s);
/* Writes what the next daemon has to know; `floor`: every version so far is not above it. */
enum err owner_note_floor(struct rstore *s, int64_t floor);
/* Adds to the cluster's sum of ordinary files' sizes what came here, and takes over the sum. */
enum err owner_note_files(struct rstore *s);
/* Whether no other daemon has the store open; those that died or hang can change nothing from
 * now on. */
enum err owner_is_alone(struct rstore *s, bool *ret);
/* Whether the daemon whose token this is (empty: some other daemon) has left or died, so that it
 * changes nothing from now on.  This daemon has, too. */
enum err owner_has_gone(struct rstore *s, struct span token, bool *ret);

#endif
