/* SPDX-License-Identifier: MIT
 * Admission control: every request for entities is counted for the heat of its partition.  It is
 * refused if the partition is over the throttle limit (service/core/heat.h).  An admitted request
 * counts, whatever its result.
 *
 * Imports and streams, which move whole tables, are counted but never refused.  Listings and checks
 * are not counted. */
#ifndef SERVICE_CORE_ADMISSION_H
#define SERVICE_CORE_ADMISSION_H

#include "service/core/heat.h"
#include "service/core/service.h"

/* Admits and counts n entities of one partition; pk is UTF-8.  ERR_THROTTLED. */
enum err admission_entities(struct service *s, uint64_t table_id, struct span pk,
	enum heat_kind kind, size_t n, struct err_detail *detail);
/* Does the same for a directory.  Other directories than partitions are always admitted.  n 0: only
 * checks. */
enum err admission_in(struct service *s, const struct item *dir, enum heat_kind kind, size_t n,
	struct err_detail *detail);
/* Does the same for the directory with this id. */
enum err admission_in_id(
	struct service *s, uint64_t dir, enum heat_kind kind, size_t n, struct err_detail *detail);

/* Counts without a limit. */
void admission_count(
	struct service *s, uint64_t table_id, struct span pk, enum heat_kind kind, size_t n);

/* ---- reading ---- */

#define HOTTEST_MAX 20

struct hot_partition {
	char account[LIMIT_ACCOUNT_NAME_MAX + 1], table[LIMIT_TABLE_NAME_MAX + 1];
	struct hot_spot spot;
};

struct hottest {
	size_t n;
	struct hot_partition partitions[HOTTEST_MAX]; /* hottest first */
};

/* Returns the hottest partitions of existing tables.  The caller frees it with free().  NULL when
 * memory is out. */
struct hottest *hottest_partitions(struct service *s);

#endif
