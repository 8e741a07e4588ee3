/* SPDX-License-Identifier: MIT */
#include "store/sqlite/check_place.h"

#include "model/key.h"
#include "model/limits.h"
#include "store/sqlite/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 16 /* what is deeper, or goes round, is shown from there */
#define PART_MAX 80

/* The name of one directory or item: of a key its readable form. */
static void part_text(enum item_class class, struct span key, char out[PART_MAX + 4])
{
	char bytes[LIMIT_KEY_BYTES];
	if (class == CLASS_KEYED && key.n <= sizeof(bytes)) {
		key_from_order(key.p, key.n, bytes);
		key.p = bytes;
	}
	size_t n = key.n < PART_MAX ? key.n : PART_MAX;
	for (size_t i = 0; i < n; i++)
		out[i] = (unsigned char)key.p[i] < 0x20 || key.p[i] == 0x7f ? '?' : key.p[i];
	out[n] = 0;
	if (n == 0)
		memcpy(out, "%_", 3);
	else if (n < key.n)
		memcpy(out + n, "...", 4);
}

/* What is too long loses its end. */
static void put_before(char out[SQL_PLACE_MAX], const char *part)
{
	size_t had = strlen(out), n = strlen(part), slash = had > 0;
	if (had > SQL_PLACE_MAX - 1 - n - slash)
		had = SQL_PLACE_MAX - 1 - n - slash;
	memmove(out + n + slash, out, had);
	memcpy(out, part, n);
	if (slash)
		out[n] = '/';
	out[n + slash + had] = 0;
}

/* The directory's own name before what is there; *ret_up: where it stands, 0 at the top. */
static void put_dir(struct sql_conn *c, uint64_t id, char out[SQL_PLACE_MAX], uint64_t *ret_up)
{
	char part[PART_MAX + 4];
	struct item dir = { 0 };
	*ret_up = 0;
	if (id == STORE_ROOT)
		return;
	if (sql_get(c, id, WANT_ATTRS, &dir) != ERR_OK) {
		(void)snprintf(part, sizeof(part), "(in %" PRIu64 ")", id);
		put_before(out, part);
		return;
	}
	bool table = dir.kind == ITEM_TABLE && dir.name.n > 0;
	part_text(table ? CLASS_NAMED : dir.class, table ? dir.name : dir.key, part);
	put_before(out, part);
	if (dir.parent == 0)
		put_before(out, ".rowfs");
	*ret_up = dir.parent;
	item_fini(&dir);
}

void sql_place_text(struct sql_conn *c, uint64_t parent, enum item_class class, struct span key,
	char out[SQL_PLACE_MAX])
{
	char part[PART_MAX + 4];
	out[0] = 0;
	part_text(class, key, part);
	put_before(out, part);
	for (int depth = 0; parent != 0 && depth < DEPTH_MAX; depth++)
		put_dir(c, parent, out, &parent);
	if (parent != 0 && parent != STORE_ROOT)
		put_before(out, "...");
}
