/* SPDX-License-Identifier: MIT
 * The sizes of .rows.ndjson that a clean close left are those of the rows. */
#include "service/check/verify_parts.h"

#include <inttypes.h>

void verify_sizes_begin(struct verify *v)
{
	/* The store tells the version of a change set after the view may show it. */
	service_wait_retained(v->service);
	v->nkept = saved_sizes_read(v->service, v->kept);
}

void verify_sizes_add(struct verify *v, const struct item *it, struct span key)
{
	uint64_t bytes;
	if (v->nkept == 0)
		return;
	enum err e =
		row_line_bytes(&v->line, it, v->partition, key, ROW_LINE_STREAM, it->body, &bytes);
	v->countable = v->countable && e == ERR_OK;
	v->table_bytes += bytes + 1;
	v->partition_bytes += bytes + 1;
}

void verify_size(struct verify *v, uint64_t dir_id, uint64_t bytes, struct span name)
{
	for (size_t i = 0; i < v->nkept && v->countable; i++)
		if (v->kept[i].dir_id == dir_id && v->kept[i].bytes != bytes)
			verify_report(v, name,
				"its rows are %" PRIu64
				" bytes of NDJSON, the store has kept %" PRIu64,
				bytes, v->kept[i].bytes);
}
