/* SPDX-License-Identifier: MIT
 * An array of nodes, and a hash table of names.  The bodies that the tree begins with are one,
 * shared until somebody writes. */
#include "memtree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILL_SECONDS 1704067200
#define MAX_NODES ((uint32_t)6 << 20)
#define HASH_SIZE ((uint32_t)1 << 22)

struct node *tree_nodes;
pthread_rwlock_t tree_lock = PTHREAD_RWLOCK_INITIALIZER;

static uint32_t n_nodes = 1, *hash_table;
static uid_t own_uid; /* asked for once */
static gid_t own_gid;

static uint32_t *bucket(uint32_t parent, const char *name)
{
	uint32_t h = 2166136261u ^ parent;
	for (; *name != 0; name++)
		h = (h ^ (unsigned char)*name) * 16777619u;
	return &hash_table[(h ^ h >> 15) & (HASH_SIZE - 1)];
}

uint32_t tree_find(uint32_t parent, const char *name)
{
	uint32_t i = *bucket(parent, name);
	while (i != 0 && (tree_nodes[i].parent != parent || strcmp(tree_nodes[i].name, name) != 0))
		i = tree_nodes[i].next;
	return i;
}

static bool add_child(uint32_t parent, uint32_t child)
{
	struct node *p = &tree_nodes[parent];
	if (p->n_children == p->children_room) {
		uint32_t room = p->children_room == 0 ? 16 : p->children_room * 2;
		uint32_t *grown = reallocarray(p->children, room, sizeof(*grown));
		if (grown == NULL)
			return false;
		p->children = grown;
		p->children_room = room;
	}
	tree_nodes[child].slot = p->n_children;
	p->children[p->n_children++] = child;
	return true;
}

bool tree_put_name(uint32_t i, uint32_t parent, const char *name)
{
	char *copy = strdup(name);
	if (copy == NULL || !add_child(parent, i)) {
		free(copy);
		return false;
	}
	uint32_t *b = bucket(parent, name);
	tree_nodes[i].name = copy;
	tree_nodes[i].parent = parent;
	tree_nodes[i].next = *b;
	*b = i;
	return true;
}

void tree_take_name(uint32_t i)
{
	struct node *n = &tree_nodes[i];
	uint32_t *at = bucket(n->parent, n->name);
	while (*at != i)
		at = &tree_nodes[*at].next;
	*at = n->next;
	tree_nodes[n->parent].children[n->slot] = 0;
	free(n->name);
	n->name = NULL;
}

uint32_t tree_make(uint32_t parent, const char *name, bool is_dir)
{
	if (n_nodes + 1 >= MAX_NODES)
		return 0;
	uint32_t i = ++n_nodes;
	tree_nodes[i].is_dir = is_dir;
	clock_gettime(CLOCK_REALTIME, &tree_nodes[i].mtime);
	return tree_put_name(i, parent, name) ? i : 0;
}

bool tree_set_size(struct node *n, size_t size)
{
	if (size > UINT32_MAX / 2)
		return false;
	if (size > n->room && !(size <= n->size && n->room == 0)) {
		size_t room = size < 512 ? 512 : size + size / 2;
		char *body = malloc(room);
		if (body == NULL)
			return false;
		if (n->size > 0)
			memcpy(body, n->body, n->size);
		if (n->room > 0)
			free(n->body);
		n->body = body;
		n->room = (uint32_t)room;
	}
	if (size > n->size)
		memset(n->body + n->size, 0, size - n->size);
	n->size = (uint32_t)size;
	return true;
}

bool tree_own_body(struct node *n, size_t size)
{
	if (n->room == 0 && n->size > 0) {
		struct node fresh = { 0 };
		if (!tree_set_size(&fresh, n->size))
			return false;
		memcpy(fresh.body, n->body, n->size);
		n->body = fresh.body;
		n->room = fresh.room;
	}
	return size <= n->size || tree_set_size(n, size);
}

bool tree_is_empty(const struct node *n)
{
	for (uint32_t i = 0; i < n->n_children; i++)
		if (n->children[i] != 0)
			return false;
	return true;
}

void tree_stat(uint32_t i, struct stat *st)
{
	const struct node *n = &tree_nodes[i];
	*st = (struct stat){ .st_ino = i, .st_nlink = 1, .st_blksize = 4096 };
	st->st_mode = n->is_dir ? S_IFDIR | 0755 : S_IFREG | 0644;
	st->st_uid = own_uid;
	st->st_gid = own_gid;
	st->st_size = n->is_dir ? 4096 : n->size;
	st->st_blocks = (st->st_size + 511) / 512;
	st->st_mtim = st->st_atim = st->st_ctim = n->mtime;
}

/* ---- the beginning ---- */

/* A document's text, shared by all. */
static char *make_body(size_t n)
{
	static const char text[] = "{\"name\":\"value\",\"text\":\"0123456789 abcdefghij\"},\n";
	char *body = malloc(n + 1);
	for (size_t i = 0; body != NULL && i < n; i++)
		body[i] = text[i % (sizeof(text) - 1)];
	return body;
}

bool tree_fill(uint32_t rows, uint32_t bytes, uint32_t partitions)
{
	uint32_t per = (rows + partitions - 1) / partitions, table, dir = 0;
	char name[64], *body = make_body(bytes);
	tree_nodes = calloc(MAX_NODES, sizeof(*tree_nodes));
	hash_table = calloc(HASH_SIZE, sizeof(*hash_table));
	if (tree_nodes == NULL || hash_table == NULL || body == NULL || rows > MAX_NODES / 2)
		return false;
	tree_nodes[TREE_ROOT].is_dir = true;
	own_uid = getuid();
	own_gid = getgid();
	uint32_t account = tree_make(TREE_ROOT, "bench", true);
	if (account == 0 || (table = tree_make(account, "rows", true)) == 0)
		return false;
	for (uint32_t i = 0; i < rows; i++) {
		if (i % per == 0) {
			snprintf(name, sizeof(name), "p%04u", i / per);
			dir = tree_make(table, name, true);
		}
		snprintf(name, sizeof(name), "row%07u.json", i);
		uint32_t row = dir == 0 ? 0 : tree_make(dir, name, false);
		if (row == 0)
			return false;
		tree_nodes[row].body = body;
		tree_nodes[row].size = bytes;
		/* The same in every run, for who compares times. */
		tree_nodes[row].mtime = (struct timespec){ .tv_sec = FILL_SECONDS };
	}
	return true;
}
