/* SPDX-License-Identifier: MIT */
#include "cloud/traffic.h"

#include "base/clock.h"
#include "codec/json_build.h"

#include <stdatomic.h>

const char *traffic_kind_name(enum traffic_kind kind)
{
	static const char *const names[TRAFFIC_KINDS_] = { [TRAFFIC_READ] = "read",
		[TRAFFIC_QUERY] = "query",
		[TRAFFIC_CHANGE] = "change",
		[TRAFFIC_DELETE] = "delete",
		[TRAFFIC_GROUP] = "group",
		[TRAFFIC_TABLES] = "tables" };
	return names[kind];
}

/* Requests keep their distance. */
uint64_t traffic_turn(struct traffic *t, enum traffic_kind kind, _Bool again)
{
	uint64_t now = clock_mono_us(), next = atomic_load(&t->next_us), at;
	atomic_fetch_add(&t->sent[kind], 1);
	atomic_fetch_add(&t->again, again);
	if (t->rps == 0)
		return now;
	do
		at = next > now ? next : now;
	while (!atomic_compare_exchange_weak(&t->next_us, &next, at + 1000000 / t->rps));
	return at;
}

void traffic_add(struct json_build *b, const struct traffic *t)
{
	json_open_object(b, "requests_elsewhere");
	for (enum traffic_kind kind = 0; kind < TRAFFIC_KINDS_; kind++)
		json_add_count(b, traffic_kind_name(kind), atomic_load(&t->sent[kind]));
	json_add_count(b, "again", atomic_load(&t->again));
	json_close(b);
}
