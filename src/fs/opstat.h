/* SPDX-License-Identifier: MIT
 * Counts and latencies per kind of kernel request, for .rowfs/stats.json. */
#ifndef FS_OPSTAT_H
#define FS_OPSTAT_H

#include <stdatomic.h>
#include <stdint.h>

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

struct opstat {
	atomic_uint_fast64_t count, errors, total_us, max_us;
};

struct opstats {
	struct opstat op[OP_COUNT_];
};

static inline void opstat_add(struct opstats *all, enum op op, uint64_t us, int failed)
{
	struct opstat *s = &all->op[op];
	atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&s->total_us, us, memory_order_relaxed);
	if (failed)
		atomic_fetch_add_explicit(&s->errors, 1, memory_order_relaxed);
	uint_fast64_t max = atomic_load_explicit(&s->max_us, memory_order_relaxed);
	while (us > max &&
		!atomic_compare_exchange_weak_explicit(
			&s->max_us, &max, us, memory_order_relaxed, memory_order_relaxed))
		;
}

#endif
