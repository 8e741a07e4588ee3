/* SPDX-License-Identifier: MIT */
#include "cloud/credentials.h"

#include "base/buf.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX ((size_t)256 << 10)
#define TOKEN_MAX ((size_t)16 << 10)
#define VARIABLE "AZURE_STORAGE_CONNECTION_STRING"

/* ---- the text ---- */

static struct span take_line(struct span *text)
{
	const char *end = memchr(text->p, '\n', text->n);
	size_t n = end != NULL ? (size_t)(end - text->p) : text->n;
	struct span line = text_trim(span_make(text->p, n), " \t\r\n");
	n += end != NULL;
	*text = span_make(text->p + n, text->n - n);
	return line;
}

static enum err none_found(const char *url, struct err_detail *detail)
{
	if (url == NULL)
		return err_set(detail, ERR_NOT_FOUND, "there is no connection string in it");
	return err_set(detail, ERR_NOT_FOUND, "no connection string is for %.160s", url);
}

enum err credentials_choose(
	struct span text, const char *url, struct endpoint *ret, struct err_detail *detail)
{
	struct endpoint wanted = { 0 }, one;
	size_t found = 0;
	enum err e = url != NULL ? endpoint_parse_url(span_of(url), &wanted, detail) : ERR_OK;
	while (e == ERR_OK && text.n > 0) {
		struct span line = take_line(&text);
		if (line.n == 0 || line.p[0] == '#')
			continue;
		e = endpoint_parse(line, &one, detail);
		if (e != ERR_OK || (url != NULL && !endpoint_same(&one, &wanted)))
			continue;
		if (found++ == 0)
			*ret = one;
	}
	endpoint_wipe(&one);
	if (e == ERR_OK && found == 0)
		return none_found(url, detail);
	if (e == ERR_OK && url == NULL && found > 1)
		return err_set(detail, ERR_INVALID_INPUT,
			"there are several connection strings; name one by the URL of its account");
	return e;
}

/* ---- where it is ---- */

static enum err failed(const char *name, struct err_detail *detail)
{
	int code = errno;
	return err_set(detail, err_from_errno(code), "cannot read '%.160s': %s", name,
		strerrordesc_np(code));
}

static enum err check_mode(int fd, const char *name, struct err_detail *detail)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return failed(name, detail);
	if (S_ISREG(st.st_mode) && (st.st_mode & 077) != 0)
		return err_set(detail, ERR_ACCESS,
			"others may read '%.160s', which holds keys; run: chmod 600 %.160s", name,
			name);
	return ERR_OK;
}

static enum err read_all(int fd, const char *name, struct buf *text, struct err_detail *detail)
{
	char piece[4096];
	ssize_t n;
	while ((n = read(fd, piece, sizeof(piece))) > 0)
		buf_add(text, piece, (size_t)n);
	explicit_bzero(piece, sizeof(piece));
	return n < 0 ? failed(name, detail) : buf_full(text);
}

static enum err read_file(
	const char *name, bool checked, struct buf *text, struct err_detail *detail)
{
	if (strcmp(name, "-") == 0)
		return read_all(STDIN_FILENO, "standard input", text, detail);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return failed(name, detail);
	enum err e = checked ? check_mode(fd, name, detail) : ERR_OK;
	if (e == ERR_OK)
		e = read_all(fd, name, text, detail);
	close(fd);
	return e;
}

static enum err read_default(struct buf *text, struct err_detail *detail)
{
	const char *value = secure_getenv(VARIABLE), *dir = secure_getenv("CREDENTIALS_DIRECTORY");
	char path[PATH_MAX];
	if (value != NULL && *value != 0) {
		buf_add_str(text, value);
		return buf_full(text);
	}
	int n = dir != NULL ? snprintf(path, sizeof(path), "%s/connection-string", dir) : 0;
	if (n > 0 && n < (int)sizeof(path) && access(path, F_OK) == 0)
		return read_file(path, false, text, detail);
	return err_set(detail, ERR_NOT_FOUND,
		"no connection string is given; name a file with --connection-string=FILE, or set " VARIABLE);
}

enum err credentials_find(
	const char *file, const char *url, struct endpoint *ret, struct err_detail *detail)
{
	struct buf text = BUF_INIT(FILE_MAX);
	enum err e =
		file != NULL ? read_file(file, true, &text, detail) : read_default(&text, detail);
	if (e == ERR_OK)
		e = credentials_choose(buf_span(&text), url, ret, detail);
	buf_wipe(&text);
	return e;
}

enum err credentials_read_token(const char *file, struct buf *out, struct err_detail *detail)
{
	struct buf text = BUF_INIT(TOKEN_MAX);
	enum err e = read_file(file, true, &text, detail);
	struct span token = text_trim(buf_span(&text), " \t\r\n");
	bool plain = token.n > 0;
	for (size_t i = 0; i < token.n; i++)
		plain = plain && token.p[i] > ' ' && token.p[i] < 127;
	if (e == ERR_OK && !plain)
		e = err_set(detail, ERR_INVALID_INPUT, "'%.160s' holds no bearer token", file);
	if (e == ERR_OK)
		buf_add_span(out, token);
	buf_wipe(&text);
	return e == ERR_OK ? buf_full(out) : e;
}
