/* SPDX-License-Identifier: MIT */
#include "daemon/serve/shadow.h"

#include "base/crypto.h"
#include "service/core/accounts.h"
#include "store/engines.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum err make_dir(const char *path, struct err_detail *why)
{
	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return ERR_OK;
	enum err e = err_from_errno(errno);
	return err_set(why, e, "cannot make '%.200s': %s", path, strerrordesc_np(errno));
}

static enum err cache_dir(char ret[PATH_MAX - 128], struct err_detail *why)
{
	const size_t cap = PATH_MAX - 128;
	const char *cache = secure_getenv("XDG_CACHE_HOME"), *home = secure_getenv("HOME");
	int n = -1;
	/* Units of systemd have no HOME, and fstab becomes such units. */
	const struct passwd *user = home == NULL ? getpwuid(geteuid()) : NULL;
	home = user != NULL ? user->pw_dir : home;
	if (cache != NULL && cache[0] == '/')
		n = snprintf(ret, cap, "%s", cache);
	else if (home != NULL && home[0] == '/')
		n = snprintf(ret, cap, "%s/.cache", home);
	if (n < 0)
		return err_set(why, ERR_NOT_FOUND,
			"set HOME or XDG_CACHE_HOME: the mount keeps what it read in a file there");
	if ((size_t)n + sizeof("/rowfs") > cap)
		return ERR_NAME_TOO_LONG;
	enum err e = make_dir(ret, why);
	memcpy(ret + n, "/rowfs", sizeof("/rowfs"));
	return e == ERR_OK ? make_dir(ret, why) : e;
}

enum err shadow_name(const struct endpoint *at, char ret[PATH_MAX], struct err_detail *why)
{
	char dir[PATH_MAX - 128];
	uint8_t digest[32];
	uint64_t id;
	enum err e = cache_dir(dir, why);
	if (e != ERR_OK)
		return e;
	crypto_sha256(span_of(at->url), digest);
	memcpy(&id, digest, sizeof(id));
	(void)snprintf(
		ret, PATH_MAX, "%s/%s-%016llx.rowfs", dir, at->account, (unsigned long long)id);
	return ERR_OK;
}

/* The account's keys are made up: nobody signs with them. */
static enum err make_account(const char *path, struct span name, struct err_detail *why)
{
	struct store *store;
	struct service *s;
	enum err e = store_open(path, 0, &store, NULL, why);
	if (e == ERR_OK)
		e = service_new(store, &s);
	if (e != ERR_OK)
		return e;
	e = account_create(s, ORIGIN_COMMAND, name, NULL, NULL, why);
	service_free(s);
	return e == ERR_ACCOUNT_EXISTS ? ERR_OK : e;
}

enum err shadow_prepare(const struct endpoint *at, char ret[PATH_MAX], struct err_detail *why)
{
	char path[PATH_MAX];
	struct err_detail unused = { 0 };
	enum err e = shadow_name(at, path, why);
	if (e == ERR_OK)
		e = store_create(path, why);
	if (e == ERR_OK)
		e = make_account(path, span_of(at->account), why);
	else if (e == ERR_NAME_EXISTS)
		/* A mount that was killed may have left it without the account.  Where another
		 * process serves it, that process has made the account. */
		e = make_account(path, span_of(at->account), &unused) == ERR_NO_MEMORY
			? ERR_NO_MEMORY
			: ERR_OK;
	if (e != ERR_OK)
		return e;
	return realpath(path, ret) != NULL ? ERR_OK : err_from_errno(errno);
}
