/* SPDX-License-Identifier: MIT
 * The tree that memfs.c serves: directories, files, their bytes.  A node's number is never used
 * twice.  No function takes the lock. */
#ifndef BENCH_MEMTREE_H
#define BENCH_MEMTREE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#define TREE_ROOT 1u

struct node {
	char *name; /* NULL: unlinked */
	char *body;
	uint32_t parent, next; /* next: of the same hash */
	uint32_t slot;         /* in the parent */
	uint32_t size, room;   /* of a file; room 0: the body is shared */
	uint32_t *children;    /* of a directory: 0 where one was removed */
	uint32_t n_children, children_room;
	bool is_dir;
	struct timespec mtime;
};

extern struct node *tree_nodes; /* by their number */
extern pthread_rwlock_t tree_lock;

/* With rows /bench/rows/pPPPP/rowNNNNNNN.json of so many bytes.  To be called first. */
bool tree_fill(uint32_t rows, uint32_t bytes, uint32_t partitions);

/* 0: there is none. */
uint32_t tree_find(uint32_t parent, const char *name);
/* 0: there is no room. */
uint32_t tree_make(uint32_t parent, const char *name, bool is_dir);
/* Under a new name; what has the name already is to be gone. */
bool tree_put_name(uint32_t i, uint32_t parent, const char *name);
void tree_take_name(uint32_t i);
bool tree_is_empty(const struct node *n);

/* False: there is no memory. */
bool tree_set_size(struct node *n, size_t size);
/* A body of its own, for writing, of this size at least. */
bool tree_own_body(struct node *n, size_t size);
void tree_stat(uint32_t i, struct stat *st);

#endif
