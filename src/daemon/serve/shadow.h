/* SPDX-License-Identifier: MIT
 * The local store under the mount of an account elsewhere (cloudstore/cloudstore.h). */
#ifndef DAEMON_SERVE_SHADOW_H
#define DAEMON_SERVE_SHADOW_H

#include "cloud/endpoint.h"

#include <limits.h>

/* Returns the path of an account's shadow, which need not be there.  Makes the folder that it is in.  Errors
 * as of shadow_prepare(). */
enum err shadow_name(const struct endpoint *at, char ret[PATH_MAX], struct err_detail *why);
/* Finds the shadow of an account, below XDG_CACHE_HOME, or .cache in HOME, and makes it if it is not
 * there.  ret: its path, without links.  ERR_NOT_FOUND: neither variable is set.  Errors of making a
 * store and an account. */
enum err shadow_prepare(const struct endpoint *at, char ret[PATH_MAX], struct err_detail *why);

#endif
