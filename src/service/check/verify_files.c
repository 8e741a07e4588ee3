/* SPDX-License-Identifier: MIT
 * Ordinary files and folders, which every directory may hold. */
#include "model/filename.h"
#include "service/check/verify_parts.h"
#include "service/check/walk.h"

/* Returns true if an ordinary file or folder may have this name.  A leading dot is allowed
 * everywhere.  In a partition, a file may have a row's name: editors create it empty before they
 * write.  In a table, a folder may have the digest name of a partition whose key is unknown, and a
 * file the name of a temporary file that will be imported.
 * v->dir is ITEM_NONE for the root. */
static bool file_name_is_allowed(const struct verify *v, const struct item *it)
{
	struct filename f;
	struct span name = it->key;
	if (name.n == 0 || name.n > LIMIT_FILE_NAME_BYTES || span_is(name, ".") ||
		span_is(name, "..") || memchr(name.p, '/', name.n) != NULL ||
		memchr(name.p, 0, name.n) != NULL)
		return false;
	if (name.p[0] == '.' || v->dir == ITEM_FOLDER)
		return true;
	if (v->dir == ITEM_TABLE)
		return filename_decode(name, FILENAME_PARTITION, &f, NULL) == ERR_OK &&
			f.form == (it->kind == ITEM_FOLDER ? FILENAME_DIGEST : FILENAME_ORDINARY);
	if (v->dir != ITEM_PARTITION)
		return false;
	return filename_decode(name, FILENAME_ROW, &f, NULL) == ERR_OK &&
		(f.form == FILENAME_ORDINARY || it->kind == ITEM_FILE);
}

void verify_dir_flags(struct verify *v, const struct item *dir, struct span name)
{
	if ((dir->flags & ~(uint32_t)(ITEM_MADE | ITEM_HELD_EMPTY)) != 0)
		verify_report(v, name, "it has flags that a directory cannot have");
}

static bool on_file(void *arg, const struct item *it)
{
	struct verify *v = arg;
	v->children++;
	v->counts->files += it->kind == ITEM_FILE;
	if (!file_name_is_allowed(v, it))
		verify_report(v, it->key, "the name of an ordinary file is not allowed");
	if (it->kind == ITEM_FOLDER)
		verify_dir_flags(v, it, it->key);
	else if (it->flags != 0)
		verify_report(v, it->key, "it has flags that a file cannot have");
	verify_tell_done(v);
	return !v->stopped;
}

/* Takes the next folder of dir, as walk_next() does. */
static enum err next_folder(struct verify *v, uint64_t dir, struct item *at)
{
	enum err e;
	do
		e = walk_next(v->store, v->view, dir, CLASS_NAMED, WANT_ATTRS, at);
	while (e == ERR_OK && at->kind != ITEM_FOLDER);
	return e;
}

enum err verify_files(struct verify *v, uint64_t dir, enum item_kind kind)
{
	v->dir = kind;
	return v->stopped ? ERR_OK
			  : store_list(v->store, v->view, dir, CLASS_NAMED, (struct span){ 0 },
				    false, WANT_ATTRS, on_file, v);
}

/* Verifies the files of a folder.  *ret_within: its contents may be visited.  The engine reports a
 * folder with two parents, which could contain itself. */
static enum err verify_folder(struct verify *v, const struct item *folder, bool *ret_within)
{
	struct item as_kept = { 0 };
	enum err e = store_get(v->store, v->view, folder->id, WANT_ATTRS, &as_kept);
	*ret_within = e == ERR_OK && as_kept.parent == folder->parent;
	item_fini(&as_kept);
	if (!*ret_within)
		return e == ERR_NOT_FOUND ? ERR_OK : e;
	v->children = 0;
	e = verify_files(v, folder->id, ITEM_FOLDER);
	if (e == ERR_OK)
		verify_count(v, folder, folder->key);
	return e;
}

/* Verifies all folders below top, at any depth.  It asks the store for the way up and so needs no
 * stack. */
enum err verify_folders(struct verify *v, uint64_t top)
{
	struct item at = { 0 };
	uint64_t dir = top;
	enum err e = ERR_OK;
	while (e == ERR_OK && !v->stopped) {
		bool within;
		e = next_folder(v, dir, &at);
		if (e == ERR_OK) {
			e = verify_folder(v, &at, &within);
			if (within) {
				dir = at.id;
				item_fini(&at);
			}
		} else if (e == ERR_NOT_FOUND && dir != top) {
			e = store_get(v->store, v->view, dir, WANT_ATTRS, &at);
			dir = at.parent;
		}
	}
	item_fini(&at);
	return e == ERR_NOT_FOUND ? ERR_OK : e;
}
