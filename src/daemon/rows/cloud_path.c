/* SPDX-License-Identifier: MIT */
#include "daemon/rows/cloud_path.h"

#include "daemon/rows/rows.h"
#include "service/tree/names.h"

#include <string.h>

enum err cloud_check_account(const struct cmd_env *env, struct span account, struct err_detail *why)
{
	const char *own = client_endpoint(env->client)->account;
	return span_eq(account, span_of(own))
		? ERR_OK
		: err_set(why, ERR_INVALID_INPUT, "the URL is of the account '%s', not of '%.*s'",
			  own, (int)account.n, account.p);
}

/* A digest does not tell the key, and the service cannot look it up. */
static enum err read_name(struct span name, enum filename_kind kind, bool making,
	struct filename *ret, struct err_detail *why)
{
	enum err e = filename_decode(name, kind, ret, why);
	if (e != ERR_OK)
		return name_means_nothing(e) && !making ? ERR_NOT_FOUND : e;
	if (ret->form == FILENAME_DIGEST)
		e = err_set(why, ERR_KEY_MISSING,
			"the name is a digest (%%~) of a key that is not known here; find the row "
			"with: rowfs query");
	return e;
}

static enum err read_row(
	struct span rest, bool making, struct cloud_path *ret, struct err_detail *why)
{
	enum err e = read_name(rest, FILENAME_ROW, making, &ret->rk, why);
	ret->name = rest;
	ret->level = CLOUD_ROW;
	if (e == ERR_OK && ret->rk.form == FILENAME_ORDINARY)
		e = err_set(why, ERR_NAME_INVALID,
			"not the name of a row, which is ACCOUNT/TABLE/PARTITION/KEY.json");
	return e;
}

enum err cloud_path_read(const struct cmd_env *env, const char *path, bool making,
	struct cloud_path *ret, struct err_detail *why)
{
	struct span account, rest;
	*ret = (struct cloud_path){ 0 };
	rows_cut(path, &account, &ret->table, &rest);
	if (account.n == 0)
		return ERR_OK;
	ret->level = ret->table.n > 0 ? CLOUD_TABLE : CLOUD_ACCOUNT;
	ret->name = ret->table.n > 0 ? ret->table : account;
	enum err e = cloud_check_account(env, account, why);
	if (e != ERR_OK || rest.n == 0)
		return e;
	const char *slash = memchr(rest.p, '/', rest.n);
	size_t n = slash != NULL ? (size_t)(slash - rest.p) : rest.n;
	ret->name = span_make(rest.p, n);
	ret->level = CLOUD_PARTITION;
	e = read_name(ret->name, FILENAME_PARTITION, making, &ret->pk, why);
	if (e != ERR_OK || slash == NULL)
		return e;
	while (n < rest.n && rest.p[n] == '/')
		n++;
	return read_row(span_make(rest.p + n, rest.n - n), making, ret, why);
}

struct span cloud_path_pk(const struct cloud_path *p)
{
	return span_make(p->pk.key, p->pk.key_len);
}

struct span cloud_path_rk(const struct cloud_path *p)
{
	return span_make(p->rk.key, p->rk.key_len);
}
