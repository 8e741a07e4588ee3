/* SPDX-License-Identifier: MIT
 * The record of a blob: all but its content.  It is the body of the blob's item, as text: a line
 * "name:value" for each member, an empty line, the metadata, an empty line, small content. */
#ifndef SERVICE_BLOBS_BLOB_RECORD_H
#define SERVICE_BLOBS_BLOB_RECORD_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "model/lease.h"

#include <stdint.h>

/* Content up to this stands in the record. */
#define BLOB_INLINE_BYTES 4096
#define BLOB_RECORD_LIMIT ((size_t)64 << 10)

enum blob_type {
	BLOB_NONE, /* a name whose upload has not ended */
	BLOB_BLOCK,
	BLOB_PAGES,
	BLOB_APPEND,
};

/* What a client sets; "" where it is not set. */
struct blob_properties {
	struct span content_type, encoding, language, cache_control, disposition;
	struct span md5; /* base64 */
};

/* A tier changes nothing but what it is called, and that an archived blob cannot be read. */
enum blob_tier {
	TIER_UNSET,
	TIER_HOT,
	TIER_COOL,
	TIER_COLD,
	TIER_ARCHIVE
};

/* How a blob came to be a copy.  Zeroed: it is none. */
struct blob_copied {
	struct span id, source; /* the source's URL without its signature */
	int64_t when;           /* ticks */
};

struct blob_record {
	enum blob_type type;
	int64_t etag; /* ticks: the time of the last change */
	int64_t made; /* ticks; blocks staged before are obsolete (staged.h) */
	uint64_t size;
	uint64_t extent;  /* its id; 0: the content is in `content` */
	uint64_t pages;   /* valid ones, of a page blob */
	uint64_t blocks;  /* in the list that is the extent (block_list.h); 0: it has bytes */
	int64_t sequence; /* its sequence number */
	enum blob_tier tier;
	int64_t tier_set; /* ticks; with a tier */
	struct lease lease;
	struct blob_copied copied;
	struct blob_properties properties;
	struct span metadata; /* model/metadata.h */
	struct span content;
};

/* Appends the text. */
void blob_record_write(const struct blob_record *r, struct buf *out);
/* Reads a text, from which *ret borrows.  ERR_CORRUPT. */
enum err blob_record_read(struct span text, struct blob_record *ret);

#endif
