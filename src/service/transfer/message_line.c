/* SPDX-License-Identifier: MIT
 * The members have the names that the protocol gives them in XML. */
#include "service/transfer/message_line.h"

#include "base/crypto.h"
#include "base/text.h"
#include "codec/edm_text.h"
#include "codec/json_scan.h"
#include "model/limits.h"

static void add_time(struct buf *out, const char *name, int64_t ticks)
{
	char text[CLOCK_TEXT_MAX];
	(void)clock_format_full(ticks, text);
	buf_addf(out, "\"%s\":\"%s\",", name, text);
}

void message_line_write(
	const struct message_key *key, uint64_t item, struct span text, struct buf *out)
{
	char id[MESSAGE_ID_CHARS + 1];
	message_id_write(key->inserted, item, id);
	buf_addf(out, "{\"MessageId\":\"%s\",", id);
	add_time(out, "InsertionTime", key->inserted);
	add_time(out, "ExpirationTime", key->expires);
	add_time(out, "TimeNextVisible", key->visible);
	buf_addf(out, "\"DequeueCount\":%u,", key->taken);
	if (utf8_valid(text)) {
		buf_add_str(out, "\"MessageText\":");
		buf_add_json(out, text);
	} else {
		buf_add_str(out, "\"MessageBytes\":\"");
		base64_encode(text, out);
		buf_add_char(out, '"');
	}
	buf_add_str(out, "}\n");
}

struct reader {
	struct span line;
	struct arena *arena;
	struct err_detail *detail;
	struct message_key *key;
	struct span text;
};

static enum err fail(struct reader *r, enum err e, size_t offset, const char *why)
{
	return err_set_at(r->detail, e, r->line.p, offset, "%s", why);
}

static enum err resolve(struct reader *r, const struct json_member *m, struct span *ret)
{
	if (m->token != JSON_TOKEN_STRING)
		return fail(r, ERR_INVALID_INPUT, m->value_offset, "expected a string");
	char *out = arena_alloc(r->arena, m->value.n + 1);
	if (out == NULL)
		return ERR_NO_MEMORY;
	*ret = span_make(out, json_unescape(m->value, out));
	return ERR_OK;
}

static enum err read_time(struct reader *r, const struct json_member *m, int64_t *ret)
{
	struct span text;
	struct value v;
	struct buf unused = BUF_INIT(0);
	enum err e = resolve(r, m, &text);
	if (e == ERR_OK)
		e = edm_text_parse(EDM_DATETIME, text, &v, &unused, NULL);
	if (e == ERR_OK)
		*ret = v.ticks;
	return e == ERR_OK || e == ERR_NO_MEMORY
		? e
		: fail(r, e, m->value_offset, "expected a time such as 2026-11-20T12:29:19.003Z");
}

static enum err read_count(struct reader *r, const struct json_member *m, uint32_t *ret)
{
	uint64_t n;
	if (m->token != JSON_TOKEN_INTEGER || !text_to_u64(m->value, &n) || n > UINT32_MAX)
		return fail(r, ERR_VALUE_INVALID, m->value_offset, "expected a count");
	*ret = (uint32_t)n;
	return ERR_OK;
}

static enum err read_text(struct reader *r, const struct json_member *m, bool base64)
{
	struct span text;
	if (r->text.p != NULL)
		return fail(r, ERR_INVALID_INPUT, m->offset, "The message has two texts.");
	enum err e = resolve(r, m, &text);
	if (e == ERR_OK && base64) {
		struct buf bytes = BUF_INIT(text.n + 1);
		if (!base64_decode(text, &bytes))
			e = bytes.failed
				? ERR_NO_MEMORY
				: fail(r, ERR_VALUE_INVALID, m->value_offset, "expected base64");
		else
			text = arena_copy(r->arena, buf_span(&bytes));
		buf_fini(&bytes);
		if (e == ERR_OK && text.p == NULL)
			e = ERR_NO_MEMORY;
	}
	if (e == ERR_OK && text.n > LIMIT_MESSAGE_BYTES)
		e = fail(
			r, ERR_MESSAGE_TOO_LARGE, m->value_offset, err_text(ERR_MESSAGE_TOO_LARGE));
	r->text = text;
	return e;
}

static enum err read_member(struct reader *r, const struct json_member *m)
{
	if (span_is(m->name, "MessageText") || span_is(m->name, "MessageBytes"))
		return read_text(r, m, span_is(m->name, "MessageBytes"));
	if (span_is(m->name, "InsertionTime"))
		return read_time(r, m, &r->key->inserted);
	if (span_is(m->name, "ExpirationTime"))
		return read_time(r, m, &r->key->expires);
	if (span_is(m->name, "TimeNextVisible"))
		return read_time(r, m, &r->key->visible);
	if (span_is(m->name, "DequeueCount"))
		return read_count(r, m, &r->key->taken);
	if (span_is(m->name, "MessageId"))
		return ERR_OK; /* it gets another one */
	return fail(r, ERR_INVALID_INPUT, m->offset, "A message has no such member.");
}

enum err message_line_read(struct span line, struct arena *arena, struct message_key *key,
	struct span *ret_text, struct err_detail *detail)
{
	struct reader r = { .line = line, .arena = arena, .detail = detail, .key = key };
	int64_t now = key->inserted;
	struct json_scan scan = { 0 };
	struct json_member m;
	enum json_scan_result result;
	enum err e = ERR_OK;
	while (e == ERR_OK && (result = json_scan_next(&scan, line, &m)) == JSON_SCAN_MEMBER)
		e = read_member(&r, &m);
	if (e != ERR_OK)
		return e;
	if (result == JSON_SCAN_BAD)
		return fail(&r, ERR_INVALID_INPUT, scan.bad_at, scan.why);
	if (result == JSON_SCAN_MORE)
		return fail(&r, ERR_INVALID_INPUT, line.n, "The line is not complete.");
	if (r.text.p == NULL)
		return fail(&r, ERR_INVALID_INPUT, 0, "MessageText is missing.");
	if (key->inserted > now)
		return fail(&r, ERR_VALUE_INVALID, 0, "InsertionTime is not over yet.");
	if (key->expires <= now)
		return fail(&r, ERR_VALUE_INVALID, 0, "The message has expired.");
	*ret_text = r.text;
	return ERR_OK;
}
