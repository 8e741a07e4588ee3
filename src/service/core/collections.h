/* SPDX-License-Identifier: MIT
 * Queues and containers: the named collections of an account.  Each has a name, metadata and stored
 * access policies, and holds messages or blobs.
 *
 * A collection is an item of its account.  Callers name it by the id of that item, which it keeps
 * for life. */
#ifndef SERVICE_CORE_COLLECTIONS_H
#define SERVICE_CORE_COLLECTIONS_H

#include "base/buf.h"
#include "model/lease.h"
#include "model/metadata.h"
#include "service/core/service.h"

/* One of the two. */
struct collection_type {
	enum item_kind kind;
	enum item_class class;
	bool has_etag; /* it has an ETag of its own and an access level */
	enum err missing;
	enum err (*check_name)(struct span name, struct err_detail *detail);
};
extern const struct collection_type collection_queue, collection_container;

/* Valid only during the call that is given it; collection_fini() ends one that collection_find()
 * gave. */
struct collection {
	uint64_t id;
	struct span name;
	struct span metadata; /* model/metadata.h */
	struct span policies; /* as XML (codec/access_policy_xml.h); empty: none */
	int64_t etag;         /* with has_etag; ticks: the last change of the collection itself */
	int access;           /* with has_etag: enum container_access */
	struct lease lease;   /* with has_etag */
	/* Children, also those that are to be reclaimed: never too low. */
	uint64_t children;
	struct item item; /* owns the spans */
};
void collection_fini(struct collection *c);

/* Creates an empty collection.  Checks its name and metadata.  Sets c->etag.  ERR_ACCOUNT_NOT_FOUND;
 * ERR_QUEUE_EXISTS, ERR_CONTAINER_EXISTS; ERR_NAME_INVALID, ERR_NAME_TOO_SHORT, ERR_NAME_TOO_LONG,
 * ERR_METADATA_INVALID, ERR_METADATA_TOO_LARGE. */
enum err collection_create(struct service *s, enum origin origin, const struct collection_type *t,
	uint64_t account_id, struct collection *c, struct err_detail *detail);

/* Finds a collection by its name.  On ERR_OK call collection_fini().  t->missing. */
enum err collection_find(struct service *s, const struct collection_type *t, uint64_t account_id,
	struct span name, struct collection *ret);
/* Finds only its id, as the first step of every operation on what it holds. */
enum err collection_id(struct service *s, const struct collection_type *t, uint64_t account_id,
	struct span name, uint64_t *ret);

/* Takes one collection of a listing.  Return false to stop.  No call of the service from here. */
typedef bool (*collection_fn)(void *arg, const struct collection *c);
/* Lists the collections whose names begin with prefix, in order, from the name `marker` on (empty:
 * from the first), up to max.  Appends to *ret_next, which is empty before, the name with which the
 * next page begins; it stays empty at the end. */
enum err collection_list(struct service *s, const struct collection_type *t, uint64_t account_id,
	struct span prefix, struct span marker, size_t max, collection_fn fn, void *arg,
	struct buf *ret_next);

/* Says whether a collection may be changed or deleted as it is now: ERR_OK, or the answer. */
typedef enum err (*collection_check_fn)(void *arg, const struct collection *now);

struct collection_edit {
	const struct span *metadata; /* NULL: it stays */
	const struct span *policies; /* NULL: they and the access stay */
	int access;
	/* NULL: it stays.  Else the check may set what it points to, and the ETag stays. */
	const struct lease *lease;
	collection_check_fn check; /* NULL: always */
	void *arg;
};
/* Changes a collection.  The check and the change are one step.  *ret_etag is set with has_etag.
 * t->missing, those of metadata_check() and of the check.  ERR_THROTTLED: other changes came faster
 * every time. */
enum err collection_set(struct service *s, enum origin origin, const struct collection_type *t,
	uint64_t id, const struct collection_edit *to, int64_t *ret_etag,
	struct err_detail *detail);
/* Deletes a collection with all that it holds; the name is free at once.  check may be NULL.  only_empty:
 * ERR_NOT_EMPTY if it holds anything at that moment.  The errors of collection_set(). */
enum err collection_delete(struct service *s, enum origin origin, const struct collection_type *t,
	uint64_t id, collection_check_fn check, void *arg, bool only_empty,
	struct err_detail *detail);

/* For a check: returns what is wrong with the item of a collection, with its body; NULL: nothing. */
const char *collection_item_wrong(const struct collection_type *t, const struct item *it);

#endif
