/* SPDX-License-Identifier: MIT
 * The tables in the file, and how a file is known as a store of a version we can read. */
#ifndef STORE_SQLITE_SCHEMA_H
#define STORE_SQLITE_SCHEMA_H

#include "store/sqlite/conn.h"

#define SQL_APPLICATION_ID 0x726F7766 /* "rowf" */
#define SQL_SCHEMA_VERSION 1

/* Ids are taken from meta in blocks of this many, versions so far ahead. */
#define SQL_ID_BLOCK 4096

/* In a new, empty file. */
enum err sql_schema_create(struct sql_conn *c);
/* By the first 100 bytes of the file.  ERR_NOT_A_STORE, ERR_STORE_TOO_NEW, ERR_IO. */
enum err sql_schema_check_header(int fd, const char *path, struct err_detail *detail);

#endif
