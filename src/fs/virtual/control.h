/* SPDX-License-Identifier: MIT
 * .rowfs: the mount's own room.  Its files are made when they are opened.  A new one is a
 * row in the table in control.c. */
#ifndef FS_VIRTUAL_CONTROL_H
#define FS_VIRTUAL_CONTROL_H

#include "fs/core/virtual.h"

/* What a node of NID_KIND_CONTROL does. */
const struct vnode_ops *control_ops_of(uint64_t nid);

#endif
