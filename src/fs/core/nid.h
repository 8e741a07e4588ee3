/* SPDX-License-Identifier: MIT
 * FUSE node ids.  A node names one immutable content: the item's id and, for rows, its
 * generation.  A commit gives a row a new node, so a page cache can never mix two versions;
 * st_ino stays the item's id.  The daemon computes most node ids.  It keeps tables for staged
 * writes, for queries and for indirect node ids.
 *
 *   bits 62, 63   00 an item, or .rowfs and its files   10 a staged write
 *                 01 an item in a snapshot              11 virtual
 *
 *   item          bit 61 0: bits 40..60 generation (rows; a file that was a row keeps it), 0..39 item
 *                 id; 1 is the root (= FUSE_ROOT_ID), 16..31 are .rowfs and its files
 *                 bit 61 1, an indirect node id: bits 40..60 the low bits of a generation of more than 21
 *                 bits, 0..39 a number that stands for the id and the high bits (fs/core/nid.c)
 *   staged write  bit 61 0: the rest is a counter (fs/write/stages.h)
 *                 bit 61 1: of a row that exists: bits 40..60 tell its staged writes apart
 *                 (fs/write/stages.c), 0..39 are the row's id.  When the staged write has gone, a
 *                 request for its node is about the row
 *   snapshot      as an item, with the snapshot's number for the generation
 *   virtual       bit 61 0: a control file of a directory, bits 40..44 which (enum
 *                 dir_control), 0..39 the directory's id; or a node of
 *                 queues or blobs (fs/queue/nodes.h, fs/blob/nodes.h)
 *                 bit 61 1: a node of a query, bits 0..44 are a counter (fs/query/nodes.h)
 *
 * Bits 45..60 of virtual nodes, and of the files of .rowfs, are a moment: a file that is made when
 * it is opened has another node at each lookup.  So the kernel has one size, and pages of one
 * text, for each node.  Only fs/requests knows moments; nid_base() takes them off. */
#ifndef FS_CORE_NID_H
#define FS_CORE_NID_H

#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

#define NID_CLASS_MASK (UINT64_C(3) << 62)
#define NID_STAGED (UINT64_C(2) << 62)
#define NID_STAGED_ROW (NID_STAGED | UINT64_C(1) << 61)
#define NID_SNAPSHOT (UINT64_C(1) << 62)
#define NID_VIRTUAL (UINT64_C(3) << 62)
#define NID_QUERY (NID_VIRTUAL | UINT64_C(1) << 61)
#define NID_GENERATION_BITS 21
#define NID_INDIRECT (UINT64_C(1) << 61)
#define NID_MOMENT_SHIFT 45
#define NID_MOMENTS UINT64_C(0xffff)
#define NID_MOMENT_MASK (NID_MOMENTS << NID_MOMENT_SHIFT)
/* To fill the table, a mount would have to make 2^41 commits: each number needs 2^21 of one row. */
#define NID_INDIRECT_MAX (1 << 20)
#define NID_ID_MASK ((UINT64_C(1) << STORE_ID_BITS) - 1)
#define NID_GENERATION_MASK ((UINT64_C(1) << NID_GENERATION_BITS) - 1)

/* .rowfs and what is in it, besides the folders of the store; permanent. */
enum nid_control {
	NID_CONTROL_DIR = 16,
	NID_ERRORS,
	NID_STATS,
	NID_VERSION,
	NID_SNAPSHOTS,
	NID_METRICS,
	NID_WAITING,
	NID_FAULTS,
	NID_CONTROL_LAST = 31
};

/* The control files of tables and partitions; permanent. */
enum dir_control {
	DIR_CONTROL_BATCH = 1,
	DIR_CONTROL_BATCH_CHECK,
	DIR_CONTROL_ROWS_NDJSON,
	DIR_CONTROL_ROWS_CSV,
	DIR_CONTROL_QUERY, /* a directory */
	DIR_CONTROL_CHANGES,
	DIR_CONTROL_COUNT_,
	/* A room's own nodes, from its directory in an account on. */
	DIR_CONTROL_QUEUES = 16, /* fs/queue/nodes.h */
	DIR_CONTROL_QUEUES_LAST = 27,
	DIR_CONTROL_BLOBS = 28, /* fs/blob/nodes.h */
	DIR_CONTROL_BLOBS_LAST = 31,
};

/* The number of an indirect node id stands for these. */
struct nid_indirect {
	uint64_t id, high; /* of the generation: without its NID_GENERATION_BITS low bits */
};

/* Returns the number for these, the same for as long as the process lives.  Thread-safe. */
uint64_t nid_indirect_number(uint64_t id, uint64_t high);
/* Returns what the number stands for; zeros for a number that nid_indirect_number() never returned.
 * Thread-safe. */
struct nid_indirect nid_indirect_of(uint64_t number);

static inline uint64_t nid_make(uint64_t id, uint64_t generation)
{
	uint64_t high = generation >> NID_GENERATION_BITS;
	if (high != 0)
		id = NID_INDIRECT | nid_indirect_number(id, high);
	return id | (generation & NID_GENERATION_MASK) << STORE_ID_BITS;
}

static inline bool nid_is_indirect(uint64_t nid)
{
	return (nid & (NID_STAGED | NID_INDIRECT)) == NID_INDIRECT;
}

static inline uint64_t nid_of(const struct item *it)
{
	return nid_make(it->id, it->generation);
}

static inline uint64_t nid_id(uint64_t nid)
{
	return nid_is_indirect(nid) ? nid_indirect_of(nid & NID_ID_MASK).id : nid & NID_ID_MASK;
}

static inline bool nid_is_staged(uint64_t nid)
{
	return (nid & NID_CLASS_MASK) == NID_STAGED;
}

static inline uint64_t nid_make_staged(uint64_t row_id, uint64_t which)
{
	return NID_STAGED_ROW | (which & NID_GENERATION_MASK) << STORE_ID_BITS | row_id;
}

/* A staged write of a row that exists: nid_id() is the row's id. */
static inline bool nid_is_staged_row(uint64_t nid)
{
	return nid_is_staged(nid) && (nid & NID_STAGED_ROW) == NID_STAGED_ROW;
}

/* .rowfs and its own files. */
static inline bool nid_is_control(uint64_t nid)
{
	nid &= ~NID_MOMENT_MASK;
	return nid >= NID_CONTROL_DIR && nid <= NID_CONTROL_LAST;
}

/* Without the moment, of any node. */
static inline uint64_t nid_base(uint64_t nid)
{
	bool may_have = (nid & NID_CLASS_MASK) == NID_VIRTUAL || nid_is_control(nid);
	return may_have ? nid & ~NID_MOMENT_MASK : nid;
}

static inline bool nid_has_moment(uint64_t nid)
{
	return nid_base(nid) != nid;
}

/* The n-th moment of a node without one. */
static inline uint64_t nid_at_moment(uint64_t nid, uint64_t n)
{
	return nid | (n % NID_MOMENTS + 1) << NID_MOMENT_SHIFT;
}

static inline bool nid_is_snapshot(uint64_t nid)
{
	return (nid & NID_CLASS_MASK) == NID_SNAPSHOT;
}

static inline uint64_t nid_in_snapshot(uint32_t number, uint64_t id)
{
	return NID_SNAPSHOT | nid_make(id, number);
}

static inline uint32_t nid_snapshot(uint64_t nid)
{
	uint64_t high = nid_is_indirect(nid) ? nid_indirect_of(nid & NID_ID_MASK).high : 0;
	return (uint32_t)(high << NID_GENERATION_BITS |
		(nid >> STORE_ID_BITS & NID_GENERATION_MASK));
}

static inline bool nid_is_query(uint64_t nid)
{
	return (nid & NID_QUERY) == NID_QUERY;
}

static inline bool nid_is_dir_control(uint64_t nid)
{
	return (nid & NID_QUERY) == NID_VIRTUAL;
}

/* An item as it is now, of whatever generation. */
static inline bool nid_is_item(uint64_t nid)
{
	return (nid & NID_CLASS_MASK) == 0 && !nid_is_control(nid);
}

static inline uint64_t nid_of_dir_control(enum dir_control which, uint64_t dir_id)
{
	return NID_VIRTUAL | (uint64_t)which << STORE_ID_BITS | dir_id;
}

static inline enum dir_control nid_dir_control(uint64_t nid)
{
	return (enum dir_control)(nid >> STORE_ID_BITS & 0x1f);
}

/* Which room a node belongs to. */
enum nid_kind {
	NID_KIND_ITEM,
	NID_KIND_STAGED,
	NID_KIND_CONTROL,
	NID_KIND_SNAPSHOT,
	NID_KIND_DIR_CONTROL,
	NID_KIND_QUERY,
	NID_KIND_QUEUE,
	NID_KIND_BLOB,
	NID_KIND_COUNT_
};

static inline enum nid_kind nid_kind(uint64_t nid)
{
	if (nid_is_staged(nid))
		return NID_KIND_STAGED;
	if (nid == NID_SNAPSHOTS || nid_is_snapshot(nid))
		return NID_KIND_SNAPSHOT;
	if (nid_is_query(nid))
		return NID_KIND_QUERY;
	if (nid_is_dir_control(nid) && nid_dir_control(nid) >= DIR_CONTROL_BLOBS)
		return NID_KIND_BLOB;
	if (nid_is_dir_control(nid) && nid_dir_control(nid) >= DIR_CONTROL_QUEUES)
		return NID_KIND_QUEUE;
	if (nid_is_dir_control(nid))
		return nid_dir_control(nid) == DIR_CONTROL_QUERY ? NID_KIND_QUERY
								 : NID_KIND_DIR_CONTROL;
	return nid_is_control(nid) ? NID_KIND_CONTROL : NID_KIND_ITEM;
}

#endif
