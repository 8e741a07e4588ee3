/* SPDX-License-Identifier: MIT
 * librados behind a few functions.  Requests wait for OP_SECONDS unless ceph.conf has another time:
 * a request that waits for ever cannot tell a user that the cluster is away. */
#include "store/rados/io.h"

#include "base/buf.h"
#include "base/crypto.h"
#include "base/may_block.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define OP_SECONDS "10"
#define DIGEST_MAX ((size_t)32 << 10)
#define FLAGS LIBRADOS_OPERATION_FULL_TRY

enum err rio_error(struct rio *r, int code)
{
	if (code == -ESHUTDOWN)
		atomic_store(&r->refused, true);
	switch (-code) {
	case 0:
		return ERR_OK;
	case ENOENT:
		return ERR_NOT_FOUND;
	case ETIMEDOUT:
		return ERR_THROTTLED;
	case ENOSPC:
	case EDQUOT:
		return ERR_NO_SPACE;
	case ENOMEM:
		return ERR_NO_MEMORY;
	case EACCES:
	case EPERM:
		return ERR_ACCESS;
	default:
		return code > 0 ? ERR_OK : ERR_IO;
	}
}

/* ---- the connection ---- */

struct place {
	char pool[128], name[128], conf[PATH_MAX], id[64], mode[16];
};

static bool take(struct span *from, char stop, char *to, size_t cap)
{
	size_t n = 0;
	while (n < from->n && from->p[n] != stop)
		n++;
	if (n >= cap)
		return false;
	memcpy(to, from->p, n);
	to[n] = 0;
	size_t used = n < from->n ? n + 1 : n;
	*from = span_make(from->p + used, from->n - used);
	return true;
}

static bool take_option(struct span option, const char *name, char *to, size_t cap)
{
	size_t skip = strlen(name);
	if (!span_starts(option, span_of(name)) || option.n - skip >= cap)
		return false;
	memcpy(to, option.p + skip, option.n - skip);
	to[option.n - skip] = 0;
	return true;
}

static bool parse_place(const char *url, struct place *p)
{
	struct span rest = span_of(url);
	char option[sizeof(p->conf) + 8];
	memset(p, 0, sizeof(*p));
	if (!span_starts(rest, SPAN_LIT("rados:")))
		return false;
	rest = span_make(rest.p + 6, rest.n - 6);
	if (!take(&rest, '/', p->pool, sizeof(p->pool)) ||
		!take(&rest, '?', p->name, sizeof(p->name)) || !*p->pool || !*p->name ||
		strchr(p->name, '/'))
		return false;
	while (rest.n > 0) {
		if (!take(&rest, '&', option, sizeof(option)))
			return false;
		struct span is = span_of(option);
		if (!take_option(is, "conf=", p->conf, sizeof(p->conf)) &&
			!take_option(is, "id=", p->id, sizeof(p->id)) &&
			!take_option(is, "mode=", p->mode, sizeof(p->mode)))
			return false;
	}
	return !*p->mode || strcmp(p->mode, "shared") == 0 || strcmp(p->mode, "exclusive") == 0;
}

/* Ceph's own default is to wait for ever. */
static int bound(struct rio *r, const char *option)
{
	char is[32] = "";
	int code = librados.conf_get(r->cluster, option, is, sizeof(is));
	return code == 0 && strtod(is, NULL) == 0
		? librados.conf_set(r->cluster, option, OP_SECONDS)
		: code;
}

static int configure(rados_t *ret, const struct place *p)
{
	int code = librados.create(ret, *p->id ? p->id : NULL);
	return code < 0 ? code : librados.conf_read_file(*ret, *p->conf ? p->conf : NULL);
}

static int connect_to(struct rio *r, const struct place *p)
{
	int code = configure(&r->cluster, p);
	if (code == 0)
		code = bound(r, "rados_osd_op_timeout");
	if (code == 0)
		code = bound(r, "rados_mon_op_timeout");
	char seconds[32] = "";
	if (code == 0)
		code = librados.conf_get(
			r->cluster, "rados_mon_op_timeout", seconds, sizeof(seconds));
	if (code == 0)
		code = librados.conf_set(r->cluster, "client_mount_timeout", seconds);
	return code == 0 ? librados.connect(r->cluster) : code;
}

enum err rio_connect(struct rio *r, const char *url, bool *ret_alone, struct err_detail *detail)
{
	struct place p;
	int needs = 0;
	memset(r, 0, sizeof(*r));
	if (!parse_place(url, &p))
		return err_set(detail, ERR_INVALID_INPUT,
			"%s is no place in a cluster; write rados:POOL/NAME[?conf=FILE&id=USER&"
			"mode=shared|exclusive]",
			url);
	*ret_alone = strcmp(p.mode, "exclusive") == 0;
	enum err e = librados_load(detail);
	if (e != ERR_OK)
		return e;
	int code = connect_to(r, &p);
	if (code < 0) {
		rio_disconnect(r);
		return err_set(detail, code == -ETIMEDOUT ? ERR_THROTTLED : ERR_IO,
			"cannot reach the Ceph cluster of %s: %s", url, strerrordesc_np(-code));
	}
	code = librados.ioctx_create(r->cluster, p.pool, &r->io);
	e = rio_error(r, code);
	if (e != ERR_OK)
		(void)err_set(detail, e, "pool %s: %s", p.pool, strerrordesc_np(-code));
	if (e == ERR_OK && librados.ioctx_pool_requires_alignment2(r->io, &needs) == 0 && needs)
		e = err_set(detail, ERR_NOT_SUPPORTED,
			"pool %s is erasure-coded; a store needs a replicated one", p.pool);
	if (e != ERR_OK) {
		rio_disconnect(r);
		return e;
	}
	librados.ioctx_set_namespace(r->io, p.name);
	return ERR_OK;
}

void rio_digest(const char *url, uint8_t ret[32])
{
	static const char *const options[] = { "fsid", "mon_host" };
	struct place p;
	rados_t cluster = NULL;
	struct buf text = BUF_INIT(DIGEST_MAX);
	char value[4096];
	bool known = parse_place(url, &p) && librados_load(NULL) == ERR_OK &&
		configure(&cluster, &p) == 0;
	buf_addf(&text, "%s/%s", known ? p.pool : url, known ? p.name : "");
	for (size_t i = 0; known && i < 2; i++) {
		if (librados.conf_get(cluster, options[i], value, sizeof(value)) == 0)
			buf_addf(&text, " %s", value);
	}
	crypto_sha256(buf_span(&text), ret);
	buf_fini(&text);
	if (cluster)
		librados.shutdown(cluster);
}

void rio_disconnect(struct rio *r)
{
	if (r->io)
		librados.ioctx_destroy(r->io);
	if (r->cluster)
		librados.shutdown(r->cluster);
	memset(r, 0, sizeof(*r));
}

/* ---- reading ---- */

static enum err operate(struct rio *r, rados_read_op_t op, const char *object)
{
	may_block(BLOCK_SURE);
	return rio_error(r, librados.read_op_operate(op, r->io, object, 0));
}

/* Copies all entries of the iterators, with a NUL behind each key and value. */
static enum err copy_entries(rados_omap_iter_t *its, unsigned nits, struct rio_value **ret,
	size_t *ret_n, char **ret_mem)
{
	size_t bytes = 0, n = 0, key_n, val_n;
	char *key, *val;
	for (unsigned i = 0; i < nits; i++) {
		n += librados.omap_iter_size(its[i]);
	}
	struct rio_value *v = calloc(n + 1, sizeof(*v));
	if (!v)
		return ERR_NO_MEMORY;
	size_t at = 0;
	for (unsigned i = 0; i < nits; i++) {
		while (at < n && librados.omap_get_next2(its[i], &key, &val, &key_n, &val_n) == 0 &&
			key) {
			/* Borrowed from the iterator until its end. */
			v[at].key = span_make(key, key_n);
			v[at++].val = span_make(val ? val : "", val_n);
			bytes += key_n + val_n + 2;
		}
	}
	char *mem = malloc(bytes + 1), *p = mem;
	if (!mem) {
		free(v);
		return ERR_NO_MEMORY;
	}
	for (size_t i = 0; i < 2 * at; i++) {
		struct span *s = i % 2 ? &v[i / 2].val : &v[i / 2].key;
		if (s->n > 0)
			memcpy(p, s->p, s->n);
		p[s->n] = 0;
		s->p = p;
		p += s->n + 1;
	}
	*ret = v;
	*ret_n = at;
	*ret_mem = mem;
	return ERR_OK;
}

static void match(struct rio_value *v, size_t n, const struct rio_value *found, size_t nfound)
{
	size_t at = 0; /* most callers ask in order */
	for (size_t i = 0; i < nfound; i++) {
		for (size_t k = 0; k < n; k++, at = (at + 1) % n) {
			if (span_eq(v[at].key, found[i].key)) {
				v[at].val = found[i].val;
				break;
			}
		}
	}
}

enum err rio_get(struct rio *r, const char *object, struct rio_value *v, size_t n, char **ret_mem)
{
	*ret_mem = NULL;
	const char **keys = calloc(n, sizeof(*keys));
	size_t *lens = calloc(n, sizeof(*lens));
	enum err e = keys && lens ? ERR_OK : ERR_NO_MEMORY;
	for (size_t i = 0; e == ERR_OK && i < n; i++) {
		keys[i] = v[i].key.p;
		lens[i] = v[i].key.n;
		v[i].val = (struct span){ NULL, 0 };
	}
	if (e == ERR_OK) {
		rados_omap_iter_t it = NULL;
		int code = 0;
		rados_read_op_t op = librados.create_read_op();
		librados.read_op_omap_get_vals_by_keys2(op, keys, n, lens, &it, &code);
		e = operate(r, op, object);
		struct rio_value *found;
		size_t nfound;
		if (e == ERR_OK)
			e = rio_error(r, code);
		if (e == ERR_OK)
			e = copy_entries(&it, 1, &found, &nfound, ret_mem);
		if (e == ERR_OK) {
			match(v, n, found, nfound);
			free(found);
		}
		if (it)
			librados.omap_get_end(it);
		librados.release_read_op(op);
	}
	free(keys);
	free(lens);
	return e;
}

#define EXACT_MAX 2

enum err rio_list(struct rio *r, const char *object, const struct span *exact, size_t nexact,
	const char *after, const char *prefix, unsigned max, struct rio_page *ret)
{
	const char *keys[EXACT_MAX] = { NULL };
	size_t lens[EXACT_MAX] = { 0 };
	rados_omap_iter_t its[2] = { NULL, NULL };
	unsigned char more = 0;
	int codes[2] = { 0, 0 };
	unsigned n = 0;
	memset(ret, 0, sizeof(*ret));
	rados_read_op_t op = librados.create_read_op();
	for (size_t i = 0; i < nexact && i < EXACT_MAX; i++) {
		keys[i] = exact[i].p;
		lens[i] = exact[i].n;
	}
	if (nexact > 0) {
		librados.read_op_omap_get_vals_by_keys2(op, keys, nexact, lens, &its[n], &codes[n]);
		n++;
	}
	librados.read_op_omap_get_vals2(op, after, prefix, max, &its[n], &more, &codes[n]);
	n++;
	enum err e = operate(r, op, object);
	for (unsigned i = 0; e == ERR_OK && i < n; i++)
		e = rio_error(r, codes[i]);
	if (e == ERR_OK)
		e = copy_entries(its, n, &ret->v, &ret->n, &ret->mem);
	ret->more = more;
	for (unsigned i = 0; i < n; i++) {
		if (its[i])
			librados.omap_get_end(its[i]);
	}
	librados.release_read_op(op);
	return e;
}

void rio_page_fini(struct rio_page *p)
{
	free(p->v);
	free(p->mem);
	memset(p, 0, sizeof(*p));
}

enum err rio_page_next(const struct rio_page *p, struct buf *after, bool *ret_more)
{
	*ret_more = p->more && p->n > 0;
	if (!*ret_more)
		return ERR_OK;
	buf_clear(after);
	buf_add_span(after, p->v[p->n - 1].key);
	buf_add_char(after, 0);
	return buf_full(after);
}

enum err rio_read(
	struct rio *r, const char *object, uint64_t offset, void *out, size_t n, size_t *ret_n)
{
	may_block(BLOCK_SURE);
	int got = librados.read(r->io, object, out, n, offset);
	*ret_n = got > 0 ? (size_t)got : 0;
	return rio_error(r, got < 0 ? got : 0);
}

/* ---- writing ---- */

static void add_entry(struct rio_edit *e, struct span key, struct span val, bool goes)
{
	if (e->n == e->cap && !e->failed) {
		size_t cap = e->cap ? e->cap * 2 : 8;
		struct rio_entry *v = reallocarray(e->v, cap, sizeof(*v));
		if (v) {
			e->v = v;
			e->cap = cap;
		}
		e->failed = !v;
	}
	char *mem = e->failed ? NULL : malloc(key.n + val.n + 1);
	if (!mem) {
		e->failed = true;
		return;
	}
	memcpy(mem, key.p, key.n);
	if (val.n > 0)
		memcpy(mem + key.n, val.p, val.n);
	e->v[e->n++] = (struct rio_entry){ mem, goes ? NULL : mem + key.n, key.n, val.n };
}

void rio_edit_set(struct rio_edit *e, struct span key, struct span val)
{
	add_entry(e, key, val, false);
}

void rio_edit_remove(struct rio_edit *e, struct span key)
{
	add_entry(e, key, (struct span){ NULL, 0 }, true);
}

void rio_edit_fini(struct rio_edit *e)
{
	for (size_t i = 0; i < e->n; i++)
		free(e->v[i].key);
	free(e->v);
	memset(e, 0, sizeof(*e));
}

/* Removals first: a key that goes and comes back is there afterwards. */
static bool add_edit(rados_write_op_t op, const struct rio_edit *e)
{
	size_t cap = e->n + 1, sets = 0, gone = 0;
	const char **keys = calloc(cap * 2, sizeof(*keys)), **vals = keys ? keys + cap : NULL;
	const char **gone_keys = calloc(cap, sizeof(*gone_keys));
	size_t *lens = calloc(cap * 3, sizeof(*lens));
	bool ok = keys && gone_keys && lens && !e->failed;
	for (size_t i = 0; ok && i < e->n; i++) {
		const struct rio_entry *x = &e->v[i];
		if (!x->val) {
			gone_keys[gone] = x->key;
			lens[cap * 2 + gone++] = x->key_n;
			continue;
		}
		keys[sets] = x->key;
		vals[sets] = x->val;
		lens[sets] = x->key_n;
		lens[cap + sets++] = x->val_n;
	}
	if (ok && gone > 0)
		librados.write_op_omap_rm_keys2(op, gone_keys, lens + cap * 2, gone);
	if (ok && sets > 0)
		librados.write_op_omap_set2(op, keys, vals, lens, lens + cap, sets);
	free(keys);
	free(gone_keys);
	free(lens);
	return ok;
}

int rio_write(struct rio *r, const char *object, const struct rio_edit *e, struct rio_guard g)
{
	int ignored;
	rados_write_op_t op = librados.create_write_op();
	if (g.create)
		librados.write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
	if (g.exists || g.key.p)
		librados.write_op_assert_exists(op);
	if (g.key.p)
		librados.write_op_omap_cmp2(op, g.key.p,
			g.less ? LIBRADOS_CMPXATTR_OP_LT : LIBRADOS_CMPXATTR_OP_EQ, g.is.p, g.key.n,
			g.is.n, &ignored);
	may_block(BLOCK_SURE);
	int code = add_edit(op, e) ? librados.write_op_operate2(op, r->io, object, NULL, FLAGS)
				   : -ENOMEM;
	librados.release_write_op(op);
	return code;
}

static rados_completion_t begin(struct rio_batch *b, struct rio *r)
{
	rados_completion_t c = NULL;
	b->rio = r;
	if (b->n == b->cap) {
		size_t cap = b->cap ? b->cap * 2 : 16;
		rados_completion_t *v = reallocarray(b->v, cap, sizeof(*v));
		if (v) {
			b->v = v;
			b->cap = cap;
		}
	}
	if (b->n == b->cap || librados.aio_create_completion2(NULL, NULL, &c) < 0) {
		b->failed = ERR_NO_MEMORY;
		return NULL;
	}
	b->v[b->n++] = c;
	return c;
}

static void begun(struct rio_batch *b, struct rio *r, int code)
{
	if (code == 0)
		return;
	librados.aio_release(b->v[--b->n]);
	b->failed = rio_error(r, code);
}

void rio_batch_write(struct rio_batch *b, struct rio *r, const char *object,
	const struct rio_edit *e, bool create)
{
	rados_completion_t c = begin(b, r);
	if (!c)
		return;
	rados_write_op_t op = librados.create_write_op();
	librados.write_op_create(
		op, create ? LIBRADOS_CREATE_EXCLUSIVE : LIBRADOS_CREATE_IDEMPOTENT, NULL);
	begun(b, r,
		add_edit(op, e) ? librados.aio_write_op_operate(op, r->io, c, object, NULL, FLAGS)
				: -ENOMEM);
	librados.release_write_op(op);
}

void rio_batch_put(struct rio_batch *b, struct rio *r, const char *object, struct span bytes)
{
	rados_completion_t c = begin(b, r);
	if (!c)
		return;
	rados_write_op_t op = librados.create_write_op();
	librados.write_op_write_full(op, bytes.p, bytes.n);
	begun(b, r, librados.aio_write_op_operate(op, r->io, c, object, NULL, FLAGS));
	librados.release_write_op(op);
}

void rio_batch_remove(struct rio_batch *b, struct rio *r, const char *object)
{
	rados_completion_t c = begin(b, r);
	if (!c)
		return;
	rados_write_op_t op = librados.create_write_op();
	librados.write_op_remove(op);
	begun(b, r, librados.aio_write_op_operate(op, r->io, c, object, NULL, FLAGS));
	librados.release_write_op(op);
}

enum err rio_batch_wait(struct rio_batch *b)
{
	enum err e = b->failed;
	for (size_t i = 0; i < b->n; i++) {
		may_block(BLOCK_SURE);
		(void)librados.aio_wait_for_complete(b->v[i]);
		int code = librados.aio_get_return_value(b->v[i]);
		if (e == ERR_OK && code < 0 && code != -ENOENT)
			e = rio_error(b->rio, code);
		librados.aio_release(b->v[i]);
	}
	free(b->v);
	memset(b, 0, sizeof(*b));
	return e;
}
