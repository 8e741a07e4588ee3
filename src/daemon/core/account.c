/* SPDX-License-Identifier: MIT */
#include "daemon/core/account.h"

#include "base/crypto.h"
#include "daemon/core/account_url.h"

#include <string.h>

#define KEY_TEXT_MAX 256
#define URL_MAX ((size_t)64 << 10)

bool account_check(const struct args *args, FILE *err)
{
	return account_url_check(args, "account", err);
}

static void add_keys(const struct account_keys *keys, struct buf text[2])
{
	for (int i = 0; i < 2; i++) {
		text[i] = (struct buf)BUF_INIT(KEY_TEXT_MAX);
		base64_encode(span_make(keys->key[i], keys->len[i]), &text[i]);
	}
}

static void wipe_keys(struct buf text[2])
{
	for (int i = 0; i < 2; i++)
		buf_wipe(&text[i]);
}

/* Adds "TableEndpoint=URL;". */
static void add_endpoint(size_t service, struct span url, struct buf *out)
{
	const char *name = rest_service_name(service);
	buf_addf(out, "%c%sEndpoint=", name[0] - 'a' + 'A', name + 1);
	buf_add_span(out, url);
	buf_add_char(out, ';');
}

/* Adds the endpoint of each service that is served, the tables' last; --url is that of tables. */
static bool add_endpoints(
	struct cmd_env *env, const struct args *args, const char *name, struct buf *out)
{
	const char *given = args_value(args, "url");
	struct buf url = BUF_INIT(URL_MAX);
	bool https = false;
	size_t n = 0;
	while (rest_service_name(n) != NULL)
		n++;
	while (n-- > 0) {
		url.len = 0;
		if (given != NULL && n == 0)
			account_url_add_given(given, &url);
		else if (given != NULL ||
			!account_url_add(env->served, n, span_of(name), false, &url))
			continue;
		https = span_starts(buf_span(&url), SPAN_LIT("https:"));
		add_endpoint(n, buf_span(&url), out);
	}
	buf_fini(&url);
	return https;
}

/* The Unix socket where the endpoints are, NULL without one. */
static const char *socket_of(const struct cmd_env *env, const struct args *args)
{
	return args_has(args, "url") ? NULL : account_url_socket(env->served);
}

/* The connection string.  buf_wipe() follows. */
static bool make_connection(struct cmd_env *env, const struct args *args, const char *name,
	const struct buf *key, struct buf *ret)
{
	struct buf endpoints = BUF_INIT(URL_MAX);
	bool https = add_endpoints(env, args, name, &endpoints);
	bool ok = buf_ok(&endpoints) && buf_ok(key);
	*ret = (struct buf)BUF_INIT(URL_MAX + 1024);
	if (ok && buf_reserve(ret, 1024 + endpoints.len))
		buf_addf(ret, "DefaultEndpointsProtocol=%s;AccountName=%s;AccountKey=%s;%s",
			https ? "https" : "http", name, key->data, endpoints.data);
	buf_fini(&endpoints);
	return ok && buf_ok(ret);
}

static bool print_connection(
	struct cmd_env *env, const struct args *args, const char *name, const struct buf *key)
{
	const char *path = socket_of(env, args);
	struct buf connection;
	bool ok = make_connection(env, args, name, key, &connection);
	if (ok && path != NULL)
		fprintf(env->out, "socket   %s\n", path);
	if (ok)
		fprintf(env->out, "connect  %s\n", connection.data);
	buf_wipe(&connection);
	return ok;
}

static void add_member(struct buf *out, const char *name, const char *value)
{
	buf_addf(out, "%c\"%s\":", out->len == 0 ? '{' : ',', name);
	buf_add_json(out, span_of(value));
}

/* By hand: what a library copies could not be wiped. */
static bool print_json(
	struct cmd_env *env, const struct args *args, const char *name, const struct buf text[2])
{
	struct buf connection, out = BUF_INIT(2 * URL_MAX);
	bool ok = make_connection(env, args, name, &text[0], &connection);
	if (ok && buf_reserve(&out, 2048 + 2 * connection.len)) {
		add_member(&out, "account", name);
		add_member(&out, "key1", text[0].data);
		add_member(&out, "key2", text[1].data);
		if (socket_of(env, args) != NULL)
			add_member(&out, "socket", socket_of(env, args));
		add_member(&out, "connection_string", connection.data);
		buf_add_str(&out, "}\n");
	}
	ok = ok && buf_ok(&out);
	if (ok)
		(void)fwrite(out.data, 1, out.len, env->out);
	buf_wipe(&connection);
	buf_wipe(&out);
	return ok;
}

int account_print(struct cmd_env *env, const struct args *args, const char *name,
	const struct account_keys *keys)
{
	struct buf text[2];
	add_keys(keys, text);
	bool ok = buf_ok(&text[0]) && buf_ok(&text[1]);
	if (ok && args_has(args, "json")) {
		ok = print_json(env, args, name, text);
	} else if (ok) {
		fprintf(env->out, "account  %s\nkey1     %s\nkey2     %s\n", name, text[0].data,
			text[1].data);
		ok = print_connection(env, args, name, &text[0]);
	}
	wipe_keys(text);
	return ok ? EXIT_DONE : command_fail(env->err, "account", "out of memory");
}

int account_must_exist(
	struct cmd_env *env, const struct args *args, const char *command, const char *name)
{
	struct item account = { 0 };
	enum err e = account_find(env->service, span_of(name), &account);
	(void)args;
	item_fini(&account);
	return e == ERR_OK ? EXIT_DONE : account_fail(env, command, name, e, NULL);
}

int account_print_connection(
	struct cmd_env *env, const struct args *args, const char *command, const char *name)
{
	struct account_keys keys;
	struct buf text[2];
	enum err e = account_keys_get(env->service, span_of(name), &keys);
	if (e != ERR_OK)
		return account_fail(env, command, name, e, NULL);
	add_keys(&keys, text);
	bool ok = print_connection(env, args, name, &text[0]);
	wipe_keys(text);
	explicit_bzero(&keys, sizeof(keys));
	return ok ? EXIT_DONE : command_fail(env->err, command, "out of memory");
}

int account_fail(struct cmd_env *env, const char *command, const char *name, enum err e,
	const struct err_detail *why)
{
	if (e == ERR_ACCOUNT_NOT_FOUND && strcmp(command, "account keys") != 0 &&
		strcmp(command, "serve") != 0)
		return command_fail(env->err, command,
			"there is no account '%s'; see: rowfs account list %s", name, env->store);
	if (e == ERR_ACCOUNT_NOT_FOUND)
		return command_fail(env->err, command,
			"there is no account '%s'; make it with: rowfs account add %s %s", name,
			env->store, name);
	if (e == ERR_ACCOUNT_EXISTS)
		return command_fail(env->err, command,
			"there is an account '%s' already; its keys: rowfs account keys %s %s",
			name, env->store, name);
	return command_fail(env->err, command, "'%s': %s", name, err_message(e, why));
}
