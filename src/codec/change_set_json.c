/* SPDX-License-Identifier: MIT */
#include "codec/change_set_json.h"

#include "base/text.h"
#include "codec/json_scan.h"

#include <stdbool.h>
#include <string.h>

static const char *const verbs[CHANGE_VERB_COUNT_] = {
	[CHANGE_VERB_DELETE] = "delete",
	[CHANGE_VERB_INSERT] = "insert",
	[CHANGE_VERB_MERGE] = "merge",
	[CHANGE_VERB_PUT_MESSAGE] = "put_message",
	[CHANGE_VERB_REPLACE] = "replace",
	[CHANGE_VERB_UPSERT] = "upsert",
	[CHANGE_VERB_UPSERT_MERGE] = "upsert_merge",
};

struct parser {
	struct span text;
	size_t pos, max_ops, cap;
	struct arena *arena;
	struct change_set_json *ret;
	struct err_detail *detail;
};

const char *change_verb_text(enum change_verb v)
{
	return verbs[v];
}

static enum err fail(struct parser *p, size_t offset, const char *why)
{
	return err_set_at(p->detail, ERR_INVALID_INPUT, p->text.p, offset,
		"Not a valid change set: %s.", why);
}

static enum err incomplete(struct parser *p)
{
	return err_set_at(
		p->detail, ERR_INCOMPLETE, p->text.p, p->text.n, "The change set is not complete.");
}

/* Skips white space.  Returns false at the end of the text. */
static bool find_byte(struct parser *p)
{
	while (p->pos < p->text.n && memchr(" \t\r\n", p->text.p[p->pos], 4) != NULL)
		p->pos++;
	return p->pos < p->text.n;
}

/* ---- one operation ---- */

static enum err resolve(struct parser *p, struct span raw, bool escaped, struct span *ret)
{
	*ret = raw;
	if (!escaped)
		return ERR_OK;
	char *out = arena_alloc(p->arena, raw.n);
	if (out == NULL)
		return ERR_NO_MEMORY;
	*ret = span_make(out, json_unescape(raw, out));
	return ERR_OK;
}

static bool find_verb(struct span name, enum change_verb *ret)
{
	for (enum change_verb v = 0; v < CHANGE_VERB_COUNT_; v++)
		if (span_is(name, verbs[v])) {
			*ret = v;
			return true;
		}
	return false;
}

static enum err read_condition(
	struct parser *p, const struct json_member *m, struct change_set_json_op *op)
{
	if (op->if_match.p != NULL)
		return fail(p, m->offset, "if_match is given twice");
	if (m->token != JSON_TOKEN_STRING)
		return fail(p, m->value_offset, "if_match must be a string: an ETag, or \"*\"");
	op->if_match_offset = m->value_offset;
	return resolve(p, m->value, m->value_escaped, &op->if_match);
}

static enum err read_member(
	struct parser *p, const struct json_member *m, struct change_set_json_op *op)
{
	struct span name;
	enum change_verb verb;
	enum err e = resolve(p, m->name, m->name_escaped, &name);
	if (e != ERR_OK)
		return e;
	if (span_is(name, "if_match"))
		return read_condition(p, m, op);
	if (!find_verb(name, &verb))
		return fail(p, m->offset,
			"expected insert, upsert, merge, replace, upsert_merge, delete, "
			"put_message or if_match");
	if (op->entity.p != NULL)
		return fail(p, m->offset, "an operation is one change of one row, or one message");
	if (m->token != JSON_TOKEN_OBJECT)
		return fail(p, m->value_offset, "expected the row or message, an object");
	op->verb = verb;
	op->entity = m->value;
	return ERR_OK;
}

/* The parser is at the opening brace. */
static enum err read_op(struct parser *p, struct change_set_json_op *op)
{
	struct json_scan scan = { .pos = p->pos, .part = true, .objects = true };
	struct json_member m;
	enum json_scan_result r;
	*op = (struct change_set_json_op){ .offset = p->pos };
	while ((r = json_scan_next(&scan, p->text, &m)) == JSON_SCAN_MEMBER) {
		enum err e = read_member(p, &m, op);
		if (e != ERR_OK)
			return e;
	}
	if (r == JSON_SCAN_BAD)
		return fail(p, scan.bad_at, scan.why);
	if (r == JSON_SCAN_MORE)
		return incomplete(p);
	p->pos = scan.pos;
	if (op->entity.p == NULL)
		return fail(p, op->offset, "an operation must name a change");
	return ERR_OK;
}

/* ---- one message ---- */

static enum err read_string(struct parser *p, const struct json_member *m, struct span *ret)
{
	if (ret->p != NULL)
		return fail(p, m->offset, "a member of the message is given twice");
	if (m->token != JSON_TOKEN_STRING)
		return fail(p, m->value_offset, "expected a string");
	return resolve(p, m->value, m->value_escaped, ret);
}

static enum err read_seconds(struct parser *p, const struct json_member *m, int64_t *ret)
{
	if (*ret != MESSAGE_JSON_UNSET)
		return fail(p, m->offset, "a member of the message is given twice");
	if (m->token != JSON_TOKEN_INTEGER || !text_to_i64(m->value, ret) ||
		*ret == MESSAGE_JSON_UNSET)
		return fail(p, m->value_offset, "expected a whole number of seconds");
	return ERR_OK;
}

static enum err read_message_member(
	struct parser *p, const struct json_member *m, struct change_set_json_message *ret)
{
	struct span name;
	enum err e = resolve(p, m->name, m->name_escaped, &name);
	if (e != ERR_OK)
		return e;
	if (span_is(name, "queue"))
		return read_string(p, m, &ret->queue);
	if (span_is(name, "text"))
		return read_string(p, m, &ret->text);
	if (span_is(name, "visibilitytimeout"))
		return read_seconds(p, m, &ret->visibility_s);
	if (span_is(name, "messagettl"))
		return read_seconds(p, m, &ret->ttl_s);
	return fail(p, m->offset,
		"a message has queue and text, and maybe visibilitytimeout and messagettl");
}

enum err change_set_json_message(struct span object, struct arena *arena,
	struct change_set_json_message *ret, struct err_detail *detail)
{
	struct parser p = { .text = object, .arena = arena, .detail = detail };
	struct json_scan scan = { 0 };
	struct json_member m;
	enum json_scan_result r;
	enum err e = ERR_OK;
	*ret = (struct change_set_json_message){ .visibility_s = MESSAGE_JSON_UNSET,
		.ttl_s = MESSAGE_JSON_UNSET };
	while (e == ERR_OK && (r = json_scan_next(&scan, object, &m)) == JSON_SCAN_MEMBER)
		e = read_message_member(&p, &m, ret);
	if (e != ERR_OK)
		return e;
	if (r != JSON_SCAN_END)
		return fail(&p, r == JSON_SCAN_BAD ? scan.bad_at : object.n, "not a message");
	if (ret->queue.p == NULL || ret->text.p == NULL)
		return fail(&p, 0, "a message must have queue and text");
	return ERR_OK;
}

/* ---- all of them ---- */

static enum err keep(struct parser *p, const struct change_set_json_op *op)
{
	struct change_set_json *set = p->ret;
	if (set->n == p->cap) {
		size_t cap = p->cap == 0 ? 8 : p->cap * 2;
		struct change_set_json_op *grown = arena_alloc(p->arena, cap * sizeof(*grown));
		if (grown == NULL)
			return ERR_NO_MEMORY;
		if (set->n > 0)
			memcpy(grown, set->ops, set->n * sizeof(*grown));
		set->ops = grown;
		p->cap = cap;
	}
	set->ops[set->n++] = *op;
	return ERR_OK;
}

static enum err take_op(struct parser *p)
{
	struct change_set_json_op op;
	if (p->text.p[p->pos] != '{')
		return fail(p, p->pos, "an operation is an object: expected {");
	if (p->ret->n == p->max_ops)
		return err_set_at(p->detail, ERR_BATCH_TOO_LARGE, p->text.p, p->pos,
			"The batch request operation exceeds the maximum %zu changes per change set.",
			p->max_ops);
	enum err e = read_op(p, &op);
	return e == ERR_OK ? keep(p, &op) : e;
}

static enum err read_lines(struct parser *p)
{
	enum err e = ERR_OK;
	while (e == ERR_OK && find_byte(p))
		e = take_op(p);
	return e;
}

/* The parser is behind an operation.  Sets *ret_more unless the array ends. */
static enum err read_separator(struct parser *p, bool *ret_more)
{
	if (!find_byte(p))
		return incomplete(p);
	char c = p->text.p[p->pos];
	if (c != ',' && c != ']')
		return fail(p, p->pos, "expected , or ]");
	p->pos++;
	*ret_more = c == ',';
	return ERR_OK;
}

/* The parser is behind the opening bracket. */
static enum err read_array(struct parser *p)
{
	bool more = true;
	if (find_byte(p) && p->text.p[p->pos] == ']') {
		p->pos++;
		more = false;
	}
	while (more) {
		enum err e = find_byte(p) ? take_op(p) : incomplete(p);
		if (e == ERR_OK)
			e = read_separator(p, &more);
		if (e != ERR_OK)
			return e;
	}
	return find_byte(p) ? fail(p, p->pos, "only white space may follow the array") : ERR_OK;
}

enum err change_set_json_parse(struct span text, size_t max_ops, struct arena *arena,
	struct change_set_json *ret, struct err_detail *detail)
{
	struct parser p = {
		.text = text, .max_ops = max_ops, .arena = arena, .ret = ret, .detail = detail
	};
	enum err e;
	*ret = (struct change_set_json){ 0 };
	if (!find_byte(&p)) {
		e = incomplete(&p);
	} else if (text.p[p.pos] == '[') {
		p.pos++;
		e = read_array(&p);
	} else if (text.p[p.pos] == '{') {
		e = read_lines(&p);
	} else {
		e = fail(&p, p.pos, "expected [ or {");
	}
	if (detail != NULL)
		detail->op = ret->n;
	return e;
}
