/* SPDX-License-Identifier: MIT
 * GnuTLS checks that certificate and key are a pair.  Its messages name no file, so this file
 * checks that each has the right kind of content. */
#include "rest/http/tls_files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A certificate chain has some KiB. */
#define FILE_LIMIT ((size_t)1 << 20)

/* Reserves all memory first: growing the buffer would leave copies of the key behind. */
static enum err read_file(const char *path, struct buf *ret, struct err_detail *detail)
{
	*ret = BUF_INIT(FILE_LIMIT);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return err_set(detail, err_from_errno(errno), "cannot read '%s': %s", path,
			strerrordesc_np(errno));
	ssize_t n = buf_reserve(ret, FILE_LIMIT) ? 1 : -1;
	while (n > 0 && ret->len < FILE_LIMIT) {
		n = read(fd, ret->data + ret->len, FILE_LIMIT - ret->len);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			ret->len += (size_t)n;
	}
	int code = errno;
	close(fd);
	if (!buf_ok(ret))
		return ERR_NO_MEMORY;
	ret->data[ret->len] = '\0';
	if (n < 0)
		return err_set(detail, err_from_errno(code), "cannot read '%s': %s", path,
			strerrordesc_np(code));
	return ERR_OK;
}

static bool holds(const struct buf *b, const char *text)
{
	return b->data != NULL && memmem(b->data, b->len, text, strlen(text)) != NULL;
}

static enum err check(
	const char *cert, const char *key, const struct tls_files *t, struct err_detail *detail)
{
	if (!holds(&t->cert, "-----BEGIN CERTIFICATE-----"))
		return err_set(detail, ERR_INVALID_INPUT,
			"'%s' contains no certificate in PEM form", cert);
	if (!holds(&t->key, "PRIVATE KEY-----"))
		return err_set(
			detail, ERR_INVALID_INPUT, "'%s' contains no private key in PEM form", key);
	if (holds(&t->key, "ENCRYPTED"))
		return err_set(detail, ERR_INVALID_INPUT,
			"the key in '%s' has a passphrase; remove it with: openssl pkey", key);
	return ERR_OK;
}

enum err tls_files_read(
	const char *cert, const char *key, struct tls_files *ret, struct err_detail *detail)
{
	*ret = (struct tls_files){ 0 };
	enum err e = read_file(cert, &ret->cert, detail);
	if (e == ERR_OK)
		e = read_file(key, &ret->key, detail);
	if (e == ERR_OK)
		e = check(cert, key, ret, detail);
	if (e != ERR_OK)
		tls_files_fini(ret);
	return e;
}

void tls_files_fini(struct tls_files *t)
{
	if (t->key.data != NULL)
		explicit_bzero(t->key.data, t->key.cap);
	buf_fini(&t->key);
	buf_fini(&t->cert);
}
