/* SPDX-License-Identifier: MIT */
#include "fuse_nodes.h"

#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

const struct fuse_answer *kernel_ask(
	struct kernel *k, uint32_t op, uint64_t node, struct span in, struct span more)
{
	return fuse_ask(k->fs, op, node, k->pid, in, more, NONE);
}

bool kernel_is_virtual(struct span name)
{
	static const char *const starts[] = { ".rowfs", ".batch", ".rows.", ".query" };
	for (size_t i = 0; i < ARRAY_LEN(starts); i++) {
		if (span_starts(name, span_of(starts[i])))
			return true;
	}
	return false;
}

void kernel_forget(struct kernel *k, struct node *n)
{
	const struct fuse_forget_in in = { .nlookup = n->lookups };
	if (n->id != FUSE_ROOT_ID && n->id != 0) {
		fuse_tell(k->fs, FUSE_FORGET, n->id, PART(in));
		*n = (struct node){ 0 };
	}
}

/* The kernel knows a node once, and counts. */
struct node *kernel_learn(struct kernel *k, uint64_t id, bool virtual)
{
	struct node *place = NULL;
	MUST(id != 0);
	for (unsigned i = 0; i < NODES; i++) {
		struct node *n = &k->nodes[i];
		if (n->id == id) {
			n->lookups++;
			return n;
		}
		if (place == NULL && n->id == 0)
			place = n;
	}
	if (place == NULL) {
		place = &k->nodes[1 + id % (NODES - 1)];
		kernel_forget(k, place);
	}
	*place = (struct node){ id, 1, virtual };
	return place;
}

struct node *kernel_answered(
	struct kernel *k, const struct fuse_answer *a, const struct node *dir, struct span name)
{
	struct fuse_entry_out e;
	if (a->error != 0)
		return NULL;
	MUST(a->n >= sizeof(e));
	memcpy(&e, a->data, sizeof(e));
	if (e.nodeid == 0)
		return NULL;
	MUST(e.attr.nlink > 0 && (e.attr.mode & S_IFMT) != 0);
	return kernel_learn(k, e.nodeid, dir->virtual || kernel_is_virtual(name));
}

struct node *kernel_lookup(struct kernel *k, const struct node *dir, struct span name)
{
	struct node d = *dir;
	return kernel_answered(k, kernel_ask(k, FUSE_LOOKUP, d.id, name, NONE), &d, name);
}

void kernel_release(struct kernel *k, struct handle *h)
{
	const struct fuse_release_in in = { .fh = h->fh, .flags = h->flags, .lock_owner = h->fh };
	(void)kernel_ask(k, h->dir ? FUSE_RELEASEDIR : FUSE_RELEASE, h->node, PART(in), NONE);
	h->used = false;
}

struct handle *kernel_opened(
	struct kernel *k, const void *out, uint64_t node, uint32_t flags, bool dir)
{
	struct fuse_open_out o;
	struct handle *h = NULL;
	memcpy(&o, out, sizeof(o));
	for (unsigned i = 0; h == NULL && i < HANDLES; i++) {
		if (!k->handles[i].used)
			h = &k->handles[i];
	}
	if (h == NULL) {
		h = &k->handles[node % HANDLES];
		if (h->held)
			h = &k->handles[(node + 1) % HANDLES];
		kernel_release(k, h);
	}
	*h = (struct handle){ o.fh, node, flags, true, dir, false };
	return h;
}

struct handle *kernel_open_named(struct kernel *k, const struct node *dir, struct span name,
	uint32_t flags, uint64_t *ret_size)
{
	const struct fuse_open_in in = { .flags = flags };
	const struct fuse_answer *a;
	struct node d = *dir;
	for (int i = 0; i < 3; i++) {
		struct node *n = kernel_lookup(k, &d, name);
		struct fuse_attr_out attr = { 0 };
		if (n == NULL)
			return NULL;
		uint64_t id = n->id;
		const struct fuse_getattr_in get = { 0 };
		a = kernel_ask(k, FUSE_GETATTR, id, PART(get), NONE);
		if (a->error == 0)
			memcpy(&attr, a->data, sizeof(attr));
		if (ret_size != NULL)
			*ret_size = attr.attr.size;
		if ((attr.attr.mode & S_IFMT) == S_IFDIR)
			return NULL;
		a = kernel_ask(k, FUSE_OPEN, id, PART(in), NONE);
		if (a->error == 0)
			return kernel_opened(k, a->data, id, flags, false);
		if (a->error != ESTALE)
			return NULL;
	}
	return NULL;
}

struct handle *kernel_create(
	struct kernel *k, const struct node *dir, struct span name, uint32_t flags)
{
	const struct fuse_create_in in = {
		.flags = flags | O_CREAT, .mode = S_IFREG | 0644, .umask = 022
	};
	struct node d = *dir;
	const struct fuse_answer *a = kernel_ask(k, FUSE_CREATE, d.id, PART(in), name);
	struct fuse_entry_out e;
	if (a->error != 0)
		return NULL;
	MUST(a->n == sizeof(e) + sizeof(struct fuse_open_out));
	memcpy(&e, a->data, sizeof(e));
	struct handle *h = kernel_opened(k, a->data + sizeof(e), e.nodeid, flags, false);
	(void)kernel_learn(k, e.nodeid, d.virtual || kernel_is_virtual(name));
	return h;
}

int kernel_write_at(struct kernel *k, const struct handle *h, uint64_t at, struct span bytes)
{
	const struct fuse_write_in in = { .fh = h->fh,
		.offset = at,
		.size = (uint32_t)bytes.n,
		.flags = h->flags,
		.lock_owner = h->fh };
	const struct fuse_answer *a = kernel_ask(k, FUSE_WRITE, h->node, PART(in), bytes);
	struct fuse_write_out out;
	if (a->error == 0) {
		memcpy(&out, a->data, sizeof(out));
		MUST(out.size <= bytes.n);
		return out.size == bytes.n ? 0 : EIO;
	}
	return a->error;
}

int kernel_flush(struct kernel *k, const struct handle *h)
{
	const struct fuse_flush_in in = { .fh = h->fh, .lock_owner = (uint64_t)k->pid };
	return kernel_ask(k, FUSE_FLUSH, h->node, PART(in), NONE)->error;
}

const struct fuse_answer *kernel_read_at(
	struct kernel *k, const struct handle *h, uint64_t at, uint32_t n)
{
	const struct fuse_read_in in = { .fh = h->fh, .offset = at, .size = n };
	const struct fuse_answer *a =
		kernel_ask(k, h->dir ? FUSE_READDIRPLUS : FUSE_READ, h->node, PART(in), NONE);
	MUST(a->error != 0 || a->n <= n);
	return a;
}
