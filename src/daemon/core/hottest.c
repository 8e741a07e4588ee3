/* SPDX-License-Identifier: MIT */
#include "daemon/core/hottest.h"

#include <inttypes.h>

/* The rate over the last minute, in hundredths. */
static uint64_t rate_of(const struct hot_partition *p)
{
	const uint64_t *n = p->spot.entities;
	return (n[HEAT_CHANGED] + n[HEAT_READ]) * 100 / HEAT_WINDOW_S;
}

void hottest_add(struct json_build *b, const struct hottest *h)
{
	json_open_array(b, "hottest_partitions");
	for (size_t i = 0; h != NULL && i < h->n; i++) {
		const struct hot_partition *p = &h->partitions[i];
		json_open_object(b, NULL);
		json_add_str(b, "account", p->account);
		json_add_str(b, "table", p->table);
		json_add_text(b, "partition_key", span_make(p->spot.pk, p->spot.pk_n));
		json_add_hundredths(b, "entities_per_second", rate_of(p));
		json_close(b);
	}
	json_close(b);
}

void hottest_print(FILE *out, const struct hottest *h)
{
	if (h != NULL && h->n > 0)
		fputs("\nhottest partitions, entities a second in the last minute\n", out);
	for (size_t i = 0; h != NULL && i < h->n; i++) {
		const struct hot_partition *p = &h->partitions[i];
		fprintf(out, "%9" PRIu64 ".%02" PRIu64 "  %s/%s/%.*s\n", rate_of(p) / 100,
			rate_of(p) % 100, p->account, p->table,
			p->spot.pk_n > 0 ? (int)p->spot.pk_n : 2,
			p->spot.pk_n > 0 ? p->spot.pk : "%_");
	}
}
