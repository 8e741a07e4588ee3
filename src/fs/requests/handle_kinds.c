/* SPDX-License-Identifier: MIT */
#include "fs/requests/handle_kinds.h"

#include "base/lock.h"
#include "fs/core/virtual.h"
#include "fs/tree/held.h"
#include "fs/tree/listing.h"
#include "fs/write/stages.h"

static void release_content(struct fs *fs, struct handle *h)
{
	contents_unpin(fs->contents, h->content);
}

static void abandon_stage(struct fs *fs, struct handle *h)
{
	if (h->stage != NULL)
		stage_close(fs, h->stage);
}

static void release_stage(struct fs *fs, struct handle *h)
{
	if (h->stage != NULL)
		stages_unref(fs, fs->stages, h->stage);
}

static void release_listing(struct fs *fs, struct handle *h)
{
	handle_links(fs, h, false);
	listing_free(fs, h->listing);
}

static void release_virtual(struct fs *fs, struct handle *h)
{
	if (h->file != NULL)
		h->file->ops->free(h->file);
	if (h->vdir != NULL)
		h->vdir->ops->free(h->vdir);
	held_set(fs, &h->held, 0);
	mutex_destroy(&h->turns.lock);
}

const struct handle_ops handle_kinds[HANDLE_KINDS] = {
	[HANDLE_ROW] = { .release = release_content },
	[HANDLE_FILE] = { .release = release_content },
	[HANDLE_STAGE] = { .abandon = abandon_stage, .release = release_stage },
	[HANDLE_DIR] = { .release = release_listing },
	[HANDLE_VIRTUAL] = { .release = release_virtual },
	[HANDLE_VIRTUAL_DIR] = { .release = release_virtual },
};
