/* SPDX-License-Identifier: MIT */
#include "daemon/serve/mounted.h"

#include "daemon/core/command.h"
#include "daemon/core/elsewhere.h"
#include "daemon/core/path.h"
#include "daemon/core/signals.h"
#include "daemon/mount/mountinfo.h"
#include "daemon/serve/shadow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Replaces the directory of a mount with what is mounted there. */
static void find_source(char path[PATH_MAX])
{
	char dir[PATH_MAX];
	struct stat st;
	struct mount_entry *m = malloc(sizeof(*m));
	signals_wait_file(path);
	bool is_dir = m != NULL && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
		path_absolute(path, dir);
	signals_go_on();
	if (is_dir && mountinfo_find(dir, m) && strcmp(m->type, MOUNT_TYPE) == 0)
		(void)snprintf(path, PATH_MAX, "%s", m->source);
	free(m);
}

bool mounted_shadow(const char *command, const char *url, char ret[PATH_MAX])
{
	struct endpoint *at = calloc(1, sizeof(*at));
	struct err_detail why = { 0 };
	enum err e = at != NULL ? endpoint_parse_url(span_of(url), at, &why) : ERR_NO_MEMORY;
	if (e == ERR_OK)
		e = shadow_name(at, ret, &why);
	free(at);
	if (e != ERR_OK)
		(void)command_fail(stderr, command, "'%s': %s", url, err_message(e, &why));
	return e == ERR_OK;
}

bool mounted_store(const char *command, const char *given, char ret[PATH_MAX])
{
	char source[PATH_MAX];
	(void)snprintf(source, sizeof(source), "%s", given);
	if (!elsewhere_is(source))
		find_source(source);
	if (!elsewhere_is(source)) {
		memcpy(ret, source, sizeof(source));
		return true;
	}
	if (!mounted_shadow(command, source, ret))
		return false;
	bool mounted = store_holder(ret) != 0;
	if (!mounted)
		(void)command_fail(stderr, command,
			"'%s' is not mounted by you; mount it with: rowfs mount %s DIR", source,
			source);
	return mounted;
}
