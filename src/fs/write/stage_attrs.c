/* SPDX-License-Identifier: MIT
 * Mode, owner and times of a stage: set by its handles or on the item that holds its name. */
#include "base/lock.h"
#include "fs/cache/notify.h"
#include "fs/core/nid.h"
#include "fs/tree/attr.h"
#include "fs/write/stage.h"

static void overlay(struct attrs *to, const struct attrs *from, uint32_t mask)
{
	if ((mask & ATTR_MODE) != 0)
		to->mode = from->mode;
	if ((mask & ATTR_UID) != 0)
		to->uid = from->uid;
	if ((mask & ATTR_GID) != 0)
		to->gid = from->gid;
	if ((mask & ATTR_MTIME) != 0)
		to->mtime_ns = from->mtime_ns;
}

enum err stage_set_attrs(struct fs *fs, struct stage *s, const struct attrs *attrs, uint32_t mask)
{
	enum err e = ERR_OK;
	mutex_lock(&s->lock);
	uint64_t id = stage__item(s);
	bool now_too = id != 0 && !stage_is_edited(&s->is);
	/* What the row has now it keeps, unless somebody else sets it; but the time of a row without
	 * a document is not that of its first document. */
	uint32_t kept = !now_too ? mask : s->base.size == 0 ? mask & ATTR_MTIME : 0;
	overlay(&s->commit.attrs, attrs, kept);
	if (now_too) {
		struct item now = { 0 };
		e = tree_set_attrs(fs->service, id, attrs, mask, &now);
		if (e == ERR_OK) {
			s->base.attrs = now.attrs;
			if (s->stale.changed == CHANGED_NOTHING)
				s->stale.changed = CHANGED_ATTRS;
			/* They were set by the stage's node. */
			notify_attributes(fs->notifier, nid_of(&now));
		}
		item_fini(&now);
	}
	mutex_unlock(&s->lock);
	return e;
}

void stage_look(struct store *store, struct stage *s)
{
	struct item now = { 0 };
	mutex_lock(&s->lock);
	uint64_t id = stage__item(s);
	if (id != 0 && store_get(store, NULL, id, WANT_ATTRS, &now) == ERR_OK) {
		struct attrs old = s->base.attrs;
		s->base.attrs = now.attrs;
		if (now.version != s->base.version) { /* of another document */
			s->base.attrs.mtime_ns = old.mtime_ns;
			s->base.attrs.ctime_ns = old.ctime_ns;
		}
	}
	mutex_unlock(&s->lock);
	item_fini(&now);
}

void stage_stat(struct fs *fs, struct stage *s, struct stat *ret)
{
	mutex_lock(&s->lock);
	struct item shown = { .id = s->base.id,
		.kind = ITEM_ROW,
		.version = s->base.version,
		.attrs = s->base.attrs,
		.size = s->is.document == DOC_UNREAD ? s->base.size : s->buf.len };
	const struct attrs *set = &s->commit.attrs;
	overlay(&shown.attrs, set,
		(set->mode != MODE_UNSET ? ATTR_MODE : 0) |
			(set->uid != OWNER_UNSET ? ATTR_UID : 0) |
			(set->gid != OWNER_UNSET ? ATTR_GID : 0) |
			(set->mtime_ns != TIME_UNSET ? ATTR_MTIME : 0));
	if (shown.id == 0)
		shown.id = (s->nid & ~NID_STAGED) | UINT64_C(1) << 60;
	attr_of_item(fs, &shown, ret);
	mutex_unlock(&s->lock);
}
