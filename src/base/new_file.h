/* SPDX-License-Identifier: MIT
 * A file that is whole or not there: it is written under another name beside its place, synced,
 * and given its own name at the end. */
#ifndef BASE_NEW_FILE_H
#define BASE_NEW_FILE_H

#include "base/err.h"

#include <stdbool.h>

/* Gives temp, in the same directory, the name path.  replace: over whatever file has it; else
 * ERR_NAME_EXISTS. */
enum err new_file_place(const char *temp, const char *path, bool replace);
/* The directory that holds path, so that a new name in it survives a power cut. */
enum err new_file_sync_name(const char *path);

#endif
