/* SPDX-License-Identifier: MIT
 * One daemon at a time owns a store.  It holds a lock on the object `store` that lasts LEASE
 * seconds, and renews it.  When it lapses, the next daemon first makes the cluster refuse every
 * operation of the one before (a blocklist entry), and only then reads. */
#include "base/log.h"
#include "store/rados/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

#define LOCK_NAME "owner"
#define LEASE 15         /* seconds */
#define RENEW 4          /* seconds between renewals */
#define REFUSED_FOR 3600 /* seconds for which the one before is refused */

static int lock_it(struct rstore *s)
{
	struct timeval lease = { .tv_sec = LEASE };
	char host[64] = "", text[128];
	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(text, sizeof(text), "%s, process %ld", host, (long)getpid());
	return rados_lock_exclusive(s->io.io, STORE_OBJECT, LOCK_NAME, s->instance, text, &lease,
		LIBRADOS_LOCK_FLAG_MAY_RENEW);
}

static enum err say_busy(struct rstore *s, struct err_detail *detail)
{
	char *mem = NULL;
	struct rio_value v = { .key = SPAN_LIT("who") };
	enum err e = rio_get(&s->io, STORE_OBJECT, &v, 1, &mem);
	e = err_set(detail, ERR_BUSY, "the store is being served by %s",
		e == ERR_OK && v.val.p ? v.val.p : "another daemon");
	free(mem);
	return e;
}

/* Has the cluster refuse the owner before, if that one did not leave. */
static enum err shut_out(struct rstore *s)
{
	char *mem = NULL;
	struct rio_value v = { .key = SPAN_LIT("address") };
	enum err e = rio_get(&s->io, STORE_OBJECT, &v, 1, &mem);
	if (e == ERR_OK && v.val.p && v.val.n > 0) {
		char *address = strdup(v.val.p);
		int code = address ? rados_blocklist_add(s->io.cluster, address, REFUSED_FOR)
				   : -ENOMEM;
		if (code == 0)
			code = rados_wait_for_latest_osdmap(s->io.cluster);
		if (code < 0)
			log_error("cannot refuse the daemon before, %s: %s", v.val.p,
				strerrordesc_np(-code));
		e = rio_error(&s->io, code);
		free(address);
	}
	free(mem);
	return e;
}

/* `mine`: the address by which the cluster knows this process; NULL when it leaves. */
static enum err sign(struct rstore *s, const char *mine)
{
	char host[64] = "", who[128];
	struct rio_edit e = { 0 };
	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(who, sizeof(who), "%s, process %ld", host, (long)getpid());
	rio_edit_set(&e, SPAN_LIT("address"), mine ? span_of(mine) : SPAN_LIT(""));
	rio_edit_set(&e, SPAN_LIT("who"), span_of(who));
	enum err err = rio_error(
		&s->io, rio_write(&s->io, STORE_OBJECT, &e, (struct rio_guard){ .create = false }));
	rio_edit_fini(&e);
	return err;
}

static void look_at_space(struct rstore *s)
{
	struct rados_cluster_stat_t st;
	if (rados_cluster_stat(s->io.cluster, &st) != 0)
		return;
	mutex_lock(&s->lock);
	s->space = st.kb << 10;
	s->space_free = st.kb_avail << 10;
	mutex_unlock(&s->lock);
}

static void *renew(void *arg)
{
	struct rstore *s = arg;
	look_at_space(s);
	mutex_lock(&s->lock);
	while (!s->stop) {
		struct timespec until;
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += RENEW;
		(void)cond_wait_until(&s->wake, &s->lock, &until);
		if (s->stop)
			break;
		mutex_unlock(&s->lock);
		int code = lock_it(s);
		if (code == -EBUSY || code == -ESHUTDOWN)
			(void)rio_error(&s->io, -ESHUTDOWN);
		look_at_space(s);
		mutex_lock(&s->lock);
	}
	mutex_unlock(&s->lock);
	return NULL;
}

enum err owner_take(struct rstore *s, struct err_detail *detail)
{
	int code = lock_it(s);
	if (code == -EBUSY || code == -EEXIST)
		return say_busy(s, detail);
	if (code < 0)
		return err_set(detail, rio_error(&s->io, code), "cannot lock the store: %s",
			strerrordesc_np(-code));
	s->owner = true;
	char *address = NULL;
	enum err e = shut_out(s);
	if (e == ERR_OK)
		e = rio_error(&s->io, rados_getaddrs(s->io.cluster, &address));
	if (e == ERR_OK)
		e = sign(s, address);
	rados_buffer_free(address);
	if (e == ERR_OK && pthread_create(&s->renewer, NULL, renew, s) != 0)
		e = ERR_NO_MEMORY;
	s->renews = e == ERR_OK;
	return e;
}

void owner_leave(struct rstore *s)
{
	if (s->renews) {
		mutex_lock(&s->lock);
		s->stop = true;
		(void)pthread_cond_signal(&s->wake);
		mutex_unlock(&s->lock);
		(void)pthread_join(s->renewer, NULL);
	}
	if (!s->owner || atomic_load(&s->io.refused))
		return;
	if (s->renews && sign(s, NULL) != ERR_OK)
		return;
	(void)rados_unlock(s->io.io, STORE_OBJECT, LOCK_NAME, s->instance);
}

enum err owner_note(struct rstore *s, int64_t floor)
{
	char text[2][17];
	struct rio_edit e = { 0 };
	mutex_lock(&s->lock);
	uint64_t files = s->file_bytes;
	mutex_unlock(&s->lock);
	(void)snprintf(text[0], sizeof(text[0]), "%llx", (unsigned long long)floor);
	(void)snprintf(text[1], sizeof(text[1]), "%llx", (unsigned long long)files);
	rio_edit_set(&e, SPAN_LIT("floor"), span_of(text[0]));
	rio_edit_set(&e, SPAN_LIT("files"), span_of(text[1]));
	enum err err = rio_error(
		&s->io, rio_write(&s->io, STORE_OBJECT, &e, (struct rio_guard){ .create = false }));
	rio_edit_fini(&e);
	return err;
}
