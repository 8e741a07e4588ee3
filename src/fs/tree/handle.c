/* SPDX-License-Identifier: MIT */
#include "fs/tree/handle.h"

#include "base/lock.h"
#include "fs/core/idset.h"
#include "fs/core/nid.h"
#include "fs/tree/open_quota.h"
#include "service/tree/tree.h"

#include <stdlib.h>

struct handles {
	struct mutex lock;
	struct handle *first; /* guarded by lock */
};

struct handles *handles_new(void)
{
	struct handles *t = calloc(1, sizeof(*t));
	if (t != NULL && mutex_init(&t->lock, RANK_HANDLES) != 0) {
		free(t);
		return NULL;
	}
	return t;
}

struct handle *handle_new(struct fs *fs, enum kind kind, uint64_t nid, pid_t opener)
{
	struct handle *h = calloc(1, sizeof(*h));
	if (h == NULL)
		return NULL;
	h->kind = kind;
	h->nid = nid;
	h->opener = opener;
	atomic_init(&h->refs, 1);
	if (kind == KIND_FILE)
		(void)idset_add(fs->open_files, nid_id(nid), 1);
	atomic_fetch_add(&fs->open_quota->handles, 1);
	struct handles *t = fs->handles;
	mutex_lock(&t->lock);
	h->next = t->first;
	if (t->first != NULL)
		t->first->previous = h;
	t->first = h;
	mutex_unlock(&t->lock);
	return h;
}

void handle_ready(struct handles *t, struct handle *h)
{
	mutex_lock(&t->lock);
	h->ready = true;
	mutex_unlock(&t->lock);
}

/* The last reference may be going, and waiting for the table's lock. */
static bool ref_unless_gone(struct handle *h)
{
	unsigned refs = atomic_load(&h->refs);
	while (refs > 0 && !atomic_compare_exchange_weak(&h->refs, &refs, refs + 1))
		;
	return refs > 0;
}

struct handle *handle_reading(struct handles *t, uint64_t nid)
{
	mutex_lock(&t->lock);
	struct handle *h = t->first;
	while (h != NULL &&
		!(h->nid == nid && h->kind == KIND_VIRTUAL && h->ready && !h->writes &&
			ref_unless_gone(h)))
		h = h->next;
	mutex_unlock(&t->lock);
	return h;
}

bool handle_is_written(struct handles *t, uint64_t nid)
{
	mutex_lock(&t->lock);
	struct handle *h = t->first;
	while (h != NULL && !(h->nid == nid && h->kind == KIND_VIRTUAL && h->ready && h->writes))
		h = h->next;
	mutex_unlock(&t->lock);
	return h != NULL;
}

void handle_writes(struct open_quota *open_quota, struct handle *h)
{
	h->writes = true;
	atomic_fetch_add(&open_quota->writers, 1);
}

void handle_ref(struct handle *h)
{
	atomic_fetch_add(&h->refs, 1);
}

void handle_links(struct fs *fs, struct handle *h, bool links)
{
	if (atomic_exchange(&h->linking, links) != links)
		(void)idset_add(fs->open_dirs, nid_id(h->nid), links ? 1 : -1);
}

bool file_goes(struct fs *fs, uint64_t id)
{
	if (idset_add(fs->leaving, id, 1) <= 0)
		return false; /* no memory: not now */
	if (idset_count(fs->open_files, id) == 0)
		return true;
	file_went(fs, id);
	return false;
}

void file_went(struct fs *fs, uint64_t id)
{
	(void)idset_add(fs->leaving, id, -1);
}

/* What was removed while it was open goes with its last handle. */
void file_drop_orphan(struct fs *fs, uint64_t id)
{
	struct item item = { 0 };
	if (store_get(fs->store, NULL, id, WANT_ATTRS, &item) == ERR_OK &&
		item.parent == STORE_ORPHANS && file_goes(fs, id)) {
		(void)tree_drop(fs->service, id);
		file_went(fs, id);
	}
	item_fini(&item);
}

/* Out of sight while it is open; its last close may have come in between. */
enum err file_unlink(struct fs *fs, const struct dentry *at, uint64_t id, struct err_detail *detail)
{
	enum err e;
	if (file_goes(fs, id)) {
		e = tree_unlink(fs->service, at, NULL, detail);
		file_went(fs, id);
		return e;
	}
	e = tree_orphan(fs->service, at, detail);
	if (e == ERR_OK)
		file_drop_orphan(fs, id);
	return e;
}

void handles_retain(struct fs *fs, const struct content *content)
{
	struct handles *t = fs->handles;
	mutex_lock(&t->lock);
	for (struct handle *h = t->first; h != NULL; h = h->next)
		if (h->kind == KIND_FILE && h->nid == content->nid && h->content == NULL) {
			contents_pin_again(fs->contents, content);
			h->content = content;
		}
	mutex_unlock(&t->lock);
}

bool handles_of_file(struct fs *fs, uint64_t nid)
{
	struct handles *t = fs->handles;
	bool found = false;
	if (idset_count(fs->open_files, nid_id(nid)) == 0)
		return false;
	mutex_lock(&t->lock);
	for (struct handle *h = t->first; h != NULL && !found; h = h->next)
		found = h->kind == KIND_FILE && h->nid == nid;
	mutex_unlock(&t->lock);
	return found;
}

static void handle_free(struct fs *fs, struct handle *h)
{
	if (h->kind == KIND_FILE && idset_add(fs->open_files, nid_id(h->nid), -1) == 0)
		file_drop_orphan(fs, nid_id(h->nid));
	if (fs->kinds[h->kind]->fini != NULL)
		fs->kinds[h->kind]->fini(fs, h);
	if (h->writes)
		atomic_fetch_sub(&fs->open_quota->writers, 1);
	atomic_fetch_sub(&fs->open_quota->handles, 1);
	free(h);
}

void handle_unref(struct fs *fs, struct handle *h)
{
	if (atomic_fetch_sub(&h->refs, 1) != 1)
		return;
	struct handles *t = fs->handles;
	mutex_lock(&t->lock);
	if (h->next != NULL)
		h->next->previous = h->previous;
	*(h->previous != NULL ? &h->previous->next : &t->first) = h->next;
	mutex_unlock(&t->lock);
	handle_free(fs, h);
}

void handles_free(struct fs *fs, struct handles *t)
{
	if (t == NULL)
		return;
	for (struct handle *h = t->first, *next; h != NULL; h = next) {
		next = h->next;
		if (fs->kinds[h->kind]->abandon != NULL)
			fs->kinds[h->kind]->abandon(fs, h);
		/* It may commit, which takes the lock to look at the other handles (handles_retain()). */
		mutex_lock(&t->lock);
		t->first = next;
		if (next != NULL)
			next->previous = NULL;
		mutex_unlock(&t->lock);
		handle_free(fs, h);
	}
	mutex_destroy(&t->lock);
	free(t);
}
