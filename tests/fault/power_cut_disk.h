/* SPDX-License-Identifier: MIT
 * What a disk may hold after a cut of power, computed from a record of calls (calls.h).
 *
 * The model: a file's writes and truncations reach the disk in any order, each wholly, in part by
 * sectors of 512 or pages of 4096 bytes, or not at all, until a sync of that file that began after
 * them has ended; then they are all there.  A write that is lost or torn behind the end of the file
 * may leave its size behind, with zeros or anything in it.  Names that come and go (open, unlink,
 * rename, link) do so singly, whatever their order, until the folder was synced: a sync of the file
 * does nothing for its name.  A sync that failed promises nothing. */
#ifndef FAULT_POWER_CUT_DISK_H
#define FAULT_POWER_CUT_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum op_kind {
	OP_MARK,
	OP_WRITE,
	OP_SIZE,
	OP_NAME,
	OP_SYNC
};

struct op {
	enum op_kind kind;
	uint32_t file; /* its number; OP_NAME: of the file that gets the name, NO_FILE: none */
	uint64_t at, n;
	const unsigned char *data; /* of a write; of a mark: its text */
	uint32_t name, old_name;   /* numbers of names; old_name: that goes, or NO_FILE */
	bool folder;               /* OP_SYNC */
	size_t began;              /* OP_SYNC: the operations before this one are synced */
};
#define NO_FILE UINT32_MAX

struct record {
	struct op *ops;
	size_t n, calls, syncs;
	char **names;
	uint32_t nnames, nfiles;
};
/* Ends the program if it cannot be read. */
void record_read(struct record *r, const char *path);
void record_free(struct record *r);

/* The disk before a moment of the record: what is surely there, and what may be. */
struct disk;
struct disk *disk_new(const struct record *r);
void disk_free(struct disk *d);
/* The next operation happens.  False: there is none. */
bool disk_step(struct disk *d);
size_t disk_at(const struct disk *d); /* operations that have happened */
size_t disk_pending(const struct disk *d);

/* How one of the operations that may be there fares. */
enum fate {
	LOST,
	DONE,
	TORN,
	SIZE_ONLY,
	JUNK
};
struct image {
	struct image_file {
		const char *name;
		unsigned char *bytes;
		size_t n, room;
	} * files;
	size_t n;
	uint64_t hash;
};
/* fates: one for each that is pending; seed: of what is torn how. */
void disk_image(struct disk *d, const unsigned char *fates, uint64_t seed, struct image *ret);
/* To the files of a folder that exists; others than these are removed there. */
void image_write(const struct image *im, const char *folder);
void image_free(struct image *im);

static inline uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

#endif
