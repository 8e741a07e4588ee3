/* SPDX-License-Identifier: MIT
 * The functions of librados that the engine calls.  The library is loaded when the first store in a
 * cluster is used: with its dependencies it costs each start of the program 6 ms and 8 MiB. */
#ifndef STORE_RADOS_FUNCTIONS_H
#define STORE_RADOS_FUNCTIONS_H

#include "base/err.h"

#include <rados/librados.h>

/* clang-format off */
#define LIBRADOS_FUNCTIONS \
	X(aio_create_completion2) X(aio_get_return_value) X(aio_release) \
	X(aio_wait_for_complete) X(aio_write_op_operate) X(blocklist_add) X(buffer_free) \
	X(cluster_stat) X(conf_get) X(conf_read_file) X(conf_set) X(connect) X(create) \
	X(create_read_op) X(create_write_op) X(getaddrs) X(ioctx_create) \
	X(ioctx_destroy) X(ioctx_pool_requires_alignment2) X(ioctx_pool_stat) \
	X(ioctx_set_namespace) X(list_lockers) X(lock_exclusive) X(lock_shared) \
	X(nobjects_list_close) X(nobjects_list_next) X(nobjects_list_open) \
	X(omap_get_end) X(omap_get_next2) X(omap_iter_size) X(read) \
	X(read_op_omap_get_vals2) X(read_op_omap_get_vals_by_keys2) X(read_op_operate) \
	X(release_read_op) X(release_write_op) X(shutdown) X(unlock) \
	X(wait_for_latest_osdmap) X(write_op_assert_exists) X(write_op_create) \
	X(write_op_omap_cmp2) X(write_op_omap_rm_keys2) X(write_op_omap_set2) \
	X(write_op_operate2) X(write_op_remove) X(write_op_write_full)
/* clang-format on */

struct librados {
#define X(name_) __typeof__(rados_##name_) *name_;
	LIBRADOS_FUNCTIONS
#undef X
};

/* Empty until librados_load() has succeeded; it does not change after that. */
extern struct librados librados;

/* Loads the library unless that is done.  ERR_NOT_SUPPORTED: it is not installed.  Any number of
 * threads may call it. */
enum err librados_load(struct err_detail *detail);

#endif
