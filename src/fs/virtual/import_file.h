/* SPDX-License-Identifier: MIT
 * Rows in: .rows.ndjson and .rows.csv of tables and partitions, opened for writing.  Bytes
 * act in the order in which they arrive, whatever their offsets: each write has upserted the
 * rows of all lines that it completed when it returns.  A close by the opener ends the last
 * line.
 *
 * The first line that is refused ends the import of this handle: that write fails with the
 * line's errno, and so does every later one.  The lines before it stand, none behind it
 * counts; what came from it on is in .rowfs/rejected (16 MiB of it), the reason with the
 * number of the line where reasons are.  A last line without its end fails at the write as
 * soon as no row can begin so; one that a close finds incomplete may still be completed by
 * what is written next.
 *
 * Such a handle cannot be read.  Between calls it holds the line that is not complete (8 MiB
 * at most), and the header of a CSV file. */
#ifndef FS_VIRTUAL_IMPORT_FILE_H
#define FS_VIRTUAL_IMPORT_FILE_H

#include "fs/core/virtual.h"

/* nid: of DIR_CONTROL_ROWS_NDJSON or DIR_CONTROL_ROWS_CSV.  ERR_GONE: the directory went
 * meanwhile. */
enum err import_file_open(
	struct fs *fs, uint64_t nid, const struct caller *call, struct vfile **ret);

/* rename(2) of an ordinary file onto the name: imports what is in it.  The errors are those of write(2) and
 * close(2), but for EINVAL, which is ERR_NOT_AN_ENTITY. */
enum err import_file_replace(struct fs *fs, uint64_t nid, const struct item *file,
	const struct caller *call, bool *ret_noted);

#endif
