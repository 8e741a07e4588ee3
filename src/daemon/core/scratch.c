/* SPDX-License-Identifier: MIT */
#include "daemon/core/scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *beside(const char *path, const char *suffix, char out[PATH_MAX + 16])
{
	(void)snprintf(out, PATH_MAX + 16, "%s%s", path, suffix);
	return out;
}

bool store_file_has_log(const char *path)
{
	char name[PATH_MAX + 16];
	struct stat st;
	return stat(beside(path, "-wal", name), &st) == 0 && st.st_size > 0;
}

void store_file_remove(const char *path)
{
	char name[PATH_MAX + 16];
	(void)unlink(path);
	(void)unlink(beside(path, "-wal", name));
	(void)unlink(beside(path, "-shm", name));
}

enum err scratch_make(struct scratch *s, const char *purpose, struct err_detail *why)
{
	const char *tmp = getenv("TMPDIR");
	if (tmp == NULL || tmp[0] != '/')
		tmp = "/var/tmp";
	if (snprintf(s->directory, sizeof(s->directory), "%s/rowfs-%s.XXXXXX", tmp, purpose) >=
			(int)sizeof(s->directory) ||
		mkdtemp(s->directory) == NULL) {
		s->directory[0] = 0;
		return err_set(why, err_from_errno(errno), "cannot gather its rows in %s: %s", tmp,
			strerrordesc_np(errno));
	}
	(void)snprintf(s->path, sizeof(s->path), "%s/store", s->directory);
	return ERR_OK;
}

void scratch_remove(struct scratch *s)
{
	if (s->directory[0] == 0)
		return;
	store_file_remove(s->path);
	(void)rmdir(s->directory);
}
