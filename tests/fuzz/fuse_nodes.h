/* SPDX-License-Identifier: MIT
 * What a kernel remembers of a mount, and the requests that change that: nodes, counted as they
 * are looked up, and open files and directories. */
#ifndef FUZZ_FUSE_NODES_H
#define FUZZ_FUSE_NODES_H

#include "fuse_kernel.h"

#include <stdbool.h>

#define NODES 48
#define HANDLES 16
#define READ_MAX ((size_t)64 << 10)

struct node {
	uint64_t id;
	uint64_t lookups;
	bool virtual; /* a control file or what is below one: bytes mean something there */
};

struct handle {
	uint64_t fh, node;
	uint32_t flags;
	bool used, dir;
	bool held; /* by who goes on with it: it is not closed to make room */
};

struct kernel {
	struct fs *fs;
	struct span in; /* what is left of the input */
	struct node nodes[NODES];
	struct handle handles[HANDLES];
	pid_t pid;
};

/* For parts of requests. */
#define PART(v_) span_make(&(v_), sizeof(v_))
#define NONE SPAN_LIT("")

const struct fuse_answer *kernel_ask(
	struct kernel *k, uint32_t op, uint64_t node, struct span in, struct span more);

/* Names end in their NUL.  NULL: it failed, or there is no such name. */
struct node *kernel_lookup(struct kernel *k, const struct node *dir, struct span name);
/* Of an answer that has an entry. */
struct node *kernel_answered(
	struct kernel *k, const struct fuse_answer *a, const struct node *dir, struct span name);
/* A node was in an answer. */
struct node *kernel_learn(struct kernel *k, uint64_t id, bool virtual);
void kernel_forget(struct kernel *k, struct node *n);
bool kernel_is_virtual(struct span name);

/* As the kernel: where the node is out of date the name is looked up once more.  ret_size may be
 * NULL; NULL: it failed, or is a directory. */
struct handle *kernel_open_named(struct kernel *k, const struct node *dir, struct span name,
	uint32_t flags, uint64_t *ret_size);
struct handle *kernel_create(
	struct kernel *k, const struct node *dir, struct span name, uint32_t flags);
/* Of an answer to an opening; where all handles are in use one is released. */
struct handle *kernel_opened(
	struct kernel *k, const void *out, uint64_t node, uint32_t flags, bool dir);
void kernel_release(struct kernel *k, struct handle *h);

/* 0 or an errno. */
int kernel_write_at(struct kernel *k, const struct handle *h, uint64_t at, struct span bytes);
int kernel_flush(struct kernel *k, const struct handle *h);
/* Of a directory: its entries with their attributes. */
const struct fuse_answer *kernel_read_at(
	struct kernel *k, const struct handle *h, uint64_t at, uint32_t n);

#endif
