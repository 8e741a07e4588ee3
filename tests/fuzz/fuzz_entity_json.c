/* SPDX-License-Identifier: MIT
 * Documents: whatever decodes must encode to a document that decodes to the same entity,
 * and encode to the same bytes again; whole and piecewise scanning agree; the first
 * impossible byte is where it is said to be. */
#include "codec/entity_json.h"
#include "codec/json_scan.h"
#include "fuzz.h"
#include "model/entity.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_make(data, size);

	round_trip(text, ENTITY_JSON_FILE);
	round_trip(text, ENTITY_JSON_REST);
	pieces(text, size < 600 ? 1 : 97);
	return 0;
}
