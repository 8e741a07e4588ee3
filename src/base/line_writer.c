/* SPDX-License-Identifier: MIT
 * Two buffers: callers fill one while the thread writes the other.  Both have their memory from the
 * start, so a caller never allocates.  A write to a pipe never blocks, because poll(2) comes first
 * and promises room for PIPE_BUF bytes. */
#include "base/line_writer.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How often lines that were left out are told, and how long the end waits for a pipe. */
#define TELL_US UINT64_C(10000000)
#define END_US UINT64_C(1000000)
#define POLL_MS 100

struct line_writer {
	const char *name, *path;
	int fd;
	pthread_t thread;
	sem_t wanted; /* posted when the first line comes to wait, and at the end */
	struct mutex lock;
	struct buf waiting; /* under the lock, and so is left_out */
	uint64_t left_out;
	atomic_uint_least64_t end_us; /* give up then; 0: never */
	/* The thread's own. */
	struct buf writing;
	uint64_t told_us;
	int error; /* the errno of the last failure; 0: the file was slow */
};

/* ---- the thread ---- */

static void count_left_out(struct line_writer *w, uint64_t n)
{
	mutex_lock(&w->lock);
	w->left_out += n;
	mutex_unlock(&w->lock);
}

static void tell_left_out(struct line_writer *w)
{
	uint64_t now = clock_mono_us();
	bool ends = atomic_load(&w->end_us) != 0;
	if (!ends && w->told_us != 0 && now - w->told_us < TELL_US)
		return;
	mutex_lock(&w->lock);
	uint64_t n = w->left_out;
	w->left_out = 0;
	mutex_unlock(&w->lock);
	if (n == 0)
		return;
	log_warning("%s: %" PRIu64 " lines were left out of '%s': %s", w->name, n, w->path,
		w->error != 0 ? strerrordesc_np(w->error) : "it was too slow");
	w->told_us = now;
	w->error = 0;
}

/* Takes the lines that wait.  Returns false at the end. */
static bool take(struct line_writer *w)
{
	while (sem_wait(&w->wanted) != 0)
		;
	buf_clear(&w->writing);
	mutex_lock(&w->lock);
	struct buf taken = w->waiting;
	w->waiting = w->writing;
	w->writing = taken;
	mutex_unlock(&w->lock);
	return taken.len > 0 || atomic_load(&w->end_us) == 0;
}

/* Returns false if the end came before the file had room. */
static bool wait_for_room(const struct line_writer *w)
{
	for (;;) {
		struct pollfd p = { .fd = w->fd, .events = POLLOUT };
		if (poll(&p, 1, POLL_MS) > 0)
			return true;
		uint64_t end = atomic_load(&w->end_us);
		if (end != 0 && clock_mono_us() >= end)
			return false;
	}
}

/* Returns how many bytes go at once: whole lines if one fits. */
static size_t portion(struct span left)
{
	if (left.n <= PIPE_BUF)
		return left.n;
	const char *last = memrchr(left.p, '\n', PIPE_BUF);
	return last != NULL ? (size_t)(last - left.p) + 1 : PIPE_BUF;
}

/* Returns what could not be written. */
static struct span write_all(struct line_writer *w, struct span left)
{
	while (left.n > 0 && wait_for_room(w)) {
		ssize_t n = write(w->fd, left.p, portion(left));
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			w->error = errno;
			return left;
		}
		size_t done = n > 0 ? (size_t)n : 0;
		left = span_make(left.p + done, left.n - done);
	}
	return left;
}

static uint64_t count_lines(struct span text)
{
	uint64_t n = 0;
	for (size_t i = 0; i < text.n; i++)
		n += text.p[i] == '\n';
	return n;
}

static void *run(void *arg)
{
	struct line_writer *w = arg;
	while (take(w)) {
		count_left_out(w, count_lines(write_all(w, buf_span(&w->writing))));
		tell_left_out(w);
	}
	tell_left_out(w);
	return NULL;
}

/* ---- for callers ---- */

/* O_NONBLOCK: a FIFO that nobody reads is an error and no wait. */
static enum err open_file(const char *path, int *ret, struct err_detail *detail)
{
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	*ret = strcmp(path, "-") == 0 ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
				      : open(path, flags, 0640);
	return *ret >= 0 ? ERR_OK
			 : err_set(detail, err_from_errno(errno), "cannot open '%s': %s", path,
				   strerrordesc_np(errno));
}

static void writer_free(struct line_writer *w)
{
	if (w->fd >= 0)
		close(w->fd);
	buf_fini(&w->waiting);
	buf_fini(&w->writing);
	sem_destroy(&w->wanted);
	mutex_destroy(&w->lock);
	free(w);
}

enum err line_writer_open(
	const char *name, const char *path, struct line_writer **ret, struct err_detail *detail)
{
	struct line_writer *w = calloc(1, sizeof(*w));
	if (w == NULL)
		return ERR_NO_MEMORY;
	w->name = name;
	w->path = path;
	w->waiting = w->writing = BUF_INIT(LINE_WRITER_ROOM);
	mutex_init(&w->lock, RANK_LINES);
	sem_init(&w->wanted, 0, 0);
	enum err e = open_file(path, &w->fd, detail);
	if (e == ERR_OK &&
		(!buf_reserve(&w->waiting, LINE_WRITER_ROOM) ||
			!buf_reserve(&w->writing, LINE_WRITER_ROOM) ||
			pthread_create(&w->thread, NULL, run, w) != 0))
		e = ERR_NO_MEMORY;
	if (e == ERR_OK)
		*ret = w;
	else
		writer_free(w);
	return e;
}

void line_writer_add(struct line_writer *w, struct span line)
{
	mutex_lock(&w->lock);
	bool first = w->waiting.len == 0;
	bool fits = line.n <= LINE_WRITER_ROOM - w->waiting.len;
	if (fits)
		buf_add_span(&w->waiting, line);
	else
		w->left_out++;
	mutex_unlock(&w->lock);
	if (fits && first)
		sem_post(&w->wanted);
}

enum err line_writer_reopen(struct line_writer *w, struct err_detail *detail)
{
	int fd;
	if (strcmp(w->path, "-") == 0)
		return ERR_OK;
	enum err e = open_file(w->path, &fd, detail);
	if (e != ERR_OK)
		return e;
	(void)dup3(fd, w->fd, O_CLOEXEC);
	close(fd);
	return ERR_OK;
}

void line_writer_close(struct line_writer *w)
{
	if (w == NULL)
		return;
	atomic_store(&w->end_us, clock_mono_us() + END_US);
	sem_post(&w->wanted);
	pthread_join(w->thread, NULL);
	writer_free(w);
}
