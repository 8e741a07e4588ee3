/* SPDX-License-Identifier: MIT
 * Small decisions that store.h fixes, in one place for every engine. */
#include "store/rules.h"

#include "base/clock.h"

enum err rules_exists(enum item_kind there)
{
	switch (there) {
	case ITEM_ROW:
		return ERR_ENTITY_EXISTS;
	case ITEM_TABLE:
		return ERR_TABLE_EXISTS;
	case ITEM_ACCOUNT:
		return ERR_ACCOUNT_EXISTS;
	case ITEM_QUEUE:
		return ERR_QUEUE_EXISTS;
	case ITEM_CONTAINER:
		return ERR_CONTAINER_EXISTS;
	case ITEM_BLOB:
		return ERR_BLOB_EXISTS;
	case ITEM_NONE:
	case ITEM_PARTITION:
	case ITEM_FILE:
	case ITEM_FOLDER:
	case ITEM_MESSAGE:
	case ITEM_EXTENT:
	case ITEM_PIECE:
		break;
	}
	return ERR_NAME_EXISTS;
}

static bool class_suits(enum item_kind kind, enum item_class class)
{
	if (kind >= ITEM_CONTAINER)
		return class == CLASS_BLOB;
	if (kind == ITEM_QUEUE || kind == ITEM_MESSAGE)
		return class == CLASS_QUEUE;
	return class == (kind == ITEM_FILE || kind == ITEM_FOLDER ? CLASS_NAMED : CLASS_KEYED);
}

bool rules_fits(const struct item *parent, const struct item *child, enum item_class class)
{
	if (child->kind == ITEM_ACCOUNT && parent->id != STORE_ROOT)
		return false;
	if (child->kind == ITEM_EXTENT && parent->kind == ITEM_FOLDER &&
		parent->id != STORE_ORPHANS)
		return false;
	return item_may_hold(parent->kind, child->kind) && class_suits(child->kind, class);
}

bool rules_has_body(enum item_kind kind)
{
	return rules_body_is_content(kind) || kind == ITEM_ACCOUNT || kind == ITEM_TABLE ||
		kind == ITEM_QUEUE || kind == ITEM_CONTAINER || kind == ITEM_BLOB;
}

bool rules_wants_body(unsigned want, const struct item *it)
{
	if (want & WANT_BODY)
		return rules_has_body(it->kind);
	return want & WANT_SMALL_BODY && rules_body_is_content(it->kind) &&
		it->size <= STORE_SMALL_BODY;
}

bool rules_put_replaces(const struct change *put, const struct item *there)
{
	bool content = rules_body_is_content(put->kind);
	if (put->kind != there->kind || !rules_has_body(put->kind))
		return false;
	return !content || put->kind == ITEM_PIECE || (put->kind == ITEM_ROW && put->body.n > 0);
}

enum err rules_cond(const struct change *c, const struct item *there)
{
	if (there && item_is_empty_row(there) &&
		(c->cond == COND_ABSENT || c->cond == COND_PRESENT))
		there = NULL;
	switch (c->cond) {
	case COND_NONE:
		break;
	case COND_ABSENT:
		return there ? rules_exists(there->kind) : ERR_OK;
	case COND_PRESENT:
		return there ? ERR_OK : ERR_NOT_FOUND;
	case COND_VERSION:
		if (!there)
			return ERR_NOT_FOUND;
		return there->version == c->cond_version ? ERR_OK : ERR_CONDITION_NOT_MET;
	case COND_ID:
		if (!there)
			return ERR_NOT_FOUND;
		return there->id == (uint64_t)c->cond_version ? ERR_OK : ERR_GONE;
	}
	return ERR_OK;
}

enum err rules_to_match(const struct change *c, const struct item *there)
{
	if (!c->to_match || (there != NULL && there->version == c->to_version))
		return ERR_OK;
	return ERR_CONDITION_NOT_MET;
}

enum err rules_convert(enum item_kind from, enum item_kind to, bool has_body)
{
	if (to == ITEM_NONE || to == from)
		return has_body && !rules_body_is_content(from) ? ERR_INVALID_INPUT : ERR_OK;
	if (from == ITEM_FILE && to == ITEM_ROW)
		return has_body ? ERR_OK : ERR_INVALID_INPUT;
	if (from == ITEM_ROW && to == ITEM_FILE)
		return ERR_OK;
	if (from == ITEM_FOLDER && to == ITEM_PARTITION && !has_body)
		return ERR_OK;
	return ERR_INVALID_INPUT;
}

struct attrs rules_attrs_replaced(const struct attrs *old, const struct attrs *given)
{
	struct attrs a = *given;
	if (a.mode == MODE_UNSET)
		a.mode = old->mode;
	if (a.uid == OWNER_UNSET)
		a.uid = old->uid;
	if (a.gid == OWNER_UNSET)
		a.gid = old->gid;
	return a;
}

struct attrs rules_attrs_moved(const struct item *it)
{
	struct attrs a = it->attrs;
	if (a.mtime_ns == TIME_UNSET)
		a.mtime_ns = ticks_to_unix_ns(it->version);
	a.ctime_ns = TIME_UNSET;
	return a;
}

uint64_t rules_left_id(uint64_t row_id)
{
	return row_id & RULES_ID_LEFT ? 0 : row_id | RULES_ID_LEFT;
}

struct item rules_file_left(const struct item *row, const struct change *c)
{
	return (struct item){
		.id = rules_left_id(row->id),
		.kind = ITEM_FILE,
		.version = c->version,
		.born = row->born,
		.attrs = rules_attrs_moved(row),
		.size = row->size,
		.name = SPAN_LIT(""),
	};
}

void rules_attrs_set(struct item *it, const struct change *c)
{
	if (c->set_mask & ATTR_MODE)
		it->attrs.mode = c->attrs.mode;
	if (c->set_mask & ATTR_UID)
		it->attrs.uid = c->attrs.uid;
	if (c->set_mask & ATTR_GID)
		it->attrs.gid = c->attrs.gid;
	if (c->set_mask & ATTR_MTIME)
		it->attrs.mtime_ns = c->attrs.mtime_ns;
	if (c->set_mask & ATTR_CTIME)
		it->attrs.ctime_ns = c->attrs.ctime_ns;
	if (c->set_mask & ATTR_MATCH && it->kind == ITEM_FILE)
		it->attrs.if_match = c->attrs.if_match;
	if (c->set_mask & ATTR_FLAG_MADE && item_is_dir(it->kind))
		it->flags = (it->flags & ~(uint32_t)ITEM_MADE) | (c->item_flags & ITEM_MADE);
}

void rules_moved(struct item *it, enum item_kind kind, bool body, uint32_t flags)
{
	if (kind == ITEM_NONE)
		kind = it->kind;
	if (it->kind == ITEM_FILE && kind == ITEM_ROW) {
		it->flags = flags & ITEM_FLAGS_PUBLIC;
		it->attrs.if_match = MATCH_UNSET;
	} else if (it->kind == ITEM_ROW && kind == ITEM_FILE) {
		it->generation++; /* its content may change from now on */
		it->flags = 0;
	} else if (body) {
		it->generation++;
		it->flags = flags & ITEM_FLAGS_PUBLIC;
	}
	it->kind = kind;
}

enum err rules_new_size(
	const struct change *c, const struct item *it, uint64_t limit, uint64_t *ret)
{
	if (item_is_dir(it->kind))
		return ERR_IS_A_DIRECTORY;
	if (it->kind != ITEM_FILE)
		return ERR_INVALID_INPUT;
	uint64_t end = c->offset;
	if (c->op == CHANGE_WRITE && __builtin_add_overflow(c->offset, c->body.n, &end))
		return ERR_FILE_TOO_LARGE;
	if (c->op == CHANGE_WRITE && (c->body.n == 0 || end < it->size))
		end = it->size;
	/* A file that a lowered limit finds too large can still be overwritten and cut. */
	if (end > limit && end > it->size)
		return ERR_FILE_TOO_LARGE;
	*ret = end;
	return ERR_OK;
}
