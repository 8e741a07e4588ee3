/* SPDX-License-Identifier: MIT */
#include "daemon/core/elsewhere.h"

#include "base/compiler.h"
#include "base/text.h"
#include "cloud/credentials.h"

#include <string.h>

#define SECONDS_MAX 86400

bool elsewhere_is(const char *store)
{
	struct span text = span_of(store);
	return span_starts(text, SPAN_LIT("http://")) || span_starts(text, SPAN_LIT("https://"));
}

bool elsewhere_check(const struct command *c, const struct args *args, FILE *err)
{
	static const struct option_spec options[] = { ELSEWHERE_OPTIONS };
	if ((c->flags & COMMAND_ELSEWHERE) == 0 || elsewhere_is(args->words[0]))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (args_has(args, options[i].name)) {
			(void)command_fail(err, c->name,
				"--%s is for the URL of an account elsewhere, not for a store",
				options[i].name);
			return false;
		}
	return true;
}

static bool read_number(const struct command *c, const struct args *args, const char *name,
	uint64_t most, unsigned *ret, FILE *err)
{
	const char *text = args_value(args, name);
	uint64_t n = 0;
	*ret = 0;
	if (text == NULL)
		return true;
	if (!text_to_u64(span_of(text), &n) || n == 0 || n > most) {
		(void)command_fail(err, c->name, "--%s is a number from 1 to %u, not '%s'", name,
			(unsigned)most, text);
		return false;
	}
	*ret = (unsigned)n;
	return true;
}

/* Standard input cannot be both. */
static bool input_is_free(const struct command *c, const struct args *args, FILE *err)
{
	const char *file = args_value(args, "connection-string");
	bool taken = file != NULL && strcmp(file, "-") == 0;
	bool wanted = c->first_input > 0 && args->nwords <= c->first_input;
	for (int i = c->first_input; c->first_input > 0 && i < args->nwords; i++)
		wanted = wanted || strcmp(args->words[i], "-") == 0;
	if (!taken || !wanted)
		return true;
	(void)command_fail(err, c->name,
		"standard input has the connection string, so the rows come from a FILE");
	return false;
}

bool elsewhere_open(const struct command *c, const struct args *args, struct cmd_env *at, FILE *err)
{
	struct client_options o = { .ca_file = args_value(args, "ca-file"),
		.traffic = &at->traffic,
		.cancelled = at->cancelled,
		.arg = at->cancel_arg };
	struct endpoint endpoint = { 0 };
	struct err_detail why = { 0 };
	unsigned seconds;
	if (!read_number(c, args, "rps", 1000000, &at->traffic.rps, err) ||
		!read_number(c, args, "timeout", SECONDS_MAX, &seconds, err) ||
		!input_is_free(c, args, err))
		return false;
	o.response_ms = seconds * 1000;
	enum err e = credentials_find(
		args_value(args, "connection-string"), args->words[0], &endpoint, &why);
	if (e == ERR_OK)
		e = client_new(&endpoint, &o, &at->client, &why);
	endpoint_wipe(&endpoint);
	if (e != ERR_OK)
		(void)command_fail(err, c->name, "%s", err_message(e, &why));
	return e == ERR_OK;
}
