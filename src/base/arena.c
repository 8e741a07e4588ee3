/* SPDX-License-Identifier: MIT
 * A list of blocks, newest first.  Only the newest block serves allocations.
 * Each block is twice as large as the one before, up to a limit.  A small entity so needs one small
 * block, and a large entity a few large ones. */
#include "base/arena.h"

#include <stdint.h>
#include <stdlib.h>

#define ALIGN 16
/* With its header, the block just fits the sizes that malloc caches for each thread. */
#define BLOCK_FIRST 992
#define BLOCK_MAX 65536

struct arena_block {
	_Alignas(ALIGN) struct arena_block *next;
	size_t size, used;
	_Alignas(ALIGN) char data[];
};

static struct arena_block *add_block(struct arena *a, size_t n)
{
	size_t size = a->head == NULL ? BLOCK_FIRST : a->head->size * 2;
	struct arena_block *b;

	if (size > BLOCK_MAX)
		size = BLOCK_MAX;
	if (size < n)
		size = n;
	b = malloc(sizeof(*b) + size);
	if (b == NULL)
		return NULL;
	*b = (struct arena_block){ .next = a->head, .size = size };
	a->head = b;
	return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
	struct arena_block *b = a->head;
	void *p;

	if (n > SIZE_MAX / 2)
		return NULL;
	n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (n == 0)
		n = ALIGN; /* gives each allocation its own address */
	if (b == NULL || b->size - b->used < n)
		b = add_block(a, n);
	if (b == NULL)
		return NULL;
	p = b->data + b->used;
	b->used += n;
	return p;
}

struct span arena_copy(struct arena *a, struct span s)
{
	char *p = s.n == SIZE_MAX ? NULL : arena_alloc(a, s.n + 1);

	if (p == NULL)
		return (struct span){ NULL, 0 };
	if (s.n > 0)
		memcpy(p, s.p, s.n);
	p[s.n] = '\0';
	return (struct span){ p, s.n };
}

static void free_list(struct arena_block *b)
{
	while (b != NULL) {
		struct arena_block *next = b->next;
		free(b);
		b = next;
	}
}

void arena_reset(struct arena *a)
{
	if (a->head == NULL)
		return;
	free_list(a->head->next);
	a->head->next = NULL;
	a->head->used = 0;
}

void arena_fini(struct arena *a)
{
	free_list(a->head);
	a->head = NULL;
}

size_t arena_holds(const struct arena *a)
{
	size_t n = 0;

	for (const struct arena_block *b = a->head; b != NULL; b = b->next)
		n += sizeof(*b) + b->size;
	return n;
}
