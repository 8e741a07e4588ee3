/* SPDX-License-Identifier: MIT
 * The condition of a deletion is the version of the blob.  A new snapshot changes it too. */
#include "service/blobs/blobs.h"
#include "service/blobs/snapshot_key.h"

#include <stdlib.h>

#define DELETE_TRIES 64
#define FIRST_ROOM 16

/* The blob and its snapshots. */
struct removal {
	struct change *changes;
	size_t n, room;
	uint64_t container;
	struct span prefix; /* of their keys */
	bool found;         /* a snapshot, not only what a crash left of one */
	enum err error;
};

static bool grow(struct removal *r)
{
	size_t room = r->room == 0 ? FIRST_ROOM : 2 * r->room;
	struct change *changes =
		r->n < r->room ? r->changes : reallocarray(r->changes, room, sizeof(*changes));
	if (changes == NULL) {
		r->error = ERR_NO_MEMORY;
		return false;
	}
	if (changes != r->changes)
		r->room = room;
	r->changes = changes;
	return true;
}

/* By id: the key of a listed item is borrowed. */
static bool add_snapshot(void *arg, const struct item *it)
{
	struct removal *r = arg;
	struct blob_record record;
	if (!span_starts(it->key, r->prefix) || !grow(r))
		return false;
	r->found = r->found || blob_record_read(it->body, &record) != ERR_OK ||
		record.type != BLOB_NONE;
	r->changes[r->n++] = (struct change){ .op = CHANGE_DELETE,
		.flags = CHANGE_RECURSIVE,
		.at = { .id = it->id },
		.attrs = ATTRS_UNSET };
	return true;
}

static enum err find_snapshots(struct service *s, struct removal *r, struct span name)
{
	char *key = malloc(name.n + SNAPSHOT_KEY_EXTRA);
	if (key == NULL)
		return ERR_NO_MEMORY;
	r->prefix = snapshot_key(name, SPAN_LIT(""), key);
	enum err e = store_list(service_store(s), NULL, r->container, CLASS_BLOB, r->prefix, true,
		WANT_BODY, add_snapshot, r);
	free(key);
	return e == ERR_OK ? r->error : e;
}

static enum err plan(struct service *s, struct removal *r, const struct blob_info *b,
	enum snapshots_too how, const struct blob_conditions *conditions)
{
	enum err e = blob_conditions_write(conditions, b->record.etag);
	if (e == ERR_OK)
		e = lease_check_write(&b->record.lease, conditions->lease, service_now(s));
	if (e == ERR_OK)
		e = find_snapshots(s, r, b->name);
	if (e == ERR_OK && how == SNAPSHOTS_NONE && r->found)
		e = ERR_SNAPSHOTS_PRESENT;
	if (e == ERR_OK && how != SNAPSHOTS_ONLY && !grow(r))
		e = r->error;
	if (e == ERR_OK && how != SNAPSHOTS_ONLY)
		r->changes[r->n++] = (struct change){ .op = CHANGE_DELETE,
			.flags = CHANGE_RECURSIVE,
			.at = blob_place(r->container, b->name),
			.cond = COND_VERSION,
			.cond_version = b->item.version,
			.attrs = ATTRS_UNSET };
	return e;
}

static enum err try_delete(struct service *s, enum origin origin, struct removal *r,
	struct span name, enum snapshots_too how, const struct blob_conditions *conditions,
	struct err_detail *detail)
{
	struct blob_info b = { 0 };
	enum err e = blob_find(s, r->container, name, &b);
	if (e == ERR_OK)
		e = plan(s, r, &b, how, conditions);
	if (e == ERR_OK && r->n > 0) {
		e = service_apply(s, origin, r->changes, r->n, true, detail);
		changes_fini(r->changes, r->n);
		/* Somebody else deleted a snapshot. */
		if (e == ERR_GONE)
			e = ERR_CONDITION_NOT_MET;
	}
	blob_info_fini(&b);
	return e;
}

enum err blob_delete(struct service *s, enum origin origin, uint64_t container_id, struct span name,
	enum snapshots_too how, const struct blob_conditions *conditions, struct err_detail *detail)
{
	enum err e = ERR_CONDITION_NOT_MET;
	for (int tries = 0; e == ERR_CONDITION_NOT_MET && tries < DELETE_TRIES; tries++) {
		struct removal r = { .container = container_id };
		e = try_delete(s, origin, &r, name, how, conditions, detail);
		free(r.changes);
	}
	if (e == ERR_CONDITION_NOT_MET)
		return err_set(detail, ERR_THROTTLED, "other changes came faster every time");
	return e == ERR_NOT_FOUND || e == ERR_GONE ? ERR_BLOB_NOT_FOUND : e;
}
