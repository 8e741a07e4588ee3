/* SPDX-License-Identifier: MIT */
#include "fs/virtual/stats.h"

#include "base/clock.h"
#include "base/text.h"
#include "cloud/traffic.h"
#include "codec/json_build.h"
#include "fs/cache/content.h"
#include "fs/cache/notify.h"
#include "fs/tree/open_quota.h"
#include "fs/write/stages.h"
#include "service/core/admission.h"
#include "service/core/faults.h"
#include "service/core/metrics.h"
#include "service/queue/queue_stats.h"
#include "service/stats/memory.h"
#include "service/view/views.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void stats_name_operations(struct service *service)
{
	static const char *const names[OP_COUNT_] = {
#define X(symbol_, name_) name_,
		OP_LIST(X)
#undef X
	};
	metrics_name(service_metrics(service), METRICS_MOUNT, names, OP_COUNT_);
}

static enum metrics_end end_of(enum op op, int code)
{
	switch (code) {
	case 0:
	case ENODATA: /* programs ask for attributes that hardly anything has */
		return METRICS_DONE;
	case ESTALE: /* how the kernel is asked to look a row up once more */
		return op == OP_OPEN ? METRICS_DONE : METRICS_REFUSED;
	case EAGAIN:
	case EIO:
	case ENOMEM:
	case ENOSPC:
		return METRICS_FAILED;
	default:
		return METRICS_REFUSED;
	}
}

void stats_count(struct service *service, enum op op, uint64_t us, int code)
{
	metrics_count(service_metrics(service), METRICS_MOUNT, op, us, end_of(op, code));
}

/* ---- JSON ---- */

static void add_commit_sizes(struct json_build *b, const struct store_info *s)
{
	char name[24];
	json_open_object(b, "change_sets_per_commit");
	for (size_t i = 0; i < STORE_COMMIT_SIZES; i++) {
		if (i == STORE_COMMIT_SIZES - 1)
			(void)snprintf(name, sizeof(name), "%u+", 1u << i);
		else if (i > 0)
			(void)snprintf(name, sizeof(name), "%u-%u", 1u << i, (2u << i) - 1);
		else
			(void)snprintf(name, sizeof(name), "1");
		json_add_count(b, name, s->commit_sizes[i]);
	}
	json_close(b);
}

static void add_store(struct store *store, struct json_build *b)
{
	struct store_info s;
	store_info(store, &s);
	json_open_object(b, "store");
	json_add_count(b, "bytes", s.bytes);
	json_add_count(b, "wal_bytes", s.log_bytes);
	json_add_count(b, "ordinary_file_bytes", s.file_bytes);
	json_add_count(b, "blob_bytes", s.piece_bytes);
	if (s.piece_limit != UINT64_MAX)
		json_add_count(b, "blob_space", s.piece_limit);
	json_add_count(b, "commits", s.commits);
	json_add_count(b, "change_sets", s.change_sets);
	json_add_count(b, "changes", s.changes);
	json_add_count(b, "syncs", s.syncs);
	json_add_bool(b, "reclaiming", s.reclaiming);
	json_add_count(b, "reclaimed_slices", s.slices);
	add_commit_sizes(b, &s);
	json_close(b);
	if (s.traffic != NULL)
		traffic_add(b, s.traffic);
}

uint64_t stats_files(struct store *store, uint64_t folder)
{
	struct item it = { 0 };
	uint64_t n = store_get(store, NULL, folder, WANT_ATTRS, &it) == ERR_OK ? it.size : 0;
	item_fini(&it);
	return n;
}

static void add_cache(struct fs *fs, struct json_build *b)
{
	struct contents_info i;
	contents_info(fs->contents, &i);
	json_open_object(b, "cache");
	json_add_count(b, "rows", i.count);
	json_add_count(b, "bytes", i.bytes);
	json_add_count(b, "pinned", i.pinned);
	json_add_count(b, "hits", i.hits);
	json_add_count(b, "misses", i.misses);
	json_add_count(b, "invalidations", notifier_sent(fs->notifier));
	json_close(b);
	json_add_count(b, "overdue_requests", atomic_load(&fs->overdue));
	json_add_count(b, "open_handles", atomic_load(&fs->open_quota->handles));
	json_add_count(b, "open_stages", stages_count(fs->stages));
	json_add_count(b, "rejected_files", stats_files(fs->store, STORE_REJECTED));
	json_add_count(b, "trash_files", stats_files(fs->store, STORE_TRASH));
}

static void add_memory(struct service *service, struct json_build *b)
{
	struct memory_figures memory;
	memory_figures(service, &memory);
	memory_add(b, &memory);
}

static void add_operation(struct json_build *b, const struct metrics_figures *f)
{
	json_open_object(b, f->name);
	json_add_count(b, "count", f->count);
	json_add_count(b, "errors", f->refused + f->failed);
	json_add_count(b, "failed", f->failed);
	json_add_count(b, "mean_us", f->total_us / f->count);
	json_add_count(b, "p50_us", metrics_percentile_us(f, 50));
	json_add_count(b, "p99_us", metrics_percentile_us(f, 99));
	json_add_count(b, "max_us", f->max_us);
	json_close(b);
}

/* Those that were asked for. */
static void add_operations(struct service *service, struct json_build *b)
{
	const struct metrics *m = service_metrics(service);
	struct metrics_figures f;
	json_open_object(b, "operations");
	for (enum metrics_front_end front_end = 0; front_end < METRICS_FRONT_ENDS_; front_end++) {
		if (!metrics_read(m, front_end, 0, &f))
			continue;
		json_open_object(b, metrics_front_end_name(front_end));
		for (size_t i = 0; metrics_read(m, front_end, i, &f); i++)
			if (f.count > 0)
				add_operation(b, &f);
		json_close(b);
	}
	json_close(b);
}

static void add_rate(struct json_build *b, const char *name, uint64_t entities)
{
	json_add_hundredths(b, name, entities * 100 / HEAT_WINDOW_S);
}

static void add_hottest(struct service *service, struct json_build *b)
{
	struct hottest *h = hottest_partitions(service);
	const struct heat *heat = service_heat(service);
	json_add_count(b, "partition_target", heat_target(heat));
	json_add_count(b, "throttled", heat_refusals(heat));
	json_open_array(b, "hottest_partitions");
	for (size_t i = 0; h != NULL && i < h->n; i++) {
		const struct hot_partition *p = &h->partitions[i];
		const uint64_t *n = p->spot.entities;
		json_open_object(b, NULL);
		json_add_str(b, "account", p->account);
		json_add_str(b, "table", p->table);
		json_add_text(b, "partition_key", span_make(p->spot.pk, p->spot.pk_n));
		add_rate(b, "entities_per_second", n[HEAT_CHANGED] + n[HEAT_READ]);
		add_rate(b, "changed_per_second", n[HEAT_CHANGED]);
		add_rate(b, "read_per_second", n[HEAT_READ]);
		json_close(b);
	}
	json_close(b);
	free(h);
}

static void add_view(struct json_build *b, const struct view_info *v, int64_t now)
{
	struct span name = span_of(v->name);
	name.n = utf8_valid_prefix(name); /* it may have been cut */
	json_open_object(b, NULL);
	json_add_str(b, "kind", v->number != 0 ? "snapshot" : "stream");
	json_add_text(b, "name", name);
	json_add_count(
		b, "age_seconds", now > v->made ? (uint64_t)(now - v->made) / TICKS_PER_SECOND : 0);
	json_add_count(b, "log_bytes", v->log_bytes);
	if (v->left_s != 0)
		json_add_count(b, "seconds_left", v->left_s);
	json_close(b);
}

/* So that nobody forgets them. */
static void add_faults(struct service *service, struct json_build *b)
{
	struct faults *f = service_faults(service);
	uint64_t taken = 0;
	for (enum fault_kind k = 0; k < FAULT_KINDS_; k++)
		taken += faults_taken(f, k);
	json_add_count(b, "fault_rules", faults_rules(f, clock_mono_us()));
	json_add_count(b, "faults", taken);
}

/* What holds the log back. */
static void add_views(struct service *service, struct json_build *b)
{
	struct view_info *all = calloc(STATS_VIEWS, sizeof(*all));
	size_t n = all != NULL ? views_list(service_views(service), all, STATS_VIEWS) : 0;
	json_add_count(b, "held_views", n);
	json_open_array(b, "views");
	for (size_t i = 0; i < n && i < STATS_VIEWS; i++)
		add_view(b, &all[i], clock_ticks());
	json_close(b);
	free(all);
}

/* waiting_seconds: while a message is visible. */
static void add_queues(struct service *service, struct json_build *b)
{
	struct queue_stats q;
	if (queue_stats(service, NULL, false, &q) != ERR_OK)
		return;
	json_open_object(b, "queues");
	json_add_count(b, "count", q.queues);
	json_add_count(b, "messages", q.messages);
	if (q.waiting >= 0)
		json_add_count(b, "waiting_seconds", (uint64_t)q.waiting);
	json_close(b);
}

void stats_write_json(struct fs *fs, struct buf *out)
{
	struct json_build b;
	char started[CLOCK_TEXT_MAX];
	clock_format(fs->started, started);
	json_begin(&b);
	json_add_str(&b, "version", fs->version);
	json_add_count(&b, "pid", (uint64_t)getpid());
	json_add_str(&b, "started", started);
	add_store(fs->store, &b);
	add_queues(fs->service, &b);
	add_cache(fs, &b);
	add_memory(fs->service, &b);
	add_views(fs->service, &b);
	add_hottest(fs->service, &b);
	add_faults(fs->service, &b);
	add_operations(fs->service, &b);
	json_end_indented(&b, out);
	buf_add_char(out, '\n');
}
