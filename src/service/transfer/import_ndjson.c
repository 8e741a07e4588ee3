/* SPDX-License-Identifier: MIT
 * Parses NDJSON: one row a line, as an object with PartitionKey and RowKey.  Skips blank lines. */
#include "service/transfer/import_parts.h"

#include <string.h>

static size_t end_of(int *state, struct span piece)
{
	const char *end = piece.n > 0 ? memchr(piece.p, '\n', piece.n) : NULL;
	(void)state;
	return end != NULL ? (size_t)(end - piece.p) + 1 : 0;
}

static bool decided(struct span begun, struct json_scan *scan)
{
	struct json_member member;
	enum json_scan_result r;
	do
		r = json_scan_next(scan, begun, &member);
	while (r == JSON_SCAN_MEMBER);
	return r != JSON_SCAN_MORE;
}

static bool blank(struct span s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\r')
			return false;
	return true;
}

static enum err parse(struct csv_header *h, struct span record, struct arena *text,
	struct entity *ret, struct err_detail *detail)
{
	(void)h;
	(void)text;
	return entity_json_decode(record, ENTITY_JSON_FILE, ret, NULL, detail);
}

const struct import_format import_ndjson = { .end_of = end_of,
	.decided = decided,
	.blank = blank,
	.parse = parse,
	.checks = true,
	.json = true };
