/* SPDX-License-Identifier: MIT
 * The requests of all clients of one account: counts them by kind, since each costs money, and bounds
 * their number a second.  Any number of threads may use it. */
#ifndef CLOUD_TRAFFIC_H
#define CLOUD_TRAFFIC_H

#include <stdint.h>

struct json_build;

enum traffic_kind {
	TRAFFIC_READ,   /* one row by its keys */
	TRAFFIC_QUERY,  /* a page of rows or keys */
	TRAFFIC_CHANGE, /* a row put, inserted or merged */
	TRAFFIC_DELETE, /* a row removed */
	TRAFFIC_GROUP,  /* an entity group transaction */
	TRAFFIC_TABLES, /* tables listed, made or removed */
	TRAFFIC_KINDS_
};

struct traffic {      /* zeroed: no bound, nothing sent */
	unsigned rps; /* requests a second at most; 0: no bound */
	_Atomic uint64_t next_us;
	_Atomic uint64_t sent[TRAFFIC_KINDS_];
	_Atomic uint64_t again; /* of those: after a fault */
};

/* Counts a request, and returns when it may be sent (clock_mono_us()). */
uint64_t traffic_turn(struct traffic *t, enum traffic_kind kind, _Bool again);
/* Returns a word for the kind. */
const char *traffic_kind_name(enum traffic_kind kind);
/* Adds the member "requests_elsewhere": the counts by kind, and "again". */
void traffic_add(struct json_build *b, const struct traffic *t);

#endif
