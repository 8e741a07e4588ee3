/* SPDX-License-Identifier: MIT */
#include "fs/tree/requester.h"

#include "fs/core/state.h"
#include "fs/tree/attr.h"
#include "model/key.h"
#include "model/limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATUS_BYTES 4096

static bool in_group(const struct requester *v, gid_t gid)
{
	if (gid == v->gid)
		return true;
	for (size_t i = 0; i < v->ngroups; i++)
		if (v->groups[i] == gid)
			return true;
	return false;
}

bool requester_may(const struct requester *v, const struct attrs *attrs, bool dir, unsigned bits)
{
	const struct item it = { .kind = dir ? ITEM_PARTITION : ITEM_ROW, .attrs = *attrs };
	struct stat st;
	attr_of_item(v->fs, &it, &st);
	unsigned given = st.st_mode;
	if (st.st_uid == v->uid)
		given >>= 6;
	else if (in_group(v, st.st_gid))
		given >>= 3;
	else if (!v->all_groups)
		given &= given >> 3;
	return (given & bits) == bits;
}

static bool sees(const struct query_requester *base, const struct attrs *attrs, bool dir)
{
	return requester_may((const struct requester *)base, attrs, dir, dir ? 5 : 4);
}

/* The numbers of a line; one that the end of the text cuts off is none. */
static void take_groups(struct requester *v, const char *at)
{
	for (;;) {
		char *end;
		at += strspn(at, " \t");
		v->all_groups = *at == '\n';
		if (v->all_groups || v->ngroups == REQUESTER_GROUPS)
			return;
		unsigned long gid = strtoul(at, &end, 10);
		if (end == at || (*end != ' ' && *end != '\n'))
			return;
		v->groups[v->ngroups++] = (gid_t)gid;
		at = end;
	}
}

/* The library's function for this reads behind the end of its text (3.14). */
static void read_groups(struct requester *v, pid_t tid)
{
	static const char mark[] = "\nGroups:";
	char path[64], text[STATUS_BYTES];
	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *at = strstr(text, mark);
	if (at != NULL)
		take_groups(v, at + sizeof(mark) - 1);
}

void requester_init(struct requester *v, const struct fs *fs, uid_t uid, gid_t gid, pid_t tid)
{
	*v = (struct requester){ .base = { sees }, .fs = fs, .uid = uid, .gid = gid };
	read_groups(v, tid);
}

bool requester_same(const struct requester *a, const struct requester *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->all_groups == b->all_groups &&
		a->ngroups == b->ngroups &&
		memcmp(a->groups, b->groups, a->ngroups * sizeof(a->groups[0])) == 0;
}

enum err requester_may_change(const struct requester *v, uint64_t table_id, struct span pk)
{
	char order[LIMIT_KEY_BYTES];
	struct item it = { 0 };
	/* What is no key is refused elsewhere. */
	if (v == NULL || pk.n > sizeof(order))
		return ERR_OK;
	if (pk.n > 0)
		key_to_order(pk.p, pk.n, order);
	enum err e = store_child(
		v->fs->store, NULL, table_id, CLASS_KEYED, span_make(order, pk.n), WANT_ATTRS, &it);
	if (e == ERR_NOT_FOUND)
		return ERR_OK;
	if (e == ERR_OK && !requester_may(v, &it.attrs, true, 3))
		e = ERR_ACCESS;
	struct stat st;
	attr_of_item(v->fs, &it, &st);
	/* In a sticky directory the rows are not theirs. */
	if (e == ERR_OK && (st.st_mode & S_ISVTX) != 0 && st.st_uid != v->uid)
		e = ERR_ACCESS;
	item_fini(&it);
	return e;
}
