/* SPDX-License-Identifier: MIT
 * The state of the engine.  Private to cloudstore/. */
#ifndef CLOUDSTORE_CORE_H
#define CLOUDSTORE_CORE_H

#include "cloudstore/clients.h"
#include "cloudstore/cloudstore.h"
#include "cloudstore/confirmed.h"
#include "cloudstore/found.h"

#define CLOUDSTORE_STRIPES 64

/* How the service writes the Timestamp in its ETags. */
enum etag_form {
	ETAG_TRIMMED, /* without zeros at the end, as Azure does */
	ETAG_FULL,    /* all 7 digits, as Azurite does */
	ETAG_OPAQUE,  /* otherwise: rows cannot be changed */
};

struct cloudstore {
	struct store base;
	struct store *shadow;
	struct clients clients;
	struct traffic traffic; /* of the clients */
	struct confirmed *confirmed;
	struct found *found;
	uint64_t account;                /* its id in the shadow */
	bool hard;                       /* requests wait until the service is back */
	_Atomic unsigned outage_waiters; /* how many of them */
	_Atomic int etag_form;           /* enum etag_form */
	_Atomic uint64_t
		walked[CLOUDSTORE_STRIPES]; /* by table: the partition that was read last */
	/* By the id of the table, or of the account: held for writing while its names are read or
	 * changed, for reading while a row is. */
	struct rwlock tables[CLOUDSTORE_STRIPES];
	/* By table and partition: one request for a partition at a time, so that an older answer
	 * never replaces a newer one. */
	struct mutex partitions[CLOUDSTORE_STRIPES];
};

/* Locks the names of a directory: an account or a table. */
void cloudstore_lock_names(struct cloudstore *s, uint64_t dir);
void cloudstore_unlock_names(struct cloudstore *s, uint64_t dir);
/* Locks the rows of a partition; pk is in order form. */
void cloudstore_lock_rows(struct cloudstore *s, uint64_t table, struct span pk);
void cloudstore_unlock_rows(struct cloudstore *s, uint64_t table, struct span pk);

/* Learns from an ETag of the service, and the version that it stands for, how the service writes them. */
void cloudstore_note_etag(struct cloudstore *s, const char *etag, int64_t version);
/* Returns the error of a request as the mount has it: AuthorizationFailure is about the credential. */
static inline enum err cloudstore_error(enum err e)
{
	return e == ERR_NOT_PERMITTED ? ERR_AUTH_FAILED : e;
}
/* Returns a version for a change that the service does not know of. */
int64_t cloudstore_new_version(struct store *shadow);

/* The engine's apply(): sends a change of a row or a table to the service, and then makes it in the
 * shadow.  The rows of a set are of one partition, and go as one entity group transaction. */
enum err cloudstore_apply(struct store *store, struct change *changes, size_t n, bool durable,
	struct err_detail *why);

#endif
