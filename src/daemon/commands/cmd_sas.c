/* SPDX-License-Identifier: MIT
 * sas: makes a shared access signature, and prints it as a URL.  The signed text is the same for an
 * empty field and for one that is not there.  So the holder of the URL could take an empty limit
 * out of it: such a limit is refused here. */
#include "base/clock.h"
#include "base/text.h"
#include "codec/uri.h"
#include "daemon/core/account.h"
#include "daemon/core/account_url.h"
#include "daemon/core/table_arg.h"
#include "query/key_ranges.h"
#include "service/blobs/containers.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/queue/queues.h"
#include "service/sas/sas.h"

#include <string.h>

#define VERSION "2019-02-02" /* what the SDKs sign */
/* In the order in which the service wants them. */
#define TYPE_LETTERS "sco"
#define URL_LIMIT ((size_t)64 << 10)

/* A service that tokens can be for; letters in the order in which the service wants them. */
struct kind {
	const char *letter, *account_letters;
	const struct sas_service *sas;
	const char *form; /* of the argument that names a table or queue */
};
static const struct kind tables = { "t", "rwdlacu", &sas_tables, "ACCOUNT/TABLE" };
static const struct kind queues = { "q", "rwdlacup", &sas_queues, "ACCOUNT/QUEUE" };
static const struct kind blobs = { "b", "rwdlac", &sas_blobs, "ACCOUNT/CONTAINER" };

/* What the command line asks for. */
struct order {
	const struct kind *kind;
	/* table: or the queue, container or container/blob; p is NULL: an account SAS */
	struct span account, table;
	char permissions[9], types[4];
	char start[CLOCK_TEXT_MAX], expiry[CLOCK_TEXT_MAX];
	int64_t start_ticks, expiry_ticks; /* 0: not given */
	int key;
};

static struct span option(const struct args *args, const char *name)
{
	const char *value = args_value(args, name);

	return value != NULL ? span_of(value) : (struct span){ NULL, 0 };
}

/* ---- letters ---- */

/* Each letter once, in the order of `all`. */
static bool read_letters(
	const struct args *args, const char *name, const char *all, char *out, FILE *err)
{
	const char *text = args_value(args, name);
	uint32_t bits;

	*out = '\0';
	if (text == NULL)
		return true;
	if (*text == '\0' || !sas_letters(span_of(text), all, &bits)) {
		(void)command_fail(
			err, "sas", "--%s is one or more of '%s', not '%s'", name, all, text);
		return false;
	}
	for (; *all != '\0'; all++) {
		if ((bits & UINT32_C(1) << (*all - 'a')) != 0)
			*out++ = *all;
	}
	*out = '\0';
	return true;
}

/* ---- times ---- */

static int64_t unit_ticks(char c)
{
	switch (c) {
	case 's':
		return TICKS_PER_SECOND;
	case 'm':
		return 60 * TICKS_PER_SECOND;
	case 'h':
		return 3600 * TICKS_PER_SECOND;
	case 'd':
		return 86400 * TICKS_PER_SECOND;
	default:
		return 0;
	}
}

/* "+90m": from now on, in whole seconds. */
static bool parse_relative(struct span text, int64_t *ret)
{
	int64_t unit = text.n < 3 ? 0 : unit_ticks(text.p[text.n - 1]), n;
	int64_t now = clock_ticks() / TICKS_PER_SECOND * TICKS_PER_SECOND;

	return unit > 0 && text.p[1] >= '0' && text.p[1] <= '9' &&
		text_to_i64(span_make(text.p + 1, text.n - 2), &n) &&
		!__builtin_mul_overflow(n, unit, &n) && !__builtin_add_overflow(now, n, ret);
}

static bool read_time(const struct args *args, const char *name, char out[CLOCK_TEXT_MAX],
	int64_t *ret, FILE *err)
{
	struct span text = option(args, name);
	bool ok;

	*ret = 0;
	out[0] = '\0';
	if (text.p == NULL)
		return true;
	ok = span_starts(text, SPAN_LIT("+")) ? parse_relative(text, ret)
					      : policy_time_parse(text, ret);
	if (!ok || *ret <= 0 || *ret > TICKS_MAX) {
		(void)command_fail(err, "sas",
			"--%s is a time such as 2030-01-31T12:00:00Z, or +30m, +12h, +7d from "
			"now, not '%s'",
			name, text.p);
		return false;
	}
	(void)clock_format(*ret, out);
	return true;
}

static bool read_times(const struct args *args, struct order *o, FILE *err)
{
	if (!read_time(args, "start", o->start, &o->start_ticks, err) ||
		!read_time(args, "expiry", o->expiry, &o->expiry_ticks, err))
		return false;
	if (o->expiry_ticks == 0)
		return true;
	if (o->expiry_ticks <= clock_ticks()) {
		(void)command_fail(err, "sas", "--expiry=%s has passed", o->expiry);
		return false;
	}
	if (o->start_ticks >= o->expiry_ticks) {
		(void)command_fail(
			err, "sas", "--start=%s is not before --expiry=%s", o->start, o->expiry);
		return false;
	}
	return true;
}

/* ---- the other options ---- */

static bool check_ip(const struct args *args, FILE *err)
{
	struct span text = option(args, "ip");
	struct sas_ip range;

	if (text.p == NULL)
		return true;
	if (sas_ip_parse(text, &range) && memcmp(range.from, range.to, sizeof(range.to)) <= 0)
		return true;
	(void)command_fail(err, "sas",
		"--ip is an address or a range of them, such as 10.0.0.1-10.0.0.9, not '%s'",
		text.p);
	return false;
}

static bool check_url(const struct args *args, FILE *err)
{
	struct span url = option(args, "url");

	if (!account_url_check(args, "sas", err))
		return false;
	if (url.p == NULL || !args_has(args, "https-only") ||
		span_starts(url, SPAN_LIT("https://")))
		return true;
	(void)command_fail(err, "sas", "--https-only is of no use at '%s'", url.p);
	return false;
}

static bool read_key(const struct args *args, int *ret, FILE *err)
{
	const char *text = args_value(args, "key");

	*ret = text != NULL && strcmp(text, "2") == 0;
	if (text == NULL || *ret == 1 || strcmp(text, "1") == 0)
		return true;
	(void)command_fail(err, "sas", "--key is 1 or 2, not '%s'", text);
	return false;
}

/* An option that must be there, or must not. */
static bool expect(const struct args *args, const char *name, bool wanted, FILE *err)
{
	if (args_has(args, name) == wanted)
		return true;
	(void)command_fail(err, "sas",
		wanted ? "--%s is missing" : "--%s does not go with this kind of token", name);
	return false;
}

static const char *const range_options[] = { "from-pk", "from-rk", "to-pk", "to-rk" };

/* An empty upper bound could be taken out of the URL, and the signature still hold. */
static const char *range_mistake(const struct args *args)
{
	struct span from_pk = option(args, "from-pk"), from_rk = option(args, "from-rk");
	struct span to_pk = option(args, "to-pk"), to_rk = option(args, "to-rk");

	if (from_rk.p != NULL && from_pk.p == NULL)
		return "--from-rk needs --from-pk";
	if (to_rk.p != NULL && to_pk.p == NULL)
		return "--to-rk needs --to-pk";
	if (to_rk.p != NULL && to_rk.n == 0)
		return "--to-rk cannot be empty: a signature cannot hold that";
	if (to_pk.p != NULL && to_pk.n == 0 && to_rk.p == NULL)
		return "--to-pk cannot be empty without --to-rk: a signature cannot hold that";
	for (size_t i = 0; i < ARRAY_LEN(range_options); i++) {
		struct span key = option(args, range_options[i]);
		if (!utf8_valid(key) || (key.n > 0 && memchr(key.p, '\n', key.n) != NULL))
			return "a key is UTF-8 without line breaks";
	}
	return NULL;
}

static bool check_range(const struct args *args, FILE *err)
{
	const char *mistake = range_mistake(args);
	struct key_ranges range = { 0 };

	if (mistake == NULL) {
		enum err e = key_ranges_between(option(args, "from-pk"), option(args, "from-rk"),
			option(args, "to-pk"), option(args, "to-rk"), &range);
		if (e != ERR_OK)
			mistake = err_text(e);
		else if (range.n == 0)
			mistake = "no key is in that range: it ends before it begins";
		key_ranges_fini(&range);
	}
	if (mistake != NULL)
		(void)command_fail(err, "sas", "%s", mistake);
	return mistake == NULL;
}

/* ---- the two kinds ---- */

static bool no_range(const struct args *args, FILE *err)
{
	for (size_t i = 0; i < ARRAY_LEN(range_options); i++) {
		if (!expect(args, range_options[i], false, err))
			return false;
	}
	return true;
}

static bool read_table_order(const struct args *args, struct order *o, FILE *err)
{
	bool policy = args_has(args, "policy");

	if (policy && option(args, "policy").n == 0) {
		(void)command_fail(err, "sas", "--policy is the id of a stored policy");
		return false;
	}
	return (policy ||
		       (expect(args, "permissions", true, err) &&
			       expect(args, "expiry", true, err))) &&
		expect(args, "resource-types", false, err) &&
		read_letters(args, "permissions", o->kind->sas->permissions, o->permissions, err) &&
		(o->kind == &tables ? check_range(args, err) : no_range(args, err));
}

static bool read_account_order(const struct args *args, struct order *o, FILE *err)
{
	return no_range(args, err) && expect(args, "policy", false, err) &&
		expect(args, "permissions", true, err) &&
		expect(args, "resource-types", true, err) && expect(args, "expiry", true, err) &&
		read_letters(args, "permissions", o->kind->account_letters, o->permissions, err) &&
		read_letters(args, "resource-types", TYPE_LETTERS, o->types, err);
}

static bool read_service(const struct args *args, const struct kind **ret, FILE *err)
{
	const char *text = args_value(args, "service");

	*ret = text == NULL                          ? &tables
		: strcmp(text, sas_queues.name) == 0 ? &queues
		: strcmp(text, sas_blobs.name) == 0  ? &blobs
						     : &tables;
	if (text == NULL || strcmp(text, (*ret)->sas->name) == 0)
		return true;
	(void)command_fail(err, "sas", "--service is table, queue or blob, not '%s'", text);
	return false;
}

static bool read_order(const struct args *args, struct order *o, FILE *err)
{
	const char *where = args->words[1];

	*o = (struct order){ .account = span_of(where) };
	if (!read_service(args, &o->kind, err))
		return false;
	if (o->kind == &blobs && strchr(where, '/') != NULL) {
		/* A blob's name may have slashes. */
		o->account.n = strcspn(where, "/");
		o->table = span_of(where + o->account.n + 1);
	} else if (strchr(where, '/') != NULL) {
		struct table_arg at;
		if (!table_arg_parse(where, o->kind->form, "sas", &at, err))
			return false;
		o->account = at.account;
		o->table = at.table;
	}
	return read_times(args, o, err) &&
		(o->table.p != NULL ? read_table_order(args, o, err)
				    : read_account_order(args, o, err)) &&
		check_ip(args, err) && check_url(args, err) && read_key(args, &o->key, err);
}

static bool check(const struct args *args, FILE *err)
{
	struct order o;

	return read_order(args, &o, err);
}

/* ---- making it ---- */

static struct span text_or_none(const char *text)
{
	return text[0] != '\0' ? span_of(text) : (struct span){ NULL, 0 };
}

static void fill(const struct args *args, const struct order *o, struct span table, struct sas *s)
{
	*s = (struct sas){ .of = o->kind->sas,
		.sv = SPAN_LIT(VERSION),
		.sp = text_or_none(o->permissions),
		.st = text_or_none(o->start),
		.se = text_or_none(o->expiry),
		.sip = option(args, "ip") };
	if (args_has(args, "https-only"))
		s->spr = SPAN_LIT("https");
	if (o->table.p == NULL) {
		s->ss = span_of(o->kind->letter);
		s->srt = span_of(o->types);
		return;
	}
	s->si = option(args, "policy");
	if (o->kind != &tables) {
		size_t n = span_find(table, SPAN_LIT("/"));
		s->container = span_make(table.p, n);
		s->blob = table;
		if (o->kind == &blobs)
			s->sr = n < table.n ? SPAN_LIT("b") : SPAN_LIT("c");
		return;
	}
	s->tn = table;
	s->spk = option(args, "from-pk");
	s->srk = option(args, "from-rk");
	s->epk = option(args, "to-pk");
	s->erk = option(args, "to-rk");
}

/* A policy that the server would not take, or that has expired, is told now. */
static int check_terms(struct cmd_env *env, const struct order *o, const struct sas *s)
{
	struct sas_terms t;
	struct err_detail why = { 0 };
	int64_t expiry = 0;
	enum err e = sas_terms_read(env->service, o->account, s, &t, &why);
	int code = EXIT_DONE;

	if (e != ERR_OK)
		code = command_fail(env->err, "sas", "%s", err_message(e, &why));
	else if (!policy_time_parse(t.expiry, &expiry) || expiry <= clock_ticks())
		code = command_fail(env->err, "sas", "the token would have expired at %.*s",
			(int)t.expiry.n, t.expiry.p);
	sas_terms_fini(&t);
	return code;
}

static enum err sign(struct cmd_env *env, const struct order *o, struct sas *s, struct buf *sig)
{
	struct account_keys keys;
	enum err e = account_keys_get(env->service, o->account, &keys);

	if (e == ERR_OK)
		e = sas_sign(s, o->account, span_make(keys.key[o->key], keys.len[o->key]), sig);
	explicit_bzero(&keys, sizeof(keys));
	s->sig = buf_span(sig);
	return e;
}

static size_t place_of(const struct kind *kind)
{
	size_t i = 0;
	while (strcmp(rest_service_name(i), kind->sas->name) != 0)
		i++;
	return i;
}

static bool add_account(
	struct cmd_env *env, const struct args *args, const struct order *o, struct buf *url)
{
	const char *given = args_value(args, "url");
	if (given == NULL)
		return account_url_add(env->served, place_of(o->kind), o->account,
			args_has(args, "https-only"), url);
	account_url_add_given(given, url);
	return true;
}

/* A blob's name can have any characters. */
static void add_path(struct span path, struct buf *url)
{
	while (path.n > 0) {
		size_t n = span_find(path, SPAN_LIT("/"));
		percent_encode_value(span_make(path.p, n), url);
		if (n < path.n)
			buf_add_char(url, '/');
		n += n < path.n;
		path = span_make(path.p + n, path.n - n);
	}
}

static int print(struct cmd_env *env, const struct args *args, const struct order *o,
	struct span table, const struct sas *s)
{
	struct buf url = BUF_INIT(URL_LIMIT);
	int code = EXIT_DONE;

	if (!add_account(env, args, o, &url))
		return command_fail(env->err, "sas",
			"the serving process has no endpoint for service '%s'; say with --url=URL "
			"where it is",
			o->kind->sas->name);
	buf_add_char(&url, '/');
	add_path(table, &url);
	buf_add_char(&url, '?');
	sas_to_query(s, &url);
	if (buf_ok(&url))
		fprintf(env->out, "%s\n", url.data);
	else
		code = command_fail(env->err, "sas", "the URL is too long");
	buf_fini(&url);
	return code;
}

/* table: in its own case; empty for an account SAS. */
static int make(
	struct cmd_env *env, const struct args *args, const struct order *o, struct span table)
{
	struct sas s;
	struct buf sig = BUF_INIT(64);

	fill(args, o, table, &s);
	int code = check_terms(env, o, &s);
	if (code == EXIT_DONE) {
		enum err e = sign(env, o, &s, &sig);
		code = e != ERR_OK ? account_fail(env, "sas", args->words[1], e, NULL)
				   : print(env, args, o, table, &s);
	}
	buf_fini(&sig);
	return code;
}

/* A token for a table that is not there would open nothing, most often because of a slip;
 * and what is printed has the name in the case it was given at its making. */
static int make_for_table(struct cmd_env *env, const struct args *args, const struct order *o)
{
	struct table_arg at = { o->account, o->table };
	struct item it = { 0 };
	enum err e = table_find(env->service, o->account, o->table, &it);

	if (e != ERR_OK)
		return table_arg_fail(env, "sas", &at, e, NULL);
	int code = make(env, args, o, it.name);
	item_fini(&it);
	return code;
}

static int make_for_queue(struct cmd_env *env, const struct args *args, const struct order *o)
{
	struct table_arg at = { o->account, o->table };
	struct item it = { 0 };
	uint64_t id;
	enum err e = account_find(env->service, o->account, &it);

	if (e == ERR_OK) {
		e = queue_id(env->service, it.id, o->table, &id);
		item_fini(&it);
	}
	return e != ERR_OK ? table_arg_fail(env, "sas", &at, e, NULL)
			   : make(env, args, o, o->table);
}

/* The blob itself need not be there: a token may be for putting it. */
static int make_for_container(struct cmd_env *env, const struct args *args, const struct order *o)
{
	size_t n = span_find(o->table, SPAN_LIT("/"));
	struct table_arg at = { o->account, span_make(o->table.p, n) };
	struct item it = { 0 };
	uint64_t id;
	enum err e = account_find(env->service, o->account, &it);

	if (e == ERR_OK) {
		e = container_id(env->service, it.id, at.table, &id);
		item_fini(&it);
	}
	return e != ERR_OK ? table_arg_fail(env, "sas", &at, e, NULL)
			   : make(env, args, o, o->table);
}

static int run(struct cmd_env *env, const struct args *args)
{
	struct order o;

	if (!read_order(args, &o, env->err))
		return EXIT_USAGE;
	if (o.table.p == NULL)
		return make(env, args, &o, SPAN_LIT(""));
	if (o.kind == &blobs)
		return make_for_container(env, args, &o);
	return o.kind == &queues ? make_for_queue(env, args, &o) : make_for_table(env, args, &o);
}

static const struct option_spec options[] = {
	{ "permissions", 0, "LETTERS",
		"of raud (table), raup (queue), racwdl (blob), rwdlacup (account)" },
	{ "service", 0, "NAME", "table, queue or blob; default: table" },
	{ "expiry", 0, "TIME", "when it ends: 2030-01-31, +12h, +7d" },
	{ "start", 0, "TIME", "when it begins; by default at once" },
	{ "policy", 0, "ID", "a stored policy gives what is not given here" },
	{ "resource-types", 0, "LETTERS",
		"account: of s (service), c (tables, queues, containers), o (rows, messages, blobs)" },
	{ "ip", 0, "A[-B]", "from these addresses only" },
	{ "https-only", 0, NULL, "with TLS only" },
	{ "from-pk", 0, "KEY", "table: not below this PartitionKey" },
	{ "from-rk", 0, "KEY", "table: there, not below this RowKey" },
	{ "to-pk", 0, "KEY", "table: not above this PartitionKey" },
	{ "to-rk", 0, "KEY", "table: there, not above this RowKey" },
	{ "key", 0, "1|2", "which key of the account signs; default: 1" },
	{ "url", 0, "URL", "the account's URL for clients; default: of the serving process" },
	{ NULL },
};

const struct command command_sas = {
	.name = "sas",
	.topic = TOPIC_ACCOUNTS,
	.synopsis = "STORE ACCOUNT[/NAME] --permissions=LETTERS --expiry=TIME [OPTION ...]",
	.summary = "Makes a URL that gives access to a table, a queue, a blob or an account (SAS)",
	.help = "The holder of the URL has the access, until it expires or the key that signed it is\n"
		"regenerated.  For a table: r query, a add, u update, d delete.  For an account also\n"
		"w write, l list, c create, and --resource-types is needed.  With --service=queue\n"
		"NAME is a queue: r peek, a put, u update, p get and delete.  With --service=blob NAME\n"
		"is a container or CONTAINER/BLOB: r read, a append, c create, w write, d delete, l\n"
		"list (containers).  With --policy the\n"
		"permissions and the expiry can stay with the table, queue or container, where they can be\n"
		"changed.\n",
	.options = options,
	.min_words = 2,
	.max_words = 2,
	.flags = COMMAND_READS,
	.data = run,
	.check = check,
};
