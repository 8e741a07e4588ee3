/* SPDX-License-Identifier: MIT
 * Batch bodies.  Input: the Content-Type up to the first LF, then the body.  Everything that
 * comes out lies in the input, in its order, and is what the header promises. */
#include "codec/multipart.h"
#include "fuzz.h"

#define MAX_PARTS 7

static bool lies_in(struct span s, struct span text)
{
	return s.n == 0 || (s.p >= text.p && s.p + s.n <= text.p + text.n);
}

static void check_part(const struct batch_part *p, const struct batch_body *b, struct span text)
{
	MUST(p->method.n > 0 && lies_in(p->method, text));
	MUST(p->target.n > 0 && lies_in(p->target, text));
	MUST(lies_in(p->body, text) && p->body.p != NULL);
	MUST(lies_in(p->content_id, text));
	MUST(!p->in_change_set || p->change_set < b->nchange_sets);
	for (size_t i = 0; i < p->nheaders; i++) {
		struct span value = p->headers[i].value;
		MUST(p->headers[i].name.n > 0 && lies_in(p->headers[i].name, text));
		MUST(lies_in(value, text));
		MUST(value.n == 0 || memchr(value.p, '\n', value.n) == NULL);
		MUST(value.n == 0 || memchr(value.p, '\r', value.n) == NULL);
	}
}

static void check_all(const struct batch_body *b, struct span text)
{
	for (size_t i = 0; i < b->nparts; i++) {
		check_part(&b->parts[i], b, text);
		MUST(i == 0 || b->parts[i].method.p > b->parts[i - 1].target.p);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size == 0 ? NULL : memchr(data, '\n', size);
	size_t n = end == NULL ? size : (size_t)(end - data);
	struct span type = span_make(data, n), value;
	struct span text = end == NULL ? SPAN_LIT("") : span_make(end + 1, size - n - 1);
	struct arena arena = { 0 };
	struct batch_body body;
	struct err_detail why = { 0 };
	enum err e = batch_body_parse(type, text, MAX_PARTS, &arena, &body, &why);

	MUST(e == ERR_OK || e == ERR_INVALID_INPUT || e == ERR_BATCH_TOO_LARGE);
	MUST(e == ERR_OK || (why.text[0] != '\0' && why.offset <= text.n));
	MUST(body.nparts <= MAX_PARTS);
	MUST(e != ERR_BATCH_TOO_LARGE || body.nparts == MAX_PARTS);
	check_all(&body, text);
	if (mime_parameter(text, "boundary", &value))
		MUST(lies_in(value, text));
	arena_fini(&arena);
	return 0;
}
