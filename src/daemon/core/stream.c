/* SPDX-License-Identifier: MIT */
#include "daemon/core/stream.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASK_MS 200 /* how long a cancelled call may go on waiting */

struct stream {
	int fd;
	bool regular; /* never waits */
	bool (*cancelled)(void *arg);
	void *arg;
};

/* True when fd is ready; false, with errno, when the command is cancelled. */
static bool wait_for(const struct stream *s, short events)
{
	for (;;) {
		struct pollfd p = { .fd = s->fd, .events = events };
		int n = s->regular ? 1 : poll(&p, 1, ASK_MS);
		if (n > 0)
			return true;
		if (s->cancelled(s->arg)) {
			errno = ECANCELED;
			return false;
		}
		if (n < 0 && errno != EINTR)
			return false;
	}
}

static ssize_t read_some(void *cookie, char *bytes, size_t n)
{
	const struct stream *s = cookie;
	ssize_t got;
	do {
		if (!wait_for(s, POLLIN))
			return -1;
		got = read(s->fd, bytes, n);
	} while (got < 0 && (errno == EINTR || errno == EAGAIN));
	return got;
}

/* A stream's write answers 0, not -1, for an error. */
static ssize_t write_some(void *cookie, const char *bytes, size_t n)
{
	const struct stream *s = cookie;
	size_t done = 0;
	while (done < n) {
		/* A ready pipe takes this much without waiting. */
		size_t part = s->regular || n - done < PIPE_BUF ? n - done : PIPE_BUF;
		if (!wait_for(s, POLLOUT))
			return 0;
		ssize_t put = write(s->fd, bytes + done, part);
		if (put < 0 && errno != EINTR && errno != EAGAIN)
			return 0;
		done += put > 0 ? (size_t)put : 0;
	}
	return (ssize_t)done;
}

static int close_it(void *cookie)
{
	struct stream *s = cookie;
	int result = close(s->fd);
	free(s);
	return result;
}

FILE *stream_open(int fd, const char *mode, bool (*cancelled)(void *arg), void *arg)
{
	struct stat st;
	struct stream *s = calloc(1, sizeof(*s));
	FILE *f = NULL;
	if (s != NULL) {
		*s = (struct stream){ fd, fstat(fd, &st) == 0 && S_ISREG(st.st_mode), cancelled,
			arg };
		cookie_io_functions_t io = {
			.read = read_some, .write = write_some, .close = close_it
		};
		f = fopencookie(s, mode, io);
	}
	if (f == NULL) {
		free(s);
		close(fd);
		return NULL;
	}
	(void)setvbuf(f, NULL, _IOFBF, 64 << 10);
	return f;
}
