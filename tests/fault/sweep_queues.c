/* SPDX-License-Identifier: MIT
 * Sweeps over queues: a queue with three messages, one of them large. */
#include "service/change/change_set.h"
#include "service/queue/messages.h"
#include "service/queue/queue_stats.h"
#include "service/queue/queues.h"
#include "service/transfer/message_transfer.h"
#include "sweep.h"

#include <stdio.h>
#include <string.h>

#define LARGE 40000

static uint64_t queue;
static struct queue_message last; /* of the messages that were put */
static char large[LARGE];

static enum err make_queue(struct world *w)
{
	bool created;
	return queue_create(w->service, ORIGIN_REST, ids.account, SPAN_LIT("jobs"),
		SPAN_LIT("a:1\n"), &created, &w->detail);
}

static enum err put(struct world *w, struct span text)
{
	return message_put(
		w->service, ORIGIN_REST, queue, text, 0, MESSAGE_NEVER, true, &last, &w->detail);
}

static void with_queue(struct world *w)
{
	memset(large, 'x', sizeof(large));
	MUST_DO(make_queue(w));
	MUST_DO(queue_id(w->service, ids.account, SPAN_LIT("jobs"), &queue));
	MUST_DO(put(w, SPAN_LIT("one")));
	MUST_DO(put(w, span_make(large, sizeof(large))));
	MUST_DO(put(w, SPAN_LIT("three")));
}

static enum err put_one(struct world *w)
{
	return put(w, SPAN_LIT("four"));
}

struct seen {
	size_t n, bytes;
};

static bool see(void *arg, const struct queue_message *m)
{
	struct seen *s = arg;
	s->n++;
	s->bytes += m->text.n;
	return true;
}

static enum err take(struct world *w)
{
	struct seen s = { 0 };
	enum err e =
		message_take(w->service, ORIGIN_REST, queue, 2, 3600, true, see, &s, &w->detail);
	if (e == ERR_OK)
		EXPECT(w, s.n == 2 && s.bytes == 3 + LARGE);
	return e;
}

static enum err take_one(struct world *w)
{
	struct seen s = { 0 };
	enum err e = message_take_one(
		w->service, ORIGIN_REST, queue, span_of(last.id), 3600, true, see, &s, &w->detail);
	if (e == ERR_OK)
		EXPECT(w, s.n == 1);
	return e;
}

static enum err peek(struct world *w)
{
	struct seen s = { 0 };
	enum err e = message_peek(w->service, queue, 32, see, &s);
	if (e == ERR_OK)
		EXPECT(w, s.n == 3 && s.bytes == 3 + LARGE + 5);
	return e;
}

static enum err update(struct world *w)
{
	struct queue_message unused;
	struct span text = SPAN_LIT("new text");
	return message_update(w->service, ORIGIN_REST, queue, span_of(last.id),
		span_of(last.receipt), 10, &text, true, &unused, &w->detail);
}

static enum err delete_one(struct world *w)
{
	return message_delete(w->service, ORIGIN_REST, queue, span_of(last.id),
		span_of(last.receipt), true, &w->detail);
}

static enum err clear(struct world *w)
{
	return queue_clear(w->service, ORIGIN_REST, queue, &w->detail);
}

static enum err set(struct world *w, const struct collection_edit *to)
{
	int64_t etag;
	return collection_set(
		w->service, ORIGIN_REST, &collection_queue, queue, to, &etag, &w->detail);
}

static enum err set_metadata(struct world *w)
{
	static const struct span metadata = SPAN_LIT("b:2\n");
	return set(w, &(struct collection_edit){ .metadata = &metadata });
}

static enum err set_policies(struct world *w)
{
	static const struct span xml = SPAN_LIT(
		"<SignedIdentifiers><SignedIdentifier><Id>p</Id></SignedIdentifier></SignedIdentifiers>");
	return set(w, &(struct collection_edit){ .policies = &xml });
}

static enum err drop_queue(struct world *w)
{
	return queue_delete(w->service, ORIGIN_REST, queue, &w->detail);
}

static bool on_queue(void *arg, const struct collection *q)
{
	struct seen *s = arg;
	s->n++;
	s->bytes += q->metadata.n;
	return true;
}

static enum err list(struct world *w)
{
	struct seen s = { 0 };
	struct buf next = BUF_INIT(64);
	enum err e = collection_list(w->service, &collection_queue, ids.account, SPAN_LIT("j"),
		SPAN_LIT(""), 10, on_queue, &s, &next);
	if (e == ERR_OK)
		EXPECT(w, s.n == 1 && s.bytes == 4 && next.len == 0);
	buf_fini(&next);
	return e;
}

static enum err with_a_row(struct world *w)
{
	static const char text[] = "[{\"insert\":{\"RowKey\":\"with\"}},"
				   "{\"put_message\":{\"queue\":\"jobs\",\"text\":\"\\u0061\"}}]";
	const struct change_set_place at = {
		.account = SPAN_LIT("acc"), .table = SPAN_LIT("Tab"), .pk = SPAN_LIT("p")
	};
	struct change_set set;
	enum err e = change_set_parse(span_of(text), &at, &set, &w->detail);
	if (e == ERR_OK)
		e = change_set_apply(
			w->service, ORIGIN_MOUNT, ids.table, &set, ENTITIES_SET, &w->detail);
	change_set_fini(&set);
	return e;
}

static enum err import_messages(struct world *w)
{
	static char text[] =
		"{\"MessageText\":\"five\"}\n{\"MessageBytes\":\"/w==\",\"DequeueCount\":1}\n";
	const struct import_options options = { .stop_at_error = true };
	struct import_counts counts;
	FILE *in = fmemopen(text, sizeof(text) - 1, "r");
	enum err e = in == NULL ? ERR_NO_MEMORY
				: messages_import(w->service, ORIGIN_REST, queue, in, &options,
					  &counts, &w->detail);
	if (in != NULL)
		fclose(in);
	if (e == ERR_OK)
		EXPECT(w, counts.done == 2);
	return e;
}

static bool on_lines(void *arg, struct span lines, uint64_t n)
{
	struct seen *s = arg;
	s->n += n;
	s->bytes += lines.n;
	return true;
}

static enum err export_messages(struct world *w)
{
	struct seen s = { 0 };
	enum err e = messages_export(w->service, queue, on_lines, &s);
	if (e == ERR_OK)
		EXPECT(w, s.n == 3 && s.bytes > LARGE);
	return e;
}

static enum err figures(struct world *w)
{
	struct queue_stats s;
	enum err e = queue_stats(w->service, NULL, true, &s);
	if (e == ERR_OK)
		EXPECT(w, s.queues == 1 && s.messages == 3 && s.visible == 3);
	return e;
}

/* clang-format off */
const struct sweep_case sweep_queues[] = {
	{ "queue", SWEEP_SERVICE, NULL, make_queue, NULL },
	{ "message", SWEEP_SERVICE, with_queue, put_one, NULL },
	{ "message with a row", SWEEP_SERVICE, with_queue, with_a_row, NULL },
	{ "import of messages", SWEEP_SERVICE | SWEEP_IN_PARTS, with_queue, import_messages, NULL },
	{ "export of messages", SWEEP_SERVICE, with_queue, export_messages, NULL },
	{ "figures of queues", SWEEP_SERVICE, with_queue, figures, NULL },
	{ "take of messages", SWEEP_SERVICE, with_queue, take, NULL },
	{ "take of one message", SWEEP_SERVICE, with_queue, take_one, NULL },
	{ "peek at messages", SWEEP_SERVICE, with_queue, peek, NULL },
	{ "update of a message", SWEEP_SERVICE, with_queue, update, NULL },
	{ "message's end", SWEEP_SERVICE, with_queue, delete_one, NULL },
	{ "messages' end", SWEEP_SERVICE, with_queue, clear, NULL },
	{ "list of queues", SWEEP_SERVICE, with_queue, list, NULL },
	{ "metadata of a queue", SWEEP_SERVICE, with_queue, set_metadata, NULL },
	{ "policies of a queue", SWEEP_SERVICE, with_queue, set_policies, NULL },
	{ "queue's end", SWEEP_SERVICE, with_queue, drop_queue, NULL },
	{ NULL, 0, NULL, NULL, NULL },
};
/* clang-format on */
