/* SPDX-License-Identifier: MIT
 * The REST socket itself: bytes to a server as it runs, before anything is a request.  Framing,
 * names and number of headers, Host, lengths, chunks, Expect, several requests on one connection.
 * Whatever comes: the first answer, if there is one, is HTTP and no failure of the server; and the
 * next connection is served.
 * Input: a byte that says in how large pieces it is sent, then what is sent. */
#include "fuzz.h"
#include "rest/rest.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "store/engines.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* For an answer: who sent half a request gets none before it hangs up. */
#define PATIENCE_MS 20

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static char directory[64];

static void leave(void)
{
	(void)unlink(address.sun_path);
	(void)rmdir(directory);
}

static void begin(void)
{
	static char endpoint[120];
	const char *tmp = getenv("TMPDIR");
	struct rest_options options = { .nendpoints = 1 };
	struct store *store;
	struct service *s;
	struct rest *rest;
	struct item account = { 0 };
	MUST(store_open_memory(&store) == ERR_OK && service_new(store, &s) == ERR_OK);
	MUST(account_create(s, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL, NULL) == ERR_OK);
	MUST(account_find(s, SPAN_LIT("acct"), &account) == ERR_OK);
	MUST(table_create(s, ORIGIN_COMMAND, account.id, SPAN_LIT("tab"), NULL, NULL) == ERR_OK);
	item_fini(&account);
	(void)snprintf(
		directory, sizeof(directory), "%.40s/fuzz_http.XXXXXX", tmp == NULL ? "/tmp" : tmp);
	MUST(mkdtemp(directory) != NULL);
	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s/s", directory);
	(void)snprintf(endpoint, sizeof(endpoint), "unix:%s", address.sun_path);
	options.endpoints[0] = endpoint;
	MUST(rest_start(s, &options, &rest, NULL) == ERR_OK);
	(void)atexit(leave);
}

static int dial(void)
{
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(sock >= 0 && connect(sock, (void *)&address, sizeof(address)) == 0);
	return sock;
}

/* The beginning of what comes until there is nothing more for a while, or the end; n: room. */
static size_t hear(int sock, int patience_ms, char *out, size_t n, size_t got)
{
	struct pollfd p = { .fd = sock, .events = POLLIN };
	char more[4096];
	while (poll(&p, 1, patience_ms) > 0) {
		ssize_t r = recv(sock, more, sizeof(more), 0);
		if (r <= 0)
			break;
		size_t take = (size_t)r < n - got ? (size_t)r : n - got;
		memcpy(out + got, more, take);
		got += take;
	}
	return got;
}

static void must_be_answer(const char *text, size_t n)
{
	static const char start[] = "HTTP/1.";
	if (n == 0)
		return;
	MUST(n >= 12 && memcmp(text, start, sizeof(start) - 1) == 0 && text[8] == ' ');
	int status = (text[9] - '0') * 100 + (text[10] - '0') * 10 + text[11] - '0';
	/* 503: MHD's own and ours, too much at once; 505: another version of HTTP. */
	MUST(status >= 100 && (status < 500 || status == 501 || status == 503 || status == 505));
}

static void must_be_served(void)
{
	static const char request[] = "GET /acct/Tables HTTP/1.1\r\nHost: x\r\n"
				      "Connection: close\r\n\r\n";
	char answer[64];
	int sock = dial();
	MUST(send(sock, request, sizeof(request) - 1, MSG_NOSIGNAL) == sizeof(request) - 1);
	size_t n = hear(sock, 20000, answer, sizeof(answer), 0);
	MUST(n == sizeof(answer) && memcmp(answer, "HTTP/1.1 200", 12) == 0);
	(void)close(sock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char answer[64];
	size_t got = 0;
	static unsigned runs;
	if (size < 2)
		return 0;
	if (address.sun_path[0] == '\0')
		begin();
	size_t piece = data[0] == 0 ? size : data[0];
	int sock = dial();
	for (size_t at = 1; at < size; at += piece) {
		size_t n = size - at < piece ? size - at : piece;
		if (send(sock, data + at, n, MSG_NOSIGNAL) != (ssize_t)n)
			break; /* it has hung up */
	}
	got = hear(sock, PATIENCE_MS, answer, sizeof(answer), got);
	(void)shutdown(sock, SHUT_WR);
	got = hear(sock, 20000, answer, sizeof(answer), got);
	must_be_answer(answer, got);
	(void)close(sock);
	if (++runs % 16 == 1)
		must_be_served();
	return 0;
}
