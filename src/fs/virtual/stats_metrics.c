/* SPDX-License-Identifier: MIT
 * Every series is there from the start, at zero, so that rates see the first event; but for
 * the hottest partitions, which come and go. */
#include "base/clock.h"
#include "codec/prometheus_text.h"
#include "fs/cache/content.h"
#include "fs/cache/notify.h"
#include "fs/tree/open_quota.h"
#include "fs/virtual/stats.h"
#include "fs/write/stages.h"
#include "service/core/admission.h"
#include "service/core/faults.h"
#include "service/core/metrics.h"
#include "service/queue/queue_stats.h"
#include "service/view/views.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MICRO 6 /* decimals of seconds counted in microseconds */

/* A family of one sample without labels. */
static void add_one(
	struct buf *out, const char *name, const char *type, uint64_t value, const char *help)
{
	prometheus_family(out, name, type, help);
	prometheus_sample(out, &(struct prometheus_sample){ .family = name, .value = value });
}

static void add_process(struct fs *fs, struct buf *out)
{
	static const char build[] = "rowfs_build_info", start[] = "rowfs_start_time_seconds";
	int64_t us = (fs->started - TICKS_UNIX_EPOCH) / (TICKS_PER_SECOND / 1000000);
	prometheus_family(out, build, "gauge", "The version that is running; always 1.");
	prometheus_sample(out,
		&(struct prometheus_sample){
			build, NULL, { { "version", span_of(fs->version) } }, 1, 0 });
	prometheus_family(out, start, "gauge", "When the mount began, since 1970.");
	prometheus_sample(out,
		&(struct prometheus_sample){
			.family = start, .value = us > 0 ? (uint64_t)us : 0, .decimals = MICRO });
}

/* ---- operations ---- */

struct operation {
	struct span door, name;
	struct metrics_figures f;
};

static void add_errors(struct buf *out, const char *family, const struct operation *o)
{
	struct prometheus_sample s = { family, NULL,
		{ { "door", o->door }, { "operation", o->name }, { "kind", SPAN_LIT("refused") } },
		o->f.refused, 0 };
	prometheus_sample(out, &s);
	s.labels[2].value = SPAN_LIT("failed");
	s.value = o->f.failed;
	prometheus_sample(out, &s);
}

static void add_latency(struct buf *out, const char *family, const struct operation *o)
{
	char bound[32];
	struct prometheus_sample s = { .family = family,
		.suffix = "_bucket",
		.labels = { { "door", o->door }, { "operation", o->name }, { "le" } } };
	for (size_t i = 0; i < METRICS_BUCKETS; i++) {
		uint64_t us = metrics_bucket_us(i);
		(void)snprintf(bound, sizeof(bound), "%.9g", (double)us / 1e6);
		s.labels[2].value = us != UINT64_MAX ? span_of(bound) : SPAN_LIT("+Inf");
		s.value += o->f.buckets[i];
		prometheus_sample(out, &s);
	}
	s.labels[2].name = NULL;
	s.suffix = "_count";
	prometheus_sample(out, &s);
	s.suffix = "_sum";
	s.value = o->f.total_us;
	s.decimals = MICRO;
	prometheus_sample(out, &s);
}

static void each_operation(struct fs *fs, struct buf *out, const char *family,
	void (*add)(struct buf *out, const char *family, const struct operation *o))
{
	const struct metrics *m = service_metrics(fs->service);
	struct operation o;
	for (enum metrics_door door = 0; door < METRICS_DOORS_; door++)
		for (size_t i = 0; metrics_read(m, door, i, &o.f); i++) {
			o.door = span_of(metrics_door_name(door));
			o.name = span_of(o.f.name);
			add(out, family, &o);
		}
}

static void add_operations(struct fs *fs, struct buf *out)
{
	static const char errors[] = "rowfs_operation_errors_total",
			  latency[] = "rowfs_operation_duration_seconds";
	prometheus_family(out, errors, "counter",
		"Operations that ended with an error: refused (the caller's to mend) or failed.");
	each_operation(fs, out, errors, add_errors);
	prometheus_family(out, latency, "histogram", "How long operations took, by door.");
	each_operation(fs, out, latency, add_latency);
}

/* ---- the store and the caches ---- */

static void add_commits(struct buf *out, const struct store_info *info)
{
	static const char family[] = "rowfs_store_commit_change_sets";
	char bound[32];
	struct prometheus_sample s = { family, "_bucket", { { "le" } }, 0, 0 };
	prometheus_family(out, family, "histogram", "Change sets that shared a commit.");
	for (size_t i = 0; i < STORE_COMMIT_SIZES; i++) {
		(void)snprintf(bound, sizeof(bound), "%u", (2u << i) - 1);
		s.labels[0].value = i < STORE_COMMIT_SIZES - 1 ? span_of(bound) : SPAN_LIT("+Inf");
		s.value += info->commit_sizes[i];
		prometheus_sample(out, &s);
	}
	s.labels[0].name = NULL;
	s.suffix = "_count";
	prometheus_sample(out, &s);
	s.suffix = "_sum";
	s.value = info->change_sets;
	prometheus_sample(out, &s);
}

static void add_store(struct fs *fs, struct buf *out)
{
	struct store_info info;
	store_info(fs->store, &info);
	add_one(out, "rowfs_store_bytes", "gauge", info.bytes,
		"The store on disk, its log included.");
	add_one(out, "rowfs_store_log_bytes", "gauge", info.log_bytes,
		"The store's write-ahead log on disk.");
	add_one(out, "rowfs_store_ordinary_file_bytes", "gauge", info.file_bytes,
		"Ordinary files beside the rows.");
	add_one(out, "rowfs_store_changes_total", "counter", info.changes,
		"Changes of items that were committed.");
	add_one(out, "rowfs_store_syncs_total", "counter", info.syncs,
		"Times that the log was made to survive a power cut.");
	add_commits(out, &info);
}

static void add_cache(struct fs *fs, struct buf *out)
{
	struct contents_info b;
	contents_info(fs->contents, &b);
	add_one(out, "rowfs_cache_rows", "gauge", b.count, "Rows in the cache of recent ones.");
	add_one(out, "rowfs_cache_bytes", "gauge", b.bytes, "Their bytes.");
	add_one(out, "rowfs_cache_pinned_rows", "gauge", b.pinned,
		"Of them, those that somebody has open.");
	add_one(out, "rowfs_cache_hits_total", "counter", b.hits,
		"Opens that found their row in the cache.");
	add_one(out, "rowfs_cache_misses_total", "counter", b.misses, "Opens that did not.");
	add_one(out, "rowfs_kernel_invalidations_total", "counter", notifier_sent(fs->notifier),
		"Names and contents that the kernel was told to forget.");
	add_one(out, "rowfs_overdue_requests_total", "counter", atomic_load(&fs->overdue),
		"Requests that kept the only thread that reads the next one.");
	add_one(out, "rowfs_open_handles", "gauge", atomic_load(&fs->open_quota->handles),
		"Files and directories that somebody has open.");
	add_one(out, "rowfs_open_stages", "gauge", stages_count(fs->stages),
		"Documents that are being written.");
	add_one(out, "rowfs_rejected_files", "gauge", stats_files(fs, STORE_REJECTED),
		"Files in .rowfs/rejected.");
	add_one(out, "rowfs_trash_files", "gauge", stats_files(fs, STORE_TRASH),
		"Files in .rowfs/trash.");
}

static void add_queues(struct fs *fs, struct buf *out)
{
	struct queue_stats q = { .waiting = -1 };
	(void)queue_stats(fs->service, NULL, false, &q);
	add_one(out, "rowfs_queues", "gauge", q.queues, "Queues of all accounts.");
	add_one(out, "rowfs_queue_messages", "gauge", q.messages,
		"Messages in them, also those that are invisible.");
	add_one(out, "rowfs_queue_waiting_seconds", "gauge",
		q.waiting >= 0 ? (uint64_t)q.waiting : 0,
		"Since when a message has been visible and nobody took it.");
}

/* ---- held views ---- */

static void add_views(struct fs *fs, struct buf *out)
{
	static const char age[] = "rowfs_snapshot_age_seconds", log[] = "rowfs_snapshot_log_bytes";
	struct view_info *all = calloc(STATS_VIEWS, sizeof(*all));
	size_t n = all != NULL ? views_list(service_views(fs->service), all, STATS_VIEWS) : 0;
	size_t shown = n < STATS_VIEWS ? n : STATS_VIEWS;
	int64_t now = clock_ticks();
	add_one(out, "rowfs_held_views", "gauge", n,
		"Snapshots and open streams: while there is one, the log only grows.");
	prometheus_family(out, age, "gauge", "How long a snapshot has been held.");
	for (size_t i = 0; i < shown; i++)
		if (all[i].number != 0 && now >= all[i].made)
			prometheus_sample(out,
				&(struct prometheus_sample){ age, NULL,
					{ { "snapshot", span_of(all[i].name) } },
					(uint64_t)(now - all[i].made) / TICKS_PER_SECOND, 0 });
	prometheus_family(out, log, "gauge", "By how much the log grew since it was made.");
	for (size_t i = 0; i < shown; i++)
		if (all[i].number != 0)
			prometheus_sample(out,
				&(struct prometheus_sample){ log, NULL,
					{ { "snapshot", span_of(all[i].name) } }, all[i].log_bytes,
					0 });
	free(all);
}

/* ---- heat ---- */

static void add_partition(struct buf *out, const char *family, const struct hot_partition *p)
{
	static const char *const kinds[HEAT_KINDS_] = {
		[HEAT_CHANGED] = "changed", [HEAT_READ] = "read"
	};
	for (enum heat_kind k = 0; k < HEAT_KINDS_; k++)
		prometheus_sample(out,
			&(struct prometheus_sample){ family, NULL,
				{ { "account", span_of(p->account) },
					{ "table", span_of(p->table) },
					{ "partition_key", span_make(p->spot.pk, p->spot.pk_n) },
					{ "kind", span_of(kinds[k]) } },
				p->spot.entities[k] * 100 / HEAT_WINDOW_S, 2 });
}

static void add_heat(struct fs *fs, struct buf *out)
{
	static const char family[] = "rowfs_partition_entities_per_second";
	struct heat *heat = service_heat(fs->service);
	struct hottest *h = hottest_partitions(fs->service);
	add_one(out, "rowfs_partition_target", "gauge", heat_target(heat),
		"Entities a second beyond which a partition refuses; 0: never.");
	add_one(out, "rowfs_partition_refusals_total", "counter", heat_refusals(heat),
		"Requests refused by partitions that were over the target.");
	prometheus_family(out, family, "gauge",
		"Entities changed and read over the last minute in the hottest partitions.");
	for (size_t i = 0; h != NULL && i < h->n; i++)
		add_partition(out, family, &h->partitions[i]);
	free(h);
}

/* ---- faults on order ---- */

static void add_faults(struct fs *fs, struct buf *out)
{
	static const char family[] = "rowfs_faults_total";
	struct faults *f = service_faults(fs->service);
	add_one(out, "rowfs_fault_rules", "gauge", faults_rules(f, clock_mono_us()),
		"Rules by which requests of the REST socket fail on order; 0: none.");
	prometheus_family(out, family, "counter", "Requests that failed on order.");
	for (enum fault_kind k = 0; k < FAULT_KINDS_; k++)
		prometheus_sample(out,
			&(struct prometheus_sample){ family, NULL,
				{ { "fault", span_of(fault_kind_name(k)) } }, faults_taken(f, k),
				0 });
}

void stats_write_metrics(struct fs *fs, struct buf *out)
{
	add_process(fs, out);
	add_operations(fs, out);
	add_store(fs, out);
	add_queues(fs, out);
	add_cache(fs, out);
	add_views(fs, out);
	add_heat(fs, out);
	add_faults(fs, out);
}
