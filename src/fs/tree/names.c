/* SPDX-License-Identifier: MIT */
#include "fs/tree/names.h"

#include "base/text.h"
#include "codec/entity_json.h"
#include "fs/core/nid.h"
#include "fs/tree/control_names.h"
#include "model/key.h"
#include "model/names.h"

#include <stdlib.h>

void resolved_name_fini(struct resolved_name *t)
{
	item_fini(&t->dir);
}

static void set_key(struct resolved_name *t, const char *p, size_t n)
{
	memcpy(t->key, p, n);
	t->key_len = n;
}

/* ---- digest names ---- */

struct digest_search {
	struct span name;   /* what we look for */
	struct span prefix; /* order form of the key's beginning */
	enum filename_kind kind;
	struct resolved_name *target;
	bool found;
};

static bool try_digest(void *arg, const struct item *it)
{
	struct digest_search *d = arg;
	if (!span_starts(it->key, d->prefix))
		return false;
	char key[LIMIT_KEY_BYTES], name[LIMIT_NAME_BYTES + 1];
	key_from_order(it->key.p, it->key.n, key);
	size_t n = filename_encode(span_make(key, it->key.n), d->kind, name);
	if (!span_eq(span_make(name, n), d->name))
		return true;
	set_key(d->target, it->key.p, it->key.n);
	d->found = true;
	return false;
}

/* The key behind a digest name: among the keys that begin like it. */
static enum err find_digest(
	struct fs *fs, struct resolved_name *t, enum filename_kind kind, const struct filename *f)
{
	char prefix[LIMIT_KEY_BYTES];
	key_to_order(f->key, f->key_len, prefix);
	struct digest_search d = { .name = t->name, .kind = kind, .target = t };
	d.prefix = span_make(prefix, f->key_len);
	enum err e = store_list(fs->store, t->view, t->dir.id, CLASS_KEYED, d.prefix, true,
		WANT_ATTRS, try_digest, &d);
	t->digest = !d.found;
	if (!d.found)
		t->key_len = 0;
	return e;
}

enum err name_key_from_document(
	struct fs *fs, struct resolved_name *t, struct span document, struct err_detail *detail)
{
	if (!t->digest)
		return ERR_OK;
	bool row = t->row_name;
	struct entity entity = { 0 };
	enum err e = entity_json_decode(document, ENTITY_JSON_FILE, &entity, NULL, detail);
	if (e == ERR_OK && !(row ? entity.has_rk : entity.has_pk))
		e = err_set(detail, ERR_KEY_MISSING,
			"the name is a digest: the document must hold %s",
			row ? "RowKey" : "PartitionKey");
	if (e == ERR_OK) {
		struct span key = row ? entity.rk : entity.pk;
		char name[LIMIT_NAME_BYTES + 1];
		size_t n = filename_encode(key, row ? FILENAME_ROW : FILENAME_PARTITION, name);
		if (!span_eq(span_make(name, n), t->name)) {
			e = err_set(detail, ERR_KEY_MISMATCH,
				"the name's digest is not that of the document's %s",
				row ? "RowKey" : "PartitionKey");
		} else {
			key_to_order(key.p, key.n, t->key);
			t->key_len = key.n;
			t->digest = false;
		}
	}
	entity_fini(&entity);
	(void)fs;
	return e;
}

/* ---- by kind of directory ---- */

/* No key has one, at any level. */
static bool is_dot_name(struct span name)
{
	return name.n > 0 && name.p[0] == '.';
}

static enum err as_named(struct resolved_name *t)
{
	t->class = CLASS_NAMED;
	set_key(t, t->name.p, t->name.n);
	return ERR_OK;
}

static enum err in_root(struct resolved_name *t, struct err_detail *detail)
{
	enum err e = account_name_check(t->name, detail);
	if (e == ERR_OK)
		set_key(t, t->name.p, t->name.n);
	return e;
}

static enum err in_account(struct resolved_name *t, struct err_detail *detail)
{
	enum err e = table_name_check(t->name, detail);
	if (e == ERR_OK) {
		table_name_fold(t->name, t->key);
		t->key_len = t->name.n;
	}
	return e;
}

static enum err by_codec(
	struct fs *fs, struct resolved_name *t, enum filename_kind kind, struct err_detail *detail)
{
	struct filename f;
	enum err e = filename_decode(t->name, kind, &f, detail);
	if (e != ERR_OK)
		return e;
	if (f.form == FILENAME_ORDINARY)
		return as_named(t);
	t->row_name = kind == FILENAME_ROW;
	if (f.form == FILENAME_DIGEST)
		return find_digest(fs, t, kind, &f);
	key_to_order(f.key, f.key_len, t->key);
	t->key_len = f.key_len;
	return ERR_OK;
}

static enum err in_folder(struct fs *fs, struct resolved_name *t, struct err_detail *detail)
{
	t->pending_dir = item_is_pending_partition(fs, t->view, &t->dir);
	return t->pending_dir ? by_codec(fs, t, FILENAME_ROW, detail) : as_named(t);
}

static enum err begin(struct fs *fs, struct store_view *view, uint64_t dir_id, const char *name,
	struct resolved_name *ret)
{
	*ret = (struct resolved_name){ .view = view, .name = span_of(name), .class = CLASS_KEYED };
	if (ret->name.n > LIMIT_FILE_NAME_BYTES)
		return ERR_NAME_TOO_LONG;
	enum err e = store_get(fs->store, view, dir_id, WANT_ATTRS, &ret->dir);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

/* On failure t is given up. */
static enum err by_directory(struct fs *fs, struct resolved_name *t, struct err_detail *detail)
{
	enum err e = ERR_NOT_A_DIRECTORY;
	if (is_dot_name(t->name) && item_is_dir(t->dir.kind))
		e = as_named(t);
	else if (t->dir.id == STORE_ROOT)
		e = in_root(t, detail);
	else if (t->dir.kind == ITEM_ACCOUNT)
		e = in_account(t, detail);
	else if (t->dir.kind == ITEM_TABLE)
		e = by_codec(fs, t, FILENAME_PARTITION, detail);
	else if (t->dir.kind == ITEM_PARTITION)
		e = by_codec(fs, t, FILENAME_ROW, detail);
	else if (t->dir.kind == ITEM_FOLDER)
		e = in_folder(fs, t, detail);
	if (e != ERR_OK)
		resolved_name_fini(t);
	return e;
}

enum err name_resolve(struct fs *fs, uint64_t parent_nid, const char *name,
	struct resolved_name *ret, struct err_detail *detail)
{
	if (!nid_is_item(parent_nid))
		return ERR_NOT_A_DIRECTORY;
	enum err e = begin(fs, NULL, nid_id(parent_nid), name, ret);
	if (e != ERR_OK)
		return e;
	if (ret->dir.id == STORE_ROOT && span_is(ret->name, ".rowfs"))
		ret->control = NID_CONTROL_DIR;
	else
		ret->control = dir_control_find(&ret->dir, ret->name);
	return ret->control != 0 ? ERR_OK : by_directory(fs, ret, detail);
}

enum err name_resolve_in(struct fs *fs, struct store_view *view, uint64_t dir_id, const char *name,
	struct resolved_name *ret, struct err_detail *detail)
{
	enum err e = begin(fs, view, dir_id, name, ret);
	return e == ERR_OK ? by_directory(fs, ret, detail) : e;
}

bool name_means_nothing(enum err e)
{
	return e == ERR_NAME_INVALID || e == ERR_NAME_TOO_SHORT || e == ERR_NAME_TOO_LONG ||
		e == ERR_KEY_INVALID || e == ERR_KEY_TOO_LARGE || e == ERR_NOT_FOUND;
}

bool name_may_hold_files(const struct resolved_name *t)
{
	if (t->dir.id < STORE_ID_FIRST && t->dir.id != STORE_ROOT)
		return false;
	return is_dot_name(t->name) || t->dir.kind == ITEM_PARTITION ||
		(t->dir.kind == ITEM_FOLDER && t->dir.id != STORE_ROOT);
}

struct dentry name_dentry(const struct resolved_name *t, enum item_kind kind)
{
	struct dentry at = { .dir = &t->dir, .class = t->class };
	at.key = span_make(t->key, t->key_len);
	bool table = t->dir.kind == ITEM_ACCOUNT && t->class == CLASS_KEYED;
	if (table || t->row_name)
		at.name = t->name;
	if ((t->row_name && kind == ITEM_FILE) || kind == ITEM_FOLDER) {
		at.class = CLASS_NAMED;
		at.key = t->name;
	}
	return at;
}

enum err name_item(struct fs *fs, const struct resolved_name *t, unsigned want, struct item *ret)
{
	enum err e = ERR_NOT_FOUND;
	const struct span key = span_make(t->key, t->key_len);
	if (!t->digest)
		e = store_child(fs->store, t->view, t->dir.id, t->class, key, want, ret);
	bool named_too = t->row_name || (t->digest && t->dir.kind == ITEM_TABLE);
	if (e == ERR_NOT_FOUND && named_too)
		e = store_child(fs->store, t->view, t->dir.id, CLASS_NAMED, t->name, want, ret);
	if (e == ERR_OK && ret->kind == ITEM_TABLE && !span_eq(ret->name, t->name)) {
		item_fini(ret);
		return ERR_NOT_FOUND;
	}
	return e;
}

enum err name_find_digest(struct fs *fs, struct resolved_name *t)
{
	return by_codec(fs, t, t->row_name ? FILENAME_ROW : FILENAME_PARTITION, NULL);
}

/* ---- back ---- */

size_t item_component(const struct item *it, char out[COMPONENT_MAX])
{
	if (it->kind == ITEM_TABLE || it->class == CLASS_NAMED || it->kind == ITEM_ACCOUNT) {
		struct span s = it->kind == ITEM_TABLE ? it->name : it->key;
		size_t n = s.n < COMPONENT_MAX ? s.n : COMPONENT_MAX - 1;
		memcpy(out, s.p, n);
		out[n] = 0;
		return n;
	}
	enum filename_kind kind = it->kind == ITEM_ROW ? FILENAME_ROW : FILENAME_PARTITION;
	if (key_is_order(it->key))
		return filename_encode(it->key, kind, out);
	char key[LIMIT_KEY_BYTES];
	key_from_order(it->key.p, it->key.n, key);
	return filename_encode(span_make(key, it->key.n), kind, out);
}

/* Puts component/ before what is there; what does not fit is left out. */
static void prepend(char out[SHOWN_PATH_MAX], const char *component, size_t n)
{
	size_t len = strlen(out);
	if (n + 1 + len >= SHOWN_PATH_MAX)
		return;
	memmove(out + n + 1, out, len + 1);
	memcpy(out, component, n);
	out[n] = '/';
}

void name_path(struct fs *fs, uint64_t dir_id, struct span name, char out[SHOWN_PATH_MAX])
{
	size_t n = name.n < COMPONENT_MAX ? name.n : COMPONENT_MAX;
	memcpy(out, name.p, n);
	out[n] = 0;
	if (dir_id == NID_SNAPSHOTS)
		prepend(out, ".rowfs/snapshots", sizeof(".rowfs/snapshots") - 1);
	if (dir_id == NID_CONTROL_DIR)
		prepend(out, ".rowfs", sizeof(".rowfs") - 1);
	struct item dir = { 0 };
	while (dir_id != STORE_ROOT &&
		store_get(fs->store, NULL, dir_id, WANT_ATTRS, &dir) == ERR_OK) {
		char component[COMPONENT_MAX];
		size_t len = item_component(&dir, component);
		prepend(out, component, len);
		if (dir.id == STORE_REJECTED || dir.id == STORE_TRASH)
			prepend(out, ".rowfs", sizeof(".rowfs") - 1);
		dir_id = dir.parent != 0 ? dir.parent : STORE_ROOT;
		item_fini(&dir);
	}
}

static bool parent_is(
	struct fs *fs, struct store_view *view, const struct item *it, enum item_kind kind)
{
	struct item parent = { 0 };
	if (store_get(fs->store, view, it->parent, WANT_ATTRS, &parent) != ERR_OK)
		return false;
	bool is = parent.kind == kind ||
		(kind == ITEM_PARTITION && item_is_pending_partition(fs, view, &parent));
	item_fini(&parent);
	return is;
}

bool item_is_waiting(struct fs *fs, const struct item *it)
{
	if (it->kind != ITEM_FILE || it->size != 0 || !span_ends(it->key, SPAN_LIT(".json")) ||
		it->key.p[0] == '.')
		return item_is_empty_row(it);
	return parent_is(fs, NULL, it, ITEM_PARTITION);
}

bool name_tells_key(const struct resolved_name *t)
{
	return t->row_name && !t->digest && !t->pending_dir;
}

bool item_is_pending_partition(struct fs *fs, struct store_view *view, const struct item *it)
{
	struct filename f;
	if (it->kind != ITEM_FOLDER || it->key.n == 0 || it->key.p[0] == '.')
		return false;
	if (filename_decode(it->key, FILENAME_PARTITION, &f, NULL) != ERR_OK ||
		f.form != FILENAME_DIGEST)
		return false;
	return parent_is(fs, view, it, ITEM_TABLE);
}
