/* SPDX-License-Identifier: MIT */
#include "rest/blobs/block_list_body.h"

#include "base/crypto.h"
#include "codec/xml_events.h"

#include <string.h>

/* The base64 text of the longest id, with padding. */
#define ID_CHARS ((BLOCK_ID_BYTES + 2) / 3 * 4)

enum err block_id_read(struct span text, struct block_id *ret)
{
	struct buf bytes = BUF_INIT(2 * ID_CHARS);
	*ret = (struct block_id){ 0 };
	bool ok = text.n > 0 && text.n <= ID_CHARS && base64_decode(text, &bytes) &&
		buf_ok(&bytes) && bytes.len > 0 && bytes.len <= BLOCK_ID_BYTES;
	if (ok) {
		ret->n = (uint8_t)bytes.len;
		memcpy(ret->bytes, bytes.data, bytes.len);
	}
	buf_fini(&bytes);
	return ok ? ERR_OK : ERR_BLOCK_ID;
}

struct reader {
	struct buf *out;
	struct err_detail *detail;
	unsigned depth;
	enum block_where where;
	size_t n;
	char text[2 * ID_CHARS]; /* of the element; white space may be around it */
};

static enum err wrong_form(struct err_detail *detail)
{
	return err_set(detail, ERR_XML_INVALID,
		"The body is <BlockList> with <Latest>, <Committed> and <Uncommitted>.");
}

static enum err on_start(void *arg, const struct xml_start *start)
{
	struct reader *r = arg;
	bool root = r->depth++ == 0;
	r->n = 0;
	if (root)
		return span_is(start->name, "BlockList") ? ERR_OK : wrong_form(r->detail);
	r->where = span_is(start->name, "Latest")   ? BLOCK_LATEST
		: span_is(start->name, "Committed") ? BLOCK_COMMITTED
						    : BLOCK_STAGED;
	bool known = r->where != BLOCK_STAGED || span_is(start->name, "Uncommitted");
	return known && r->depth == 2 ? ERR_OK : wrong_form(r->detail);
}

static enum err on_end(void *arg)
{
	struct reader *r = arg;
	struct block_choice c = { .where = r->where };
	if (r->depth-- != 2)
		return ERR_OK;
	if (r->out->len == BLOCKS_MAX * sizeof(c))
		return ERR_BLOCK_COUNT;
	enum err e = block_id_read(xml_trim(span_make(r->text, r->n)), &c.id);
	buf_add(r->out, &c, sizeof(c));
	return e == ERR_OK && !buf_ok(r->out) ? ERR_NO_MEMORY : e;
}

static enum err on_text(void *arg, struct span text)
{
	struct reader *r = arg;
	if (r->depth != 2)
		return xml_trim(text).n == 0 ? ERR_OK : wrong_form(r->detail);
	if (text.n > sizeof(r->text) - r->n)
		return ERR_BLOCK_ID;
	memcpy(r->text + r->n, text.p, text.n);
	r->n += text.n;
	return ERR_OK;
}

enum err block_list_body_read(struct span body, struct buf *out, struct err_detail *detail)
{
	static const struct xml_handler handler = { on_start, on_end, on_text };
	struct reader r = { .out = out, .detail = detail };
	return xml_events(body, BLOCK_LIST_BODY_LIMIT, &handler, &r, detail);
}
