/* SPDX-License-Identifier: MIT */
#include "fs/virtual/stats.h"

#include "base/clock.h"
#include "base/text.h"
#include "fs/cache/blob.h"
#include "fs/cache/notify.h"
#include "fs/tree/held.h"
#include "fs/write/stages.h"
#include "service/core/admission.h"
#include "service/core/metrics.h"
#include "service/view/views.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

void stats_name_operations(struct fs *fs)
{
	static const char *const names[OP_COUNT_] = {
#define X(symbol_, name_) name_,
		OP_LIST(X)
#undef X
	};
	metrics_name(service_metrics(fs->service), METRICS_MOUNT, names, OP_COUNT_);
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

void stats_count(struct fs *fs, enum op op, uint64_t us, int code)
{
	metrics_count(service_metrics(fs->service), METRICS_MOUNT, op, us, end_of(op, code));
}

/* ---- JSON ---- */

static void add_store(struct fs *fs, struct buf *out)
{
	struct store_info s;
	store_info(fs->store, &s);
	buf_addf(out,
		"  \"store\": {\"bytes\": %" PRIu64 ", \"wal_bytes\": %" PRIu64
		", \"ordinary_file_bytes\": %" PRIu64 ", \"commits\": %" PRIu64
		", \"change_sets\": %" PRIu64 ", \"changes\": %" PRIu64 ", \"syncs\": %" PRIu64
		", \"reclaiming\": %s, \"reclaimed_slices\": %" PRIu64
		",\n    \"change_sets_per_commit\": {",
		s.bytes, s.log_bytes, s.file_bytes, s.commits, s.change_sets, s.changes, s.syncs,
		s.reclaiming ? "true" : "false", s.slices);
	for (size_t i = 0; i < STORE_COMMIT_SIZES; i++) {
		buf_addf(out, "%s\"%u", i > 0 ? ", " : "", 1u << i);
		if (i == STORE_COMMIT_SIZES - 1)
			buf_add_char(out, '+');
		else if (i > 0)
			buf_addf(out, "-%u", (2u << i) - 1);
		buf_addf(out, "\": %" PRIu64, s.commit_sizes[i]);
	}
	buf_add_str(out, "}},\n");
}

uint64_t stats_files(struct fs *fs, uint64_t folder)
{
	struct item it = { 0 };
	uint64_t n = store_get(fs->store, NULL, folder, WANT_ATTRS, &it) == ERR_OK ? it.size : 0;
	item_fini(&it);
	return n;
}

static void add_cache(struct fs *fs, struct buf *out)
{
	struct blobs_info b;
	blobs_info(fs->blobs, &b);
	buf_addf(out,
		"  \"cache\": {\"rows\": %zu, \"bytes\": %zu, \"pinned\": %zu, \"hits\": %" PRIu64
		", \"misses\": %" PRIu64 ", \"invalidations\": %" PRIu64 "},\n",
		b.count, b.bytes, b.pinned, b.hits, b.misses, notifier_sent(fs->notifier));
	buf_addf(out,
		"  \"open_handles\": %zu,\n  \"open_stages\": %zu,\n  \"rejected_files\": %" PRIu64
		",\n  \"trash_files\": %" PRIu64 ",\n",
		atomic_load(&fs->held->handles), stages_count(fs->stages),
		stats_files(fs, STORE_REJECTED), stats_files(fs, STORE_TRASH));
}

static void add_operation(const struct metrics_figures *f, const char *comma, struct buf *out)
{
	buf_addf(out,
		"%s\n      \"%s\": {\"count\": %" PRIu64 ", \"errors\": %" PRIu64
		", \"failed\": %" PRIu64 ", \"mean_us\": %" PRIu64 ", \"p50_us\": %" PRIu64
		", \"p99_us\": %" PRIu64 ", \"max_us\": %" PRIu64 "}",
		comma, f->name, f->count, f->refused + f->failed, f->failed, f->total_us / f->count,
		metrics_percentile_us(f, 50), metrics_percentile_us(f, 99), f->max_us);
}

/* Those that were asked for. */
static void add_operations(struct fs *fs, struct buf *out)
{
	struct metrics_figures f;
	const char *outer = "";
	buf_add_str(out, "  \"operations\": {");
	for (enum metrics_door door = 0; door < METRICS_DOORS_; door++) {
		const struct metrics *m = service_metrics(fs->service);
		const char *comma = "";
		if (!metrics_read(m, door, 0, &f))
			continue;
		buf_addf(out, "%s\n    \"%s\": {", outer, metrics_door_name(door));
		for (size_t i = 0; metrics_read(m, door, i, &f); i++) {
			if (f.count == 0)
				continue;
			add_operation(&f, comma, out);
			comma = ",";
		}
		buf_add_char(out, '}');
		outer = ",";
	}
	buf_add_str(out, "\n  }\n");
}

static void add_rate(struct buf *out, const char *name, uint64_t entities)
{
	uint64_t hundredths = entities * 100 / HEAT_WINDOW_S;
	buf_addf(out, ", \"%s\": %" PRIu64 ".%02" PRIu64, name, hundredths / 100, hundredths % 100);
}

static void add_hottest(struct fs *fs, struct buf *out)
{
	struct hottest *h = hottest_partitions(fs->service);
	const struct heat *heat = service_heat(fs->service);
	buf_addf(out, "  \"partition_target\": %" PRIu32 ",\n  \"throttled\": %" PRIu64 ",\n",
		heat_target(heat), heat_refusals(heat));
	buf_add_str(out, "  \"hottest_partitions\": [");
	for (size_t i = 0; h != NULL && i < h->n; i++) {
		const struct hot_partition *p = &h->partitions[i];
		const uint64_t *n = p->spot.entities;
		buf_addf(out,
			"%s\n    {\"account\": \"%s\", \"table\": \"%s\", \"partition_key\": ",
			i > 0 ? "," : "", p->account, p->table);
		buf_add_json(out, span_make(p->spot.pk, p->spot.pk_n));
		add_rate(out, "entities_per_second", n[HEAT_CHANGED] + n[HEAT_READ]);
		add_rate(out, "changed_per_second", n[HEAT_CHANGED]);
		add_rate(out, "read_per_second", n[HEAT_READ]);
		buf_add_char(out, '}');
	}
	buf_add_str(out, "],\n");
	free(h);
}

static void add_view(const struct view_info *v, int64_t now, const char *comma, struct buf *out)
{
	int64_t age = now > v->made ? (now - v->made) / TICKS_PER_SECOND : 0;
	buf_addf(out, "%s\n    {\"kind\": \"%s\", \"name\": ", comma,
		v->number != 0 ? "snapshot" : "stream");
	struct span name = span_of(v->name);
	name.n = utf8_valid_prefix(name); /* it may have been cut */
	buf_add_json(out, name);
	buf_addf(out, ", \"age_seconds\": %" PRId64 ", \"log_bytes\": %" PRIu64, age, v->log_bytes);
	if (v->left_s != 0)
		buf_addf(out, ", \"seconds_left\": %" PRIu64, v->left_s);
	buf_add_char(out, '}');
}

/* What holds the log back. */
static void add_views(struct fs *fs, struct buf *out)
{
	struct view_info *all = calloc(STATS_VIEWS, sizeof(*all));
	size_t n = all != NULL ? views_list(service_views(fs->service), all, STATS_VIEWS) : 0;
	buf_addf(out, "  \"held_views\": %zu,\n  \"views\": [", n);
	for (size_t i = 0; i < n && i < STATS_VIEWS; i++)
		add_view(&all[i], clock_ticks(), i > 0 ? "," : "", out);
	buf_add_str(out, "],\n");
	free(all);
}

void stats_write_json(struct fs *fs, struct buf *out)
{
	char started[CLOCK_TEXT_MAX];
	clock_format(fs->started, started);
	buf_addf(out, "{\n  \"version\": \"%s\",\n  \"pid\": %d,\n  \"started\": \"%s\",\n",
		fs->version, getpid(), started);
	add_store(fs, out);
	add_cache(fs, out);
	add_views(fs, out);
	add_hottest(fs, out);
	add_operations(fs, out);
	buf_add_str(out, "}\n");
}
