/* SPDX-License-Identifier: MIT
 * Reading connections at rest.  There is no upper bound on how many are out, because a
 * reader must never wait for another one; but few are kept. */
#include "store/sqlite/pool.h"

#include <stdlib.h>
#include <string.h>

#define IDLE_MAX 12

enum err sql_pool_init(struct sql_pool *p, const char *path, enum sql_mode mode)
{
	p->path = strdup(path);
	if (!p->path)
		return ERR_NO_MEMORY;
	p->mode = mode;
	p->idle = NULL;
	p->nidle = 0;
	pthread_mutex_init(&p->lock, NULL);
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
	pthread_mutex_destroy(&p->lock);
	free(p->path);
	p->path = NULL;
}

enum err sql_pool_borrow(struct sql_pool *p, struct sql_conn **ret)
{
	pthread_mutex_lock(&p->lock);
	struct sql_conn *c = p->idle;
	if (c) {
		p->idle = c->next;
		p->nidle--;
	}
	pthread_mutex_unlock(&p->lock);
	if (!c)
		return sql_conn_open(p->path, p->mode, ret);
	*ret = c;
	return ERR_OK;
}

void sql_pool_return(struct sql_pool *p, struct sql_conn *c)
{
	pthread_mutex_lock(&p->lock);
	bool keep = p->nidle < IDLE_MAX;
	if (keep) {
		c->next = p->idle;
		p->idle = c;
		p->nidle++;
	}
	pthread_mutex_unlock(&p->lock);
	if (!keep)
		sql_conn_close(c);
}
