/* SPDX-License-Identifier: MIT */
#include "service/blobs/blob_move.h"

#include "model/names.h"
#include "service/blobs/blob_find.h"
#include "service/blobs/snapshot_key.h"

#define MOVE_TRIES 64

static enum err try_move(struct service *s, enum origin origin, const struct blob_info *from,
	const struct blob_info *there, struct blob_name to, struct err_detail *detail)
{
	struct change c[2] = { { .op = CHANGE_DELETE,
				       .flags = CHANGE_RECURSIVE,
				       .at = blob_place(to.container, to.name),
				       .cond = COND_VERSION,
				       .cond_version = there->item.version,
				       .attrs = ATTRS_UNSET },
		{ .op = CHANGE_MOVE,
			.flags = CHANGE_NO_REPLACE,
			.at = blob_place(from->item.parent, from->name),
			.cond = COND_VERSION,
			.cond_version = from->item.version,
			.to = blob_place(to.container, to.name),
			.attrs = ATTRS_UNSET } };
	size_t first = there->id == 0;
	enum err e = service_apply(s, origin, c + first, 2 - first, false, detail);
	changes_fini(c + first, 2 - first);
	return e;
}

static bool on_next(void *arg, const struct item *it)
{
	struct span *name = arg;
	if (span_starts(it->key, *name))
		name->n = 0;
	return false;
}

/* The snapshots of a blob stand behind it, under its name. */
static enum err check_snapshots(struct service *s, const struct blob_info *from)
{
	struct buf key = BUF_INIT(8192);
	buf_add_span(&key, from->name);
	buf_add_char(&key, SNAPSHOT_MARK);
	if (!buf_ok(&key))
		return ERR_NO_MEMORY;
	struct span name = buf_span(&key);
	enum err e = store_list(service_store(s), NULL, from->item.parent, CLASS_BLOB, name, true,
		WANT_KEYS, on_next, &name);
	buf_fini(&key);
	return e == ERR_OK && name.n == 0 ? ERR_SNAPSHOTS_PRESENT : e;
}

static enum err check(
	struct service *s, const struct blob_info *from, const struct blob_info *there, bool keep)
{
	int64_t now = service_now(s);
	if (there->id != 0 && there->record.type != BLOB_NONE && keep)
		return ERR_BLOB_EXISTS;
	enum err e = check_snapshots(s, from);
	if (e == ERR_OK)
		e = lease_check_write(&from->record.lease, SPAN_LIT(""), now);
	if (e == ERR_OK && there->id != 0)
		e = lease_check_write(&there->record.lease, SPAN_LIT(""), now);
	return e;
}

enum err blob_move(struct service *s, enum origin origin, struct blob_name from,
	struct blob_name to, bool keep, struct err_detail *detail)
{
	bool overtaken = true;
	enum err e = blob_name_check(to.name, detail);
	if (e != ERR_OK)
		return e;
	for (int tries = 0; overtaken && tries < MOVE_TRIES; tries++) {
		struct blob_info was, there = { 0 };
		e = blob_find(s, from.container, from.name, &was);
		if (e != ERR_OK)
			return e;
		e = blob_look(s, to.container, to.name, &there);
		if (e == ERR_OK || e == ERR_NOT_FOUND)
			e = check(s, &was, &there, keep);
		overtaken = false;
		if (e == ERR_OK && there.id != was.id) {
			e = try_move(s, origin, &was, &there, to, detail);
			overtaken = e == ERR_CONDITION_NOT_MET || e == ERR_NOT_FOUND ||
				e == ERR_BLOB_EXISTS || e == ERR_NAME_EXISTS;
		}
		blob_info_fini(&was);
		blob_info_fini(&there);
	}
	return overtaken ? err_set(detail, ERR_THROTTLED, "other changes came faster every time")
			 : e;
}
