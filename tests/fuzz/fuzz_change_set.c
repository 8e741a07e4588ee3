/* SPDX-License-Identifier: MIT
 * Change sets, all three syntaxes.  What is accepted is what the headers promise; what begins
 * a change set never turns out to be none. */
#include "codec/change_set_json.h"
#include "fuzz.h"
#include "model/limits.h"
#include "service/change/change_set.h"

#define MAX_OPS 5

static bool lies_in(struct span s, struct span text)
{
	return s.p >= text.p && s.p + s.n <= text.p + text.n;
}

static void check_ops(const struct change_set_json *json, struct span text)
{
	size_t last = 0;
	MUST(json->n <= MAX_OPS);
	for (size_t i = 0; i < json->n; i++) {
		const struct change_set_json_op *op = &json->ops[i];
		MUST(op->offset >= last && text.p[op->offset] == '{');
		MUST(op->verb < CHANGE_VERB_COUNT_ && lies_in(op->entity, text));
		MUST(op->entity.n >= 2 && op->entity.p[0] == '{');
		MUST(op->entity.p[op->entity.n - 1] == '}');
		MUST(op->if_match.p == NULL || text.p[op->if_match_offset] == '"');
		last = (size_t)(op->entity.p - text.p) + op->entity.n;
	}
}

static enum err parse(struct span text)
{
	struct arena arena = { 0 };
	struct change_set_json json;
	struct err_detail why = { 0 };
	enum err e = change_set_json_parse(text, MAX_OPS, &arena, &json, &why);
	MUST(e == ERR_OK || e == ERR_INCOMPLETE || e == ERR_INVALID_INPUT ||
		e == ERR_BATCH_TOO_LARGE);
	MUST(e == ERR_OK || (why.text[0] != '\0' && why.has_offset && why.offset <= text.n));
	check_ops(&json, text);
	arena_fini(&arena);
	return e;
}

static void check_beginnings(struct span text, enum err whole)
{
	size_t step = text.n / 64 + 1;
	if (whole != ERR_OK && whole != ERR_INCOMPLETE)
		return;
	for (size_t n = 0; n < text.n; n += step) {
		enum err e = parse(span_make(text.p, n));
		MUST(e == ERR_OK || e == ERR_INCOMPLETE);
	}
}

static void check_set(struct span text, struct span pk)
{
	struct change_set_place at = {
		.account = SPAN_LIT("acct"), .table = SPAN_LIT("Tab"), .pk = pk
	};
	struct change_set set;
	struct err_detail why = { 0 };
	struct buf out = BUF_INIT((size_t)1 << 24);
	enum err e = change_set_parse(text, &at, &set, &why);
	MUST(e != ERR_OK || (set.n > 0 && set.n <= LIMIT_BATCH_OPS));
	MUST(!set.blames || e != ERR_OK);
	for (size_t i = 0; e == ERR_OK && i < set.n; i++) {
		const struct entity_op *op = &set.ops[i];
		MUST((op->message != NULL) == (op->kind == ENTITY_MESSAGE));
		if (op->message != NULL) {
			MUST(op->entity == NULL && op->message->queue.p != NULL);
			MUST(op->message->text.p != NULL);
			continue;
		}
		MUST(op->pk.p != NULL && op->rk.p != NULL);
		MUST((op->entity == NULL) == (op->kind == ENTITY_DELETE));
		MUST(pk.p == NULL || span_eq(op->pk, pk));
	}
	change_set_result(&set, e, &why, false, &out);
	MUST(buf_ok(&out) && out.data[out.len - 1] == '\n');
	buf_fini(&out);
	change_set_fini(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = size == 0 ? SPAN_LIT("") : span_make(data, size);
	check_beginnings(text, parse(text));
	check_set(text, (struct span){ 0 });
	check_set(text, SPAN_LIT("p"));
	return 0;
}
