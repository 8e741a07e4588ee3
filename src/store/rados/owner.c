/* SPDX-License-Identifier: MIT
 * Who serves a store.  Each daemon holds a lock on the object `store` that lasts LEASE seconds, and
 * renews it; it is exclusive, or shared among daemons.  When one lapses, the next daemon that wants
 * to be alone first makes the cluster refuse every operation of those before (blocklist entries),
 * and only then reads. */
#include "base/clock.h"
#include "base/log.h"
#include "store/rados/core.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define LOCK_NAME "owner"
#define LEASE 15         /* seconds */
#define RENEW 4          /* seconds between renewals */
#define REFUSED_FOR 3600 /* seconds for which the one before is refused */
#define MEMBER "m."      /* with its instance: the address of a daemon */
#define CLOCK "k."       /* with its instance: the clock of a daemon, and which machine's it is */
#define CLOCK_OFF 60     /* seconds by which the clocks of two machines may differ */
#define MEMBERS_MAX 1000
#define LOCKERS_BYTES 65536
#define NO_GUARD ((struct rio_guard){ .create = false })

#define WHO_MAX 128
static void who_is_this(char out[WHO_MAX])
{
	char host[64] = "";
	(void)gethostname(host, sizeof(host) - 1);
	(void)snprintf(out, WHO_MAX, "%s, process %ld", host, (long)getpid());
}

static int lock_it(struct rstore *s)
{
	struct timeval lease = { .tv_sec = LEASE };
	char text[WHO_MAX];
	who_is_this(text);
	if (s->shared)
		return librados.lock_shared(s->io.io, STORE_OBJECT, LOCK_NAME, s->instance,
			"shared", text, &lease, LIBRADOS_LOCK_FLAG_MAY_RENEW);
	return librados.lock_exclusive(s->io.io, STORE_OBJECT, LOCK_NAME, s->instance, text, &lease,
		LIBRADOS_LOCK_FLAG_MAY_RENEW);
}

static enum err say_busy(struct rstore *s, struct err_detail *detail)
{
	char *mem = NULL;
	struct rio_value v = { .key = SPAN_LIT("who") };
	enum err e = rio_get(&s->io, STORE_OBJECT, &v, 1, &mem);
	e = err_set(detail, ERR_BUSY, "the store is being served by %s%s",
		e == ERR_OK && v.val.p ? v.val.p : "another daemon",
		s->shared ? ", which wants to be alone" : "");
	free(mem);
	return e;
}

/* ---- daemons that died ---- */

/* Has the cluster refuse the daemon with this address. */
static enum err shut_out(struct rstore *s, const char *address)
{
	char *copy = strdup(address);
	int code = copy ? librados.blocklist_add(s->io.cluster, copy, REFUSED_FOR) : -ENOMEM;
	if (code == 0)
		code = librados.wait_for_latest_osdmap(s->io.cluster);
	if (code < 0)
		log_error(
			"cannot refuse the daemon before, %s: %s", address, strerrordesc_np(-code));
	free(copy);
	return rio_error(&s->io, code);
}

struct lockers {
	char tag[16], cookies[LOCKERS_BYTES], clients[LOCKERS_BYTES], addresses[LOCKERS_BYTES];
	ssize_t n;
};

static enum err list_lockers(struct rstore *s, struct lockers *l)
{
	size_t tag_n = sizeof(l->tag), cookies_n = sizeof(l->cookies);
	size_t clients_n = sizeof(l->clients), addresses_n = sizeof(l->addresses);
	int exclusive;
	memset(l, 0, sizeof(*l));
	l->n = librados.list_lockers(s->io.io, STORE_OBJECT, LOCK_NAME, &exclusive, l->tag, &tag_n,
		l->clients, &clients_n, l->cookies, &cookies_n, l->addresses, &addresses_n);
	return l->n < 0 ? rio_error(&s->io, (int)l->n) : ERR_OK;
}

static bool is_locker(const struct lockers *l, struct span instance)
{
	const char *cookie = l->cookies;
	for (ssize_t i = 0; i < l->n; i++, cookie += strlen(cookie) + 1) {
		if (span_is(instance, cookie))
			return true;
	}
	return false;
}

/* ---- clocks ---- */

/* tells: else it goes. */
static void set_clock(struct rio_edit *e, struct span instance, bool tells)
{
	char key[40], who[WHO_MAX], text[WHO_MAX + 20];
	int n = snprintf(key, sizeof(key), CLOCK "%.*s", (int)instance.n, instance.p);
	if (!tells) {
		rio_edit_remove(e, span_make(key, (size_t)n));
		return;
	}
	who_is_this(who);
	(void)snprintf(text, sizeof(text), "%016llx%s", (unsigned long long)clock_ticks(), who);
	rio_edit_set(e, span_make(key, (size_t)n), span_of(text));
}

static void tell_clock(struct rstore *s)
{
	struct rio_edit e = { 0 };
	set_clock(&e, span_of(s->instance), true);
	(void)rio_error(&s->io, rio_write(&s->io, STORE_OBJECT, &e, NO_GUARD));
	rio_edit_fini(&e);
}

static enum err compare_clock(struct span val, struct err_detail *detail)
{
	char ticks[17] = "", who[WHO_MAX];
	if (val.n < 16)
		return ERR_CORRUPT;
	memcpy(ticks, val.p, 16);
	int64_t off = (clock_ticks() - (int64_t)strtoull(ticks, NULL, 16)) / TICKS_PER_SECOND;
	if (off > -CLOCK_OFF && off < CLOCK_OFF)
		return ERR_OK;
	who_is_this(who);
	return err_set(detail, ERR_NOT_SUPPORTED,
		"the clock of this machine (%s) is %lld s %s that of %.*s, which serves the store "
		"too; set the clock",
		who, (long long)(off < 0 ? -off : off), off < 0 ? "behind" : "ahead of",
		(int)(val.n - 16), val.p + 16);
}

/* With those of the daemons that have a lock, which told them some seconds ago at most. */
static enum err compare_clocks(struct rstore *s, const struct lockers *l, struct err_detail *detail)
{
	struct rio_page page;
	size_t n = strlen(CLOCK);
	enum err e = rio_list(&s->io, STORE_OBJECT, NULL, 0, CLOCK, CLOCK, MEMBERS_MAX, &page);
	for (size_t i = 0; e == ERR_OK && i < page.n; i++) {
		struct span key = page.v[i].key;
		if (is_locker(l, span_make(key.p + n, key.n - n)))
			e = compare_clock(page.v[i].val, detail);
	}
	rio_page_fini(&page);
	return e;
}

static enum err check_clock(struct rstore *s, struct err_detail *detail)
{
	struct lockers *l = malloc(sizeof(*l));
	if (!l)
		return ERR_NO_MEMORY;
	enum err e = list_lockers(s, l);
	if (e == ERR_OK)
		e = compare_clocks(s, l, detail);
	free(l);
	return e;
}

/* ---- and their locks ---- */

/* Shuts out the members that lost their lock without leaving. */
static enum err shut_out_dead(
	struct rstore *s, const struct lockers *l, const struct rio_page *members)
{
	struct rio_edit edit = { 0 };
	enum err e = ERR_OK;
	for (size_t i = 0; e == ERR_OK && i < members->n; i++) {
		struct span key = members->v[i].key;
		size_t n = strlen(MEMBER);
		if (is_locker(l, span_make(key.p + n, key.n - n)))
			continue;
		e = shut_out(s, members->v[i].val.p);
		rio_edit_remove(&edit, key);
		set_clock(&edit, span_make(key.p + n, key.n - n), false);
	}
	if (e == ERR_OK && edit.n > 0)
		e = rio_error(&s->io, rio_write(&s->io, STORE_OBJECT, &edit, NO_GUARD));
	rio_edit_fini(&edit);
	return e;
}

/* Finds the lockers that live.  A daemon locks before it becomes a member, so the members are listed first:
 * one that starts meanwhile is not taken for dead. */
static enum err find_lockers(struct rstore *s, struct lockers **ret)
{
	struct rio_page members;
	*ret = malloc(sizeof(**ret));
	if (*ret == NULL)
		return ERR_NO_MEMORY;
	enum err e = rio_list(&s->io, STORE_OBJECT, NULL, 0, MEMBER, MEMBER, MEMBERS_MAX, &members);
	if (e != ERR_OK)
		return e;
	e = list_lockers(s, *ret);
	if (e == ERR_OK)
		e = shut_out_dead(s, *ret, &members);
	rio_page_fini(&members);
	return e;
}

enum err owner_is_alone(struct rstore *s, bool *ret)
{
	struct lockers *l;
	enum err e = find_lockers(s, &l);
	*ret = e == ERR_OK && l->n == 1 && is_locker(l, span_of(s->instance));
	free(l);
	return e;
}

/* The first digit may say that a directory is dead. */
static bool is_of(struct span token, const char *instance)
{
	size_t n = strlen(instance) - 1;
	return token.n > n && memcmp(token.p + 1, instance + 1, n) == 0;
}

enum err owner_has_gone(struct rstore *s, struct span token, bool *ret)
{
	struct lockers *l;
	enum err e = find_lockers(s, &l);
	const char *cookie = e == ERR_OK ? l->cookies : "";
	*ret = e == ERR_OK;
	for (ssize_t i = 0; e == ERR_OK && i < l->n; i++, cookie += strlen(cookie) + 1) {
		bool other = strcmp(cookie, s->instance) != 0;
		*ret = *ret && !(other && (token.n == 0 || is_of(token, cookie)));
	}
	free(l);
	return e;
}

/* A daemon that was alone, and did not leave. */
static enum err shut_out_owner(struct rstore *s)
{
	char *mem = NULL;
	struct rio_value v = { .key = SPAN_LIT("address") };
	enum err e = rio_get(&s->io, STORE_OBJECT, &v, 1, &mem);
	if (e == ERR_OK && v.val.p && v.val.n > 0)
		e = shut_out(s, v.val.p);
	free(mem);
	return e;
}

/* `mine`: the address by which the cluster knows this process; NULL when it leaves. */
static enum err sign(struct rstore *s, const char *mine)
{
	char who[WHO_MAX], key[40];
	struct rio_edit e = { 0 };
	who_is_this(who);
	(void)snprintf(key, sizeof(key), MEMBER "%s", s->instance);
	rio_edit_set(&e, SPAN_LIT("address"), mine && !s->shared ? span_of(mine) : SPAN_LIT(""));
	rio_edit_set(&e, SPAN_LIT("who"), span_of(who));
	if (s->shared && mine)
		rio_edit_set(&e, span_of(key), span_of(mine));
	else
		rio_edit_remove(&e, span_of(key));
	set_clock(&e, span_of(s->instance), s->shared && mine);
	enum err err = rio_error(&s->io, rio_write(&s->io, STORE_OBJECT, &e, NO_GUARD));
	rio_edit_fini(&e);
	return err;
}

static void look_at_space(struct rstore *s)
{
	struct rados_cluster_stat_t st;
	if (librados.cluster_stat(s->io.cluster, &st) != 0)
		return;
	struct rados_pool_stat_t pool = { 0 };
	(void)librados.ioctx_pool_stat(s->io.io, &pool);
	mutex_lock(&s->lock);
	s->pool_bytes = pool.num_bytes;
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
		if (s->shared)
			tell_clock(s);
		if (!s->read_only)
			(void)owner_note_files(s);
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
	s->locked = true;
	char *address = NULL;
	bool alone = true;
	enum err e = shut_out_owner(s);
	if (e == ERR_OK)
		e = s->shared ? check_clock(s, detail) : owner_is_alone(s, &alone);
	if (e == ERR_OK)
		e = rio_error(&s->io, librados.getaddrs(s->io.cluster, &address));
	if (e == ERR_OK)
		e = sign(s, address);
	librados.buffer_free(address);
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
	if (!s->locked || atomic_load(&s->io.refused))
		return;
	if (s->renews && sign(s, NULL) != ERR_OK)
		return;
	(void)librados.unlock(s->io.io, STORE_OBJECT, LOCK_NAME, s->instance);
}

/* Another daemon may have written a higher one already. */
enum err owner_note_floor(struct rstore *s, int64_t floor)
{
	char text[17];
	struct rio_edit e = { 0 };
	(void)snprintf(text, sizeof(text), "%015llx", (unsigned long long)floor);
	rio_edit_set(&e, SPAN_LIT("floor"), span_of(text));
	int code = rio_write(&s->io, STORE_OBJECT, &e,
		(struct rio_guard){ .key = SPAN_LIT("floor"), .is = span_of(text), .less = true });
	rio_edit_fini(&e);
	if (code == -ECANCELED)
		code = 0;
	mutex_lock(&s->lock);
	if (code == 0 && floor > s->reserved)
		s->reserved = floor;
	mutex_unlock(&s->lock);
	return rio_error(&s->io, code);
}

enum err owner_note_files(struct rstore *s)
{
	char *mem = NULL, text[17];
	struct rio_value v = { .key = SPAN_LIT("files") };
	enum err e = rio_get(&s->io, STORE_OBJECT, &v, 1, &mem);
	uint64_t sum = e == ERR_OK && v.val.p ? strtoull(v.val.p, NULL, 16) : 0;
	mutex_lock(&s->lock);
	uint64_t mine = s->file_bytes, fresh = sum + mine - s->file_bytes_told;
	mutex_unlock(&s->lock);
	if (e == ERR_OK && fresh != sum) {
		struct rio_edit edit = { 0 };
		struct rio_guard g = { .key = v.key, .is = v.val.p ? v.val : SPAN_LIT("") };
		(void)snprintf(text, sizeof(text), "%llx", (unsigned long long)fresh);
		rio_edit_set(&edit, v.key, span_of(text));
		int code = rio_write(&s->io, STORE_OBJECT, &edit, g);
		e = code == -ECANCELED ? ERR_BUSY : rio_error(&s->io, code);
		rio_edit_fini(&edit);
	}
	if (e == ERR_OK) {
		mutex_lock(&s->lock);
		s->file_bytes += fresh - mine;
		s->file_bytes_told = fresh;
		mutex_unlock(&s->lock);
	}
	free(mem);
	return e;
}
