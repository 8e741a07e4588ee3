/* SPDX-License-Identifier: MIT */
#include "cloudstore/core.h"

#include "base/clock.h"
#include "model/etag.h"

#include <stdatomic.h>
#include <string.h>

static struct rwlock *names_of(struct cloudstore *s, uint64_t dir)
{
	return &s->tables[dir % CLOUDSTORE_STRIPES];
}

static struct mutex *rows_of(struct cloudstore *s, uint64_t table, struct span pk)
{
	uint64_t hash = table;
	for (size_t i = 0; i < pk.n; i++)
		hash = hash * 31 + (unsigned char)pk.p[i];
	return &s->partitions[hash % CLOUDSTORE_STRIPES];
}

void cloudstore_lock_names(struct cloudstore *s, uint64_t dir)
{
	rwlock_wrlock(names_of(s, dir));
}

void cloudstore_unlock_names(struct cloudstore *s, uint64_t dir)
{
	rwlock_unlock(names_of(s, dir));
}

void cloudstore_lock_rows(struct cloudstore *s, uint64_t table, struct span pk)
{
	rwlock_rdlock(names_of(s, table));
	mutex_lock(rows_of(s, table, pk));
}

void cloudstore_unlock_rows(struct cloudstore *s, uint64_t table, struct span pk)
{
	mutex_unlock(rows_of(s, table, pk));
	rwlock_unlock(names_of(s, table));
}

void cloudstore_note_etag(struct cloudstore *s, const char *etag, int64_t version)
{
	char trimmed[ETAG_MAX], full[ETAG_MAX];
	(void)etag_format(version, trimmed);
	(void)etag_format_full(version, full);
	bool is_trimmed = strcmp(etag, trimmed) == 0, is_full = strcmp(etag, full) == 0;
	/* They are the same where the last digit is no zero. */
	if (etag[0] == 0 || (is_trimmed && is_full))
		return;
	atomic_store(&s->etag_form, is_full ? ETAG_FULL : is_trimmed ? ETAG_TRIMMED : ETAG_OPAQUE);
}

int64_t cloudstore_new_version(struct store *shadow)
{
	int64_t now = clock_ticks(), floor = store_version_floor(shadow);
	return now > floor ? now : floor + 1;
}
