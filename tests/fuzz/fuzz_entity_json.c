/* SPDX-License-Identifier: MIT
 * Documents: whatever decodes must encode to a document that decodes to the same entity,
 * and encode to the same bytes again; whole and piecewise scanning agree; the first
 * impossible byte is where it is said to be.  The short ways (a splicer, a walk) lead to what
 * decoding leads to.  jansson takes the same texts, and finds the same in them, where both go by
 * the same rules. */
#include "codec/document_walk.h"
#include "codec/edm_text.h"
#include "codec/entity_json.h"
#include "codec/json_scan.h"
#include "codec/splicer.h"
#include "fuzz.h"
#include "model/entity.h"

#include <jansson.h>

#include <stdlib.h>
#include <string.h>

static void must_be_same(const struct entity *a, const struct entity *b)
{
	MUST(a->nprops == b->nprops);
	MUST(a->has_pk == b->has_pk && a->has_rk == b->has_rk);
	MUST(!a->has_pk || span_eq(a->pk, b->pk));
	MUST(!a->has_rk || span_eq(a->rk, b->rk));
	for (size_t i = 0; i < a->nprops; i++) {
		MUST(span_eq(a->props[i].name, b->props[i].name));
		MUST(value_same(&a->props[i].value, &b->props[i].value));
	}
}

static void round_trip(struct span text, enum entity_json_rules rules)
{
	struct entity a = { 0 }, b = { 0 };
	struct buf once = BUF_INIT(16u << 20), twice = BUF_INIT(16u << 20);
	struct err_detail detail;
	enum err e = entity_json_decode(text, rules, &a, NULL, &detail);

	if (e == ERR_OK) {
		MUST(entity_check(&a, NULL) == ERR_OK);
		entity_json_encode(&a, ENTITY_JSON_PK | ENTITY_JSON_RK, &once);
		MUST(buf_ok(&once));
		MUST(entity_json_decode(buf_span(&once), ENTITY_JSON_FILE, &b, NULL, NULL) ==
			ERR_OK);
		must_be_same(&a, &b);
		entity_json_encode(&b, ENTITY_JSON_PK | ENTITY_JSON_RK, &twice);
		MUST(span_eq(buf_span(&once), buf_span(&twice)));
	} else {
		MUST(!detail.has_offset || detail.offset <= text.n);
	}
	buf_fini(&once);
	buf_fini(&twice);
	entity_fini(&a);
	entity_fini(&b);
}

/* Any text, so that it meets all that is no canonical document, too. */
static void walk_over(struct span text)
{
	struct document_walk w;
	struct document_property p;
	struct arena arena = { 0 };
	struct value v;

	if (!document_walk_begin(text, &w))
		return;
	while (document_walk_next(&w, &p) == ERR_OK)
		(void)document_value(&p, &arena, &v);
	arena_fini(&arena);
}

static void walk_is_right(const struct entity *e, struct span document)
{
	struct document_walk w;
	struct document_property p;
	struct arena arena = { 0 };
	struct value v;

	MUST(document_walk_begin(document, &w));
	for (size_t i = 0; i < e->nprops; i++) {
		MUST(document_walk_next(&w, &p) == ERR_OK);
		MUST(span_eq(p.name, e->props[i].name));
		if (e->props[i].value.type == EDM_BINARY) {
			MUST(document_value(&p, &arena, &v) == ERR_NOT_SUPPORTED);
			continue;
		}
		MUST(document_value(&p, &arena, &v) == ERR_OK);
		MUST(value_same(&v, &e->props[i].value));
	}
	MUST(document_walk_next(&w, &p) == ERR_NOT_FOUND);
	arena_fini(&arena);
}

static void splice_is_right(struct splicer *s, struct span text)
{
	struct entity e = { 0 };
	struct arena arena = { 0 };
	struct spliced got;
	struct buf want = BUF_INIT(16u << 20);

	if (splicer_take(s, text, &arena, &got)) {
		MUST(entity_json_decode(text, ENTITY_JSON_FILE, &e, NULL, NULL) == ERR_OK);
		MUST(e.has_pk == (got.pk.p != NULL) && e.has_rk == (got.rk.p != NULL));
		MUST(!e.has_pk || span_eq(e.pk, got.pk));
		MUST(!e.has_rk || span_eq(e.rk, got.rk));
		entity_json_encode(&e, ENTITY_JSON_NEWLINE, &want);
		MUST(span_eq(buf_span(&want), got.document));
	}
	buf_fini(&want);
	arena_fini(&arena);
	entity_fini(&e);
}

/* Of this text after itself and after another one: what a splicer remembers changes nothing. */
static void short_ways(struct span text)
{
	struct splicer *s = splicer_new();
	struct entity e = { 0 };
	struct buf document = BUF_INIT(16u << 20);

	MUST(s != NULL);
	for (int i = 0; i < 3; i++) {
		splice_is_right(s, text);
		splice_is_right(s, SPAN_LIT("{\"RowKey\":\"r\",\"B\":1,\"A\":\"x\"}"));
	}
	splicer_free(s);
	walk_over(text);
	if (entity_json_decode(text, ENTITY_JSON_FILE, &e, NULL, NULL) == ERR_OK) {
		entity_json_encode(&e, ENTITY_JSON_NEWLINE, &document);
		walk_is_right(&e, buf_span(&document));
	}
	buf_fini(&document);
	entity_fini(&e);
}

static enum json_scan_result scan(struct json_scan *s, struct span text)
{
	struct json_member m;
	enum json_scan_result r;

	do {
		r = json_scan_next(s, text, &m);
		MUST(s->pos <= text.n);
	} while (r == JSON_SCAN_MEMBER);
	return r;
}

static void pieces(struct span text, size_t step)
{
	struct json_scan whole = { 0 }, parts = { 0 };
	enum json_scan_result want = scan(&whole, text), got = JSON_SCAN_MORE;
	size_t n = 0;

	do {
		n = text.n - n < step ? text.n : n + step;
		got = scan(&parts, span_make(text.p, n));
	} while (n < text.n && got != JSON_SCAN_BAD);
	MUST(got == want);
	if (want != JSON_SCAN_BAD)
		return;
	MUST(parts.bad_at == whole.bad_at && whole.bad_at < text.n);
	parts = (struct json_scan){ 0 };
	MUST(scan(&parts, span_make(text.p, whole.bad_at)) != JSON_SCAN_BAD);
	parts = (struct json_scan){ 0 };
	MUST(scan(&parts, span_make(text.p, whole.bad_at + 1)) == JSON_SCAN_BAD);
}

/* ---- the other reader ---- */

/* Where the rules differ: it has no way to keep a number that no double holds, nor a NUL in a
 * name. */
static bool is_rule_of_its_own(const json_error_t *error)
{
	return json_error_code(error) == json_error_numeric_overflow ||
		json_error_code(error) == json_error_null_byte_in_key;
}

static bool is_flat(const json_t *object)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)(uintptr_t)object, name, value)
	{
		if (json_is_object(value) || json_is_array(value))
			return false;
	}
	return true;
}

static void must_be_number(const struct json_member *m, const json_t *value)
{
	struct value ours;
	double want = json_real_value(value);
	MUST(json_is_real(value));
	MUST(edm_text_parse(EDM_DOUBLE, m->value, &ours, NULL, NULL) == ERR_OK);
	MUST(memcmp(&ours.dbl, &want, sizeof(want)) == 0);
}

static void must_be_value(const struct json_member *m, const json_t *value)
{
	if (m->token == JSON_TOKEN_STRING) {
		char *text = malloc(m->value.n + 1);
		MUST(text != NULL && json_is_string(value));
		MUST(span_eq(span_make(text, json_unescape(m->value, text)),
			span_make(json_string_value(value), json_string_length(value))));
		free(text);
	} else if (m->token == JSON_TOKEN_INTEGER || m->token == JSON_TOKEN_NUMBER) {
		must_be_number(m, value);
	} else {
		MUST((m->token == JSON_TOKEN_TRUE) == json_is_true(value));
		MUST((m->token == JSON_TOKEN_FALSE) == json_is_false(value));
		MUST((m->token == JSON_TOKEN_NULL) == json_is_null(value));
	}
}

static void must_have_members(struct span text, const json_t *object)
{
	struct json_scan s = { 0 };
	struct json_member m;
	size_t n = 0;
	for (; json_scan_next(&s, text, &m) == JSON_SCAN_MEMBER; n++) {
		char *name = malloc(m.name.n + 1);
		MUST(name != NULL);
		name[json_unescape(m.name, name)] = '\0';
		json_t *value = json_object_get(object, name);
		MUST(value != NULL);
		must_be_value(&m, value);
		free(name);
	}
	MUST(n == json_object_size(object));
}

/* What ours takes the other one takes.  What the other one takes, without a name twice, ours takes,
 * and finds the same in it; but where a NUL stands, which is no JSON: the other one loses the one
 * behind a number (2.14). */
static void other_reader(struct span text)
{
	const size_t flags = JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL;
	struct json_scan s = { 0 };
	struct json_member m;
	enum json_scan_result r;
	json_error_t error;
	do {
		r = json_scan_next(&s, text, &m);
	} while (r == JSON_SCAN_MEMBER);
	json_t *other = json_loadb(text.p, text.n, flags, &error);
	MUST(r != JSON_SCAN_END || other != NULL || is_rule_of_its_own(&error));
	json_decref(other);
	other = json_loadb(text.p, text.n, flags | JSON_REJECT_DUPLICATES, &error);
	bool has_nul = text.n > 0 && memchr(text.p, '\0', text.n) != NULL;
	if (json_is_object(other) && is_flat(other) && !has_nul) {
		MUST(r == JSON_SCAN_END);
		must_have_members(text, other);
	}
	json_decref(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_make(data, size);

	round_trip(text, ENTITY_JSON_FILE);
	round_trip(text, ENTITY_JSON_REST);
	short_ways(text);
	pieces(text, size < 600 ? 1 : 97);
	other_reader(text);
	return 0;
}
