/* SPDX-License-Identifier: MIT
 * Mounting, serving, unmounting. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/workers.h"
#include "fs/blob/room.h"
#include "fs/blob/tree.h"
#include "fs/cache/ahead.h"
#include "fs/cache/content.h"
#include "fs/cache/notify.h"
#include "fs/cache/stream_sizes.h"
#include "fs/core/idset.h"
#include "fs/core/waiters.h"
#include "fs/fs.h"
#include "fs/query/nodes.h"
#include "fs/query/tree.h"
#include "fs/queue/names.h"
#include "fs/queue/tree.h"
#include "fs/refused/reason.h"
#include "fs/refused/rejected.h"
#include "fs/refused/unsaved.h"
#include "fs/requests/kinds.h"
#include "fs/requests/ops.h"
#include "fs/requests/syncs.h"
#include "fs/session/loop.h"
#include "fs/tree/events.h"
#include "fs/tree/handle.h"
#include "fs/tree/locks.h"
#include "fs/tree/open_quota.h"
#include "fs/tree/told.h"
#include "fs/tree/trash_dir.h"
#include "fs/virtual/batch_results.h"
#include "fs/virtual/control.h"
#include "fs/virtual/dir_control.h"
#include "fs/virtual/snapshot.h"
#include "fs/virtual/stats.h"
#include "fs/write/retries.h"
#include "fs/write/speculation.h"
#include "service/tree/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bounds of the cache of recent rows. */
#define CONTENTS_BYTES ((size_t)16 << 20)
#define CONTENTS_COUNT 12288
/* Threads of each pool of virtual nodes: what waits there waits for these only. */
#define POOL_THREADS 8

/* ---- the session ---- */

/* fsname takes a path: commas and backslashes in it are escaped for libfuse. */
static void add_escaped(struct buf *out, const char *s)
{
	for (; *s != 0; s++) {
		if (*s == ',' || *s == '\\')
			buf_add_char(out, '\\');
		buf_add_char(out, *s);
	}
}

static void build_options(const struct fs *fs, struct buf *out)
{
	const struct fs_options *o = &fs->options;
	buf_add_str(out, "subtype=rowfs,fsname=");
	add_escaped(out, fs->source);
	if (o->read_only)
		buf_add_str(out, ",ro");
	/* Alone on the mount, the owner needs no permission checks: they cost a request per
	 * change of a directory. */
	if (o->allow_other)
		buf_add_str(out, ",allow_other,default_permissions");
	if (o->generic != NULL && o->generic[0] != 0)
		buf_addf(out, ",%s", o->generic);
}

/* The library has printed what it knows. */
static enum err not_mounted(struct err_detail *detail)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	int code = fd < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (code == ENOENT || code == ENODEV || code == ENXIO)
		return err_set(detail, ERR_IO,
			"there is no FUSE here; load it with: modprobe fuse, or give the container "
			"the device /dev/fuse");
	if (code != 0)
		return err_set(detail, ERR_IO,
			"/dev/fuse cannot be opened: %s; its mode is 0666 where users may mount",
			strerrordesc_np(code));
	return err_set(detail, ERR_IO, "the line before this one says why");
}

/* A message of libfuse, as one line: some have no end of line, and some not its name. */
static PRINTF_LIKE(2, 0) void say(enum fuse_log_level level, const char *fmt, va_list args)
{
	char text[512];
	(void)level;
	(void)vsnprintf(text, sizeof(text), fmt, args);
	text[strcspn(text, "\n")] = '\0';
	fprintf(stderr, "%s%s\n", strncmp(text, "fuse", 4) == 0 ? "" : "fuse: ", text);
}

static enum err mount_session(struct fs *fs, struct err_detail *detail)
{
	struct buf options = BUF_INIT(16384);
	build_options(fs, &options);
	if (!buf_ok(&options)) {
		buf_fini(&options);
		return ERR_NO_MEMORY;
	}
	char program[] = "rowfs", flag[] = "-o";
	char *argv[] = { program, flag, options.data, NULL };
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	fuse_set_log_func(say);
	fs->session = fuse_session_new(&args, &fs_ops, sizeof(fs_ops), fs);
	fuse_opt_free_args(&args);
	buf_fini(&options);
	if (fs->session == NULL)
		return err_set(detail, ERR_INVALID_INPUT, "the mount options were not understood");
	if (fuse_session_mount(fs->session, fs->dir) != 0)
		return not_mounted(detail);
	fs->mounted = true;
	return ERR_OK;
}

static void on_wake(int number)
{
	(void)number;
}

/* Before there is a mount that somebody could want to end. */
static void prepare_end(struct fs *fs)
{
	const struct sigaction wake = { .sa_handler = on_wake };
	(void)sigaction(LOOP_WAKE, &wake, NULL);
	sem_init(&fs->ended, 0, 0);
}

static bool take_first(void *arg, const void *request, size_t n)
{
	return op_statx(arg, request, n);
}

enum err fs_run(struct fs *fs)
{
	return loop_run(fs->session, &fs->ended, take_first, fs, &fs->overdue);
}

void fs_end(struct fs *fs)
{
	const struct timespec step = { .tv_nsec = 1000000 };
	/* Nobody reads the next request of the client that a thread waits for by then. */
	while (!notifier_end(fs->notifier))
		nanosleep(&step, NULL);
	fs->given_up = true;
	fuse_session_exit(fs->session);
	sem_post(&fs->ended);
}

void fs_wait_idle(struct fs *fs, unsigned timeout_ms)
{
	atomic_store(&fs->stopping, true);
	waiters_end(fs->waiters);
	const struct timespec step = { .tv_nsec = 1000000 };
	uint64_t end = clock_mono_us() + (uint64_t)timeout_ms * 1000;
	while (clock_mono_us() < end &&
		(atomic_load(&fs->in_flight) > 0 || notifier_busy(fs->notifier)))
		nanosleep(&step, NULL);
}

/* ---- life ---- */

static bool make_parts(struct fs *fs)
{
	fs->open_quota = open_quota_new();
	if (fs->open_quota == NULL)
		return false;
	fs->contents = contents_new(CONTENTS_BYTES, CONTENTS_COUNT);
	fs->ahead = ahead_new();
	fs->stages = stages_new();
	fs->retries = retries_new();
	fs->speculation = speculation_new();
	fs->unsaved = unsaved_new();
	fs->reasons = reasons_new(fs->service, fs->unsaved);
	fs->kinds = kinds;
	fs->handles = handles_new();
	fs->locks = locks_new(fs->open_quota->max_ranges);
	fs->batch_results = batch_results_new();
	fs->open_files = idset_new();
	fs->leaving = idset_new();
	fs->resizing = idset_new();
	fs->open_dirs = idset_new();
	fs->seen = idset_new();
	fs->in_sets = idset_new();
	fs->removals = idset_new();
	fs->query_nodes = query_nodes_new();
	fs->stream_sizes = stream_sizes_new(fs->service, &fs->changes);
	fs->told = told_new();
	fs->queue_names = queue_names_new();
	fs->blobs = blob_room_new();
	fs->syncs = syncs_new();
	return fs->contents != NULL && fs->ahead != NULL && fs->stages != NULL &&
		fs->retries != NULL && fs->speculation != NULL && fs->reasons != NULL &&
		fs->unsaved != NULL && fs->handles != NULL && fs->locks != NULL &&
		fs->open_files != NULL && fs->leaving != NULL && fs->resizing != NULL &&
		fs->open_dirs != NULL && fs->seen != NULL && fs->in_sets != NULL &&
		fs->removals != NULL && fs->query_nodes != NULL && fs->stream_sizes != NULL &&
		fs->told != NULL && fs->queue_names != NULL && fs->blobs != NULL &&
		fs->batch_results != NULL && fs->syncs != NULL;
}

static enum err start_pools(struct fs *fs)
{
	enum err e = ERR_OK;
	for (enum vpool pool = VPOOL_SCAN; e == ERR_OK && pool < VPOOL_COUNT_; pool++)
		e = workers_start(POOL_THREADS, &fs->pools[pool]);
	return e;
}

static enum err start_threads(struct fs *fs, struct err_detail *detail)
{
	enum err e = notifier_new(fs, &fs->notifier);
	if (e == ERR_OK && (fs->waiters = waiters_new()) == NULL)
		e = ERR_NO_MEMORY;
	if (e == ERR_OK) {
		contents_tell_bytes(fs->contents, service_row_cache_bytes(fs->service));
		events_start(fs);
		stream_sizes_load(fs->stream_sizes);
	}
	if (e == ERR_OK)
		e = start_pools(fs);
	return e == ERR_OK ? e : err_set(detail, e, FS_NO_THREADS);
}

/* What they still have is answered, or given up. */
static void stop_pools(struct fs *fs)
{
	atomic_store(&fs->stopping, true);
	if (fs->waiters != NULL)
		waiters_end(fs->waiters);
	for (enum vpool pool = VPOOL_SCAN; pool < VPOOL_COUNT_; pool++) {
		if (fs->pools[pool] != NULL)
			workers_stop(fs->pools[pool]);
		workers_free(fs->pools[pool]);
		fs->pools[pool] = NULL;
	}
}

enum err fs_new(struct service *service, const char *dir, const struct fs_options *options,
	struct fs **ret, struct err_detail *detail)
{
	struct fs *fs = calloc(1, sizeof(*fs));
	if (fs == NULL)
		return ERR_NO_MEMORY;
	fs->service = service;
	fs->store = service_store(service);
	fs->shared = service_can(service, STORE_SHARED);
	fs->options = *options;
	fs->source = strdup(options->source);
	fs->store_path = strdup(options->store);
	fs->dir = strdup(dir);
	fs->version = strdup(options->version);
	fs->started = clock_ticks();
	stats_name_operations(fs->service);
	fs->vnode_ops[NID_KIND_CONTROL] = control_ops_of;
	fs->vnode_ops[NID_KIND_SNAPSHOT] = snapshot_ops_of;
	fs->vnode_ops[NID_KIND_DIR_CONTROL] = dir_control_ops_of;
	fs->vnode_ops[NID_KIND_QUERY] = query_ops_of;
	fs->vnode_ops[NID_KIND_QUEUE] = queue_ops_of;
	fs->vnode_ops[NID_KIND_BLOB] = blob_ops_of;
	prepare_end(fs);
	enum err e = ERR_NO_MEMORY;
	if (fs->source != NULL && fs->store_path != NULL && fs->dir != NULL &&
		fs->version != NULL && make_parts(fs))
		e = mount_session(fs, detail);
	if (e == ERR_OK)
		e = start_threads(fs, detail);
	if (e == ERR_OK && !options->read_only && !fs->shared)
		e = tree_drop_orphans(service);
	if (e == ERR_OK)
		e = trash_new(service, &options->trash, &fs->trash);
	if (e == ERR_OK) {
		trash_dir_watch(fs);
		trash_dir_tidy(fs);
	}
	if (e == ERR_OK)
		snapshots_start(fs);
	if (e != ERR_OK) {
		fs_free(fs);
		return e;
	}
	*ret = fs;
	return ERR_OK;
}

/* Puts a descriptor with an error in place of the session's, by which the library sees that
 * there is nothing to unmount. */
static bool let_go(struct fuse_session *session)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) != 0)
		return false;
	close(fds[0]);
	bool done = dup2(fds[1], fuse_session_fd(session)) >= 0;
	close(fds[1]);
	return done;
}

void fs_free(struct fs *fs)
{
	if (fs == NULL)
		return;
	stop_pools(fs);
	if (fs->retries != NULL)
		retries_free(fs, fs->retries);
	/* Staged documents that nobody closed are committed or kept in rejected/. */
	handles_free(fs, fs->handles);
	stages_free(fs, fs->stages);
	if (fs->unsaved != NULL)
		rejected_retry(fs);
	snapshots_stop(fs->service);
	if (fs->waiters != NULL) {
		stream_sizes_save(fs->stream_sizes);
		events_stop(fs->service);
	}
	waiters_free(fs->waiters);
	notifier_free(fs->notifier);
	locks_free(fs->locks);
	/* Only now: until here replies are written to its descriptor, whose number the store's
	 * files could get. */
	if (fs->mounted && (!fs->given_up || let_go(fs->session)))
		fuse_session_unmount(fs->session);
	if (fs->session != NULL)
		fuse_session_destroy(fs->session);
	speculation_free(fs->speculation);
	told_free(fs->told);
	ahead_free(fs->ahead);
	contents_free(fs->contents);
	reasons_free(fs->reasons);
	unsaved_free(fs->unsaved);
	trash_free(fs->trash);
	query_nodes_free(fs->query_nodes);
	stream_sizes_free(fs->stream_sizes);
	queue_names_free(fs->queue_names);
	blob_room_free(fs->blobs);
	batch_results_free(fs->batch_results);
	syncs_free(fs->syncs);
	idset_free(fs->open_files);
	idset_free(fs->leaving);
	idset_free(fs->resizing);
	idset_free(fs->open_dirs);
	idset_free(fs->seen);
	idset_free(fs->in_sets);
	idset_free(fs->removals);
	sem_destroy(&fs->ended);
	free(fs->open_quota);
	free(fs->source);
	free(fs->store_path);
	free(fs->dir);
	free(fs->version);
	free(fs);
}
