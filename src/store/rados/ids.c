/* SPDX-License-Identifier: MIT
 * Ids come in blocks: each belongs to one directory, or is of directories.  So an item is found by
 * its id alone, and a block that was read once can be remembered for ever. */
#include "store/rados/core.h"
#include "store/rules.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANGE 4096     /* ids that a daemon takes at a time; a multiple of the largest block */
#define RANGE_TRIES 64 /* other daemons take ranges too */
#define BLOCK_MIN 16
#define BLOCK_MAX 4096
#define HOMES 16384 /* a power of 2 */

static void remember(struct rstore *s, const struct id_block *b)
{
	mutex_lock(&s->lock);
	if (!s->homes)
		s->homes = calloc(HOMES, sizeof(*s->homes));
	for (uint64_t g = b->first / GRANULE; s->homes && g <= b->last / GRANULE; g++) {
		s->homes[g % HOMES].granule = g + 1;
		s->homes[g % HOMES].home = b->home;
	}
	mutex_unlock(&s->lock);
}

static bool recall(struct rstore *s, uint64_t id, uint64_t *ret)
{
	uint64_t g = id / GRANULE;
	mutex_lock(&s->lock);
	bool known = s->homes && s->homes[g % HOMES].granule == g + 1;
	if (known)
		*ret = s->homes[g % HOMES].home;
	mutex_unlock(&s->lock);
	return known;
}

/* ERR_BUSY: another daemon was faster. */
static enum err try_range(struct rstore *s)
{
	char *mem, text[17];
	struct rio_value v = { .key = SPAN_LIT("next") };
	enum err e = rio_get(&s->io, STORE_OBJECT, &v, 1, &mem);
	uint64_t next = e == ERR_OK && v.val.p ? strtoull(v.val.p, NULL, 16) : 0;
	if (e == ERR_OK && (next == 0 || next % RANGE != 0))
		e = ERR_CORRUPT;
	if (e == ERR_OK && next + RANGE >= RULES_ID_LEFT)
		e = ERR_NO_SPACE;
	if (e == ERR_OK) {
		struct rio_edit edit = { 0 };
		(void)snprintf(text, sizeof(text), "%llx", (unsigned long long)(next + RANGE));
		rio_edit_set(&edit, v.key, span_of(text));
		int code = rio_write(&s->io, STORE_OBJECT, &edit,
			(struct rio_guard){ .key = v.key, .is = v.val });
		e = code == -ECANCELED ? ERR_BUSY : rio_error(&s->io, code);
		rio_edit_fini(&edit);
	}
	if (e == ERR_OK) {
		s->range_next = next;
		s->range_end = next + RANGE;
	}
	free(mem);
	return e;
}

static enum err take_range(struct rstore *s)
{
	enum err e = ERR_BUSY;
	for (unsigned i = 0; i < RANGE_TRIES && e == ERR_BUSY; i++)
		e = try_range(s);
	return e;
}

static enum err take_block(struct rstore *s, struct id_slot *slot, uint64_t home)
{
	enum err e = s->range_next == s->range_end ? take_range(s) : ERR_OK;
	if (e == ERR_OK)
		e = rstore_grow(&s->pending, s->npending, &s->cap_pending, sizeof(*s->pending));
	if (e != ERR_OK)
		return e;
	uint64_t size = slot->home == home && slot->size ? slot->size * 2 : BLOCK_MIN;
	if (size > BLOCK_MAX)
		size = BLOCK_MAX;
	uint64_t left = s->range_end - s->range_next, n = size < left ? size : left;
	struct id_block b = { home, s->range_next, s->range_next + n - 1 };
	s->pending[s->npending++] = b;
	*slot = (struct id_slot){ home, b.first, b.last + 1, size };
	s->range_next += n;
	remember(s, &b);
	return ERR_OK;
}

enum err ids_take(struct rstore *s, uint64_t home, uint64_t *ret)
{
	enum err e = ERR_OK;
	mutex_lock(&s->ids);
	struct id_slot *slot =
		home == 0 ? &s->dir_slot : &s->slots[home % (sizeof(s->slots) / sizeof(*slot))];
	if (slot->home != home || slot->next == slot->end)
		e = take_block(s, slot, home);
	if (e == ERR_OK)
		*ret = slot->next++;
	mutex_unlock(&s->ids);
	return e;
}

void ids_flush(struct rstore *s, struct rio_batch *b, uint64_t *ret_last)
{
	*ret_last = 0;
	mutex_lock(&s->ids);
	for (size_t i = 0; i < s->npending; i++) {
		const struct id_block *p = &s->pending[i];
		char object[RIO_NAME_MAX], key[17], val[33];
		struct rio_edit e = { 0 };
		name_ids(object, p->last);
		(void)snprintf(key, sizeof(key), "%010llx", (unsigned long long)p->last);
		(void)snprintf(val, sizeof(val), "%010llx%010llx", (unsigned long long)p->first,
			(unsigned long long)p->home);
		rio_edit_set(&e, span_of(key), span_of(val));
		rio_batch_write(b, &s->io, object, &e, false);
		rio_edit_fini(&e);
		*ret_last = p->last;
	}
	mutex_unlock(&s->ids);
}

void ids_flushed(struct rstore *s, uint64_t last)
{
	size_t n = 0;
	if (last == 0)
		return;
	mutex_lock(&s->ids);
	while (n < s->npending && s->pending[n].last <= last)
		n++;
	s->npending -= n;
	if (n > 0)
		memmove(s->pending, s->pending + n, s->npending * sizeof(*s->pending));
	mutex_unlock(&s->ids);
}

static enum err look_up(struct rstore *s, uint64_t id, struct id_block *ret)
{
	char object[RIO_NAME_MAX], after[17], first[11] = "";
	struct rio_page page;
	name_ids(object, id);
	(void)snprintf(after, sizeof(after), "%010llx", (unsigned long long)id - 1);
	enum err e = rio_list(&s->io, object, NULL, 0, after, "", 1, &page);
	if (e != ERR_OK)
		return e;
	if (page.n == 0) {
		e = ERR_NOT_FOUND;
	} else if (page.v[0].val.n != 20) {
		e = ERR_CORRUPT;
	} else {
		memcpy(first, page.v[0].val.p, 10);
		ret->first = strtoull(first, NULL, 16);
		ret->last = strtoull(page.v[0].key.p, NULL, 16);
		ret->home = strtoull(page.v[0].val.p + 10, NULL, 16);
		e = id < ret->first ? ERR_NOT_FOUND : ERR_OK;
	}
	rio_page_fini(&page);
	return e;
}

enum err ids_home(struct rstore *s, uint64_t id, uint64_t *ret)
{
	struct id_block b;
	id &= ~RULES_ID_LEFT;
	*ret = 0;
	if (id == 0 || id >= RULES_ID_LEFT)
		return ERR_NOT_FOUND;
	if (id <= STORE_ID_FIRST)
		return ERR_OK;
	if (recall(s, id, ret))
		return ERR_OK;
	enum err e = look_up(s, id, &b);
	if (e != ERR_OK)
		return e;
	remember(s, &b);
	*ret = b.home;
	return ERR_OK;
}
