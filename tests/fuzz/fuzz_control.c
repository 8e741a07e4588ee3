/* SPDX-License-Identifier: MIT
 * The server's end of the control channel.  Whatever comes over its socket, in whatever pieces, with
 * whatever files: a command begins only with words and files that are whole, exactly one answer
 * comes, and no file stays open.  What a caller of ours sends arrives as it was sent.  The command
 * itself is played here.
 * Input: a byte that says who calls; ours: its words; else messages: two bytes for how long and
 * with how many files, then the bytes. */
#include "daemon/control/control.h"
#include "daemon/control/execute.h"
#include "daemon/control/wire.h"
#include "fuzz.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FILES_MAX 700
#define WORDS_MAX 4096

static struct control *control;
static struct stat name; /* what the socket is named after */

/* What the command was given; the answer on the socket comes after it was written. */
static struct {
	unsigned calls;
	size_t words, bytes, files;
	uint32_t sum;
} seen;

static uint32_t add_word(uint32_t sum, const char *word)
{
	for (; *word != '\0'; word++)
		sum = sum * 31 + (unsigned char)*word;
	return sum * 31;
}

static int code_of(uint32_t sum)
{
	return (int)(sum & 0x7fffffff);
}

int execute(const struct command_table *table, const struct cmd_env *at, int argc,
	char *const *argv, int *fds, size_t nfds)
{
	(void)table;
	MUST(argc >= 0 && argv[argc] == NULL && nfds >= EXECUTE_INPUTS);
	seen.calls++;
	seen.words = (size_t)argc;
	seen.files = nfds;
	seen.sum = 0;
	seen.bytes = 0;
	for (int i = 0; i < argc; i++) {
		seen.sum = add_word(seen.sum, argv[i]);
		seen.bytes += strlen(argv[i]) + 1;
	}
	for (size_t i = 0; i < nfds; i++) {
		MUST((fcntl(fds[i], F_GETFD) & FD_CLOEXEC) != 0);
		MUST(close(fds[i]) == 0);
	}
	(void)at->cancelled(at->cancel_arg);
	return code_of(seen.sum);
}

static void begin(void)
{
	name.st_dev = (dev_t)getpid();
	name.st_ino = 0xf022;
	name.st_uid = geteuid();
	MUST(control_start(NULL, &name, NULL, NULL, &control) == ERR_OK);
}

/* ---- a caller of ours ---- */

static void call(int sock, const struct ucred *server, int fd, const uint8_t *data, size_t size)
{
	static char *argv[WORDS_MAX];
	static int fds[FILES_MAX];
	size_t nfds = EXECUTE_INPUTS + (size == 0 ? 0 : data[0] % 8 * 90u), words = 0, bytes = 0;
	char *text = malloc(size + 1);
	uint32_t sum = 0;
	int code = 0;
	MUST(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	for (char *at = text; at < text + size && words < WORDS_MAX; at += strlen(at) + 1) {
		argv[words++] = at;
		sum = add_word(sum, at);
		bytes += strlen(at) + 1;
	}
	for (size_t i = 0; i < nfds; i++)
		fds[i] = fd;
	MUST(control_call(sock, server, "store", (int)words, argv, fds, nfds, &code) ==
		CONTROL_DONE);
	MUST(code == code_of(sum) && seen.sum == sum && seen.words == words);
	MUST(seen.bytes == bytes && seen.files == nfds && seen.calls == 1);
	free(text);
}

/* ---- anybody ---- */

static bool tell(int sock, int fd, const uint8_t *data, size_t n, size_t nfds)
{
	int fds[CONTROL_GROUP];
	for (size_t i = 0; i < nfds; i++)
		fds[i] = fd;
	return control_send(sock, data, n, fds, nfds);
}

static void babble(int sock, int fd, const uint8_t *data, size_t size)
{
	static const size_t files[] = { 0, 0, 0, 1, 2, 3, 7, CONTROL_GROUP };
	char answer[16];
	size_t got = 0;
	ssize_t n;
	while (size > 2) {
		size_t length = 1 + data[0], nfds = files[data[1] % ARRAY_LEN(files)];
		data += 2;
		size -= 2;
		length = length < size ? length : size;
		if (!tell(sock, fd, data, length, nfds))
			break; /* it has hung up */
		data += length;
		size -= length;
	}
	(void)shutdown(sock, SHUT_WR);
	while ((n = recv(sock, answer + got, sizeof(answer) - got, 0)) > 0) {
		got += (size_t)n;
		MUST(got < sizeof(answer));
	}
	int32_t code;
	MUST(got == seen.calls * (1 + sizeof(code)) && seen.calls <= 1);
	if (got > 0) {
		memcpy(&code, answer + 1, sizeof(code));
		MUST(answer[0] == 0 && code == code_of(seen.sum));
	}
	(void)close(sock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int ends[2];
	if (size == 0)
		return 0;
	if (control == NULL)
		begin();
	struct ucred server;
	int sock = control_connect("store", &name, &server);
	MUST(sock >= 0 && pipe2(ends, O_CLOEXEC) == 0);
	memset(&seen, 0, sizeof(seen));
	if (data[0] % 2 == 0)
		call(sock, &server, ends[1], data + 1, size - 1);
	else
		babble(sock, ends[1], data + 1, size - 1);
	(void)close(ends[1]);
	/* Nobody has the other end any more: the server closed before it hung up. */
	struct pollfd p = { .fd = ends[0] };
	MUST(poll(&p, 1, 5000) == 1 && (p.revents & POLLHUP) != 0);
	(void)close(ends[0]);
	return 0;
}
