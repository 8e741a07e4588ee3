/* SPDX-License-Identifier: MIT
 * The server: starts and stops its sockets, MHD's daemons, workers and limits.
 *
 * MHD_stop_daemon() must not find a suspended connection, so the workers end first. */
#include "base/clock.h"
#include "base/compiler.h"
#include "base/log.h"
#include "base/memory.h"
#include "rest/http/connection.h"
#include "rest/http/malformed.h"
#include "rest/http/services.h"
#include "rest/http/tls.h"
#include "rest/page/page.h"
#include "rest/page/page_data.h"
#include "rest/tokens/oauth.h"
#include "service/core/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define DEFAULT_CONNECTIONS 4096
#define DEFAULT_HEAD_MS 30000
#define DEFAULT_IDLE_MS 120000
#define DEFAULT_PROGRESS_MS 30000
#define DEFAULT_MEMORY_KIB (256 << 10)
/* As many durable writers can share one commit. */
#define WORKERS 32
/* For requests that may take seconds: enough to keep disk and CPUs busy. */
#define LONG_WORKERS 8
#define LOOPS_MAX 8
/* Descriptors for the store, commands and the mount. */
#define OTHER_FILES 256
/* How long rest_drain() waits for clients that send or read. */
#define STOP_MS 3000
#define STOP_ROUND_US 2000

/* Keeps targets as they were sent. */
static size_t leave_escaped(void *arg, struct MHD_Connection *mhd, char *text)
{
	(void)arg;
	(void)mhd;
	return strlen(text);
}

static void on_message(void *arg, const char *fmt, va_list args) PRINTF_LIKE(2, 0);
static void on_message(void *arg, const char *fmt, va_list args)
{
	struct rest *r = arg;
	char text[sizeof(r->complaint)];
	if (atomic_load(&r->started)) {
		malformed_on_message(r, fmt, args);
		(void)vsnprintf(text, sizeof(text), fmt, args);
		log_debug("REST: %s", text);
		return;
	}
	/* The first message is the cause. */
	if (r->complaint[0] != '\0')
		return;
	(void)vsnprintf(r->complaint, sizeof(r->complaint), fmt, args);
	r->complaint[strcspn(r->complaint, "\n")] = '\0';
}

/* Runs in the watchdog's thread.  A worker would delay its request, and repeat this at the next
 * one. */
static void after_round(void *arg, size_t connections)
{
	struct rest *r = arg;
	delayed_resume(&r->delayed, atomic_load(&r->stopping));
	size_t high = atomic_exchange(&r->held_high, atomic_load(&r->held));
	if (!burst_is_over(&r->burst, high + connections * CONNECTION_MEMORY))
		return;
	store_give_back(service_store(r->service));
	memory_give_back();
}

/* ---- start and stop ---- */

static unsigned loops(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	return n < 1 ? 1 : n > LOOPS_MAX ? LOOPS_MAX : (unsigned)n;
}

/* Raises the limit of open files and returns the connections that it allows. */
static uint32_t allowed_connections(uint32_t wanted)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return wanted;
	rlim_t need = (rlim_t)wanted + OTHER_FILES;
	if (r.rlim_cur < need && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max < need ? r.rlim_max : need;
		(void)setrlimit(RLIMIT_NOFILE, &r);
		(void)getrlimit(RLIMIT_NOFILE, &r);
	}
	if (r.rlim_cur >= need)
		return wanted;
	uint32_t left = (uint32_t)(r.rlim_cur > 2 * OTHER_FILES ? r.rlim_cur - OTHER_FILES
								: r.rlim_cur / 2);
	log_warning("REST: at most %u connections, as only %llu files may be open (ulimit -n)",
		left, (unsigned long long)r.rlim_cur);
	return left;
}

static void set_limits(struct rest *r, const struct rest_limits *given)
{
	struct rest_limits *l = &r->limits;
	*l = *given;
	l->connections =
		allowed_connections(l->connections != 0 ? l->connections : DEFAULT_CONNECTIONS);
	l->head_ms = l->head_ms != 0 ? l->head_ms : DEFAULT_HEAD_MS;
	l->idle_ms = l->idle_ms != 0 ? l->idle_ms : DEFAULT_IDLE_MS;
	l->progress_ms = l->progress_ms != 0 ? l->progress_ms : DEFAULT_PROGRESS_MS;
	l->memory_kib = l->memory_kib != 0 ? l->memory_kib : DEFAULT_MEMORY_KIB;
}

static void set_trusted(struct rest *r, const struct rest_options *o)
{
	if (o->untrusting)
		return;
	r->trusted[r->ntrusted++] = 0;
	r->trusted[r->ntrusted++] = geteuid();
	for (size_t i = 0; i < o->ntrusted && i < REST_TRUSTED_MAX; i++)
		r->trusted[r->ntrusted++] = o->trusted[i];
}

static void add_endpoint(
	struct rest *r, const struct rest_service *served, const struct listener *l)
{
	struct endpoint *e = &r->endpoints[r->nendpoints++];
	bool usual = served == services_at(0);
	*e = (struct endpoint){ .rest = r, .served = served, .listener = *l };
	(void)snprintf(e->text, sizeof(e->text), "%s%s%s", usual ? "" : served->name,
		usual ? "" : "=", l->text);
}

/* An admin socket asks for no credential, and the page's session has every right. */
static enum err check_reach(const struct rest_options *o, const struct rest_service *served,
	const struct listener *l, struct err_detail *detail)
{
	if (served == &rest_page)
		return !l->is_unix && listener_is_local(l)
			? ERR_OK
			: err_set(detail, ERR_ACCESS,
				  "'%s': the page is for this machine's browsers; give a loopback "
				  "address",
				  l->text);
	if (served->answer == NULL || o->admin_public || listener_is_local(l))
		return ERR_OK;
	return err_set(detail, ERR_ACCESS,
		"'%s': other machines could read the figures without a credential; give a loopback "
		"address or a Unix socket, or allow it with admin-public",
		l->text);
}

static enum err open_listeners(
	struct rest *r, const struct rest_options *o, struct err_detail *detail)
{
	for (size_t i = 0; i < o->nendpoints && i < REST_ENDPOINTS_MAX; i++) {
		const struct rest_service *served;
		const char *address = services_split(o->endpoints[i], &served);
		struct listener list[2];
		size_t n = 0;
		enum err e = served == NULL
			? rest_endpoint_check(o->endpoints[i], detail)
			: listen_at(address, r->tls, served->answer == NULL && o->ntrusted > 0,
				  list, &n, detail);
		if (e != ERR_OK)
			return e;
		for (size_t j = 0; j < n; j++) {
			add_endpoint(r, served, &list[j]);
			if (e == ERR_OK)
				e = check_reach(o, served, &list[j], detail);
		}
		if (e != ERR_OK)
			return e;
	}
	return ERR_OK;
}

static unsigned connections_each(const struct rest *r)
{
	return r->limits.connections / (unsigned)r->nendpoints;
}

/* The limit applies to each endpoint: one of them may be almost full. */
static unsigned crowd(const struct rest *r)
{
	return connections_each(r) - connections_each(r) / 8;
}

static enum err start_daemon(struct rest *r, struct endpoint *e, struct err_detail *detail)
{
	bool with_tls = r->tls && !e->listener.is_unix;
	unsigned threads = loops();
	unsigned connections = connections_each(r);
	if (connections < threads)
		connections = threads; /* each thread gets a share of them */
	/* MHD closes its own descriptor; on an error it sometimes does not. */
	int fd = fcntl(e->listener.fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return err_set(
			detail, ERR_IO, "'%s': %s", e->listener.text, strerrordesc_np(errno));
	struct MHD_OptionItem options[] = {
		{ MHD_OPTION_LISTEN_SOCKET, fd, NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)CONNECTION_MEMORY, NULL },
		{ MHD_OPTION_CONNECTION_LIMIT, connections, NULL },
		{ MHD_OPTION_CONNECTION_TIMEOUT, 0, NULL }, /* see rest/http/watchdog.h */
		{ MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)connection_completed, NULL },
		{ MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)connection_notify, e },
		{ MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)connection_target, NULL },
		{ MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)leave_escaped, NULL },
		{ MHD_OPTION_END, 0, NULL }, /* for threads */
		{ MHD_OPTION_END, 0, NULL }, /* for TLS */
		{ MHD_OPTION_END, 0, NULL }, /* for strictness */
		{ MHD_OPTION_END, 0, NULL },
		{ MHD_OPTION_END, 0, NULL },
	};
	size_t n = 8;
	if (threads > 1)
		options[n++] =
			(struct MHD_OptionItem){ MHD_OPTION_THREAD_POOL_SIZE, threads, NULL };
#if MHD_VERSION >= 0x01000000
	options[n++] = (struct MHD_OptionItem){ MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1, NULL };
#endif
	if (with_tls)
		tls_options(r->tls_legacy, options + n);
	r->complaint[0] = '\0';
	/* The logger comes first: MHD reports errors in other options through it. */
	e->daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
			MHD_USE_ERROR_LOG | (with_tls ? MHD_USE_TLS : 0),
		0, connection_accept, e, connection_request_part, e, MHD_OPTION_EXTERNAL_LOGGER,
		on_message, r, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
	if (e->daemon != NULL)
		return ERR_OK;
	return err_set(detail, ERR_IO, "'%s': cannot serve: %s", e->listener.text,
		r->complaint[0] != '\0' ? r->complaint : "no reason given");
}

static void start_page(struct rest *r)
{
	const char *texts[LISTENERS_MAX];
	for (size_t i = 0; i < r->nendpoints; i++)
		texts[i] = r->endpoints[i].text;
	page_set_sockets(texts, r->nendpoints);
	page_start(r->page_link);
}

static enum err start(struct rest *r, const struct rest_options *o, struct err_detail *detail)
{
	enum err e = ERR_OK;
	if (o->nendpoints == 0 || o->nendpoints > REST_ENDPOINTS_MAX)
		return err_set(detail, ERR_INVALID_INPUT, "there can be 1 to %d endpoints",
			REST_ENDPOINTS_MAX);
	if ((o->cert == NULL) != (o->key == NULL))
		return err_set(
			detail, ERR_INVALID_INPUT, "TLS needs both a certificate and its key");
	r->tls = o->cert != NULL;
	r->tls_legacy = o->tls_legacy;
	r->cert = o->cert;
	r->key = o->key;
	if (o->oauth != NULL)
		e = oauth_open(o->oauth, &r->oauth, detail);
	if (e == ERR_OK && r->tls)
		e = rest_reload(r, detail);
	if (e == ERR_OK)
		e = open_listeners(r, o, detail);
	r->access_options = o->access_log;
	if (e == ERR_OK && o->access_log.path != NULL)
		e = access_log_open(&r->access_options, &r->access_log, detail);
	if (e == ERR_OK)
		start_page(r);
	if (e == ERR_OK)
		e = watchdog_start(crowd(r), after_round, r, &r->watchdog);
	if (e == ERR_OK)
		e = workers_start(WORKERS, &r->workers);
	if (e == ERR_OK)
		e = workers_start(LONG_WORKERS, &r->long_workers);
	for (size_t i = 0; i < r->nendpoints && e == ERR_OK; i++)
		e = start_daemon(r, &r->endpoints[i], detail);
	return e;
}

enum err rest_endpoint_check(const char *endpoint, struct err_detail *detail)
{
	const struct rest_service *served;
	const char *address = services_split(endpoint, &served);
	if (served == NULL)
		return err_set(detail, ERR_INVALID_INPUT, "'%s': no service has the name '%.*s'",
			endpoint, (int)(address - endpoint) - 1, endpoint);
	return endpoint_check(address, detail);
}

enum err rest_oauth_parse(const char *oauth, const char **ret_file)
{
	return oauth_parse(oauth, ret_file);
}

enum err rest_start(struct service *service, const struct rest_options *options, struct rest **ret,
	struct err_detail *detail)
{
	struct rest *r = calloc(1, sizeof(*r));
	if (r == NULL)
		return ERR_NO_MEMORY;
	r->service = service;
	delayed_init(&r->delayed);
	const struct rest_service *served;
	for (size_t i = 0; (served = services_at(i)) != NULL; i++)
		rest_name_operations(served, service);
	set_limits(r, &options->limits);
	set_trusted(r, options);
	(void)snprintf(r->tenant, sizeof(r->tenant), "%s",
		options->tenant != NULL ? options->tenant : REST_TENANT_DEFAULT);
	enum err e = options->faults == NULL
		? ERR_OK
		: faults_set(service_faults(service), service_metrics(service),
			  span_of(options->faults), false, clock_mono_us(), detail);
	if (e == ERR_OK)
		e = start(r, options, detail);
	if (e != ERR_OK) {
		rest_stop(r);
		return e;
	}
	atomic_store(&r->started, true);
	*ret = r;
	return ERR_OK;
}

enum err rest_reload(struct rest *r, struct err_detail *detail)
{
	return r->tls ? tls_load(r->cert, r->key, detail) : ERR_OK;
}

enum err rest_reopen_log(struct rest *r, struct err_detail *detail)
{
	return r->access_log != NULL ? access_log_reopen(r->access_log, detail) : ERR_OK;
}

const char *rest_endpoint(const struct rest *r, size_t i)
{
	return i < r->nendpoints ? r->endpoints[i].text : NULL;
}

bool rest_page_link(const struct rest *r, char ret[REST_PAGE_LINK_TEXT])
{
	for (size_t i = 0; i < r->nendpoints; i++) {
		const struct endpoint *e = &r->endpoints[i];
		if (e->served != &rest_page)
			continue;
		(void)snprintf(ret, REST_PAGE_LINK_TEXT, "%s%s", e->listener.text, r->page_link);
		return true;
	}
	return false;
}

/* Waits until the requests in work are answered.  Slow clients are cut off. */
static void finish_requests(struct rest *r)
{
	size_t at[PHASES];
	uint64_t end = clock_mono_us() + STOP_MS * 1000;
	for (;;) {
		watchdog_dismiss_idle(r->watchdog);
		watchdog_count(r->watchdog, at);
		if (at[PHASE_HEAD] + at[PHASE_BODY] + at[PHASE_WORK] + at[PHASE_REPLY] == 0)
			return;
		uint64_t now = clock_mono_us();
		/* A request in work has the whole time for its response later. */
		if (at[PHASE_WORK] > 0)
			end = now + STOP_MS * 1000;
		if (now >= end)
			break;
		(void)usleep(STOP_ROUND_US);
	}
	watchdog_hang_up(r->watchdog);
}

void rest_drain(struct rest *r)
{
	if (r == NULL)
		return;
	atomic_store(&r->stopping, true);
	if (r->watchdog != NULL)
		finish_requests(r);
}

void rest_stop(struct rest *r)
{
	if (r == NULL)
		return;
	rest_drain(r);
	if (r->workers != NULL)
		workers_stop(r->workers);
	if (r->long_workers != NULL)
		workers_stop(r->long_workers);
	for (size_t i = 0; i < r->nendpoints; i++) {
		MHD_stop_daemon(r->endpoints[i].daemon); /* accepts NULL */
		listener_close(&r->endpoints[i].listener);
	}
	access_log_close(r->access_log);
	if (r->tls)
		tls_unload();
	workers_free(r->workers);
	workers_free(r->long_workers);
	watchdog_stop(r->watchdog);
	delayed_fini(&r->delayed);
	oauth_close(r->oauth);
	free(r);
}
