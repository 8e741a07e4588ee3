/* SPDX-License-Identifier: MIT */
#include "fs/requests/refusal.h"

#include "fs/core/nid.h"
#include "fs/core/virtual.h"
#include "fs/write/stages.h"

/* ---- which answers are refusals ---- */

static const enum err answers[] = {
	/* The errno alone says that something is there, or is not. */
	ERR_NOT_FOUND,
	ERR_TABLE_NOT_FOUND,
	ERR_ACCOUNT_NOT_FOUND,
	ERR_NAME_EXISTS,
	ERR_ENTITY_EXISTS,
	ERR_ACCOUNT_EXISTS,
	ERR_NOT_EMPTY,
	ERR_NOT_A_DIRECTORY,
	ERR_IS_A_DIRECTORY,
	/* Programs try these, and do without. */
	ERR_NO_ATTRIBUTE,
	ERR_RANGE,
	ERR_NOT_SUPPORTED,
	/* The caller gave up. */
	ERR_CANCELLED,
};

bool refusal_is(enum err e, bool opened)
{
	if (e == ERR_OK || (e == ERR_GONE && !opened))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(answers); i++)
		if (answers[i] == e)
			return false;
	return true;
}

static const struct {
	enum err e;
	const char *text;
} texts[] = {
	{ ERR_NOT_PERMITTED, "This kind of file, or this name, cannot be made or changed here." },
	{ ERR_READ_ONLY, "It is read-only here: the mount (ro), a snapshot or a query." },
	{ ERR_TABLE_EXISTS,
		"A table of this name is there in another case: tables Users and users are one." },
	{ ERR_KEY_MISSING,
		"The name is a digest (%~) of a key that is not known here: write the file anew, "
		"with PartitionKey and RowKey in its document." },
};

const char *refusal_text(enum err e)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i].e == e)
			return texts[i].text;
	return NULL;
}

/* ---- where ---- */

static void place(struct refusal *r, uint64_t dir, struct span name)
{
	r->dir = dir;
	r->name = name;
}

static void place_of_virtual(struct fs *fs, uint64_t nid, const char *name,
	char component[COMPONENT_MAX], struct refusal *r)
{
	struct vplace at = { 0 };
	vnode_ops_of(fs, nid)->place(
		fs, nid_base(nid), name != NULL ? span_of(name) : (struct span){ 0 }, &at);
	size_t n = at.name.n < COMPONENT_MAX ? at.name.n : COMPONENT_MAX - 1;
	if (n > 0)
		memcpy(component, at.name.p, n);
	place(r, at.dir, span_make(component, n));
}

/* A writer's node has the name under which it was opened. */
static bool place_of_stage(
	struct fs *fs, uint64_t nid, char component[COMPONENT_MAX], struct refusal *r)
{
	struct stage *s = nid_is_staged(nid) ? stages_get(fs->stages, nid) : NULL;
	if (s == NULL)
		return false;
	memcpy(component, s->name, s->name_len);
	place(r, s->dir_id, span_make(component, s->name_len));
	stages_unref(fs, fs->stages, s);
	return true;
}

void refusal_place(struct fs *fs, uint64_t nid, const char *name, char component[COMPONENT_MAX],
	struct refusal *r)
{
	struct item it = { 0 };
	place(r, nid_id(nid), span_of(name != NULL ? name : ""));
	if (vnode_ops_of(fs, nid) != NULL) {
		place_of_virtual(fs, nid, name, component, r);
	} else if (name == NULL && !place_of_stage(fs, nid, component, r) &&
		store_get(fs->store, NULL, nid_id(nid), WANT_ATTRS, &it) == ERR_OK) {
		if (it.id > STORE_ID_FIRST)
			place(r, it.parent, span_make(component, item_component(&it, component)));
		item_fini(&it);
	}
}

/* ---- words ---- */

enum err refuse_control(struct err_detail *detail)
{
	return err_set(detail, ERR_NOT_PERMITTED,
		"The name is one of rowfs's own: it is always there, and cannot be made, moved or "
		"removed.");
}

enum err refuse_in_trash(struct err_detail *detail)
{
	return err_set(detail, ERR_NOT_PERMITTED,
		"A file in .rowfs/trash is read or moved out (mv), and not changed.");
}

static enum err refuse_in_room(const struct resolved_name *t, struct err_detail *detail)
{
	return err_set(detail, ERR_NOT_PERMITTED,
		"Nothing is made or changed in .rowfs/%s; move its files out.",
		t->dir.id == STORE_TRASH ? "trash" : "rejected");
}

static bool is_room(const struct resolved_name *t)
{
	return t->dir.id < STORE_ID_FIRST && t->dir.id != STORE_ROOT;
}

enum err refuse_file_there(struct fs *fs, const struct resolved_name *t, struct err_detail *detail)
{
	char path[SHOWN_PATH_MAX];
	if (is_room(t))
		return refuse_in_room(t, detail);
	if (t->dir.kind == ITEM_TABLE) {
		name_path(fs->store, t->dir.id, SPAN_LIT("PARTITION"), path);
		return err_set(detail, ERR_NOT_PERMITTED,
			"Rows live in a partition; make one first: mkdir %s/%s", fs->dir, path);
	}
	name_path(fs->store, t->dir.id,
		t->dir.id == STORE_ROOT ? SPAN_LIT("ACCOUNT/TABLE/PARTITION")
					: SPAN_LIT("TABLE/PARTITION"),
		path);
	return err_set(detail, ERR_NOT_PERMITTED,
		"Rows live in a partition of a table; make one first: mkdir -p %s/%s", fs->dir,
		path);
}

enum err refuse_file_name(struct fs *fs, uint64_t dir_nid, enum err e, struct err_detail *detail)
{
	struct resolved_name t = { 0 };
	bool named = name_means_nothing(e) || e == ERR_INVALID_INPUT;
	if (e == ERR_OK || !named ||
		store_get(fs->store, NULL, nid_id(dir_nid), WANT_ATTRS, &t.dir) != ERR_OK)
		return e;
	if (t.dir.id == STORE_ROOT || t.dir.kind == ITEM_ACCOUNT)
		e = refuse_file_there(fs, &t, detail);
	resolved_name_fini(&t);
	return e;
}

enum err refuse_dir_there(struct fs *fs, const struct resolved_name *t, struct err_detail *detail)
{
	char path[SHOWN_PATH_MAX];
	if (is_room(t))
		return refuse_in_room(t, detail);
	if (t->dir.kind != ITEM_PARTITION && !t->pending_dir)
		return err_set(detail, ERR_NOT_PERMITTED,
			"A directory of ordinary files has a name with a leading dot here.");
	name_path(fs->store, t->dir.parent, t->name, path);
	return err_set(detail, ERR_NOT_PERMITTED,
		"A partition holds rows (NAME.json) and files; a directory in it has a name with a "
		"leading dot. One more partition: mkdir %s/%s",
		fs->dir, path);
}
