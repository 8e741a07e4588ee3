/* SPDX-License-Identifier: MIT */
#include "daemon/core/args.h"

#include "daemon/core/suggest.h"

#include <stdlib.h>
#include <string.h>

struct parser {
	struct args *a;
	const char *command;
	const struct option_spec *specs;
	int argc, at;
	char *const *argv;
	FILE *err;
};

static const struct option_spec help_spec = { "help", 'h', NULL, NULL };

static const struct option_spec *by_name(const struct parser *p, const char *name, size_t n)
{
	if (n == 4 && memcmp(name, "help", 4) == 0)
		return &help_spec;
	for (const struct option_spec *s = p->specs; s != NULL && s->name != NULL; s++)
		if (strlen(s->name) == n && memcmp(s->name, name, n) == 0)
			return s;
	return NULL;
}

static const struct option_spec *by_letter(const struct parser *p, char letter)
{
	if (letter == 'h')
		return &help_spec;
	for (const struct option_spec *s = p->specs; s != NULL && s->name != NULL; s++)
		if (s->letter == letter)
			return s;
	return NULL;
}

static void give(struct parser *p, const struct option_spec *spec, const char *value)
{
	if (spec == &help_spec)
		p->a->help = true;
	else
		p->a->given[p->a->ngiven++] = (struct given_option){ spec, value };
}

/* The next argument as the value of an option. */
static const char *take_value(struct parser *p, const struct option_spec *spec)
{
	if (p->at < p->argc)
		return p->argv[p->at++];
	fprintf(p->err, "rowfs %s: --%s needs a value (%s)\n", p->command, spec->name, spec->value);
	return NULL;
}

static bool parse_long(struct parser *p, const char *text)
{
	const char *equals = strchr(text, '=');
	size_t n = equals != NULL ? (size_t)(equals - text) : strlen(text);
	const struct option_spec *spec = by_name(p, text, n);
	if (spec == NULL) {
		struct suggest meant = SUGGEST_INIT(span_make(text, n));
		for (const struct option_spec *s = p->specs; s != NULL && s->name != NULL; s++)
			suggest_offer(&meant, s->name);
		bool behind_o = by_name(p, "options", strlen("options")) != NULL;
		fprintf(p->err, "rowfs %s: unknown option '--%.*s'%s%s\n", p->command, (int)n, text,
			meant.best != NULL ? "; did you mean --"
				: behind_o ? "; mount options go behind -o"
					   : "",
			meant.best != NULL ? meant.best : "");
		return false;
	}
	if (spec->value == NULL) {
		if (equals != NULL)
			fprintf(p->err, "rowfs %s: --%s takes no value\n", p->command, spec->name);
		else
			give(p, spec, "");
		return equals == NULL;
	}
	const char *value = equals != NULL ? equals + 1 : take_value(p, spec);
	if (value != NULL)
		give(p, spec, value);
	return value != NULL;
}

static bool parse_letters(struct parser *p, const char *text)
{
	for (; *text != '\0'; text++) {
		const struct option_spec *spec = by_letter(p, *text);
		if (spec == NULL) {
			fprintf(p->err, "rowfs %s: unknown option '-%c'\n", p->command, *text);
			return false;
		}
		if (spec->value == NULL) {
			give(p, spec, "");
			continue;
		}
		const char *value = text[1] != '\0' ? text + 1 : take_value(p, spec);
		if (value != NULL)
			give(p, spec, value);
		return value != NULL;
	}
	return true;
}

bool args_parse(struct args *a, const char *command, const struct option_spec *specs, int argc,
	char *const *argv, FILE *err)
{
	*a = (struct args){ 0 };
	struct parser p = { a, command, specs, argc, 0, argv, err };
	/* A cluster of letters gives at most one option per byte. */
	size_t letters = 1;
	for (int i = 0; i < argc; i++)
		letters += strlen(argv[i]);
	a->given = calloc(letters, sizeof(*a->given));
	a->words = calloc((size_t)argc + 1, sizeof(*a->words));
	if (a->given == NULL || a->words == NULL) {
		fprintf(err, "rowfs %s: out of memory\n", command);
		return false;
	}
	bool options = true;
	while (p.at < argc) {
		const char *text = argv[p.at++];
		bool ok = true;
		if (!options || text[0] != '-' || text[1] == '\0')
			a->words[a->nwords++] = text;
		else if (strcmp(text, "--") == 0)
			options = false;
		else if (text[1] == '-')
			ok = parse_long(&p, text + 2);
		else
			ok = parse_letters(&p, text + 1);
		if (!ok)
			return false;
	}
	return true;
}

void args_fini(struct args *a)
{
	free(a->given);
	free(a->words);
	*a = (struct args){ 0 };
}

const char *args_value(const struct args *a, const char *name)
{
	for (int i = a->ngiven - 1; i >= 0; i--)
		if (strcmp(a->given[i].spec->name, name) == 0)
			return a->given[i].value;
	return NULL;
}

bool args_has(const struct args *a, const char *name)
{
	return args_value(a, name) != NULL;
}
