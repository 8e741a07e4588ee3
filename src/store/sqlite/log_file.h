/* SPDX-License-Identifier: MIT
 * SQLite's unix-excl files, but for the write-ahead log: what one commit appends to it is written
 * with one call of the system, and not with two for each page; and for the main file: page_file.h. */
#ifndef STORE_SQLITE_LOG_FILE_H
#define STORE_SQLITE_LOG_FILE_H

#include <stdbool.h>

#define SQL_VFS "rowfs"
/* Its main file over SQLite's usual files, for opening read-only. */
#define SQL_VFS_RO "rowfs-ro"

/* Once, before the first connection.  False: SQLite has no such files. */
bool sql_log_file_register(void);

#endif
