/* SPDX-License-Identifier: MIT
 * The store's main file: pages get their checksum when they are written, and one that is read with
 * a wrong one is an error (SQLITE_IOERR_DATA), never a row.  The log has SQLite's own checksums.
 * Files whose header reserves no room for sums (schema versions 1 and 2) are served as they are. */
#ifndef STORE_SQLITE_PAGE_FILE_H
#define STORE_SQLITE_PAGE_FILE_H

#include <sqlite3.h>

/* Where the header of the file says how many bytes are reserved at the end of each page. */
#define PAGE_RESERVED_AT 20

/* Bytes of the object before those of the files below. */
extern const int sql_page_file_size;

/* Calls fn after each read of the main file by this connection, from the thread that uses the connection; NULL:
 * no more.  Pages that are in the log or in the connection's memory are not read. */
void sql_page_file_watch(sqlite3 *db, void (*fn)(void *arg), void *arg);

/* As xOpen of the VFS that is below. */
int sql_page_file_open(
	sqlite3_vfs *below, const char *name, sqlite3_file *file, int flags, int *ret_flags);

#endif
