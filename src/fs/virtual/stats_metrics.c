/* SPDX-License-Identifier: MIT
 * The figures of the mount itself; those of the service come from service/stats. */
#include "codec/prometheus_text.h"
#include "fs/cache/content.h"
#include "fs/cache/notify.h"
#include "fs/tree/open_quota.h"
#include "fs/virtual/stats.h"
#include "fs/write/stages.h"
#include "service/stats/service_metrics.h"

#define MICRO 6 /* decimals of seconds counted in microseconds */

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

/* The bytes of the cache are a figure of the service. */
static void add_cache(struct fs *fs, struct buf *out)
{
	struct contents_info b;
	contents_info(fs->contents, &b);
	prometheus_single(
		out, "rowfs_cache_rows", "gauge", b.count, "Rows in the cache of recent ones.");
	prometheus_single(out, "rowfs_cache_pinned_rows", "gauge", b.pinned,
		"Of them, those that somebody has open.");
	prometheus_single(out, "rowfs_cache_hits_total", "counter", b.hits,
		"Opens that found their row in the cache.");
	prometheus_single(
		out, "rowfs_cache_misses_total", "counter", b.misses, "Opens that did not.");
	prometheus_single(out, "rowfs_kernel_invalidations_total", "counter",
		notifier_sent(fs->notifier),
		"Names and contents that the kernel was told to forget.");
	prometheus_single(out, "rowfs_overdue_requests_total", "counter", atomic_load(&fs->overdue),
		"Requests that kept the only thread that reads the next one.");
	prometheus_single(out, "rowfs_open_handles", "gauge", atomic_load(&fs->open_quota->handles),
		"Files and directories that somebody has open.");
	prometheus_single(out, "rowfs_open_stages", "gauge", stages_count(fs->stages),
		"Documents that are being written.");
	prometheus_single(out, "rowfs_rejected_files", "gauge",
		stats_files(fs->store, STORE_REJECTED), "Files in .rowfs/rejected.");
	prometheus_single(out, "rowfs_trash_files", "gauge", stats_files(fs->store, STORE_TRASH),
		"Files in .rowfs/trash.");
}

void stats_write_metrics(struct fs *fs, struct buf *out)
{
	add_process(fs, out);
	service_metrics_write(fs->service, out);
	add_cache(fs, out);
}
