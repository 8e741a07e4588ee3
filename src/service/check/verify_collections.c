/* SPDX-License-Identifier: MIT
 * The queues and the containers of an account. */
#include "service/blobs/blobs.h"
#include "service/blobs/block_list.h"
#include "service/blobs/containers.h"
#include "service/blobs/snapshot_key.h"
#include "service/check/verify_parts.h"
#include "service/check/walk.h"
#include "service/queue/messages.h"
#include "service/queue/queues.h"

static bool on_message(void *arg, const struct item *it)
{
	struct verify *v = arg;
	const char *wrong = message_item_wrong(it);
	v->children++;
	v->counts->messages++;
	if (wrong != NULL)
		verify_report(v, it->key, "%s", wrong);
	verify_tell_done(v);
	return !v->stopped;
}

static enum err verify_queue(struct verify *v, const struct item *it)
{
	const char *wrong = collection_item_wrong(&collection_queue, it);
	v->counts->queues++;
	if (wrong != NULL)
		verify_report(v, it->key, "%s", wrong);
	v->table = it->key;
	v->children = 0;
	enum err e = store_list(v->store, v->view, it->id, CLASS_QUEUE, (struct span){ 0 }, false,
		WANT_BODY, on_message, v);
	v->table = (struct span){ 0 };
	if (e == ERR_OK)
		verify_count(v, it, it->key);
	return verify_tolerate(v, it->key, e);
}

enum err verify_queues(struct verify *v, uint64_t account, uint64_t *children)
{
	struct item at = { 0 };
	enum err e = ERR_OK;
	while (e == ERR_OK && !v->stopped) {
		e = walk_next(v->store, v->view, account, CLASS_QUEUE, WANT_BODY, &at);
		if (e == ERR_OK) {
			(*children)++;
			e = verify_queue(v, &at);
		}
	}
	item_fini(&at);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* The extents and pieces of a blob, or the pieces of an extent.  An extent has no extents. */
static enum err verify_content(struct verify *v, const struct item *dir)
{
	struct item at = { 0 };
	uint64_t children = 0;
	enum err e = ERR_OK;
	while (e == ERR_OK && !v->stopped) {
		e = walk_next(v->store, v->view, dir->id, CLASS_BLOB, WANT_BODY, &at);
		const char *wrong = e == ERR_OK ? blob_item_wrong(&at) : NULL;
		if (wrong != NULL)
			verify_report(v, dir->key, "%s", wrong);
		children += e == ERR_OK;
		if (e == ERR_OK && at.kind == ITEM_EXTENT && dir->kind == ITEM_BLOB)
			e = verify_content(v, &at);
		verify_tell_done(v);
	}
	item_fini(&at);
	v->children = children;
	if (e == ERR_NOT_FOUND)
		verify_count(v, dir, dir->key);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* The extent that the record names, and that all of its pieces are there. */
static enum err verify_extent(struct verify *v, const struct item *blob)
{
	struct item extent = { 0 };
	uint64_t id, pieces;
	if (!blob_item_extent(blob, &id, &pieces))
		return ERR_OK;
	enum err e = store_get(v->store, v->view, id, WANT_ATTRS, &extent);
	if (e == ERR_NOT_FOUND || (e == ERR_OK && extent.parent != blob->id))
		verify_report(v, blob->key, "the content of the blob is missing");
	else if (e == ERR_OK && extent.size < pieces)
		verify_report(v, blob->key, "a part of the content of the blob is missing");
	item_fini(&extent);
	const char *wrong = NULL;
	if (e == ERR_OK)
		e = blob_pages_wrong(v->store, v->view, blob, &wrong);
	if (e == ERR_OK && wrong == NULL)
		e = blob_blocks_wrong(v->store, v->view, blob, &wrong);
	if (wrong != NULL)
		verify_report(v, blob->key, "%s", wrong);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}

/* Counts a blob, or looks whether a snapshot stands behind its blob, whose name is in `last`. */
static void verify_snapshot(struct verify *v, const struct item *at, struct buf *last)
{
	struct span name, time;
	snapshot_key_split(at->key, &name, &time);
	if (time.n > 0 && !span_eq(name, buf_span(last)))
		verify_report(v, at->key, "the blob of the snapshot is missing");
	if (time.n > 0)
		return;
	v->counts->blobs++;
	buf_clear(last);
	buf_add_span(last, name);
}

static enum err verify_container(struct verify *v, const struct item *it)
{
	struct buf last = BUF_INIT(8192);
	struct item at = { 0 };
	const char *wrong = collection_item_wrong(&collection_container, it);
	uint64_t children = 0;
	enum err e = ERR_OK;
	v->counts->containers++;
	if (wrong != NULL)
		verify_report(v, it->key, "%s", wrong);
	v->table = it->key;
	while (e == ERR_OK && !v->stopped) {
		e = walk_next(v->store, v->view, it->id, CLASS_BLOB, WANT_BODY, &at);
		if (e != ERR_OK)
			break;
		children++;
		verify_snapshot(v, &at, &last);
		wrong = blob_item_wrong(&at);
		if (wrong != NULL)
			verify_report(v, at.key, "%s", wrong);
		e = verify_content(v, &at);
		if (e == ERR_OK)
			e = verify_extent(v, &at);
	}
	item_fini(&at);
	buf_fini(&last);
	v->table = (struct span){ 0 };
	v->children = children;
	if (e == ERR_NOT_FOUND)
		verify_count(v, it, it->key);
	return verify_tolerate(v, it->key, e == ERR_NOT_FOUND ? ERR_OK : e);
}

enum err verify_containers(struct verify *v, uint64_t account, uint64_t *children)
{
	struct item at = { 0 };
	enum err e = ERR_OK;
	while (e == ERR_OK && !v->stopped) {
		e = walk_next(v->store, v->view, account, CLASS_BLOB, WANT_BODY, &at);
		if (e == ERR_OK) {
			(*children)++;
			e = verify_container(v, &at);
		}
	}
	item_fini(&at);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}
