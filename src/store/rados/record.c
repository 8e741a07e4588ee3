/* SPDX-License-Identifier: MIT
 * Items as bytes: fixed members in little-endian order, then the spans with their lengths. */
#include "store/rados/record.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

enum form {
	FORM_LINK = 1,
	FORM_ITEM,
	FORM_HEADER,
};

enum body_form {
	BODY_NONE,
	BODY_INSIDE,
	BODY_OBJECT,
};

void name_dir(char out[RIO_NAME_MAX], uint64_t id)
{
	(void)snprintf(out, RIO_NAME_MAX, "d.%010llx", (unsigned long long)id);
}

void name_body(char out[RIO_NAME_MAX], uint64_t id, const char *token)
{
	(void)snprintf(out, RIO_NAME_MAX, "b.%010llx.%s", (unsigned long long)id, token);
}

void name_stripe(char out[RIO_NAME_MAX], uint64_t id, uint64_t stripe, const char *token)
{
	(void)snprintf(out, RIO_NAME_MAX, "c.%010llx.%08llx.%s", (unsigned long long)id,
		(unsigned long long)stripe, token);
}

void name_ids(char out[RIO_NAME_MAX], uint64_t id)
{
	(void)snprintf(out, RIO_NAME_MAX, "ids.%05llx", (unsigned long long)id >> 20);
}

char class_letter(enum item_class class)
{
	return CLASS_LETTERS[class];
}

void key_place(struct buf *out, enum item_class class, struct span key)
{
	buf_add_char(out, class_letter(class));
	buf_add_span(out, key);
}

void key_id(struct buf *out, uint64_t id)
{
	buf_addf(out, "i%010llx", (unsigned long long)id);
}

void key_stripe(struct buf *out, uint64_t id, uint64_t stripe)
{
	buf_addf(out, "s%010llx%08llx", (unsigned long long)id, (unsigned long long)stripe);
}

static void put64(struct buf *b, uint64_t v)
{
	v = htole64(v);
	buf_add(b, &v, sizeof(v));
}

static void put32(struct buf *b, uint32_t v)
{
	v = htole32(v);
	buf_add(b, &v, sizeof(v));
}

static void put_span(struct buf *b, struct span s)
{
	put32(b, (uint32_t)s.n);
	if (s.n > 0)
		buf_add_span(b, s);
}

static uint64_t get64(struct span *s, bool *ok)
{
	uint64_t v = 0;
	if (s->n < sizeof(v)) {
		*ok = false;
		return 0;
	}
	memcpy(&v, s->p, sizeof(v));
	*s = span_make(s->p + sizeof(v), s->n - sizeof(v));
	return le64toh(v);
}

static uint32_t get32(struct span *s, bool *ok)
{
	uint32_t v = 0;
	if (s->n < sizeof(v)) {
		*ok = false;
		return 0;
	}
	memcpy(&v, s->p, sizeof(v));
	*s = span_make(s->p + sizeof(v), s->n - sizeof(v));
	return le32toh(v);
}

static struct span get_span(struct span *s, bool *ok)
{
	uint32_t n = get32(s, ok);
	if (n > s->n)
		*ok = false;
	if (!*ok)
		return (struct span){ NULL, 0 };
	struct span got = span_make(s->p, n);
	*s = span_make(s->p + n, s->n - n);
	return got;
}

void record_link(struct buf *out, uint64_t id, enum item_kind kind)
{
	buf_add_char(out, FORM_LINK);
	put32(out, (uint32_t)kind);
	put64(out, id);
}

static void put_members(struct buf *out, const struct item *it, const char *token)
{
	put32(out, (uint32_t)it->kind);
	put64(out, it->id);
	put32(out, it->flags);
	put64(out, it->generation);
	put64(out, (uint64_t)it->version);
	put64(out, (uint64_t)it->born);
	put32(out, it->attrs.mode);
	put32(out, it->attrs.uid);
	put32(out, it->attrs.gid);
	put64(out, (uint64_t)it->attrs.mtime_ns);
	put64(out, (uint64_t)it->attrs.ctime_ns);
	put64(out, (uint64_t)it->attrs.if_match);
	put64(out, it->size);
	put_span(out, it->name);
	put32(out, token ? BODY_OBJECT : it->body.p ? BODY_INSIDE : BODY_NONE);
	put_span(out, token ? span_of(token) : it->body);
}

void record_item(struct buf *out, const struct item *it, const char *token)
{
	buf_add_char(out, FORM_ITEM);
	put_members(out, it, token);
}

void record_header(struct buf *out, const struct item *it)
{
	buf_add_char(out, FORM_HEADER);
	put_members(out, it, NULL);
	put64(out, it->parent);
	put32(out, (uint32_t)it->class);
	put_span(out, it->key);
}

static bool get_members(struct span *s, struct record *r)
{
	bool ok = true;
	struct item *it = &r->it;
	it->kind = (enum item_kind)get32(s, &ok);
	it->id = get64(s, &ok);
	it->flags = get32(s, &ok);
	it->generation = get64(s, &ok);
	it->version = (int64_t)get64(s, &ok);
	it->born = (int64_t)get64(s, &ok);
	it->attrs.mode = get32(s, &ok);
	it->attrs.uid = get32(s, &ok);
	it->attrs.gid = get32(s, &ok);
	it->attrs.mtime_ns = (int64_t)get64(s, &ok);
	it->attrs.ctime_ns = (int64_t)get64(s, &ok);
	it->attrs.if_match = (int64_t)get64(s, &ok);
	it->size = get64(s, &ok);
	it->name = get_span(s, &ok);
	uint32_t form = get32(s, &ok);
	struct span body = get_span(s, &ok);
	if (form == BODY_OBJECT && body.n == TOKEN_LEN)
		memcpy(r->token, body.p, TOKEN_LEN);
	else if (form == BODY_INSIDE)
		it->body = body;
	else if (form != BODY_NONE)
		ok = false;
	return ok;
}

enum err record_decode(struct span bytes, struct record *ret)
{
	bool ok = bytes.n > 0;
	memset(ret, 0, sizeof(*ret));
	char form = ok ? bytes.p[0] : 0;
	if (ok)
		bytes = span_make(bytes.p + 1, bytes.n - 1);
	if (form == FORM_LINK) {
		ret->link = true;
		ret->it.kind = (enum item_kind)get32(&bytes, &ok);
		ret->it.id = get64(&bytes, &ok);
	} else {
		ok = ok && (form == FORM_ITEM || form == FORM_HEADER) && get_members(&bytes, ret);
	}
	if (ok && form == FORM_HEADER) {
		ret->it.parent = get64(&bytes, &ok);
		ret->it.class = (enum item_class)get32(&bytes, &ok);
		ret->it.key = get_span(&bytes, &ok);
	}
	return ok && bytes.n == 0 && ret->it.kind != ITEM_NONE ? ERR_OK : ERR_CORRUPT;
}
