/* SPDX-License-Identifier: MIT
 * What the end of each kind of handle means (fs/tree/handle.h). */
#ifndef FS_REQUESTS_HANDLE_KINDS_H
#define FS_REQUESTS_HANDLE_KINDS_H

#include "fs/tree/handle.h"

extern const struct handle_ops handle_kinds[HANDLE_KINDS];

#endif
