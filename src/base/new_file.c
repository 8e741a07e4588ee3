/* SPDX-License-Identifier: MIT */
#include "base/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum err new_file_place(const char *temp, const char *path, bool replace)
{
	if (replace)
		return rename(temp, path) == 0 ? ERR_OK : err_from_errno(errno);
	if (renameat2(AT_FDCWD, temp, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
		return ERR_OK;
	if (errno == EEXIST)
		return ERR_NAME_EXISTS;
	/* This file system does not support RENAME_NOREPLACE. */
	if (link(temp, path) != 0)
		return errno == EEXIST ? ERR_NAME_EXISTS : err_from_errno(errno);
	(void)unlink(temp);
	return ERR_OK;
}

enum err new_file_sync_name(const char *path)
{
	char *copy = strdup(path);
	if (!copy)
		return ERR_NO_MEMORY;
	int fd = (int)TEMP_FAILURE_RETRY(open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	free(copy);
	/* A directory without read permission cannot be synced; that is not an error. */
	if (fd < 0)
		return errno == EACCES ? ERR_OK : err_from_errno(errno);
	enum err e = TEMP_FAILURE_RETRY(fsync(fd)) == 0 || errno == EINVAL ? ERR_OK
									   : err_from_errno(errno);
	(void)close(fd);
	return e;
}
