/* SPDX-License-Identifier: MIT
 * Recent row contents by node: those that open handles pinned, those that were read last, and those
 * that were replaced or removed a moment ago.  The last kind is for an open(2) whose look-up came
 * before the change.  Contents are immutable, so nothing here is ever stale.  Bounded; pinned ones
 * stay.  Thread-safe. */
#ifndef FS_CACHE_CONTENT_H
#define FS_CACHE_CONTENT_H

#include "base/err.h"
#include "store/store.h"

struct content {
	uint64_t nid;
	struct item item; /* with body; attributes as they were when it was put here */
};

struct contents;
struct contents *contents_new(size_t max_bytes, size_t max_count);
void contents_free(struct contents *b);
/* Keeps *ret at the bytes that they are in all, and at 0 after the end.  Called before the first use; *ret lives
 * longer. */
void contents_tell_bytes(struct contents *b, _Atomic uint64_t *ret);

/* The content of this node, pinned; NULL if it is not here. */
const struct content *contents_pin(struct contents *b, uint64_t nid);
/* The same, also of a retired one: for a request whose walk began with a look-up that gave this
 * node, so that no newer node was there then.  A caller that saw in the store that the row was
 * replaced or removed first waits until its before-image is here (service_wait_retained()). */
const struct content *contents_pin_old(struct contents *b, uint64_t nid);
/* Takes over the item (which is zeroed), also if there is no memory, and pins it; what is there
 * already stays. */
enum err contents_put(struct contents *b, struct item *it, const struct content **ret);
/* The same without a pin, if there is memory. */
void contents_add(struct contents *b, struct item *it);
/* The same for a node that was replaced or removed for good: only contents_pin_old() finds it from now
 * on.  The item holds the last attributes of that version, so an entry with earlier ones goes. */
enum err contents_retain_old(struct contents *b, struct item *it, const struct content **ret);
/* Once more what is pinned. */
void contents_pin_again(struct contents *b, const struct content *content);
void contents_unpin(struct contents *b, const struct content *content);
/* Whether the kernel has the content (fs/cache/pages.h), as far as is known.  Of a pinned content.
 * */
bool content_is_given(const struct content *content);
void content_set_given(const struct content *content, bool given);

/* The node stands for something that changes from now on: who pinned it keeps it. */
void contents_drop(struct contents *b, uint64_t nid);
/* Retires a node that was replaced for good while the kernel may still have its name, and after a
 * client may have seen the replacement.  contents_pin() does not find it any more, not even if the
 * change that replaced it, or an earlier reader, puts its content here later. */
void contents_retire(struct contents *b, uint64_t nid);

/* As contents_pin(), but also what was dropped or retired while it is pinned: for the attributes of
 * an open file. */
const struct content *contents_look(struct contents *b, uint64_t nid);

/* How much they are that are pinned; without a lock. */
size_t contents_pinned_bytes(const struct contents *b);

struct contents_info {
	size_t count, bytes, pinned;
	uint64_t hits, misses;
};
void contents_info(struct contents *b, struct contents_info *ret);

#endif
