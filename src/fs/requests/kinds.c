/* SPDX-License-Identifier: MIT
 * The table of kinds.  Only fs/session names it, so that no kind can call another one. */
#include "fs/requests/kinds.h"

const struct kind_ops *const kinds[KIND_COUNT_] = {
	[KIND_VIRTUAL] = &kind_virtual,
	[KIND_VIRTUAL_DIR] = &kind_virtual_dir,
	[KIND_STAGED] = &kind_staged,
	[KIND_DIR] = &kind_dir,
	[KIND_FILE] = &kind_file,
	[KIND_ROW] = &kind_row,
	[KIND_OLD] = &kind_old,
};
