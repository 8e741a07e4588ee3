/* SPDX-License-Identifier: MIT
 * Every series is there from the start, at zero, so that rates see the first event; but for
 * the hottest partitions, which come and go. */
#include "service/stats/service_metrics.h"

#include "base/clock.h"
#include "cloud/traffic.h"
#include "codec/prometheus_text.h"
#include "service/core/admission.h"
#include "service/core/faults.h"
#include "service/core/metrics.h"
#include "service/queue/queue_stats.h"
#include "service/stats/memory.h"
#include "service/view/views.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define MICRO 6 /* decimals of seconds counted in microseconds */

/* ---- operations ---- */

struct operation {
	struct span front_end, name;
	struct metrics_figures f;
};

static void add_errors(struct buf *out, const char *family, const struct operation *o)
{
	struct prometheus_sample s = { family, NULL,
		{ { "front_end", o->front_end }, { "operation", o->name },
			{ "kind", SPAN_LIT("refused") } },
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
		.labels = { { "front_end", o->front_end }, { "operation", o->name }, { "le" } } };
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

static void each_operation(struct service *service, struct buf *out, const char *family,
	void (*add)(struct buf *out, const char *family, const struct operation *o))
{
	const struct metrics *m = service_metrics(service);
	struct operation o;
	for (enum metrics_front_end front_end = 0; front_end < METRICS_FRONT_ENDS_; front_end++)
		for (size_t i = 0; metrics_read(m, front_end, i, &o.f); i++) {
			o.front_end = span_of(metrics_front_end_name(front_end));
			o.name = span_of(o.f.name);
			add(out, family, &o);
		}
}

static void add_operations(struct service *service, struct buf *out)
{
	static const char errors[] = "rowfs_operation_errors_total",
			  latency[] = "rowfs_operation_duration_seconds";
	prometheus_family(out, errors, "counter",
		"Operations that ended with an error: refused (the caller's to mend) or failed.");
	each_operation(service, out, errors, add_errors);
	prometheus_family(out, latency, "histogram", "How long operations took, by front end.");
	each_operation(service, out, latency, add_latency);
}

/* ---- the store ---- */

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

static void add_store(struct service *service, struct buf *out)
{
	struct store_info info;
	store_info(service_store(service), &info);
	prometheus_single(out, "rowfs_store_bytes", "gauge", info.bytes,
		"The store on disk, its log included.");
	prometheus_single(out, "rowfs_store_log_bytes", "gauge", info.log_bytes,
		"The store's write-ahead log on disk.");
	prometheus_single(out, "rowfs_store_ordinary_file_bytes", "gauge", info.file_bytes,
		"Ordinary files beside the rows.");
	prometheus_single(out, "rowfs_store_blob_bytes", "gauge", info.piece_bytes,
		"Content of blobs above 4 KiB, and staged blocks.");
	prometheus_single(out, "rowfs_store_changes_total", "counter", info.changes,
		"Changes of items that were committed.");
	prometheus_single(out, "rowfs_store_syncs_total", "counter", info.syncs,
		"Times that the log was made to survive a power cut.");
	add_commits(out, &info);
}

static void add_memory(struct service *service, struct buf *out)
{
	static const char family[] = "rowfs_cache_bytes";
	struct memory_figures memory;
	memory_figures(service, &memory);
	prometheus_single(out, "rowfs_resident_memory_bytes", "gauge", memory.process,
		"Resident memory of the process.");
	prometheus_family(out, family, "gauge",
		"Of that, its caches: pages of the store, rows of the mount, looked-up names, "
		"and keys of partitions.");
	for (enum memory_cache i = 0; i < MEMORY_CACHES_; i++)
		prometheus_sample(out,
			&(struct prometheus_sample){ family, NULL,
				{ { "cache", span_of(memory_cache_name(i)) } }, memory.caches[i],
				0 });
}

static void add_traffic(struct service *service, struct buf *out)
{
	static const char family[] = "rowfs_elsewhere_requests_total";
	struct store_info info;
	struct prometheus_sample s = { family, "", { { "kind" } }, 0, 0 };
	store_info(service_store(service), &info);
	if (info.traffic == NULL)
		return;
	prometheus_family(out, family, "counter", "Requests to the account elsewhere.");
	for (enum traffic_kind kind = 0; kind < TRAFFIC_KINDS_; kind++) {
		s.labels[0].value = span_of(traffic_kind_name(kind));
		s.value = atomic_load(&info.traffic->sent[kind]);
		prometheus_sample(out, &s);
	}
	prometheus_single(out, "rowfs_elsewhere_requests_again_total", "counter",
		atomic_load(&info.traffic->again), "Of these, tries again after a fault.");
}

static void add_queues(struct service *service, struct buf *out)
{
	struct queue_stats q = { .waiting = -1 };
	(void)queue_stats(service, NULL, false, &q);
	prometheus_single(out, "rowfs_queues", "gauge", q.queues, "Queues of all accounts.");
	prometheus_single(out, "rowfs_queue_messages", "gauge", q.messages,
		"Messages in them, also those that are invisible.");
	prometheus_single(out, "rowfs_queue_waiting_seconds", "gauge",
		q.waiting >= 0 ? (uint64_t)q.waiting : 0,
		"Since when a message has been visible and nobody took it.");
}

/* ---- held views ---- */

static void add_views(struct service *service, struct buf *out)
{
	static const char age[] = "rowfs_snapshot_age_seconds", log[] = "rowfs_snapshot_log_bytes";
	struct view_info *all = calloc(SERVICE_METRICS_VIEWS, sizeof(*all));
	size_t n = all != NULL ? views_list(service_views(service), all, SERVICE_METRICS_VIEWS) : 0;
	size_t shown = n < SERVICE_METRICS_VIEWS ? n : SERVICE_METRICS_VIEWS;
	int64_t now = clock_ticks();
	prometheus_single(out, "rowfs_held_views", "gauge", n,
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

static void add_heat(struct service *service, struct buf *out)
{
	static const char family[] = "rowfs_partition_entities_per_second";
	struct heat *heat = service_heat(service);
	struct hottest *h = hottest_partitions(service);
	prometheus_single(out, "rowfs_partition_target", "gauge", heat_target(heat),
		"Entities a second beyond which a partition refuses; 0: never.");
	prometheus_single(out, "rowfs_partition_refusals_total", "counter", heat_refusals(heat),
		"Requests refused by partitions that were over the target.");
	prometheus_family(out, family, "gauge",
		"Entities changed and read over the last minute in the hottest partitions.");
	for (size_t i = 0; h != NULL && i < h->n; i++)
		add_partition(out, family, &h->partitions[i]);
	free(h);
}

/* ---- faults on order ---- */

static void add_faults(struct service *service, struct buf *out)
{
	static const char family[] = "rowfs_faults_total";
	struct faults *f = service_faults(service);
	prometheus_single(out, "rowfs_fault_rules", "gauge", faults_rules(f, clock_mono_us()),
		"Rules by which requests of the REST socket fail on order; 0: none.");
	prometheus_family(out, family, "counter", "Requests that failed on order.");
	for (enum fault_kind k = 0; k < FAULT_KINDS_; k++)
		prometheus_sample(out,
			&(struct prometheus_sample){ family, NULL,
				{ { "fault", span_of(fault_kind_name(k)) } }, faults_taken(f, k),
				0 });
}

void service_metrics_write(struct service *service, struct buf *out)
{
	add_operations(service, out);
	add_store(service, out);
	add_memory(service, out);
	add_traffic(service, out);
	add_queues(service, out);
	add_views(service, out);
	add_heat(service, out);
	add_faults(service, out);
}
