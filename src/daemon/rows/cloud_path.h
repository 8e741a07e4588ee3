/* SPDX-License-Identifier: MIT
 * Paths of commands as keys of the service elsewhere, which knows no file names.  Private to daemon/rows. */
#ifndef DAEMON_ROWS_CLOUD_PATH_H
#define DAEMON_ROWS_CLOUD_PATH_H

#include "base/buf.h"
#include "daemon/core/command.h"
#include "model/filename.h"

enum cloud_level {
	CLOUD_ROOT,
	CLOUD_ACCOUNT,
	CLOUD_TABLE,
	CLOUD_PARTITION,
	CLOUD_ROW,
};

struct cloud_path {
	enum cloud_level level;
	struct span table, name; /* name: the last component; both borrow from the path */
	struct filename pk, rk;
};

/* Reads ACCOUNT/TABLE/PARTITION/ROW.json or the beginning of one, and asks the service nothing.
 * making: a row is to be written there; else a name that no key has is ERR_NOT_FOUND.
 *
 * ERR_INVALID_INPUT: another account than the client's.  ERR_KEY_MISSING: a name that is a digest.
 * ERR_NAME_INVALID: an ordinary file, which the service cannot hold.  Errors of filename_decode(). */
enum err cloud_path_read(const struct cmd_env *env, const char *path, bool making,
	struct cloud_path *ret, struct err_detail *why);
struct span cloud_path_pk(const struct cloud_path *p);
struct span cloud_path_rk(const struct cloud_path *p);
/* ERR_INVALID_INPUT: this is not the client's account. */
enum err cloud_check_account(
	const struct cmd_env *env, struct span account, struct err_detail *why);

#endif
