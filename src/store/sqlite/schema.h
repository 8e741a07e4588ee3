/* SPDX-License-Identifier: MIT
 * The tables in the file, and how a file is known as a store of a version we can read. */
#ifndef STORE_SQLITE_SCHEMA_H
#define STORE_SQLITE_SCHEMA_H

#include "store/sqlite/conn.h"

#define SQL_APPLICATION_ID 0x726F7766 /* "rowf" */
/* 1: all content of ordinary files is in pieces; meta has the sum of their sizes.
 * 2: that of small ones is in their document rows (SQL_IS_INLINE); the sum stands in the name of the
 *    folder of the trash, whose row is written with each row that is removed: a page less to write.
 * 3: pages have checksums, for which the file's header reserves the room (page_file.h).
 * 4, 5: as 2 and 3, but what waits for its document under a row's name is a row without one; it was
 *    an empty ordinary file before.
 * 6, 7: as 4 and 5, but accounts may have queues and containers, which an older rowfs would lose
 *    or take for damage.
 * A store without checksums becomes one of version 6 when it is opened for writing (upgrade.h), and
 * one with checksums one of version 7.  Without checksums it stays so: room in its pages is made only
 * by writing them all anew. */
#define SQL_SCHEMA_VERSION 7
#define SQL_SCHEMA_UNSEALED 6

/* Ids are taken from meta in blocks of this many, versions so far ahead. */
#define SQL_ID_BLOCK 4096

/* In a new, empty file. */
enum err sql_schema_create(struct sql_conn *c);
/* Upgrades the schema inside a transaction.  From a version below 4, the caller also writes the sum of
 * the sizes of files.
 * *version: the store's, then the new one. */
enum err sql_schema_upgrade(struct sql_conn *c, int *version);
/* The part of it that is about empty files, for a store of this schema that has such. */
enum err sql_schema_empty_rows(struct sql_conn *c);
enum err sql_schema_version(struct sql_conn *c, int *ret);
/* By the first 100 bytes of the file.  ERR_NOT_A_STORE, ERR_STORE_TOO_NEW,
 * ERR_CORRUPT, ERR_IO. */
enum err sql_schema_check_header(int fd, const char *path, struct err_detail *detail);
/* Whether a store without a log has fewer bytes than its header counts pages.  Fills why: how many. */
bool sql_schema_cut_short(int fd, const char *path, char *why, size_t n);

#endif
