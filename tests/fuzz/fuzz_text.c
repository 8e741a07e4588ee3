/* SPDX-License-Identifier: MIT
 * Short texts from headers, options and documents: what is read is written as something that reads
 * as the same; what is not is refused with a reason.  The first byte says which. */
#include "base/arena.h"
#include "base/buf.h"
#include "codec/edm_text.h"
#include "fuzz.h"
#include "model/etag.h"
#include "model/key.h"
#include "query/page_token.h"
#include "query/select.h"

static void page_token(struct span text)
{
	struct buf key = BUF_INIT(1 << 16), token = BUF_INIT(1 << 16);
	struct err_detail why = { 0 };
	enum err e = page_token_decode(text, &key, &why);
	MUST(e == ERR_OK || (e == ERR_INVALID_INPUT && why.text[0] != '\0'));
	if (e == ERR_OK) {
		page_token_encode(buf_span(&key), &token);
		MUST(text.n == 0 || span_eq(buf_span(&token), text));
	}
	buf_fini(&key);
	buf_fini(&token);
}

/* Any bytes as a key. */
static void page_token_of(struct span key)
{
	struct buf token = BUF_INIT(1 << 16), again = BUF_INIT(1 << 16);
	if (key_check(key, "key", NULL) == ERR_OK) {
		page_token_encode(key, &token);
		MUST(page_token_decode(buf_span(&token), &again, NULL) == ERR_OK);
		MUST(span_eq(buf_span(&again), key));
	}
	buf_fini(&token);
	buf_fini(&again);
}

static void etag(struct span text)
{
	char out[ETAG_MAX];
	int64_t ticks = -2, again = -2;
	bool any = false;
	if (etag_parse(text, &any, &ticks, NULL) != ERR_OK || any || ticks < 0)
		return;
	MUST(etag_format(ticks, out) > 0);
	MUST(etag_parse(span_of(out), &any, &again, NULL) == ERR_OK && !any && again == ticks);
}

static void value_of(enum edm_type type, struct span text)
{
	struct value v = { 0 }, again = { 0 };
	struct buf bytes = BUF_INIT(1 << 16), more = BUF_INIT(1 << 16), out = BUF_INIT(1 << 18);
	if (edm_text_parse(type, text, &v, &bytes, NULL) == ERR_OK) {
		MUST(v.type == type);
		edm_text_format(&v, &out);
		MUST(edm_text_parse(type, buf_span(&out), &again, &more, NULL) == ERR_OK);
		MUST(value_same(&v, &again));
	}
	buf_fini(&bytes);
	buf_fini(&more);
	buf_fini(&out);
}

static void selection(struct span text)
{
	struct arena arena = { 0 };
	struct selection s;
	struct err_detail why = { 0 };
	enum err e = selection_parse(text, &arena, &s, &why);
	MUST(e == ERR_OK || why.text[0] != '\0');
	if (e == ERR_OK) {
		MUST(s.all == (s.n == 0));
		for (size_t i = 0; i < s.n; i++)
			MUST(selection_holds(&s, s.names[i]) && s.names[i].n > 0);
	}
	arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum edm_type types[] = { EDM_STRING, EDM_BOOLEAN, EDM_INT32, EDM_INT64,
		EDM_DOUBLE, EDM_DATETIME, EDM_GUID, EDM_BINARY };
	if (size < 1)
		return 0;
	struct span text = span_make(data + 1, size - 1);
	switch (data[0] % 16) {
	case 0:
		page_token(text);
		page_token_of(text);
		break;
	case 1:
		etag(text);
		break;
	case 2:
		selection(text);
		break;
	default:
		value_of(types[data[0] % 8], text);
	}
	return 0;
}
