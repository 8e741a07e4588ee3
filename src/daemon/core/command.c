/* SPDX-License-Identifier: MIT */
#include "daemon/core/command.h"

#include "daemon/core/suggest.h"

#include <stdarg.h>
#include <string.h>

/* How many words of argv the name takes; 0: it is another command. */
static int match(const char *name, int argc, char *const *argv)
{
	const char *space = strchr(name, ' ');
	size_t n = space != NULL ? (size_t)(space - name) : strlen(name);
	if (argc < 1 || strlen(argv[0]) != n || memcmp(argv[0], name, n) != 0)
		return 0;
	if (space == NULL)
		return 1;
	return argc >= 2 && strcmp(argv[1], space + 1) == 0 ? 2 : 0;
}

const struct command *command_find(
	const struct command_table *t, int argc, char *const *argv, int *ret_words)
{
	for (size_t i = 0; i < t->n; i++) {
		*ret_words = match(t->list[i]->name, argc, argv);
		if (*ret_words > 0)
			return t->list[i];
	}
	return NULL;
}

void command_count(const struct command_table *t, struct service *s, const struct command *c,
	uint64_t us, enum metrics_end end)
{
	size_t operation = 0;
	for (size_t i = 0; t->list[i] != c; i++)
		operation += t->list[i]->data != NULL;
	metrics_count(service_metrics(s), METRICS_COMMAND, operation, us, end);
}

void command_name_operations(const struct command_table *t, struct service *s)
{
	const char *names[COMMAND_TABLE_MAX];
	size_t n = 0;
	for (size_t i = 0; i < t->n; i++)
		if (t->list[i]->data != NULL && n < COMMAND_TABLE_MAX)
			names[n++] = t->list[i]->name;
	metrics_name(service_metrics(s), METRICS_COMMAND, names, n);
}

const char *command_suggest(const struct command_table *t, int argc, char *const *argv)
{
	char words[64];
	const char *best = NULL;
	size_t distance = SIZE_MAX;
	for (int n = 1; n <= 2 && n <= argc; n++) {
		int len = snprintf(words, sizeof(words), "%s%s%s", argv[0], n == 2 ? " " : "",
			n == 2 ? argv[1] : "");
		if (len < 0 || (size_t)len >= sizeof(words))
			break;
		struct suggest s = SUGGEST_INIT(span_of(words));
		for (size_t i = 0; i < t->n; i++)
			suggest_offer(&s, t->list[i]->name);
		if (s.best != NULL && s.distance < distance) {
			best = s.best;
			distance = s.distance;
		}
	}
	return best;
}

static bool in_group(const struct command *c, const char *word)
{
	size_t n = strlen(word);
	return strncmp(c->name, word, n) == 0 && c->name[n] == ' ';
}

bool command_group(const struct command_table *t, const char *word)
{
	for (size_t i = 0; i < t->n; i++)
		if (in_group(t->list[i], word))
			return true;
	return false;
}

static const char *const topics[TOPIC_COUNT_] = {
	[TOPIC_START] = "Start and end",
	[TOPIC_ROWS] = "Rows",
	[TOPIC_ACCOUNTS] = "Accounts",
	[TOPIC_CARE] = "Care of a store",
	[TOPIC_HELP] = "Help",
};

void command_help_all(const struct command_table *t, const char *group, FILE *out)
{
	if (group == NULL)
		fputs("Table storage as a filesystem: rows are files, in one store.\n\n"
		      "usage: rowfs COMMAND ...\n\n",
			out);
	for (size_t k = 0; k < TOPIC_COUNT_; k++) {
		bool shown = false;
		for (size_t i = 0; i < t->n; i++) {
			const struct command *c = t->list[i];
			if (c->topic != k || (group != NULL && !in_group(c, group)))
				continue;
			if (!shown && group == NULL)
				fprintf(out, "%s%s:\n", k > 0 ? "\n" : "", topics[k]);
			shown = true;
			fprintf(out, "  %-18s  %s\n", c->name, c->summary);
		}
	}
	fputs("\n'rowfs help COMMAND' tells more; rowfs(5) tells what a mount shows.\n", out);
}

void command_help(const struct command *c, FILE *out)
{
	fprintf(out, "usage: rowfs %s %s\n\n%s.\n", c->name, c->synopsis, c->summary);
	if (c->help != NULL)
		fprintf(out, "\n%s", c->help);
	if (c->options != NULL && c->options->name != NULL)
		fputc('\n', out);
	for (const struct option_spec *o = c->options; o != NULL && o->name != NULL; o++) {
		char left[64];
		char letter[5] = "    ";
		if (o->letter != 0)
			snprintf(letter, sizeof(letter), "-%c, ", o->letter);
		snprintf(left, sizeof(left), "%s--%s%s%s", letter, o->name,
			o->value != NULL ? "=" : "", o->value != NULL ? o->value : "");
		fprintf(out, "  %-26s  %s\n", left, o->help);
	}
}

/* The word of a synopsis with this number, of those that must be given: those before the first
 * option or bracket. */
static struct span word_of(const char *synopsis, int number)
{
	while (number-- > 0) {
		const char *space = strchr(synopsis, ' ');
		synopsis = space != NULL ? space + 1 : "";
	}
	return span_make(synopsis, strcspn(synopsis, " "));
}

bool command_parse(
	const struct command *c, int argc, char *const *argv, struct args *ret, FILE *err)
{
	if (!args_parse(ret, c->name, c->options, argc, argv, err)) {
		fprintf(err, "usage: rowfs %s %s\n", c->name, c->synopsis);
		return false;
	}
	if (ret->help)
		return true;
	bool missing = ret->nwords < c->min_words;
	if (missing || (c->max_words >= 0 && ret->nwords > c->max_words)) {
		struct span word = missing ? word_of(c->synopsis, ret->nwords)
					   : span_of(ret->words[c->max_words]);
		fprintf(err,
			missing ? "rowfs %s: %.*s is missing\n"
				: "rowfs %s: '%.*s' is one word too many\n",
			c->name, (int)word.n, word.p);
		fprintf(err, "usage: rowfs %s %s\n", c->name, c->synopsis);
		return false;
	}
	return c->check == NULL || c->check(ret, err);
}

bool command_upgraded(struct service *s, const char *store, char *out, size_t n)
{
	struct store_info info;
	store_info(service_store(s), &info);
	const char *copy = info.kept_copy;
	(void)snprintf(out, n,
		"'%s' was written by an older rowfs, with schema version %d, and is upgraded%s%s",
		store, info.upgraded_from, copy != NULL ? "; a copy as it was is " : "",
		copy != NULL ? copy : "");
	return info.upgraded_from != 0;
}

int command_fail(FILE *err, const char *command, const char *fmt, ...)
{
	char text[1024];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	/* One call: lines of several threads do not mix. */
	fprintf(err, "rowfs %s: %s\n", command, text);
	return EXIT_FAILED;
}
