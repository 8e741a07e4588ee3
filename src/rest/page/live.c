/* SPDX-License-Identifier: MIT
 * The figures of /metrics for the page, as they have grown since the start.  The browser keeps them and
 * shows what changed between two requests, so the server remembers nothing about it. */
#include "base/clock.h"
#include "rest/page/page_data.h"
#include "service/core/admission.h"
#include "service/core/metrics.h"
#include "service/core/tables.h"
#include "service/stats/memory.h"
#include "store/store.h"

#include <stdlib.h>

static void add_operation(
	struct json_build *b, const char *front_end, const struct metrics_figures *f)
{
	json_open_object(b, NULL);
	json_add_str(b, "front_end", front_end);
	json_add_str(b, "operation", f->name);
	json_add_count(b, "refused", f->refused);
	json_add_count(b, "failed", f->failed);
	json_add_count(b, "max_us", f->max_us);
	json_open_array(b, "buckets");
	for (size_t i = 0; i < METRICS_BUCKETS; i++)
		json_add_count(b, NULL, f->buckets[i]);
	json_close(b);
	json_close(b);
}

static void add_operations(struct service *service, struct json_build *b)
{
	const struct metrics *m = service_metrics(service);
	struct metrics_figures f;
	json_open_array(b, "bucket_limits_us"); /* the last bucket has none */
	for (size_t i = 0; i < METRICS_BUCKETS - 1; i++)
		json_add_count(b, NULL, metrics_bucket_us(i));
	json_close(b);
	json_open_array(b, "operations");
	for (enum metrics_front_end i = 0; i < METRICS_FRONT_ENDS_; i++)
		for (size_t op = 0; metrics_read(m, i, op, &f); op++)
			if (f.count > 0)
				add_operation(b, metrics_front_end_name(i), &f);
	json_close(b);
}

static void add_store(struct service *service, struct json_build *b)
{
	struct store_info info;
	store_info(service_store(service), &info);
	json_open_object(b, "store");
	json_add_count(b, "bytes", info.bytes);
	json_add_count(b, "log_bytes", info.log_bytes);
	json_add_count(b, "file_bytes", info.file_bytes);
	json_add_count(b, "blob_bytes", info.piece_bytes);
	json_close(b);
}

static void add_memory(struct service *service, struct json_build *b)
{
	struct memory_figures memory;
	memory_figures(service, &memory);
	memory_add(b, &memory);
}

/* ---- heat ---- */

static void add_spot(struct json_build *b, const struct hot_spot *spot)
{
	json_add_text(b, "partition_key", span_make(spot->pk, spot->pk_n));
	json_add_count(b, "changed", spot->entities[HEAT_CHANGED]);
	json_add_count(b, "read", spot->entities[HEAT_READ]);
	json_add_count(b, "peak", spot->peak);
}

static void add_window(struct service *service, struct json_build *b)
{
	json_add_count(b, "heat_seconds", HEAT_WINDOW_S);
	json_add_count(b, "partition_target", heat_target(service_heat(service)));
}

static enum err add_hottest(struct service *service, struct json_build *b)
{
	struct hottest *h = hottest_partitions(service);
	add_window(service, b);
	json_open_array(b, "hottest");
	for (size_t i = 0; h != NULL && i < h->n; i++) {
		json_open_object(b, NULL);
		json_add_str(b, "account", h->partitions[i].account);
		json_add_str(b, "table", h->partitions[i].table);
		add_spot(b, &h->partitions[i].spot);
		json_close(b);
	}
	json_close(b);
	free(h);
	return h != NULL ? ERR_OK : ERR_NO_MEMORY;
}

enum err page_live_add(const struct page_ask *ask, struct json_build *b)
{
	json_add_count(b, "now_us", clock_mono_us());
	add_operations(ask->service, b);
	add_store(ask->service, b);
	add_memory(ask->service, b);
	return add_hottest(ask->service, b);
}

static void add_partition(void *arg, const struct hot_spot *spot)
{
	struct json_build *b = arg;
	json_open_object(b, NULL);
	add_spot(b, spot);
	json_close(b);
}

enum err page_heat_add(const struct page_ask *ask, struct json_build *b)
{
	struct item table = { 0 };
	enum err e = table_find(ask->service, ask->account, ask->table, &table);
	add_window(ask->service, b);
	json_add_count(b, "total", table.size);
	json_open_array(b, "partitions");
	if (e == ERR_OK)
		heat_of_table(
			service_heat(ask->service), clock_mono_us(), table.id, add_partition, b);
	json_close(b);
	item_fini(&table);
	return e;
}
