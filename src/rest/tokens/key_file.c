/* SPDX-License-Identifier: MIT
 * Each check looks at the file's time, size and inode, which takes a microsecond.  So new keys
 * count from the next request on, without a signal. */
#include "rest/tokens/key_file.h"

#include "base/buf.h"
#include "base/log.h"
#include "rest/tokens/assignments.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum err read_text(int fd, struct buf *ret)
{
	ssize_t n = 1;
	while (n > 0 && buf_reserve(ret, 4096)) {
		n = read(fd, ret->data + ret->len, 4096);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n > 0)
			ret->len += (size_t)n;
	}
	if (n < 0)
		return err_from_errno(errno);
	return buf_full(ret);
}

static struct file_version version_of(const struct stat *st)
{
	return (struct file_version){ st->st_ctim, st->st_ino, st->st_size };
}

static enum err read_keys(struct span text, struct jwk_set **ret, struct err_detail *detail)
{
	enum err e = jwk_set_read(text, ret, detail);
	if (e == ERR_OK)
		e = assignments_check(jwk_set_file(*ret), detail);
	if (e != ERR_OK) {
		jwk_set_free(*ret);
		*ret = NULL;
	}
	return e;
}

static enum err load(const char *path, struct file_version *ret_version, struct jwk_set **ret,
	struct err_detail *detail)
{
	struct stat st = { 0 };
	struct buf text = BUF_INIT(JWK_SET_LIMIT + 4096);
	struct err_detail why = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum err e = fd < 0 || fstat(fd, &st) != 0 ? err_from_errno(errno) : ERR_OK;
	if (e != ERR_OK)
		e = err_set(&why, e, "%s", strerrordesc_np(errno));
	else
		e = read_text(fd, &text);
	if (fd >= 0)
		close(fd);
	*ret_version = version_of(&st);
	if (e == ERR_BODY_TOO_LARGE || (e == ERR_OK && text.len > JWK_SET_LIMIT))
		e = err_set(&why, ERR_INVALID_INPUT, "it has more than 1 MiB");
	if (e == ERR_OK)
		e = read_keys(buf_span(&text), ret, &why);
	buf_fini(&text);
	/* The next check tries again. */
	if (e == ERR_NO_MEMORY)
		*ret_version = (struct file_version){ 0 };
	return e == ERR_OK
		? e
		: err_set(detail, e, "cannot use the keys in '%s': %s", path, err_message(e, &why));
}

static bool same(const struct file_version *a, const struct file_version *b)
{
	return a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec &&
		a->inode == b->inode && a->size == b->size;
}

/* A missing file is a version too: zeros. */
static bool has_changed(struct key_file *f)
{
	struct stat st = { 0 };
	(void)stat(f->path, &st);
	struct file_version now = version_of(&st);
	rwlock_rdlock(&f->lock);
	bool other = !same(&now, &f->version);
	rwlock_unlock(&f->lock);
	return other;
}

/* Several threads may read the file at once; the first one takes what it found, and tells. */
static void load_again(struct key_file *f)
{
	struct err_detail why = { 0 };
	struct file_version version;
	struct jwk_set *keys = NULL, *old = NULL;
	enum err e = load(f->path, &version, &keys, &why);
	rwlock_wrlock(&f->lock);
	bool first = !same(&version, &f->version);
	f->version = version;
	if (first && keys != NULL) {
		old = f->keys;
		f->keys = keys;
		keys = NULL;
	}
	rwlock_unlock(&f->lock);
	jwk_set_free(keys);
	jwk_set_free(old);
	if (first && e != ERR_OK)
		log_warning("REST: %s; keeping the old keys", err_message(e, &why));
	else if (first)
		log_info("REST: the keys of tokens were read from '%s'", f->path);
}

enum err key_file_open(struct key_file *f, const char *path, struct err_detail *detail)
{
	*f = (struct key_file){ .path = path };
	if (rwlock_init(&f->lock, RANK_TOKEN_KEYS) != 0)
		return ERR_NO_MEMORY;
	enum err e = load(path, &f->version, &f->keys, detail);
	if (e != ERR_OK)
		rwlock_destroy(&f->lock);
	return e;
}

void key_file_close(struct key_file *f)
{
	jwk_set_free(f->keys);
	rwlock_destroy(&f->lock);
}

const struct jwk_set *key_file_take(struct key_file *f)
{
	if (has_changed(f))
		load_again(f);
	rwlock_rdlock(&f->lock);
	return f->keys;
}

void key_file_release(struct key_file *f)
{
	rwlock_unlock(&f->lock);
}
