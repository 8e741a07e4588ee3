/* SPDX-License-Identifier: MIT */
#include "service/transfer/message_transfer.h"

#include "service/queue/messages.h"
#include "service/transfer/message_line.h"
#include "service/view/views.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_BYTES ((size_t)256 << 10) /* of text that one reading of the store gives */
/* Of a commit. */
#define CHUNK_MESSAGES 1000
#define CHUNK_TEXT ((size_t)4 << 20)

/* ---- out ---- */

struct page {
	struct buf lines;
	int64_t now;
	uint64_t messages;
	bool full;
	char last[MESSAGE_KEY_CHARS];
};

static bool on_message(void *arg, const struct item *it)
{
	struct page *p = arg;
	struct message_key key;
	if (!message_key_read(it->key, &key))
		return true; /* the check reports it */
	memcpy(p->last, it->key.p, sizeof(p->last));
	if (key.expires > p->now) {
		message_line_write(&key, it->id, it->body, &p->lines);
		p->messages++;
	}
	p->full = p->lines.len >= PAGE_BYTES;
	return buf_ok(&p->lines) && !p->full;
}

static enum err read_page(
	struct service *s, struct view *v, uint64_t queue_id, struct span after, struct page *p)
{
	struct store_view *view;
	enum err e = view_begin(v, &view);
	if (e != ERR_OK)
		return e;
	buf_clear(&p->lines);
	p->messages = 0;
	p->full = false;
	e = store_list(service_store(s), view, queue_id, CLASS_QUEUE, after, false, WANT_BODY,
		on_message, p);
	view_end(v);
	return e == ERR_OK && !buf_ok(&p->lines) ? ERR_NO_MEMORY : e;
}

enum err messages_export(struct service *s, uint64_t queue_id, messages_fn fn, void *arg)
{
	struct page p = { .lines = BUF_INIT(PAGE_BYTES + MESSAGE_LINE_LIMIT),
		.now = service_now(s) };
	char last[MESSAGE_KEY_CHARS];
	struct span after = { 0 };
	struct view *v;
	enum err e = views_open(service_views(s), SPAN_LIT("rowfs export"), &v);
	if (e != ERR_OK)
		return e;
	do {
		e = read_page(s, v, queue_id, after, &p);
		if (e == ERR_OK && p.messages > 0 && !fn(arg, buf_span(&p.lines), p.messages))
			e = ERR_CANCELLED;
		memcpy(last, p.last, sizeof(last));
		after = span_make(last, sizeof(last));
	} while (e == ERR_OK && p.full);
	buf_fini(&p.lines);
	views_close(v);
	return e;
}

/* ---- in ---- */

struct load {
	struct service *service;
	enum origin origin;
	uint64_t queue;
	const struct import_options *options;
	struct import_counts *counts;
	struct arena text;
	size_t n, bytes;
	struct change changes[CHUNK_MESSAGES];
	uint64_t lines[CHUNK_MESSAGES];
	char keys[CHUNK_MESSAGES][MESSAGE_KEY_CHARS + 1];
};

static enum err refuse(struct load *l, uint64_t line, enum err e, struct err_detail *why)
{
	why->line = (unsigned)line;
	l->counts->refused++;
	if (l->options->on_error != NULL)
		l->options->on_error(l->options->arg, e, why);
	if (l->options->stop_at_error || e == ERR_NO_MEMORY)
		return e;
	*why = (struct err_detail){ 0 };
	return ERR_OK;
}

static void drop(struct load *l, size_t i)
{
	l->n--;
	memmove(&l->changes[i], &l->changes[i + 1], (l->n - i) * sizeof(l->changes[0]));
	memmove(&l->lines[i], &l->lines[i + 1], (l->n - i) * sizeof(l->lines[0]));
}

/* Commits the chunk without the messages that are there already. */
static enum err commit(struct load *l, struct err_detail *why)
{
	enum err e = ERR_OK;
	while (e == ERR_OK && l->n > 0) {
		*why = (struct err_detail){ 0 };
		e = service_apply(l->service, l->origin, l->changes, l->n, false, why);
		changes_fini(l->changes, l->n);
		if (e == ERR_OK) {
			l->counts->done += l->n;
			l->n = 0;
		} else if (e == ERR_NAME_EXISTS && why->op < l->n) {
			size_t at = why->op;
			uint64_t line = l->lines[at];
			drop(l, at);
			e = refuse(l, line,
				err_set(why, e, "This message is in the queue already."), why);
		} else {
			why->line = (unsigned)l->lines[0];
			if (e == ERR_NOT_FOUND || e == ERR_NOT_PERMITTED || e == ERR_GONE)
				e = ERR_QUEUE_NOT_FOUND;
		}
	}
	l->n = l->bytes = 0;
	arena_fini(&l->text);
	bool on = l->options->on_progress == NULL ||
		l->options->on_progress(l->options->arg, l->counts);
	return e == ERR_OK && !on ? ERR_CANCELLED : e;
}

static bool blank(struct span s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\r')
			return false;
	return true;
}

static enum err take_line(struct load *l, uint64_t number, struct span line, struct err_detail *why)
{
	struct message_key key = { 0 };
	struct span text;
	if (blank(line))
		return ERR_OK;
	l->counts->lines++;
	key.inserted = service_next_version(l->service);
	key.visible = service_now(l->service);
	key.expires = key.inserted + MESSAGE_TTL_DEFAULT_S * TICKS_PER_SECOND;
	enum err e = message_line_read(line, &l->text, &key, &text, why);
	if (e != ERR_OK)
		return refuse(l, number, e, why);
	l->lines[l->n] = number;
	l->changes[l->n] = (struct change){ .op = CHANGE_PUT,
		.at = { .parent = l->queue,
			.class = CLASS_QUEUE,
			.key = message_key_write(&key, l->keys[l->n]) },
		.cond = COND_ABSENT,
		.kind = ITEM_MESSAGE,
		.body = text,
		.attrs = ATTRS_UNSET };
	l->n++;
	l->bytes += line.n;
	return l->n == CHUNK_MESSAGES || l->bytes > CHUNK_TEXT ? commit(l, why) : ERR_OK;
}

/* Reads a line without its end; *ret_long: it has more bytes than a message can have.  False: the
 * input has ended. */
static bool read_line(FILE *in, struct buf *out, bool *ret_long, struct import_counts *counts)
{
	int c = 0;
	bool any = false;
	buf_clear(out);
	*ret_long = false;
	while ((c = getc_unlocked(in)) != EOF) {
		any = true;
		counts->bytes++;
		if (c == '\n')
			break;
		if (out->len < MESSAGE_LINE_LIMIT)
			buf_add_char(out, (char)c);
		else
			*ret_long = true;
	}
	return any;
}

static enum err load_all(struct load *l, FILE *in, struct buf *line, struct err_detail *why)
{
	enum err e = ERR_OK;
	bool is_long;
	for (uint64_t n = 1; e == ERR_OK && read_line(in, line, &is_long, l->counts); n++) {
		struct span text = buf_span(line);
		if (n == 1 && span_starts(text, SPAN_LIT("\xEF\xBB\xBF")))
			text = span_make(text.p + 3, text.n - 3);
		if (!buf_ok(line))
			e = ERR_NO_MEMORY;
		else if (is_long)
			e = refuse(l, n,
				err_set(why, ERR_MESSAGE_TOO_LARGE,
					"The line has more than %zu bytes.", MESSAGE_LINE_LIMIT),
				why);
		else
			e = take_line(l, n, text, why);
	}
	int code = errno;
	enum err last = e == ERR_CANCELLED ? ERR_OK : commit(l, why);
	if (e == ERR_OK)
		e = last;
	if (e == ERR_OK && ferror(in))
		e = err_set(why, err_from_errno(code), "cannot read the input: %s",
			strerrordesc_np(code));
	return e;
}

enum err messages_import(struct service *s, enum origin origin, uint64_t queue_id, FILE *in,
	const struct import_options *options, struct import_counts *counts,
	struct err_detail *detail)
{
	struct buf line = BUF_INIT(MESSAGE_LINE_LIMIT);
	struct load *l = calloc(1, sizeof(*l));
	*counts = (struct import_counts){ 0 };
	if (l == NULL)
		return ERR_NO_MEMORY;
	l->service = s;
	l->origin = origin;
	l->queue = queue_id;
	l->options = options;
	l->counts = counts;
	enum err e = load_all(l, in, &line, detail);
	enum err synced = counts->done > 0 ? store_sync(service_store(s)) : ERR_OK;
	arena_fini(&l->text);
	buf_fini(&line);
	free(l);
	if (e != ERR_OK || synced == ERR_OK)
		return e;
	return err_set(detail, ERR_OUTCOME_UNKNOWN,
		"The messages are in the queue, but the disk refused to sync them.");
}
