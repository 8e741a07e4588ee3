/* SPDX-License-Identifier: MIT
 * A whole request through the whole REST layer, over the in-memory engine: lines of
 * "METHOD TARGET" and "Name: value", an empty line, the body.  The first byte says which service
 * it is for, q or Q the queues, b or B the blobs, and whether the peer is trusted, which n, Q and B say is
 * not.  In the
 * target $I is the id of a message and $R its receipt.  Whatever comes: an answer with a status, and
 * 501 is the only one from 500 on.  What queues answer, and errors of blobs, are XML that can be read. */
#include "codec/xml_events.h"
#include "fuzz.h"
#include "rest/blobs/blobs.h"
#include "rest/core/handle.h"
#include "rest/queues/queues.h"
#include "rest/tables/tables.h"
#include "service/blobs/blobs.h"
#include "service/blobs/blocks.h"
#include "service/blobs/containers.h"
#include "service/blobs/page_write.h"
#include "service/queue/messages.h"
#include "service/queue/queues.h"
#include "small_service.h"

#include <string.h>

#define HEADERS_MAX 32

static bool keep_message(void *arg, const struct queue_message *m)
{
	*(struct queue_message *)arg = *m;
	return true;
}

/* Makes a queue with a message that was taken and one that was not. */
static void make_queue(struct service *s, uint64_t account, struct queue_message *ret)
{
	static const struct span text = SPAN_LIT("a <text>");
	struct queue_message put;
	bool created;
	uint64_t queue;

	MUST(queue_create(s, ORIGIN_COMMAND, account, SPAN_LIT("jobs"), SPAN_LIT(""), &created,
		     NULL) == ERR_OK);
	MUST(queue_id(s, account, SPAN_LIT("jobs"), &queue) == ERR_OK);
	for (int i = 0; i < 2; i++)
		MUST(message_put(s, ORIGIN_COMMAND, queue, text, 0, MESSAGE_NEVER, false, &put,
			     NULL) == ERR_OK);
	MUST(message_take(s, ORIGIN_COMMAND, queue, 1, 60, false, keep_message, ret, NULL) ==
		ERR_OK);
}

/* Makes a container with a blob of each type. */
static void make_blobs(struct service *s, uint64_t account)
{
	static const struct blob_conditions none = { 0 };
	struct collection c = {
		.name = SPAN_LIT("photos"), .metadata = SPAN_LIT(""), .policies = SPAN_LIT("")
	};
	struct blob_change log = {
		.service = s, .origin = ORIGIN_COMMAND, .name = SPAN_LIT("log"), .conditions = &none
	};
	struct page_target disk = { .service = s,
		.origin = ORIGIN_COMMAND,
		.name = SPAN_LIT("disk"),
		.conditions = &none };
	struct page_result result;
	uint64_t id;
	int64_t etag;

	MUST(collection_create(s, ORIGIN_COMMAND, &collection_container, account, &c, NULL) ==
		ERR_OK);
	MUST(container_id(s, account, c.name, &id) == ERR_OK);
	MUST(blob_put(s, ORIGIN_COMMAND, id, SPAN_LIT("a"),
		     &(struct blob_new){
			     .metadata = SPAN_LIT(""), .content = SPAN_LIT("0123456789") },
		     &none, &etag, NULL) == ERR_OK);
	log.container = disk.container = id;
	MUST(append_create(&log, &(struct append_new){ .metadata = SPAN_LIT("") }) == ERR_OK);
	MUST(page_blob_create(&disk,
		     &(struct page_blob_new){ .metadata = SPAN_LIT(""), .size = 8192 }, &result,
		     NULL) == ERR_OK);
}

static struct service *make_service(struct queue_message *ret)
{
	uint64_t account;
	struct service *s = small_service_new(&account);
	make_queue(s, account, ret);
	make_blobs(s, account);
	return s;
}

static struct span take_line(struct span *rest)
{
	const char *end = rest->n == 0 ? NULL : memchr(rest->p, '\n', rest->n);
	size_t n = end == NULL ? rest->n : (size_t)(end - rest->p);
	size_t skip = end == NULL ? n : n + 1;
	struct span line = span_make(rest->p, n);

	*rest = span_make(rest->p + skip, rest->n - skip);
	return line;
}

static void split(struct span line, char by, struct span *left, struct span *right)
{
	const char *at = line.n == 0 ? NULL : memchr(line.p, by, line.n);
	size_t n = at == NULL ? line.n : (size_t)(at - line.p);

	*left = span_make(line.p, n);
	*right = at == NULL ? span_make(line.p + n, 0) : span_make(at + 1, line.n - n - 1);
}

/* Appends the target with the message's id and receipt. */
static struct span fill(struct span target, const struct queue_message *m, struct buf *out)
{
	for (size_t i = 0; i < target.n; i++) {
		char next = i + 1 < target.n ? target.p[i + 1] : '\0';
		bool special = target.p[i] == '$' && (next == 'I' || next == 'R');
		if (special)
			buf_add_str(out, next == 'I' ? m->id : m->receipt);
		else
			buf_add_char(out, target.p[i]);
		i += special;
	}
	MUST(buf_ok(out));
	/* The server never has NULL here. */
	return out->len > 0 ? buf_span(out) : SPAN_LIT("");
}

static enum err on_start(void *arg, const struct xml_start *start)
{
	return ERR_OK;
}

static enum err on_end(void *arg)
{
	return ERR_OK;
}

static enum err on_text(void *arg, struct span text)
{
	return ERR_OK;
}

static void is_xml(const struct response *r)
{
	static const struct xml_handler handler = { on_start, on_end, on_text };

	if (r->body.len > 0)
		MUST(xml_events(buf_span(&r->body), SIZE_MAX, &handler, NULL, NULL) == ERR_OK);
}

static void ask(const struct rest_service *rest, struct service *s, struct request *q)
{
	struct span body = q->body;
	struct response r;

	/* Who is refused before the body is refused behind it, and for the same. */
	q->body = SPAN_LIT("");
	uint64_t limit = UINT64_MAX;
	enum err admitted = rest_admit(rest, s, q, &limit, &r);
	int refused = r.status;
	response_fini(&r);
	q->body = body;
	rest_handle(rest, s, q, &r);
	MUST(admitted == ERR_OK || r.status == refused);
	MUST(r.status >= 200 && (r.status < 500 || r.status == 501));
	MUST(!(r.status < 300 && !q->peer->trusted) || span_is(q->method, "OPTIONS"));
	if (rest == &rest_queues || (rest == &rest_blobs && r.status >= 400))
		is_xml(&r);
	response_fini(&r);
}

static const struct rest_service *service_of(uint8_t letter)
{
	if (letter == 'b' || letter == 'B')
		return &rest_blobs;
	return letter == 'q' || letter == 'Q' ? &rest_queues : &rest_tables;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct header headers[HEADERS_MAX];
	struct peer peer = { .is_unix = true };
	struct request q = { .headers = headers, .peer = &peer };
	struct buf target = BUF_INIT(1 << 20);
	struct queue_message message;
	struct span rest, line;

	if (size == 0)
		return 0;
	peer.trusted = strchr("nQB", data[0]) == NULL;
	rest = span_make(data + 1, size - 1);
	split(take_line(&rest), ' ', &q.method, &q.target);
	for (line = take_line(&rest); line.n > 0 && q.nheaders < HEADERS_MAX;
		line = take_line(&rest)) {
		struct header *h = &headers[q.nheaders++];
		split(line, ':', &h->name, &h->value);
	}
	q.body = rest;
	struct service *s = make_service(&message);
	q.target = fill(q.target, &message, &target);
	ask(service_of(data[0]), s, &q);
	service_free(s);
	buf_fini(&target);
	return 0;
}
