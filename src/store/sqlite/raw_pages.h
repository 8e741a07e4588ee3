/* SPDX-License-Identifier: MIT
 * The pages of a store's file as they lie on disk, for a file that SQLite refuses: its log laid over
 * it as far as the log is sound, and the list of free pages.  A bad page is told from a good one by
 * its checksum.  All that is read here may be hostile. */
#ifndef STORE_SQLITE_RAW_PAGES_H
#define STORE_SQLITE_RAW_PAGES_H

#include "base/err.h"
#include "store/sqlite/page_sum.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SQLite locks bytes of this page, and never uses it. */
#define RAW_LOCKED_PAGE (0x40000000u / PAGE_BYTES + 1)

enum raw_mark {
	RAW_UNSEEN,
	RAW_SEEN, /* in a tree, or in the chain of a record that is */
	RAW_FREE, /* in the list of free pages: what stands there is over */
	RAW_MAP,  /* says where other pages belong (SQLite's pointer map) */
};

struct raw_pages {
	int fd, log_fd;  /* borrowed; log_fd may be -1 */
	uint32_t n;      /* pages that can be there: 1 to n */
	uint32_t should; /* pages that the store says it has; n where that is not known */
	bool sealed;     /* pages have checksums */
	size_t usable;   /* bytes of each page */
	bool has_maps; /* a pointer map stands before the pages that it tells of, from page 2 on */
	bool free_known; /* the list of free pages is all there */
	uint8_t *mark;   /* enum raw_mark, by page */
	uint32_t *
		frame; /* by page: the newest frame of the log that is committed, from 1; or NULL */
};

/* Reads the header, the log and the list of free pages; damage in them is no error.
 * ERR_NO_MEMORY, ERR_IO.  raw_pages_fini() either way. */
enum err raw_pages_init(struct raw_pages *p, int fd, int log_fd);
void raw_pages_fini(struct raw_pages *p);

/* False: there is no such page, it cannot be read, or its checksum is wrong. */
bool raw_page(const struct raw_pages *p, uint32_t number, unsigned char out[PAGE_BYTES]);

static inline uint32_t raw_u32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint32_t raw_u16(const unsigned char *p)
{
	return (uint32_t)p[0] << 8 | p[1];
}

#endif
