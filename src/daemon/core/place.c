/* SPDX-License-Identifier: MIT */
#include "daemon/core/place.h"

#include <stdio.h>
#include <string.h>

void place_fini(struct place *p)
{
	resolved_name_fini(&p->name);
	item_fini(&p->item);
	*p = (struct place){ 0 };
}

/* A partition that does not exist yet, as a directory for names in it. */
static enum err partition_to_be(const struct resolved_name *t, struct item *ret)
{
	const struct item it = { .parent = t->dir.id,
		.kind = t->digest ? ITEM_FOLDER : ITEM_PARTITION,
		.class = t->digest ? CLASS_NAMED : CLASS_KEYED,
		.key = t->digest ? t->name : span_make(t->key, t->key_len) };
	return item_copy(ret, &it);
}

static enum err missing(const struct item *dir)
{
	return dir->id == STORE_ROOT        ? ERR_ACCOUNT_NOT_FOUND
		: dir->kind == ITEM_ACCOUNT ? ERR_TABLE_NOT_FOUND
					    : ERR_NOT_FOUND;
}

/* One component; p->item is its directory before the call, and what stands there after it. */
static enum err step(struct store *store, struct place *p, struct span name, bool last, bool making,
	struct err_detail *detail)
{
	resolved_name_fini(&p->name);
	enum err e = name_in_item(store, NULL, &p->item, name, &p->name, detail);
	if (e != ERR_OK)
		return name_means_nothing(e) && !making ? ERR_NOT_FOUND : e;
	if (p->name.dir.kind == ITEM_TABLE)
		p->table = p->name.dir.id;
	e = ERR_NOT_FOUND;
	if (p->name.dir.id != 0)
		e = resolved_name_item(store, &p->name, WANT_ATTRS, &p->item);
	if (e != ERR_NOT_FOUND)
		return e;
	if (making && last)
		return ERR_OK;
	if (making && p->name.dir.kind == ITEM_TABLE && name.p[0] != '.')
		return partition_to_be(&p->name, &p->item);
	return missing(&p->name.dir);
}

enum err place_find(struct service *s, const char *path, bool making, struct place *ret,
	struct err_detail *detail)
{
	struct store *store = service_store(s);
	*ret = (struct place){ 0 };
	enum err e = store_get(store, NULL, STORE_ROOT, WANT_ATTRS, &ret->item);
	path += strspn(path, "/");
	while (e == ERR_OK && *path != 0) {
		struct span name = span_make(path, strcspn(path, "/"));
		path += name.n;
		path += strspn(path, "/");
		e = step(store, ret, name, *path == 0, making, detail);
	}
	if (e == ERR_OK && ret->item.kind == ITEM_TABLE)
		ret->table = ret->item.id;
	return e;
}

int place_fail(struct cmd_env *env, const char *command, const char *path, enum err e,
	const struct err_detail *why)
{
	char at[64] = "";
	int account = (int)strcspn(path, "/");
	if (e == ERR_ACCOUNT_NOT_FOUND)
		return command_fail(env->err, command,
			"there is no account '%.*s'; make it with: rowfs account add %s %.*s",
			account, path, env->store, account, path);
	if (why != NULL && why->line != 0 && why->column != 0)
		(void)snprintf(at, sizeof(at), " (line %u, column %u)", why->line, why->column);
	else if (why != NULL && why->line != 0)
		(void)snprintf(at, sizeof(at), " (line %u)", why->line);
	return command_fail(
		env->err, command, "%s: %s: %s%s", path, err_code(e), err_message(e, why), at);
}
