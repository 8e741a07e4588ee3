/* SPDX-License-Identifier: MIT */
#include "fs/handle.h"

#include "fs/idset.h"
#include "fs/nid.h"
#include "service/tree.h"

#include <stdlib.h>

struct handles {
	pthread_mutex_t lock;
	struct handle *first; /* guarded by lock */
};

struct handles *handles_new(void)
{
	struct handles *t = calloc(1, sizeof(*t));
	if (t != NULL && pthread_mutex_init(&t->lock, NULL) != 0) {
		free(t);
		return NULL;
	}
	return t;
}

struct handle *handle_new(struct fs *fs, enum handle_kind kind, uint64_t nid, pid_t opener)
{
	struct handle *h = calloc(1, sizeof(*h));
	if (h == NULL)
		return NULL;
	pthread_mutex_init(&h->turns.lock, NULL);
	h->kind = kind;
	h->nid = nid;
	h->opener = opener;
	atomic_init(&h->refs, 1);
	if (kind == HANDLE_FILE)
		(void)idset_add(fs->open_files, nid_id(nid), 1);
	else if (kind == HANDLE_DIR)
		(void)idset_add(fs->open_dirs, nid_id(nid), 1);
	struct handles *t = fs->handles;
	pthread_mutex_lock(&t->lock);
	h->next = t->first;
	if (t->first != NULL)
		t->first->previous = h;
	t->first = h;
	pthread_mutex_unlock(&t->lock);
	return h;
}

void handle_ref(struct handle *h)
{
	atomic_fetch_add(&h->refs, 1);
}

/* An ordinary file that was removed while it was open goes with its last handle. */
static void drop_orphan(struct fs *fs, uint64_t id)
{
	struct item item = { 0 };
	if (store_get(fs->store, NULL, id, WANT_ATTRS, &item) == ERR_OK &&
		item.parent == STORE_ORPHANS)
		(void)tree_drop(fs->service, id);
	item_fini(&item);
}

static void handle_free(struct fs *fs, struct handle *h)
{
	if (h->kind == HANDLE_FILE && idset_add(fs->open_files, nid_id(h->nid), -1) == 0)
		drop_orphan(fs, nid_id(h->nid));
	else if (h->kind == HANDLE_DIR)
		(void)idset_add(fs->open_dirs, nid_id(h->nid), -1);
	blobs_unpin(fs->blobs, h->blob);
	if (h->stage != NULL)
		stages_unref(fs, fs->stages, h->stage);
	listing_free(h->listing);
	if (h->file != NULL)
		h->file->ops->free(h->file);
	if (h->vdir != NULL)
		h->vdir->ops->free(h->vdir);
	pthread_mutex_destroy(&h->turns.lock);
	free(h);
}

void handle_unref(struct fs *fs, struct handle *h)
{
	if (atomic_fetch_sub(&h->refs, 1) != 1)
		return;
	struct handles *t = fs->handles;
	pthread_mutex_lock(&t->lock);
	if (h->next != NULL)
		h->next->previous = h->previous;
	*(h->previous != NULL ? &h->previous->next : &t->first) = h->next;
	pthread_mutex_unlock(&t->lock);
	handle_free(fs, h);
}

void handles_free(struct fs *fs, struct handles *t)
{
	if (t == NULL)
		return;
	for (struct handle *h = t->first, *next; h != NULL; h = next) {
		next = h->next;
		if (h->stage != NULL)
			stage_close(fs, h->stage);
		handle_free(fs, h);
	}
	pthread_mutex_destroy(&t->lock);
	free(t);
}
