/* SPDX-License-Identifier: MIT
 * SQLite's result codes in our words: the only place that translates them.  The surprising
 * one: a full disk comes as SQLITE_FULL from a write but as SQLITE_IOERR_* from the
 * shared-memory file, so the system's errno is asked too. */
#include "store/sqlite/conn.h"

#include <errno.h>

/* The store is open already, so that it is not there is not what anybody asked. */
static enum err cannot_open(int code)
{
	enum err e = code ? err_from_errno(code) : ERR_IO;
	return e == ERR_NO_SPACE || e == ERR_NO_MEMORY || e == ERR_ACCESS || e == ERR_READ_ONLY
		? e
		: ERR_IO;
}

enum err sql_error(sqlite3 *db, int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return ERR_OK;
	case SQLITE_FULL:
		return ERR_NO_SPACE;
	case SQLITE_IOERR:
		if (rc == SQLITE_IOERR_NOMEM)
			return ERR_NO_MEMORY;
		if (rc == SQLITE_IOERR_DATA) /* a page's checksum is wrong (page_file.h) */
			return ERR_CORRUPT;
		if (db &&
			(sqlite3_system_errno(db) == ENOSPC || sqlite3_system_errno(db) == EDQUOT))
			return ERR_NO_SPACE;
		return ERR_IO;
	case SQLITE_NOMEM:
		return ERR_NO_MEMORY;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		return ERR_THROTTLED;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_CONSTRAINT: /* every rule is checked before: the file disagrees */
	case SQLITE_SCHEMA:
		return ERR_CORRUPT;
	case SQLITE_READONLY:
		return ERR_READ_ONLY;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return ERR_ACCESS;
	case SQLITE_CANTOPEN:
		return db ? cannot_open(sqlite3_system_errno(db)) : ERR_IO;
	case SQLITE_TOOBIG:
		return ERR_BODY_TOO_LARGE;
	case SQLITE_INTERRUPT:
		return ERR_CANCELLED;
	default:
		return ERR_IO;
	}
}

bool sql_error_is_ours(enum err e)
{
	return e == ERR_NO_SPACE || e == ERR_IO || e == ERR_NO_MEMORY || e == ERR_THROTTLED ||
		e == ERR_CORRUPT || e == ERR_READ_ONLY || e == ERR_ACCESS || e == ERR_CANCELLED;
}
