/* SPDX-License-Identifier: MIT
 * The kinds of kernel requests, as service/core/metrics.h counts them for the mount. */
#ifndef FS_CORE_OPSTAT_H
#define FS_CORE_OPSTAT_H

/* clang-format off */
#define OP_LIST(X) \
	X(LOOKUP, "lookup") X(GETATTR, "getattr") X(SETATTR, "setattr") X(OPEN, "open") \
	X(CREATE, "create") X(READ, "read") X(WRITE, "write") X(FLUSH, "flush") X(FSYNC, "fsync") \
	X(RELEASE, "release") X(OPENDIR, "opendir") X(READDIR, "readdir") \
	X(READDIRPLUS, "readdirplus") X(MKDIR, "mkdir") X(RMDIR, "rmdir") X(UNLINK, "unlink") \
	X(RENAME, "rename") X(XATTR, "xattr") X(OTHER, "other")
/* clang-format on */

enum op {
#define X(symbol_, name_) OP_##symbol_,
	OP_LIST(X)
#undef X
	OP_COUNT_
};

#endif
