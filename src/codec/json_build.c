/* SPDX-License-Identifier: MIT */
#include "codec/json_build.h"

#include "base/compiler.h"
#include "base/text.h"

#include <jansson.h>

#include <stdlib.h>
#include <string.h>

/* Takes ownership of value.  NULL means that memory is out. */
static void add(struct json_build *b, const char *name, json_t *value)
{
	json_t *into = b->open[b->depth - 1];
	int r = name != NULL ? json_object_set_new_nocheck(into, name, value)
			     : json_array_append_new(into, value);
	if (r != 0)
		b->failed = true;
}

void json_begin(struct json_build *b)
{
	*b = (struct json_build){ .open = { json_object() }, .depth = 1 };
}

static json_t *cleaned(struct span text)
{
	char *copy = malloc(text.n);
	if (copy == NULL)
		return NULL;
	memcpy(copy, text.p, text.n);
	struct span rest = span_make(copy, text.n);
	while (rest.n > 0) {
		size_t good = utf8_valid_prefix(rest);
		if (good < rest.n)
			copy[text.n - rest.n + good++] = '?';
		rest = span_make(rest.p + good, rest.n - good);
	}
	json_t *value = json_stringn(copy, text.n);
	free(copy);
	return value;
}

void json_add_text(struct json_build *b, const char *name, struct span text)
{
	json_t *value = json_stringn(text.p != NULL ? text.p : "", text.n);
	if (value == NULL && !utf8_valid(text))
		value = cleaned(text);
	add(b, name, value);
}

void json_add_count(struct json_build *b, const char *name, uint64_t n)
{
	add(b, name, json_integer(n < INT64_MAX ? (json_int_t)n : INT64_MAX));
}

void json_add_hundredths(struct json_build *b, const char *name, uint64_t n)
{
	add(b, name, json_real((double)n / 100));
}

void json_add_bool(struct json_build *b, const char *name, bool is)
{
	add(b, name, json_boolean(is));
}

void json_add_null(struct json_build *b, const char *name)
{
	add(b, name, json_null());
}

/* The parent owns the container.  jansson accepts NULL and reports an error. */
static void open_container(struct json_build *b, const char *name, json_t *container)
{
	BUG_ON(b->depth >= JSON_BUILD_DEPTH);
	json_incref(container);
	add(b, name, container);
	b->open[b->depth++] = container;
}

void json_open_object(struct json_build *b, const char *name)
{
	open_container(b, name, json_object());
}

void json_open_array(struct json_build *b, const char *name)
{
	open_container(b, name, json_array());
}

void json_close(struct json_build *b)
{
	BUG_ON(b->depth < 2);
	json_decref(b->open[--b->depth]);
}

static int write_part(const char *p, size_t n, void *out)
{
	buf_add(out, p, n);
	return buf_ok(out) ? 0 : -1;
}

/* 15 digits: a double keeps so many decimal digits. */
#define DIGITS JSON_REAL_PRECISION(15)

/* Releases what the builder owns: the first container, and a reference to each other open one. */
static void drop(struct json_build *b)
{
	while (b->depth > 0)
		json_decref(b->open[--b->depth]);
}

static void end(struct json_build *b, size_t flags, struct buf *out)
{
	bool ok =
		!b->failed && json_dump_callback(b->open[0], write_part, out, flags | DIGITS) == 0;
	if (!ok && !out->failed)
		out->failed = out->no_memory = true;
	drop(b);
}

void json_end(struct json_build *b, struct buf *out)
{
	end(b, JSON_COMPACT, out);
}

void json_end_indented(struct json_build *b, struct buf *out)
{
	end(b, JSON_INDENT(2), out);
}

enum err json_end_print(struct json_build *b, FILE *out)
{
	char *text = b->failed ? NULL : json_dumps(b->open[0], JSON_COMPACT | DIGITS);
	drop(b);
	if (text == NULL)
		return ERR_NO_MEMORY;
	(void)fprintf(out, "%s\n", text);
	free(text);
	return ERR_OK;
}
