/* SPDX-License-Identifier: MIT */
#include "cloud/rows.h"

#include "base/text.h"
#include "codec/edm_text.h"
#include "codec/entity_json.h"
#include "codec/json_scan.h"

#include <string.h>

static enum err malformed(struct err_detail *detail)
{
	return err_set(detail, ERR_INVALID_INPUT,
		"the service's answer is not what the protocol has there");
}

void cloud_row_fini(struct cloud_row *r)
{
	entity_fini(&r->entity);
	r->etag[0] = 0;
}

static void take_etag(const struct json_member *m, struct cloud_row *ret)
{
	if (m->token == JSON_TOKEN_STRING && m->value.n < sizeof(ret->etag))
		ret->etag[json_unescape(m->value, ret->etag)] = 0;
}

static enum err read_time(struct span text, int64_t *ret, struct err_detail *detail)
{
	struct value v;
	struct buf none = BUF_INIT(0);
	enum err e = edm_text_parse(EDM_DATETIME, text, &v, &none, detail);
	if (e == ERR_OK)
		*ret = v.ticks;
	return e;
}

enum err cloud_row_read(
	struct span text, struct cloud_row *ret, size_t *ret_n, struct err_detail *detail)
{
	struct json_scan s = { .part = true };
	struct json_member m;
	struct span time = { 0 };
	enum json_scan_result r;
	ret->etag[0] = 0;
	while ((r = json_scan_next(&s, text, &m)) == JSON_SCAN_MEMBER) {
		if (span_is(m.name, "odata.etag"))
			take_etag(&m, ret);
		else if (span_is(m.name, "Timestamp") && m.token == JSON_TOKEN_STRING)
			time = m.value;
	}
	if (r != JSON_SCAN_END)
		return malformed(detail);
	*ret_n = s.pos;
	enum err e = entity_json_decode(
		span_make(text.p, s.pos), ENTITY_JSON_REST, &ret->entity, NULL, detail);
	return e == ERR_OK && time.n > 0 ? read_time(time, &ret->entity.timestamp, detail) : e;
}

/* ---- pages ---- */

static void skip_blanks(struct span *s)
{
	while (s->n > 0 && memchr(" \t\r\n", s->p[0], 4) != NULL)
		*s = span_make(s->p + 1, s->n - 1);
}

/* Whether the text before the bracket ends with the member's name. */
static bool names_value(struct span before)
{
	before = text_trim(before, " \t\r\n");
	if (before.n == 0 || before.p[before.n - 1] != ':')
		return false;
	return span_ends(
		text_trim(span_make(before.p, before.n - 1), " \t\r\n"), SPAN_LIT("\"value\""));
}

/* The scanner stops at the bracket, since a row has no arrays. */
enum err rows_page_begin(struct span body, struct rows_page *ret, struct err_detail *detail)
{
	struct json_scan s = { 0 };
	struct json_member m;
	enum json_scan_result r;
	do
		r = json_scan_next(&s, body, &m);
	while (r == JSON_SCAN_MEMBER);
	if (r != JSON_SCAN_BAD || s.bad_at >= body.n || body.p[s.bad_at] != '[' ||
		!names_value(span_make(body.p, s.bad_at)))
		return malformed(detail);
	*ret = (struct rows_page){ .rest = span_make(
					   body.p + s.bad_at + 1, body.n - s.bad_at - 1) };
	return ERR_OK;
}

enum err rows_page_next(struct rows_page *p, struct cloud_row *ret, struct err_detail *detail)
{
	size_t n;
	skip_blanks(&p->rest);
	if (p->rest.n > 0 && p->rest.p[0] == ']')
		return ERR_NOT_FOUND;
	if (p->begun) {
		if (p->rest.n == 0 || p->rest.p[0] != ',')
			return malformed(detail);
		p->rest = span_make(p->rest.p + 1, p->rest.n - 1);
	}
	p->begun = true;
	enum err e = cloud_row_read(p->rest, ret, &n, detail);
	if (e == ERR_OK)
		p->rest = span_make(p->rest.p + n, p->rest.n - n);
	return e;
}

/* ---- comparing ---- */

bool cloud_has_properties(const struct entity *all, const struct entity *some)
{
	for (size_t i = 0; i < some->nprops; i++) {
		const struct property *p = entity_find(all, some->props[i].name);
		if (p == NULL || !value_same(&p->value, &some->props[i].value))
			return false;
	}
	return true;
}

bool cloud_same_properties(const struct entity *a, const struct entity *b)
{
	return a->nprops == b->nprops && cloud_has_properties(a, b);
}
