/* SPDX-License-Identifier: MIT */
#include "daemon/core/scratch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
	(void)unlink(s->path);
	(void)rmdir(s->directory);
}
