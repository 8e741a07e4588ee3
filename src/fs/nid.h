/* SPDX-License-Identifier: MIT
 * FUSE node ids.  A node names one immutable content: the item's id and, for rows, its
 * edition.  A commit gives a row a new node, so a page cache can never mix two versions;
 * st_ino stays the item's id.  The daemon keeps nothing per node: all but the private ones
 * are computed.
 *
 *   bit 63        private: the staging of one writer (fs/stage.h), the rest is a counter
 *   bits 40..61   edition (rows; a file that was a row keeps it)
 *   bits 0..39    item id; 1 is the root (= FUSE_ROOT_ID), 16..31 are .rowfs and its files */
#ifndef FS_NID_H
#define FS_NID_H

#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

#define NID_PRIVATE (UINT64_C(1) << 63)
#define NID_EDITION_BITS 22
#define NID_ID_MASK ((UINT64_C(1) << STORE_ID_BITS) - 1)
#define NID_EDITION_MASK ((UINT64_C(1) << NID_EDITION_BITS) - 1)

/* .rowfs and what is in it, besides the folders of the store. */
#define NID_CONTROL_FIRST 16
#define NID_CONTROL_LAST 31
#define NID_CONTROL_DIR 16

static inline uint64_t nid_make(uint64_t id, uint32_t edition)
{
	return id | ((uint64_t)edition & NID_EDITION_MASK) << STORE_ID_BITS;
}

static inline uint64_t nid_of(const struct item *it)
{
	return nid_make(it->id, it->edition);
}

static inline uint64_t nid_id(uint64_t nid)
{
	return nid & NID_ID_MASK;
}

static inline bool nid_is_private(uint64_t nid)
{
	return (nid & NID_PRIVATE) != 0;
}

static inline bool nid_is_control(uint64_t nid)
{
	return nid >= NID_CONTROL_FIRST && nid <= NID_CONTROL_LAST;
}

#endif
