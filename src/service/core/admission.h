/* SPDX-License-Identifier: MIT
 * What every request to entities passes: it is counted for the heat of its partition, and
 * refused where that is over its target (service/core/heat.h).  A request counts whole when it
 * is admitted, whatever becomes of it.  Not asked, only counted: what moves whole tables
 * (import, streams); neither: listings, checks. */
#ifndef SERVICE_CORE_ADMISSION_H
#define SERVICE_CORE_ADMISSION_H

#include "service/core/heat.h"
#include "service/core/service.h"

/* n entities of one partition; pk: UTF-8.  ERR_THROTTLED. */
enum err admission_entities(struct service *s, uint64_t table_id, struct span pk,
	enum heat_kind kind, size_t n, struct err_detail *detail);
/* The same for a directory item; what is no partition is always admitted.  n 0: only asks. */
enum err admission_in(struct service *s, const struct item *dir, enum heat_kind kind, size_t n,
	struct err_detail *detail);
/* The same for the directory with this id. */
enum err admission_in_id(
	struct service *s, uint64_t dir, enum heat_kind kind, size_t n, struct err_detail *detail);

/* Counts without asking. */
void admission_count(
	struct service *s, uint64_t table_id, struct span pk, enum heat_kind kind, size_t n);

/* ---- what was counted ---- */

#define HOTTEST_MAX 20

struct hot_partition {
	char account[LIMIT_ACCOUNT_NAME_MAX + 1], table[LIMIT_TABLE_NAME_MAX + 1];
	struct hot_spot spot;
};

struct hottest {
	size_t n;
	struct hot_partition partitions[HOTTEST_MAX]; /* hottest first */
};

/* Of the hottest partitions those whose tables are still there.  free() it; NULL: no memory. */
struct hottest *hottest_partitions(struct service *s);

#endif
