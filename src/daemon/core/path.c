/* SPDX-License-Identifier: MIT */
#include "daemon/core/path.h"

#include "store/engines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

bool path_of_store(const char *store, char ret[PATH_MAX])
{
	if (!store_is_remote(store))
		return realpath(store, ret) != NULL;
	char conf[PATH_MAX];
	const char *given = getenv("CEPH_CONF");
	bool add = given != NULL && strstr(store, "conf=") == NULL && realpath(given, conf) != NULL;
	char stop = strchr(store, '?') != NULL ? '&' : '?';
	int n = add ? snprintf(ret, PATH_MAX, "%s%cconf=%s", store, stop, conf)
		    : snprintf(ret, PATH_MAX, "%s", store);
	errno = ENAMETOOLONG;
	return n < PATH_MAX;
}

bool path_stat_store(const char *store, struct stat *ret)
{
	if (!store_is_remote(store))
		return stat(store, ret) == 0;
	uint8_t digest[32];
	store_remote_digest(store, digest);
	*ret = (struct stat){ .st_uid = geteuid() };
	memcpy(&ret->st_ino, digest, sizeof(ret->st_ino));
	return true;
}
