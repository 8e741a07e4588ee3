/* SPDX-License-Identifier: MIT */
#include "fs/refused/reason.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "codec/json_build.h"
#include "fs/refused/unsaved.h"
#include "fs/tree/names.h"
#include "service/core/heat.h"
#include "service/core/service.h"

#include <stdlib.h>

#define KEPT 1000

struct kept {
	uint64_t dir;
	char *name; /* with its length: names may hold any byte */
	size_t name_len;
	char *text; /* for the attribute; NULL: cleared */
	char *line; /* for the list */
};

struct reasons {
	struct service *service;
	struct unsaved *unsaved; /* says whether bytes wait in memory */
	struct mutex lock;
	struct kept ring[KEPT]; /* guarded by lock */
	uint64_t next;          /* number of the next one; guarded by lock */
};

struct reasons *reasons_new(struct service *service, struct unsaved *unsaved)
{
	struct reasons *r = calloc(1, sizeof(*r));
	if (r != NULL && mutex_init(&r->lock, RANK_REASONS) != 0) {
		free(r);
		return NULL;
	}
	if (r != NULL) {
		r->service = service;
		r->unsaved = unsaved;
	}
	return r;
}

static void kept_fini(struct kept *k)
{
	free(k->name);
	free(k->text);
	free(k->line);
	*k = (struct kept){ 0 };
}

void reasons_free(struct reasons *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < KEPT; i++)
		kept_fini(&r->ring[i]);
	mutex_destroy(&r->lock);
	free(r);
}

/* The store could not take the bytes. */
static bool waits(struct unsaved *unsaved, const struct refusal *f)
{
	return f->rejected != NULL && unsaved_has(unsaved, span_of(f->rejected));
}

static void format_text(struct unsaved *unsaved, struct buf *b, const struct refusal *f)
{
	buf_addf(b, "%s: %s", err_code(f->error), err_message(f->error, f->detail));
	if (f->detail != NULL && f->detail->line != 0)
		buf_addf(b, " (line %u", f->detail->line);
	if (f->detail != NULL && f->detail->line != 0 && f->detail->column != 0)
		buf_addf(b, ", column %u", f->detail->column);
	if (f->detail != NULL && f->detail->line != 0)
		buf_add_char(b, ')');
	if (waits(unsaved, f))
		buf_add_str(b, "; the bytes are in memory, see .rowfs/rejected.ndjson");
	else if (f->rejected != NULL)
		buf_addf(b, "; the bytes are in .rowfs/rejected/%s", f->rejected);
}

static void format_line(struct reasons *r, struct buf *out, const struct refusal *f)
{
	char path[SHOWN_PATH_MAX], now[CLOCK_TEXT_MAX];
	struct json_build b;
	name_path(service_store(r->service), f->dir, f->name, path);
	clock_format(clock_ticks(), now);
	json_begin(&b);
	json_add_str(&b, "time", now);
	json_add_str(&b, "call", f->call);
	json_add_str(&b, "path", path);
	json_add_count(&b, "errno", (uint64_t)err_errno(f->error));
	json_add_str(&b, "code", err_code(f->error));
	json_add_str(&b, "message", err_message(f->error, f->detail));
	if (f->detail != NULL && f->detail->line != 0)
		json_add_count(&b, "line", f->detail->line);
	if (f->detail != NULL && f->detail->line != 0 && f->detail->column != 0)
		json_add_count(&b, "column", f->detail->column);
	if (f->rejected != NULL)
		json_add_str(&b, "rejected", f->rejected);
	if (waits(r->unsaved, f))
		json_add_bool(&b, "in_memory", true);
	json_end(&b, out);
	buf_add_char(out, '\n');
}

void reasons_add(struct reasons *r, const struct refusal *f)
{
	struct buf text = BUF_INIT(8192), line = BUF_INIT(16384);
	format_text(r->unsaved, &text, f);
	if (!f->quiet)
		format_line(r, &line, f);
	char *name = malloc(f->name.n + 1);
	if (!buf_ok(&text) || !buf_ok(&line) || name == NULL) {
		buf_fini(&text);
		buf_fini(&line);
		free(name);
		return;
	}
	memcpy(name, f->name.p, f->name.n);
	/* A throttle was asked for, and refuses a great deal. */
	bool asked_for = f->error == ERR_THROTTLED && heat_target(service_heat(r->service)) != 0;
	if (f->rare && !f->quiet && !asked_for)
		log_info("%.*s", (int)line.len - 1, line.data);
	else if (!f->quiet && !asked_for)
		log_client(LOG_KIND_MOUNT, f->dir, "%.*s", (int)line.len - 1, line.data);

	mutex_lock(&r->lock);
	struct kept *k = &r->ring[r->next++ % KEPT];
	kept_fini(k);
	*k = (struct kept){ f->dir, name, f->name.n, text.data, line.data };
	mutex_unlock(&r->lock);
}

static bool matches(const struct kept *k, uint64_t dir, struct span name)
{
	return k->text != NULL && k->dir == dir && span_eq(span_make(k->name, k->name_len), name);
}

void reasons_clear(struct reasons *r, uint64_t dir, struct span name)
{
	mutex_lock(&r->lock);
	for (size_t i = 0; i < KEPT && i < r->next; i++)
		if (matches(&r->ring[i], dir, name)) {
			free(r->ring[i].text);
			r->ring[i].text = NULL;
		}
	mutex_unlock(&r->lock);
}

bool reasons_get(
	struct reasons *r, uint64_t dir, struct span name, uint64_t inside, struct buf *out)
{
	bool found = false;
	mutex_lock(&r->lock);
	for (uint64_t n = r->next; !found && n > 0 && n + KEPT > r->next; n--) {
		const struct kept *k = &r->ring[(n - 1) % KEPT];
		found = matches(k, dir, name) ||
			(inside != 0 && k->text != NULL && k->dir == inside);
		if (found)
			buf_add_str(out, k->text);
	}
	mutex_unlock(&r->lock);
	return found;
}

void reasons_dump(struct reasons *r, struct buf *out)
{
	mutex_lock(&r->lock);
	uint64_t first = r->next > KEPT ? r->next - KEPT : 0;
	for (uint64_t n = first; n < r->next; n++)
		if (r->ring[n % KEPT].line != NULL)
			buf_add_str(out, r->ring[n % KEPT].line);
	mutex_unlock(&r->lock);
}
