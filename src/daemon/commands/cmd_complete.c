/* SPDX-License-Identifier: MIT
 * complete: how a command line can go on, for the completions of shells.  Commands and options come from
 * the table of commands, names in a store from `rowfs ls`, URLs of running endpoints from the processes that serve them.  Nothing is
 * printed where a file is meant. */
#include "daemon/control/control.h"
#include "daemon/control/execute.h"
#include "daemon/core/account_url.h"
#include "daemon/core/command.h"
#include "daemon/core/self.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define LISTING_MAX ((size_t)256 << 10)
#define URL_MAX 1024
#define URLS_MAX ((size_t)1 << 20)
/* For the answer of one server. */
#define TIMEOUT_US 500000

struct line {
	const struct command_table *table;
	int n; /* words; the last one is incomplete */
	char **words;
	struct span last;
};

static void offer(const struct line *l, struct span word, const char *tail)
{
	if (span_starts(word, l->last))
		printf("%.*s%s\n", (int)word.n, word.p, tail);
}

/* The words of commands: first ones, or those behind the first one of a group. */
static void offer_commands(const struct line *l)
{
	struct span before = { 0 };
	if (l->n > 2)
		return;
	for (size_t i = 0; i < l->table->n; i++) {
		struct span name = span_of(l->table->list[i]->name);
		size_t first = span_find(name, SPAN_LIT(" "));
		if (l->n == 2) {
			if (first < name.n && span_is(span_make(name.p, first), l->words[0]))
				offer(l, span_make(name.p + first + 1, name.n - first - 1), "");
			continue;
		}
		name.n = first;
		if (!span_eq(name, before))
			offer(l, name, "");
		before = name;
	}
}

static void offer_options(const struct line *l, const struct command *c)
{
	char text[64];
	for (const struct option_spec *o = c->options; o != NULL && o->name != NULL; o++) {
		int n = snprintf(text, sizeof(text), "--%s", o->name);
		offer(l, span_make(text, (size_t)n), o->value != NULL ? "=" : "");
	}
	offer(l, SPAN_LIT("--help"), "");
}

/* Accounts, tables, partitions and rows, level by level.  deeper: a directory can go on. */
static void offer_paths(const struct line *l, const char *store, bool deeper)
{
	const char *slash = memrchr(l->last.p, '/', l->last.n);
	size_t dir = slash != NULL ? (size_t)(slash - l->last.p) + 1 : 0;
	char *path = strndup(l->last.p, dir), *names = malloc(LISTING_MAX);
	if (path == NULL || names == NULL)
		goto out;
	const char *const argv[] = { "ls", "--", store, dir > 0 ? path : "/", NULL };
	(void)self_run(argv, names, LISTING_MAX);
	struct line part = *l;
	part.last = span_make(l->last.p + dir, l->last.n - dir);
	for (char *at = names, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
		struct span name = span_make(at, (size_t)(end - at));
		if (!span_starts(name, part.last))
			continue;
		name.n -= !deeper && span_ends(name, SPAN_LIT("/"));
		printf("%s%.*s\n", path, (int)name.n, name.p);
	}
out:
	free(path);
	free(names);
}

static void print_file(int fd)
{
	char text[4096];
	ssize_t n;
	for (off_t at = 0; (n = pread(fd, text, sizeof(text), at)) > 0; at += n)
		(void)fwrite(text, 1, (size_t)n, stdout);
}

/* Prints what the process that serves this store says.  It gets a file of its own: a server that hangs
 * would keep our output open. */
static void ask_for_urls(const struct line *l, const struct stat *store)
{
	const struct timeval timeout = { .tv_usec = TIMEOUT_US };
	char name[] = "complete", end[] = "--";
	char *const argv[] = { name, end, l->words[l->n - 1] };
	int said = memfd_create("rowfs-complete", MFD_CLOEXEC);
	const int fds[EXECUTE_INPUTS] = { [EXECUTE_OUT] = said, [EXECUTE_ERR] = STDERR_FILENO };
	struct ucred server;
	int code, sock = said >= 0 ? control_connect("", store, &server) : -1;
	if (sock >= 0 &&
		setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
		control_call(sock, &server, "", ARRAY_LEN(argv), argv, fds, EXECUTE_INPUTS,
			&code) == CONTROL_DONE)
		print_file(said);
	if (said >= 0)
		(void)close(said);
}

/* The kernel lists the sockets of all servers; one that is not ours to ask refuses. */
static void offer_urls(const struct line *l)
{
	char text[4096];
	FILE *f = fopen("/proc/net/unix", "re");
	while (f != NULL && fgets(text, sizeof(text), f) != NULL) {
		unsigned long long dev, ino;
		const char *name = strstr(text, " @rowfs-");
		if (name == NULL || sscanf(name, " @rowfs-%llx-%llx", &dev, &ino) != 2 ||
			strstr(text, " 00010000 ") == NULL) /* not a connection: it listens */
			continue;
		ask_for_urls(
			l, &(struct stat){ .st_dev = dev, .st_ino = ino, .st_uid = geteuid() });
	}
	if (f != NULL)
		(void)fclose(f);
}

/* Whether the word of a synopsis names what is in the store. */
static bool is_path(struct span word)
{
	return span_starts(word, SPAN_LIT("ACCOUNT")) || span_starts(word, SPAN_LIT("PATH")) ||
		span_starts(word, SPAN_LIT("[PATH")) || span_starts(word, SPAN_LIT("NEW"));
}

static struct span synopsis_word(const char *synopsis, int number, bool *ret_more)
{
	struct span word;
	do {
		word = span_make(synopsis, strcspn(synopsis, " "));
		*ret_more = span_find(word, SPAN_LIT("...")) < word.n;
		synopsis += word.n;
		synopsis += strspn(synopsis, " ");
	} while (number-- > 0 && !*ret_more && *synopsis != 0);
	return word;
}

static void offer_words(const struct line *l, const struct command *c, int named)
{
	const char *store = NULL;
	int number = 0; /* of the word among those that are no options */
	for (int i = named; i < l->n - 1; i++) {
		if (l->words[i][0] == '-')
			continue;
		store = store == NULL ? l->words[i] : store;
		number++;
	}
	bool more;
	struct span word = synopsis_word(c->synopsis, number, &more);
	struct stat st;
	bool account = span_starts(span_of(c->name), SPAN_LIT("account ")) && number == 1 &&
		strcmp(c->name, "account add") != 0;
	if (number == 0 && (c->flags & COMMAND_ELSEWHERE) != 0 &&
		span_starts(l->last, SPAN_LIT("http")))
		offer_urls(l);
	else if (number > 0 && (is_path(word) || account) && stat(store, &st) == 0 &&
		S_ISREG(st.st_mode))
		offer_paths(l, store, !account);
}

static int run(const struct args *args)
{
	struct line l = { args->table, args->nwords, NULL, span_of(args->words[args->nwords - 1]) };
	int named = 0;
	l.words = calloc((size_t)l.n + 1, sizeof(*l.words));
	if (l.words == NULL)
		return EXIT_FAILED;
	for (int i = 0; i < l.n; i++)
		l.words[i] = (char *)(uintptr_t)args->words[i];
	/* Its messages about a store that cannot be opened would be drawn over the line. */
	(void)!freopen("/dev/null", "w", stderr);
	const struct command *c = command_find(l.table, l.n - 1, l.words, &named);
	if (c == NULL)
		offer_commands(&l);
	else if (l.last.n > 0 && l.last.p[0] == '-')
		offer_options(&l, c);
	else if (strcmp(c->name, "help") == 0 && l.n == 2)
		offer_commands(&(struct line){ l.table, 1, l.words, l.last });
	else
		offer_words(&l, c, named);
	free(l.words);
	return EXIT_DONE;
}

/* ---- in the process that serves a store ---- */

struct urls {
	const struct served *served;
	struct span wanted; /* how they begin */
	struct buf text;
};

static bool add_url(void *arg, const struct item *account)
{
	struct urls *u = arg;
	struct buf url = BUF_INIT(URL_MAX);
	if (account_url_add(u->served, 0, account->key, false, &url) && buf_ok(&url) &&
		span_starts(buf_span(&url), u->wanted)) {
		buf_add_span(&u->text, buf_span(&url));
		buf_add_char(&u->text, '\n');
	}
	buf_fini(&url);
	return buf_ok(&u->text);
}

/* Prints the URLs of its accounts that begin with the word. */
static int print_urls(struct cmd_env *env, const struct args *args)
{
	struct urls u = { env->served, span_of(args->words[0]), BUF_INIT(URLS_MAX) };
	if (u.served == NULL || u.served->endpoints[0][0] == 0)
		return EXIT_DONE;
	enum err e = store_list(service_store(env->service), NULL, STORE_ROOT, CLASS_KEYED,
		(struct span){ 0 }, false, WANT_ATTRS, add_url, &u);
	if (u.text.len > 0)
		(void)fwrite(u.text.data, 1, u.text.len, env->out);
	buf_fini(&u.text);
	return e == ERR_OK ? EXIT_DONE : EXIT_FAILED;
}

const struct command command_complete = {
	.name = "complete",
	.topic = TOPIC_HELP,
	.synopsis = "-- WORD...",
	.summary = "Prints how a command line can go on, for shells",
	.help = "The words are those behind 'rowfs'; the last one is incomplete, and may be empty.\n"
		"Prints nothing where the name of a file is expected.\n",
	.min_words = 1,
	.max_words = -1,
	.local = run,
	.data = print_urls,
};
