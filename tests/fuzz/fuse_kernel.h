/* SPDX-License-Identifier: MIT
 * The kernel's side of FUSE for a fuzz target: a real session of the filesystem without a mount,
 * requests as bytes.  Every request is answered once, with as many bytes as its reply says. */
#ifndef FUZZ_FUSE_KERNEL_H
#define FUZZ_FUSE_KERNEL_H

#include "base/span.h"

#include <linux/fuse.h>
#include <stdint.h>
#include <sys/types.h>

struct fs;
struct service;

/* A filesystem over the service, which stays the caller's. */
struct fs *fuse_kernel_begin(struct service *s);
/* Also ends the filesystem. */
void fuse_kernel_end(struct fs *fs);

struct fuse_answer {
	int error; /* as an errno: 0 or positive */
	size_t n;
	char data[132 * 1024];
};

/* Sends a request of these parts and waits for the answer. */
const struct fuse_answer *fuse_ask(struct fs *fs, uint32_t opcode, uint64_t node, pid_t pid,
	struct span in, struct span more, struct span last);
/* What has no answer: FORGET. */
void fuse_tell(struct fs *fs, uint32_t opcode, uint64_t node, struct span in);
/* From now on requests that wait are interrupted. */
void fuse_interrupt_waits(bool on);

#endif
