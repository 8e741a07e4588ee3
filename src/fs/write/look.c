/* SPDX-License-Identifier: MIT */
#include "fs/write/look.h"

#include "fs/write/stages.h"

enum err name_look(struct fs *fs, struct resolved_name *t, unsigned want, struct item *ret)
{
	if (t->row_name)
		stages_expose(fs, fs->stages, t->dir.id, t->name.p);
	enum err e = resolved_name_item(fs->store, t, want, ret);
	if (e != ERR_NOT_FOUND || !t->digest)
		return e;
	/* The key was searched for before that: it may be known by now. */
	e = resolved_name_search(fs->store, t);
	if (e != ERR_OK || t->digest)
		return e == ERR_OK ? ERR_NOT_FOUND : e;
	return resolved_name_item(fs->store, t, want, ret);
}
