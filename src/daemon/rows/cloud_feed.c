/* SPDX-License-Identifier: MIT
 * Changes of a rowfs elsewhere: GET /TABLE?comp=changes, page after page. */
#include "codec/uri.h"
#include "daemon/rows/cloud_path.h"
#include "daemon/rows/row_feed.h"
#include "daemon/rows/rows.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PATH_LIMIT 1024
#define QUERY_LIMIT ((size_t)16 << 10)
/* So often a quiet table is asked: the response has no lines. */
#define POLL_NS 500000000

struct cloud_feed {
	struct row_feed base; /* first */
	struct client *client;
	struct buf path, options; /* of the request; options: all but the position */
	bool started;
};

static void write_query(const struct cloud_feed *f, struct buf *out)
{
	buf_add_span(out, buf_span(&f->options));
	if (!f->started)
		return;
	buf_add_str(out, "&from=");
	percent_encode_value(span_of(f->base.position), out);
}

static uint64_t number_of(const char *position)
{
	return strtoull(position, NULL, 10);
}

static enum err take(struct cloud_feed *f, const struct http_response *response, struct buf *out,
	struct err_detail *why)
{
	struct span position = http_response_header(response, "x-ms-continuation-position");
	struct row_feed *base = &f->base;
	uint64_t before = number_of(base->position);
	if (position.p == NULL || position.n >= sizeof(base->position))
		return err_set(why, ERR_NOT_SUPPORTED,
			"The service there keeps no stream of changes; a rowfs does.");
	memcpy(base->position, position.p, position.n);
	base->position[position.n] = 0;
	if (response->body.len > 0)
		base->passed = 0;
	else if (f->started)
		base->passed += number_of(base->position) - before;
	f->started = true;
	buf_add_span(out, buf_span(&response->body));
	return ERR_OK;
}

static enum err read(struct row_feed *base, struct buf *out, bool *ret_more, struct err_detail *why)
{
	struct cloud_feed *f = (struct cloud_feed *)base;
	struct buf query = BUF_INIT(QUERY_LIMIT);
	struct http_response response = { 0 };
	write_query(f, &query);
	const struct client_request r = { .method = "GET",
		.path = buf_span(&f->path),
		.query = buf_span(&query),
		.idempotent = true };
	enum err e = buf_full(&query);
	if (e == ERR_OK)
		e = client_send(f->client, &r, &response, NULL, why);
	if (e == ERR_OK)
		e = take(f, &response, out, why);
	*ret_more = e == ERR_OK && response.body.len > 0;
	http_response_fini(&response);
	buf_fini(&query);
	return e == ERR_NOT_FOUND ? ERR_TABLE_NOT_FOUND : e;
}

static void wait(struct row_feed *base)
{
	(void)base;
	const struct timespec pause = { .tv_nsec = POLL_NS };
	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
}

static void close(struct row_feed *base)
{
	struct cloud_feed *f = (struct cloud_feed *)base;
	buf_fini(&f->path);
	buf_fini(&f->options);
	free(f);
}

static void write_request(
	struct cloud_feed *f, const struct cloud_path *at, const struct row_feed_options *o)
{
	buf_add_char(&f->path, '/');
	buf_add_span(&f->path, at->table);
	buf_add_str(&f->options, "comp=changes");
	if (!o->with_rows)
		buf_add_str(&f->options, "&rows=false");
	if (at->level == CLOUD_PARTITION) {
		buf_add_str(&f->options, "&partition=");
		percent_encode_value(cloud_path_pk(at), &f->options);
	}
}

/* "now" is a position of the first request. */
static enum err begin(
	struct cloud_feed *f, const struct row_feed_options *o, struct err_detail *why)
{
	struct span from = o->start == FEED_START_NOW ? SPAN_LIT("now") : o->position;
	struct buf none = BUF_INIT(1);
	bool more;
	if (o->start == FEED_START_KEPT)
		return ERR_OK;
	if (from.n >= sizeof(f->base.position))
		return err_set(why, ERR_INVALID_INPUT, "This is no position.");
	memcpy(f->base.position, from.p, from.n);
	f->started = true;
	enum err e = o->start == FEED_START_NOW ? read(&f->base, &none, &more, why) : ERR_OK;
	f->base.passed = 0;
	buf_fini(&none);
	return e;
}

enum err cloud_feed_open(struct cmd_env *env, const char *path, const struct row_feed_options *o,
	struct row_feed **ret, struct err_detail *why)
{
	struct cloud_path at;
	enum err e = cloud_path_read(env, path, false, &at, why);
	if (e == ERR_OK && at.level != CLOUD_TABLE && at.level != CLOUD_PARTITION)
		e = rows_not_table(why);
	struct cloud_feed *f = e == ERR_OK ? calloc(1, sizeof(*f)) : NULL;
	if (f == NULL)
		return e == ERR_OK ? ERR_NO_MEMORY : e;
	*f = (struct cloud_feed){ .base = { .read = read, .wait = wait, .close = close },
		.client = env->client,
		.path = BUF_INIT(PATH_LIMIT),
		.options = BUF_INIT(QUERY_LIMIT) };
	write_request(f, &at, o);
	e = buf_ok(&f->path) ? buf_full(&f->options) : buf_full(&f->path);
	if (e == ERR_OK)
		e = begin(f, o, why);
	if (e != ERR_OK) {
		close(&f->base);
		return e;
	}
	*ret = &f->base;
	return ERR_OK;
}
