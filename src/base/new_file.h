/* SPDX-License-Identifier: MIT
 * Creates a file atomically.  The caller writes and syncs it under a temporary name in the same
 * directory, then gives it its name here. */
#ifndef BASE_NEW_FILE_H
#define BASE_NEW_FILE_H

#include "base/err.h"

#include <stdbool.h>

/* Renames temp to path.  Both must be in the same directory.  If path exists, replace decides: true
 * replaces it, false returns ERR_NAME_EXISTS. */
enum err new_file_place(const char *temp, const char *path, bool replace);
/* Syncs the directory of path, so that a new name there survives a power cut. */
enum err new_file_sync_name(const char *path);

#endif
