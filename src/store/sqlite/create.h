/* SPDX-License-Identifier: MIT
 * Making a store file: whole or not at all, and never over anything. */
#ifndef STORE_SQLITE_CREATE_H
#define STORE_SQLITE_CREATE_H

#include "base/err.h"

/* The directory that holds path, so that a new name in it survives a power cut. */
enum err sql_sync_directory(const char *path);

#endif
