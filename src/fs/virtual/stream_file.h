/* SPDX-License-Identifier: MIT
 * Rows as text: .rows.ndjson and .rows.csv opened for reading, and queries with a suffix
 * (.query/Rating ge 4.ndjson).  Each open file is a service/query/row_stream.h of its own, of the
 * moment of its opening. */
#ifndef FS_VIRTUAL_STREAM_FILE_H
#define FS_VIRTUAL_STREAM_FILE_H

#include "fs/core/virtual.h"

/* nid: of DIR_CONTROL_ROWS_NDJSON or DIR_CONTROL_ROWS_CSV.  ERR_GONE: the directory went
 * meanwhile. */
enum err stream_file_open_rows(
	struct fs *fs, uint64_t nid, const struct caller *call, struct vfile **ret);
/* nid: of the query.  options: as in service/query/row_query.h, with a suffix.  ERR_INVALID_INPUT. */
enum err stream_file_open_query(struct fs *fs, uint64_t nid, uint64_t table_id, struct span options,
	const struct caller *call, struct vfile **ret);

#endif
