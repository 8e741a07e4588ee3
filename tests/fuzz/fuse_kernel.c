/* SPDX-License-Identifier: MIT
 * Requests are handed to libfuse in this thread; answers come from any thread, through the
 * descriptor that the library believes to be the kernel's. */
#include "fuse_kernel.h"

#include "fs/core/state.h"
#include "fs/fs.h"
#include "fs/requests/ops.h"
#include "fuzz.h"

#include <fuse_lowlevel.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A request that needs longer hangs. */
#define SECONDS 20

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answered = PTHREAD_COND_INITIALIZER;
static uint64_t asked, waiting; /* the last unique id; that of the request under way */
static bool interrupts;
static struct fuse_answer answer;

static size_t gather(const struct iovec *iov, int n, char *to, size_t cap)
{
	size_t all = 0;
	for (int i = 0; i < n; i++) {
		MUST(all + iov[i].iov_len <= cap);
		if (iov[i].iov_len > 0)
			memcpy(to + all, iov[i].iov_base, iov[i].iov_len);
		all += iov[i].iov_len;
	}
	return all;
}

static ssize_t take(int fd, struct iovec *iov, int n, void *arg)
{
	struct fuse_out_header h;
	size_t body;
	(void)fd;
	(void)arg;
	MUST(n > 0 && iov[0].iov_len >= sizeof(h));
	memcpy(&h, iov[0].iov_base, sizeof(h));
	iov[0].iov_base = (char *)iov[0].iov_base + sizeof(h);
	iov[0].iov_len -= sizeof(h);
	if (h.unique == 0) /* a notification: nothing is cached here */
		return h.len;
	pthread_mutex_lock(&lock);
	MUST(h.unique == waiting); /* nobody else's, and not twice */
	MUST(h.error <= 0 && h.error > -4096);
	body = gather(iov, n, answer.data, sizeof(answer.data));
	MUST(h.len == sizeof(h) + body && (h.error == 0 || body == 0));
	answer.error = -h.error;
	answer.n = body;
	waiting = 0;
	pthread_cond_signal(&answered);
	pthread_mutex_unlock(&lock);
	return h.len;
}

static ssize_t nothing(int fd, void *p, size_t n, void *arg)
{
	(void)fd;
	(void)p;
	(void)n;
	(void)arg;
	errno = ENODEV;
	return -1;
}

static void send_request(struct fs *fs, uint32_t opcode, uint64_t node, pid_t pid,
	const struct span *parts, size_t n)
{
	static char request[140 * 1024];
	struct fuse_in_header h = { .opcode = opcode,
		.unique = asked,
		.nodeid = node,
		.pid = (uint32_t)pid,
		.uid = 0,
		.gid = 0,
		.len = sizeof(h) };
	for (size_t i = 0; i < n; i++) {
		MUST(h.len + parts[i].n <= sizeof(request));
		if (parts[i].n > 0)
			memcpy(request + h.len, parts[i].p, parts[i].n);
		h.len += (uint32_t)parts[i].n;
	}
	memcpy(request, &h, sizeof(h));
	/* As large as the request, so that a sanitizer sees what is read behind it. */
	char *exact = malloc(h.len);
	MUST(exact != NULL);
	memcpy(exact, request, h.len);
	const struct fuse_buf buf = { .size = h.len, .mem = exact };
	fuse_session_process_buf(fs->session, &buf);
	free(exact);
}

/* Longer than any handler's answer that waits for nobody. */
static bool wait_ms(long ms)
{
	struct timespec end;
	int code = 0;
	(void)clock_gettime(CLOCK_REALTIME, &end);
	end.tv_nsec += ms % 1000 * 1000000;
	end.tv_sec += ms / 1000 + end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	while (waiting != 0 && code == 0)
		code = pthread_cond_timedwait(&answered, &lock, &end);
	return waiting == 0;
}

static void interrupt(struct fs *fs, uint64_t unique)
{
	const struct fuse_interrupt_in in = { .unique = unique };
	const struct span part = span_make(&in, sizeof(in));
	asked += 2;
	send_request(fs, FUSE_INTERRUPT, 0, 0, &part, 1);
}

const struct fuse_answer *fuse_ask(struct fs *fs, uint32_t opcode, uint64_t node, pid_t pid,
	struct span in, struct span more, struct span last)
{
	const struct span parts[] = { in, more, last };
	pthread_mutex_lock(&lock);
	asked += 2;
	uint64_t outer = waiting; /* a test may ask within a handler */
	uint64_t unique = waiting = asked;
	pthread_mutex_unlock(&lock);
	send_request(fs, opcode, node, pid, parts, 3);
	pthread_mutex_lock(&lock);
	if (interrupts && !wait_ms(20)) {
		pthread_mutex_unlock(&lock);
		interrupt(fs, unique);
		pthread_mutex_lock(&lock);
	}
	MUST(wait_ms(SECONDS * 1000));
	waiting = outer;
	pthread_mutex_unlock(&lock);
	return &answer;
}

void fuse_interrupt_waits(bool on)
{
	interrupts = on;
}

void fuse_tell(struct fs *fs, uint32_t opcode, uint64_t node, struct span in)
{
	asked += 2;
	send_request(fs, opcode, node, 1, &in, 1);
}

struct fs *fuse_kernel_begin(struct service *s)
{
	const struct fs_options options = { .umask = 022,
		.source = "s",
		.store = "/s",
		.trash = TRASH_LIMITS_USUAL,
		.snapshot_log = (uint64_t)1 << 30,
		.version = "fuzz" };
	static const struct fuse_custom_io io = { .writev = take, .read = nothing };
	const struct fuse_init_in init = { .major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = 131072,
		.flags = 0x3fffffff & ~(uint32_t)FUSE_INIT_EXT };
	struct fs *fs = NULL;
	char dir[32];
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	MUST(fd >= 0);
	(void)snprintf(dir, sizeof(dir), "/dev/fd/%d", fd); /* libfuse: this is the device */
	MUST(fs_new(s, dir, &options, &fs, NULL) == ERR_OK);
	MUST(fuse_session_custom_io(fs->session, &io, fd) == 0);
	MUST(fuse_ask(fs, FUSE_INIT, 0, 0, span_make(&init, sizeof(init)), SPAN_LIT(""),
		     SPAN_LIT(""))
			->error == 0);
	return fs;
}

void fuse_kernel_end(struct fs *fs)
{
	MUST(waiting == 0);
	fs_free(fs);
}
