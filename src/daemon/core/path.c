/* SPDX-License-Identifier: MIT */
#include "daemon/core/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool path_absolute(const char *path, char ret[PATH_MAX])
{
	if (realpath(path, ret) != NULL)
		return true;
	int code = errno;
	char parent[PATH_MAX];
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		n--;
	size_t slash = n;
	while (slash > 0 && path[slash - 1] != '/')
		slash--;
	if (n == 0 || n - slash > NAME_MAX || slash >= sizeof(parent)) {
		errno = n == 0 ? ENOENT : ENAMETOOLONG;
		return false;
	}
	memcpy(parent, path, slash);
	parent[slash] = '\0';
	char *base = realpath(slash > 0 ? parent : ".", NULL);
	if (base == NULL)
		return false;
	int len = snprintf(ret, PATH_MAX, "%s/%.*s", strcmp(base, "/") == 0 ? "" : base,
		(int)(n - slash), path + slash);
	free(base);
	errno = code;
	return len > 0 && len < PATH_MAX;
}
