/* SPDX-License-Identifier: MIT
 * Reading connections at rest.  There is no upper bound on how many are out, because a
 * reader must never wait for another one; but few are kept.
 *
 * A connection may rest inside its transaction if that sees what a new one would see: no change
 * began since it was borrowed.  The mark is set before the commit, not after, so that nobody is
 * shown an older state than somebody else was before. */
#include "store/sqlite/pool.h"

#include "base/lock.h"

#include <stdlib.h>
#include <string.h>

#define IDLE_MAX 12
#define IDLE_MIN 2 /* after a burst */

enum err sql_pool_init(struct sql_pool *p, const char *path, enum sql_mode mode)
{
	p->path = strdup(path);
	if (!p->path)
		return ERR_NO_MEMORY;
	p->mode = mode;
	p->idle = NULL;
	p->nidle = 0;
	p->moment = 0;
	p->changing = 0;
	atomic_init(&p->removals.begun, 0);
	atomic_init(&p->removals.ended, 0);
	atomic_init(&p->page_bytes, 0);
	mutex_init(&p->lock, RANK_STORE_POOL);
	return ERR_OK;
}

void sql_pool_fini(struct sql_pool *p)
{
	if (!p->path)
		return;
	while (p->idle) {
		struct sql_conn *c = p->idle;
		p->idle = c->next;
		sql_conn_close(c);
	}
	mutex_destroy(&p->lock);
	free(p->path);
	p->path = NULL;
}

enum err sql_pool_borrow(struct sql_pool *p, struct sql_conn **ret)
{
	enum err e = ERR_OK;
	mutex_lock(&p->lock);
	struct sql_conn *c = p->idle;
	uint64_t moment = p->moment;
	if (c) {
		p->idle = c->next;
		p->nidle--;
	}
	mutex_unlock(&p->lock);
	if (!c)
		e = sql_conn_open(p->path, p->mode, &c);
	if (e == ERR_OK && sqlite3_get_autocommit(c->db)) {
		c->removals = &p->removals;
		c->ended = atomic_load(&p->removals.ended);
		e = sql_do(c, SQL_BEGIN_READ);
	}
	if (e != ERR_OK) {
		sql_conn_close(c);
		return e;
	}
	c->moment = moment;
	*ret = c;
	return ERR_OK;
}

static bool is_of_now(const struct sql_pool *p, const struct sql_conn *c)
{
	return p->changing == 0 && c->moment == p->moment;
}

/* False: enough are. */
static bool put_to_rest(struct sql_pool *p, struct sql_conn *c)
{
	lock_assert_held(&p->lock);
	if (p->nidle >= IDLE_MAX)
		return false;
	c->next = p->idle;
	p->idle = c;
	p->nidle++;
	return true;
}

void sql_pool_return(struct sql_pool *p, struct sql_conn *c, enum err result)
{
	bool failed = result != ERR_OK && result != ERR_NOT_FOUND, kept = false;
	sql_conn_count_pages(c, &p->page_bytes);
	mutex_lock(&p->lock);
	bool rests_inside = !failed && is_of_now(p, c);
	if (rests_inside)
		kept = put_to_rest(p, c);
	mutex_unlock(&p->lock);
	/* One that is in its transaction still must not be used for another. */
	if (!rests_inside && sql_end_reading(c) == ERR_OK) {
		mutex_lock(&p->lock);
		kept = put_to_rest(p, c);
		mutex_unlock(&p->lock);
	}
	if (!kept)
		sql_conn_close(c);
}

static void end_those_at_rest(struct sql_pool *p)
{
	lock_assert_held(&p->lock);
	struct sql_conn **at = &p->idle;
	while (*at) {
		struct sql_conn *c = *at;
		if (sql_end_reading(c) == ERR_OK) {
			at = &c->next;
			continue;
		}
		*at = c->next;
		p->nidle--;
		sql_conn_close(c);
	}
}

void sql_pool_give_back(struct sql_pool *p)
{
	mutex_lock(&p->lock);
	struct sql_conn **at = &p->idle;
	for (unsigned i = 0; *at && i < IDLE_MIN; i++) {
		(void)sqlite3_db_release_memory((*at)->db);
		sql_conn_count_pages(*at, &p->page_bytes);
		at = &(*at)->next;
	}
	for (struct sql_conn *c; (c = *at) != NULL; sql_conn_close(c)) {
		*at = c->next;
		p->nidle--;
	}
	mutex_unlock(&p->lock);
}

void sql_pool_changing(struct sql_pool *p)
{
	mutex_lock(&p->lock);
	p->changing++;
	p->moment++;
	end_those_at_rest(p);
	mutex_unlock(&p->lock);
}

void sql_pool_changed(struct sql_pool *p)
{
	mutex_lock(&p->lock);
	p->changing--;
	p->moment++;
	mutex_unlock(&p->lock);
}
