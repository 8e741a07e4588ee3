/* SPDX-License-Identifier: MIT
 * http_bare PORT ANSWER: nothing but libmicrohttpd, in the mode in which rowfs serves a
 * socket, with the headers and the body that a server once answered: the file ANSWER holds
 * them as they were on the wire.  So this is the floor of any answer of those bytes.  The
 * response is made anew for each request, since that of a row is (its ETag is its own). */
#include <microhttpd.h>

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEADERS_MAX 32
#define CONNECTION_MEMORY ((size_t)64 << 10)

static char text[64 << 10];
static char *names[HEADERS_MAX], *values[HEADERS_MAX], *body;
static size_t nheaders, body_len;
static unsigned status;

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url,
	const char *method, const char *version, const char *data, size_t *size, void **context)
{
	static int begun;
	(void)arg;
	(void)url;
	(void)method;
	(void)version;
	(void)data;
	if (*context == NULL) {
		*context = &begun;
		return MHD_YES;
	}
	if (*size > 0) {
		*size = 0;
		return MHD_YES;
	}
	struct MHD_Response *r =
		MHD_create_response_from_buffer(body_len, body, MHD_RESPMEM_MUST_COPY);
	for (size_t i = 0; i < nheaders; i++)
		(void)MHD_add_response_header(r, names[i], values[i]);
	enum MHD_Result ret = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ret;
}

/* The library writes these itself. */
static bool is_own(const char *name)
{
	return strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0 ||
		strcasecmp(name, MHD_HTTP_HEADER_DATE) == 0 ||
		strcasecmp(name, MHD_HTTP_HEADER_CONNECTION) == 0;
}

static bool take_headers(char *head)
{
	char *rest = head, *line = strsep(&rest, "\n");
	if (strlen(line) < 12)
		return false;
	status = (unsigned)strtoul(line + 9, NULL, 10);
	while ((line = strsep(&rest, "\n")) != NULL) {
		char *value = line;
		char *name = strsep(&value, ":");
		if (value == NULL || nheaders == HEADERS_MAX)
			return false;
		if (is_own(name))
			continue;
		names[nheaders] = name;
		values[nheaders++] = value + strspn(value, " ");
	}
	return status >= 200;
}

static bool read_answer(const char *file)
{
	FILE *f = fopen(file, "re");
	size_t n = f != NULL ? fread(text, 1, sizeof(text) - 1, f) : 0;
	char *end = memmem(text, n, "\r\n\r\n", 4);
	if (f != NULL)
		(void)fclose(f);
	if (end == NULL)
		return false;
	body = end + 4;
	body_len = n - (size_t)(body - text);
	*end = '\0';
	for (char *p = text; (p = strchr(p, '\r')) != NULL;)
		memmove(p, p + 1, strlen(p));
	return take_headers(text);
}

int main(int argc, char **argv)
{
	cpu_set_t cpus;
	sigset_t stop;
	int which, ncpus = 1;
	if (argc != 3 || !read_answer(argv[2])) {
		(void)fprintf(stderr, "usage: http_bare PORT ANSWER\n");
		return 2;
	}
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
		ncpus = CPU_COUNT(&cpus);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTERM);
	sigaddset(&stop, SIGINT);
	(void)sigprocmask(SIG_BLOCK, &stop, NULL);
	struct MHD_Daemon *d = MHD_start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG,
		(uint16_t)strtoul(argv[1], NULL, 10), NULL, NULL, answer, NULL,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, MHD_OPTION_CONNECTION_LIMIT,
		4096u, MHD_OPTION_CONNECTION_TIMEOUT, 0u,
		ncpus > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END, (unsigned)ncpus,
		MHD_OPTION_END);
	if (d == NULL) {
		(void)fprintf(stderr, "http_bare: cannot listen on %s\n", argv[1]);
		return 1;
	}
	(void)printf("ready\n");
	(void)fflush(stdout);
	(void)sigwait(&stop, &which);
	MHD_stop_daemon(d);
	return 0;
}
