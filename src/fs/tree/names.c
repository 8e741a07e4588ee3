/* SPDX-License-Identifier: MIT */
#include "fs/tree/names.h"

#include "fs/core/nid.h"
#include "fs/tree/control_names.h"

/* The directory of a name. */
static enum err find_dir(struct store *store, struct store_view *view, uint64_t id,
	const char *name, struct item *ret)
{
	if (strlen(name) > LIMIT_FILE_NAME_BYTES)
		return ERR_NAME_TOO_LONG;
	enum err e = store_get(store, view, id, WANT_ATTRS, ret);
	return e == ERR_NOT_FOUND ? ERR_GONE : e;
}

enum err name_resolve(struct store *store, uint64_t parent_nid, const char *name,
	struct resolved_name *ret, struct err_detail *detail)
{
	struct item dir = { 0 };
	struct span text = span_of(name);
	if (!nid_is_item(parent_nid))
		return ERR_NOT_A_DIRECTORY;
	enum err e = find_dir(store, NULL, nid_id(parent_nid), name, &dir);
	if (e != ERR_OK)
		return e;
	uint64_t control = dir.id == STORE_ROOT && span_is(text, ".rowfs")
		? NID_CONTROL_DIR
		: dir_control_find(&dir, text);
	if (control == 0)
		return name_in_item(store, NULL, &dir, text, ret, detail);
	*ret = (struct resolved_name){
		.name = text, .class = CLASS_KEYED, .dir = dir, .control = control
	};
	return ERR_OK;
}

enum err name_resolve_in(struct store *store, struct store_view *view, uint64_t dir_id,
	const char *name, struct resolved_name *ret, struct err_detail *detail)
{
	struct item dir = { 0 };
	enum err e = find_dir(store, view, dir_id, name, &dir);
	return e == ERR_OK ? name_in_item(store, view, &dir, span_of(name), ret, detail) : e;
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

void name_path(struct store *store, uint64_t dir_id, struct span name, char out[SHOWN_PATH_MAX])
{
	size_t n = name.n < COMPONENT_MAX ? name.n : COMPONENT_MAX;
	memcpy(out, name.p, n);
	out[n] = 0;
	if (dir_id == NID_SNAPSHOTS)
		prepend(out, ".rowfs/snapshots", sizeof(".rowfs/snapshots") - 1);
	if (dir_id == NID_CONTROL_DIR)
		prepend(out, ".rowfs", sizeof(".rowfs") - 1);
	struct item dir = { 0 };
	while (dir_id != STORE_ROOT && store_get(store, NULL, dir_id, WANT_ATTRS, &dir) == ERR_OK) {
		char component[COMPONENT_MAX];
		size_t len = item_component(&dir, component);
		prepend(out, component, len);
		if (dir.kind == ITEM_QUEUE)
			prepend(out, ".queue", sizeof(".queue") - 1);
		if (dir.kind == ITEM_CONTAINER)
			prepend(out, ".blob", sizeof(".blob") - 1);
		if (dir.id == STORE_REJECTED || dir.id == STORE_TRASH)
			prepend(out, ".rowfs", sizeof(".rowfs") - 1);
		dir_id = dir.parent != 0 ? dir.parent : STORE_ROOT;
		item_fini(&dir);
	}
}
