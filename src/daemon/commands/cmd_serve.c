/* SPDX-License-Identifier: MIT
 * serve: the REST socket alone, in the foreground; with a mount it is an option of that. */
#include "base/compiler.h"
#include "base/text.h"
#include "daemon/core/command.h"
#include "daemon/core/path.h"
#include "daemon/mount/recover.h"
#include "daemon/serve/serve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One option that was given. */
static bool apply(struct mount_options *o, const struct given_option *given, FILE *err)
{
	const char *name = given->spec->name;
	struct err_detail why = { 0 };
	if (strcmp(name, "print-connection") == 0)
		return true;
	if (strcmp(name, "read-only") == 0) {
		o->fs.read_only = true;
		return true;
	}
	enum err e = mount_options_set_shared(o, name, given->value, &why);
	if (e == ERR_OK)
		return true;
	(void)command_fail(err, "serve", "--%s %s", name, err_message(e, &why));
	return false;
}

static bool parse(const struct args *args, struct mount_options *o, FILE *err)
{
	struct err_detail why = { 0 };
	*o = (struct mount_options){ .log_level = LOG_LEVEL_INFO };
	for (int i = 0; i < args->ngiven; i++)
		if (!apply(o, &args->given[i], err))
			return false;
	enum err e = ERR_OK;
	bool usual = o->rest.options.nendpoints == o->rest.nadmin + o->rest.npage;
	const char *endpoint;
	for (size_t i = 0; usual && e == ERR_OK && (endpoint = rest_default_endpoint(i)) != NULL;
		i++)
		e = rest_settings_endpoint(&o->rest, endpoint, &why);
	if (e == ERR_OK)
		e = rest_settings_finish(&o->rest, &why);
	if (e != ERR_OK)
		(void)command_fail(err, "serve", "%s", err_message(e, &why));
	return e == ERR_OK;
}

static bool check(const struct args *args, FILE *err)
{
	struct mount_options *o = malloc(sizeof(*o));
	bool ok = o != NULL && parse(args, o, err);
	free(o);
	return ok;
}

static int run(const struct args *args)
{
	const char *given = args->words[0];
	struct mount_options *o = malloc(sizeof(*o));
	char *store = malloc(PATH_MAX);
	bool found = store != NULL && path_of_store(given, store);
	int code = EXIT_FAILED;
	if (!found && errno == ENOENT) {
		(void)command_fail(stderr, "serve",
			"there is no store '%s'; make it with: rowfs init %s", given, given);
	} else if (!found) {
		(void)command_fail(stderr, "serve", "'%s': %s", given, strerrordesc_np(errno));
	} else if (o != NULL && parse(args, o, stderr)) {
		recover_store(store, "serve");
		struct serve s = { .command = "serve",
			.store = store,
			.options = o,
			.args = args,
			.table = args->table,
			.ready_fd = -1 };
		code = serve(&s);
	}
	free(store);
	free(o);
	return code;
}

static const struct option_spec options[] = {
	{ "access-log", 0, "FILE", "a line for each request; - means standard output" },
	{ "access-log-format", 0, "combined|json", "the form of its lines (default: combined)" },
	{ "access-log-sample", 0, "N", "only one of N requests" },
	{ "access-log-slow", 0, "MS", "only requests that took MS milliseconds or more" },
	{ "admin", 0, "ENDPOINT",
		"where /metrics and /health answer, without credentials; may be given again" },
	{ "admin-public", 0, NULL, "that may be an address that other machines reach" },
	{ "faults", 0, "RULE[;RULE...]",
		"for testing clients: requests that fail on order, such as 'fault=busy op=insert "
		"count=3'" },
	{ "blob-space", 0, "SIZE",
		"the content of all blobs together, as 100G (default 0: what the disk has)" },
	{ "oauth", 0, "basic|jwks:FILE",
		"accept bearer tokens: with the claims that the emulator asks for, or signed by a key "
		"of FILE" },
	{ "page", 0, "ENDPOINT",
		"a page for browsers, on a loopback address; prints a link that opens it once" },
	{ "rest", 0, "ENDPOINT",
		"where to listen; may be given again (default: as the emulator, on 127.0.0.1)" },
	{ "rest-cert", 0, "FILE", "certificate (PEM): TCP with TLS" },
	{ "rest-key", 0, "FILE", "its key (PEM)" },
	{ "rest-tenant", 0, "UUID", "the tenant that answers to bearer tokens name" },
	{ "rest-tls", 0, "strong|legacy",
		"legacy: also ciphers without forward secrecy, for old clients (default: strong)" },
	{ "rest-trust", 0, "UID[:UID...]",
		"users who need no signature on a Unix socket; or none" },
	{ "log", 0, "FILE", "log there instead of to standard error" },
	{ "log-level", 0, "LEVEL", "error, warning, info or debug (default: info)" },
	{ "partition-target", 0, "N",
		"for testing clients: more than N entities a second in one partition are refused "
		"with 503 (default 0: never)" },
	{ "print-connection", 0, "ACCOUNT",
		"print a connection string when ready, which holds the account's key; may be given "
		"again" },
	{ "read-only", 0, NULL, "nothing can be changed; the store file may be read-only" },
	{ NULL },
};

const struct command command_serve = {
	.name = "serve",
	.topic = TOPIC_START,
	.synopsis = "STORE [--rest=ENDPOINT ...]",
	.summary = "Serves the protocols of tables, queues and blobs, without a mount",
	.help = "Stays in the foreground and prints a line for each socket when it is ready; SIGINT\n"
		"and SIGTERM end it, SIGHUP takes a new certificate and opens the log file again.\n"
		"Without --rest it serves the emulator's ports: tables at 10002, queues at 10001,\n"
		"blobs at 10000.\n"
		"ENDPOINT is HOST:PORT, as 127.0.0.1:10002, [::1]:10002 or\n"
		"localhost:0 (port 0: any that is free), or unix:PATH, for tables; with queue= or blob=\n"
		"before it for queues or blobs. On a Unix socket you and\n"
		"root need no signature. --print-connection prints the line 'connect ...' of\n"
		"'rowfs account keys' on standard output, behind these lines.\n",
	.options = options,
	.min_words = 1,
	.max_words = 1,
	.check = check,
	.local = run,
};
