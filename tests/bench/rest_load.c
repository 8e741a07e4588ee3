/* SPDX-License-Identifier: MIT
 * Load on any server of the Table protocol, over kept connections: one thread, one request
 * under way on each connection.  Requests are written and signed (SharedKeyLite) before the
 * clock starts, so that the generator costs little.  Every answer is checked, its status,
 * length and rows, and the first wrong one ends the run: a fast refusal never counts.
 * rest_text.h has the texts.  Prints one line of JSON. */
#include "base/clock.h"
#include "base/text.h"
#include "rest_text.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECTIONS_MAX 256
#define SAMPLES_MAX ((size_t)4 << 20)
#define IDLE_MS 60000
#define SPIN_US 200
/* Some servers leave out the zeros at the end of a time. */
#define LENGTH_SLACK 16
#define ANSWER_LIMIT ((size_t)16 << 20)

struct connection {
	int fd;
	struct buf in;
	struct buf own;    /* the request, where it depends on the answer before */
	struct span out;   /* what is still to be sent */
	size_t request;    /* its number */
	uint64_t since_us; /* 0: nothing is under way */
	uint64_t rows;     /* of the walk so far */
	bool walking;      /* a page is to follow */
};

struct answer {
	int status;
	struct span head, body;
};

static struct load load;
static struct connection connections[CONNECTIONS_MAX];
static struct sockaddr_storage address;
static socklen_t address_len;
static int poller;
static uint64_t until_us, issued, done, rows, bytes, walks;
static size_t one_length; /* of a row's answer */
static float *samples;

NORETURN static void die(const char *what, struct span more)
{
	(void)fprintf(stderr, "rest_load: %s %s: %s: %.*s\n", load.server, load.kind_name, what,
		more.n < 600 ? (int)more.n : 600, more.n > 0 ? more.p : "");
	exit(1);
}

/* ---- answers ---- */

static struct span header(struct span head, const char *name)
{
	size_t n = strlen(name);
	for (const char *p = head.p, *end = head.p + head.n; p < end;) {
		const char *eol = memmem(p, (size_t)(end - p), "\r\n", 2);
		size_t len = eol != NULL ? (size_t)(eol - p) : (size_t)(end - p);
		if (len > n && p[n] == ':' && strncasecmp(p, name, n) == 0)
			return text_trim_line(span_make(p + n + 1, len - n - 1));
		p += len + 2;
	}
	return (struct span){ 0 };
}

/* The chunks moved together; false: not all of them are there. */
static bool unchunk(char *text, size_t n, size_t *ret_n)
{
	size_t at = 0, to = 0, size;
	do {
		char *eol = memmem(text + at, n - at, "\r\n", 2), *end;
		if (eol == NULL)
			return false;
		size = strtoul(text + at, &end, 16);
		if (end == text + at)
			die("no chunk", span_make(text + at, n - at));
		at = (size_t)(eol - text) + 2 + size + 2;
	} while (size > 0 && at <= n);
	if (at > n)
		return false;
	for (at = 0;;) {
		char *eol = memmem(text + at, n - at, "\r\n", 2);
		size = eol != NULL ? strtoul(text + at, NULL, 16) : 0;
		if (size == 0)
			break;
		memmove(text + to, eol + 2, size);
		to += size;
		at = (size_t)(eol - text) + 2 + size + 2;
	}
	*ret_n = to;
	return true;
}

static bool parse(struct connection *c, struct answer *ret)
{
	char *text = c->in.data, *end = memmem(text, c->in.len, "\r\n\r\n", 4);
	if (end == NULL)
		return false;
	if (c->in.len < 12 || memcmp(text, "HTTP/1.1 ", 9) != 0)
		die("no HTTP", buf_span(&c->in));
	ret->status = (text[9] - '0') * 100 + (text[10] - '0') * 10 + text[11] - '0';
	ret->head = span_make(text, (size_t)(end - text));
	size_t have = c->in.len - ret->head.n - 4, n = 0;
	uint64_t length;
	if (header(ret->head, "Transfer-Encoding").n > 0) {
		if (!unchunk(end + 4, have, &n))
			return false;
	} else if (text_to_u64(header(ret->head, "Content-Length"), &length)) {
		n = (size_t)length;
		if (have < n)
			return false;
		if (have > n)
			die("bytes behind the answer", buf_span(&c->in));
	} else if (ret->status != 204) {
		die("an answer without length", buf_span(&c->in));
	}
	ret->body = span_make(end + 4, n);
	return true;
}

static size_t count(struct span text, const char *what)
{
	size_t n = 0, len = strlen(what);
	const char *end = text.p + text.n, *p = text.p;
	while (p < end && (p = memmem(p, (size_t)(end - p), what, len)) != NULL) {
		p += len;
		n++;
	}
	return n;
}

static void check_row(const struct connection *c, const struct answer *a)
{
	char key[ROW_KEY_MAX];
	row_key(load.ids[c->request], key);
	if (count(a->body, key) == 0 || count(a->body, ROW_LAST) != 1)
		die("not the row", a->body);
	if (one_length == 0)
		one_length = a->body.n;
	size_t off = a->body.n > one_length ? a->body.n - one_length : one_length - a->body.n;
	if (a->body.n < ROW_BYTES_MIN || off > LENGTH_SLACK)
		die("a row of another length", a->body);
	rows++;
}

/* A walk ends where no token is; then all of the table was seen. */
static void check_page(struct connection *c, const struct answer *a)
{
	size_t n = count(a->body, load.atom ? "<d:RowKey>" : "\"RowKey\"");
	struct span pk = header(a->head, "x-ms-continuation-NextPartitionKey");
	struct span rk = header(a->head, "x-ms-continuation-NextRowKey");
	c->rows += n;
	rows += n;
	if (pk.n > 0 && n != load.top && load.filter == NULL)
		die("a page that is not full", a->head);
	if (pk.n == 0 && c->rows != load.rows)
		die("not all rows", a->head);
	c->walking = pk.n > 0;
	if (!c->walking) {
		c->rows = 0;
		walks++;
	}
	write_page(&load, pk, rk, &c->own);
}

static void check(struct connection *c, const struct answer *a)
{
	if (a->status != load.status)
		die("the status", buf_span(&c->in));
	switch (load.kind) {
	case KIND_GET:
		check_row(c, a);
		break;
	case KIND_QUERY:
		check_page(c, a);
		break;
	case KIND_FILL:
	case KIND_BATCH:
		if (count(a->body, "HTTP/1.1 204") != BATCH_ROWS)
			die("a batch", a->body);
		rows += BATCH_ROWS;
		break;
	case KIND_TABLE:
	case KIND_INSERT:
	case KIND_UPSERT:
		rows++;
		break;
	}
}

/* ---- connections ---- */

static void watch(struct connection *c, int op, bool writing)
{
	struct epoll_event e = { .events = EPOLLIN | (writing ? EPOLLOUT : 0), .data.ptr = c };
	if (epoll_ctl(poller, op, c->fd, &e) != 0)
		die("epoll_ctl", span_of(strerrordesc_np(errno)));
}

static void send_on(struct connection *c, bool watched)
{
	while (c->out.n > 0) {
		ssize_t n = send(c->fd, c->out.p, c->out.n, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			die("send", span_of(strerrordesc_np(errno)));
		if (n < 0) {
			if (!watched)
				watch(c, EPOLL_CTL_MOD, true);
			return;
		}
		c->out = span_make(c->out.p + n, c->out.n - (size_t)n);
	}
	if (watched)
		watch(c, EPOLL_CTL_MOD, false);
}

static bool more(void)
{
	if (load.seconds > 0 && clock_mono_us() >= until_us)
		return false;
	return load.cycles ? load.seconds > 0 || issued < load.requests : issued < load.requests;
}

static void next(struct connection *c)
{
	c->since_us = 0;
	if (!(load.whole && c->walking) && !more())
		return;
	c->request = (size_t)(issued++ % load.requests);
	c->out = load.kind == KIND_QUERY ? buf_span(&c->own) : load_text(&load, c->request);
	buf_clear(&c->in);
	c->since_us = clock_mono_us();
	send_on(c, false);
}

static void take(struct connection *c)
{
	struct answer a;
	for (;;) {
		if (!buf_reserve(&c->in, (size_t)64 << 10))
			die("a huge answer", (struct span){ 0 });
		size_t room = c->in.cap - c->in.len - 1;
		ssize_t n = recv(c->fd, c->in.data + c->in.len, room, 0);
		if (n == 0)
			die("the server hung up", buf_span(&c->in));
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			die("recv", span_of(strerrordesc_np(errno)));
		c->in.len += (size_t)n;
		c->in.data[c->in.len] = '\0';
		if (!parse(c, &a))
			continue;
		check(c, &a);
		bytes += c->in.len;
		if (done < SAMPLES_MAX)
			samples[done] = (float)(clock_mono_us() - c->since_us);
		done++;
		next(c);
		return;
	}
}

static void dial(struct connection *c)
{
	int one = 1;
	c->fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (const void *)&address, address_len) != 0)
		die("connect", span_of(strerrordesc_np(errno)));
	if (address.ss_family == AF_INET)
		(void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	int flags = fcntl(c->fd, F_GETFL);
	(void)fcntl(c->fd, F_SETFL, flags | O_NONBLOCK);
	c->in = BUF_INIT(ANSWER_LIMIT);
	c->own = BUF_INIT(ANSWER_LIMIT);
	watch(c, EPOLL_CTL_ADD, false);
	if (load.kind == KIND_QUERY)
		write_page(&load, (struct span){ 0 }, (struct span){ 0 }, &c->own);
}

static void find_address(void)
{
	uint64_t port;
	struct span s = span_of(load.server);
	if (span_starts(s, SPAN_LIT("unix:"))) {
		struct sockaddr_un *u = (void *)&address;
		u->sun_family = AF_UNIX;
		if (s.n - 5 >= sizeof(u->sun_path))
			die("too long a path", s);
		memcpy(u->sun_path, s.p + 5, s.n - 5);
		address_len = sizeof(*u);
		return;
	}
	struct sockaddr_in *in = (void *)&address;
	const char *colon = strchr(load.server, ':');
	if (colon == NULL || !text_to_u64(span_of(colon + 1), &port) || port > 65535)
		die("not IP:PORT nor unix:PATH", s);
	in->sin_family = AF_INET;
	in->sin_port = htons((uint16_t)port);
	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address_len = sizeof(*in);
}

/* ---- the run ---- */

/* It looks again and again for a moment before it sleeps: to wake a CPU that sleeps is work
 * for who sends, and the more of it, the slower he is. */
static int wait_for(struct epoll_event *events)
{
	uint64_t end = clock_mono_us() + SPIN_US;
	int n;
	do
		n = epoll_wait(poller, events, CONNECTIONS_MAX, 0);
	while (n == 0 && clock_mono_us() < end);
	return n != 0 ? n : epoll_wait(poller, events, CONNECTIONS_MAX, IDLE_MS);
}

static void run(void)
{
	struct epoll_event events[CONNECTIONS_MAX];
	bool busy = true;
	for (size_t i = 0; i < load.connections; i++)
		next(&connections[i]);
	while (busy) {
		int n = wait_for(events);
		if (n == 0)
			die("no answer for a minute", (struct span){ 0 });
		for (int i = 0; i < n; i++) {
			struct connection *c = events[i].data.ptr;
			if ((events[i].events & EPOLLOUT) != 0)
				send_on(c, true);
			if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0)
				take(c);
		}
		busy = false;
		for (size_t i = 0; i < load.connections && !busy; i++)
			busy = connections[i].since_us != 0;
	}
}

static int by_size(const void *a, const void *b)
{
	const float *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/* How long this thread could have run and did not, as others had its CPU. */
static uint64_t run_delay_ns(void)
{
	uint64_t ran, waited = 0;
	FILE *f = fopen("/proc/self/schedstat", "re");
	/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it */
	if (f != NULL && fscanf(f, "%" SCNu64 " %" SCNu64, &ran, &waited) != 2)
		waited = 0;
	if (f != NULL)
		(void)fclose(f);
	return waited;
}

/* waited: the share of the time. */
static void print(double s, double waited)
{
	size_t n = done < SAMPLES_MAX ? (size_t)done : SAMPLES_MAX;
	qsort(samples, n, sizeof(*samples), by_size);
	(void)printf("{\"kind\": \"%s\", \"connections\": %zu, \"seconds\": %.4f, "
		     "\"requests\": %" PRIu64 ", \"rows\": %" PRIu64 ", \"bytes\": %" PRIu64
		     ", \"requests_per_s\": %.1f, \"rows_per_s\": %.1f, \"p50_us\": %.0f, "
		     "\"p99_us\": %.0f, \"waited\": %.3f, \"walks_per_s\": %.4f}\n",
		load.kind_name, load.connections, s, done, rows, bytes, (double)done / s,
		(double)rows / s, n > 0 ? (double)samples[n / 2] : 0.0,
		n > 0 ? (double)samples[n * 99 / 100] : 0.0, waited, (double)walks / s);
}

int main(int argc, char **argv)
{
	if (!load_read(&load, argc, argv))
		return 2;
	find_address();
	load_write(&load);
	samples = calloc(SAMPLES_MAX, sizeof(*samples));
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (samples == NULL || poller < 0)
		die("memory", (struct span){ 0 });
	for (size_t i = 0; i < load.connections; i++)
		dial(&connections[i]);
	uint64_t start = clock_mono_us(), waited = run_delay_ns();
	until_us = start + (uint64_t)(load.seconds * 1e6);
	run();
	double s = (double)(clock_mono_us() - start) / 1e6;
	print(s, (double)(run_delay_ns() - waited) / 1e9 / s);
	return 0;
}
