/* SPDX-License-Identifier: MIT
 * Names of blobs as names of files.  A slash divides a blob's name into components.  Almost each is
 * the file's name as it is.  A component that no file can have is shown with a word behind a "%":
 *
 *   an empty one              %empty
 *   "." and ".."              .%dot  ..%dot
 *   a blob beside a directory of the same name     NAME.%blob
 *   one of more than 255 bytes                     its beginning, %~ and 16 digits of a hash
 *   the snapshots of a directory's blobs           .%snapshots, which no blob is named after
 *
 * A component that ends with such a word itself gets one "%" more before the word.  So every blob has
 * one path, and each path means one blob. */
#ifndef FS_BLOB_NAMES_H
#define FS_BLOB_NAMES_H

#include "base/buf.h"
#include "model/limits.h"

#include <stdbool.h>
#include <stdint.h>

#define BLOB_HASH_CHARS 16
#define BLOB_SNAPSHOTS ".%snapshots"

/* A component as a file's name tells it. */
struct blob_component {
	char text[LIMIT_FILE_NAME_BYTES + 1]; /* with a hash: its beginning */
	size_t n;
	bool is_file;                   /* it is the blob beside a directory */
	char hash[BLOB_HASH_CHARS + 1]; /* "": none */
	size_t suffix; /* bytes of the name behind it; of a snapshot the caller adds its time's */
};

/* Appends the file's name of a component; beside_dir: of a blob beside a directory. */
void blob_component_write(struct span component, bool beside_dir, struct buf *out);
/* Appends the file's name of a snapshot of a blob: NAME@TIME. */
void blob_component_write_snapshot(struct span component, struct span time, struct buf *out);
/* Splits such a name into those of the blob and the time.  Returns false for any other. */
bool blob_component_split_snapshot(struct span shown, struct span *ret_name, struct span *ret_time);
/* Reads a file's name of up to LIMIT_FILE_NAME_BYTES.  Returns false if no component has it. */
bool blob_component_read(struct span shown, struct blob_component *ret);
/* Returns whether a component is the one that was read. */
bool blob_component_is(const struct blob_component *c, struct span component);

#endif
