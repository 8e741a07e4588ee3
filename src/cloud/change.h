/* SPDX-License-Identifier: MIT
 * Reads and changes rows of a cloud account, one or a group at a time, and its tables.  A change whose
 * answer was lost is sent again; if the service then refuses it, the row is read back and compared, so
 * that a change that was done is never reported as refused. */
#ifndef CLOUD_CHANGE_H
#define CLOUD_CHANGE_H

#include "cloud/client.h"
#include "cloud/rows.h"

enum cloud_change_kind {
	CLOUD_INSERT,
	CLOUD_UPSERT,       /* insert or replace */
	CLOUD_UPSERT_MERGE, /* insert or merge */
	CLOUD_REPLACE,      /* the row must be there, as for the next two */
	CLOUD_MERGE,
	CLOUD_DELETE,
};

struct cloud_change {
	enum cloud_change_kind kind;
	struct span pk, rk;          /* UTF-8 */
	const struct entity *entity; /* its properties; not for DELETE */
	struct span if_match;        /* REPLACE, MERGE, DELETE: an ETag; n 0: any */
	bool again; /* an earlier request may have been done; of a group the first one tells it */
};

/* Reads one row.  Its strings borrow from *body, which the caller frees with buf_fini() after the row,
 * also after an error.  ERR_NOT_FOUND, ERR_TABLE_NOT_FOUND, errors of client_send(). */
enum err cloud_get(struct client *c, struct span table, struct span pk, struct span rk,
	struct cloud_row *ret, struct buf *body, struct err_detail *detail);

/* Changes one row.  etag gets the new ETag, "" after DELETE; may be NULL.  ERR_ENTITY_EXISTS,
 * ERR_NOT_FOUND, ERR_CONDITION_NOT_MET, ERR_TABLE_NOT_FOUND, errors of client_send(). */
enum err cloud_change(struct client *c, struct span table, const struct cloud_change *change,
	char etag[CLOUD_ETAG_MAX], struct err_detail *detail);

/* Changes 1 to LIMIT_BATCH_OPS rows of one partition, all or none, as one entity group transaction
 * (cloud/group.c).  etags (may be NULL) gets n new ETags, each "" after DELETE.  detail->op is the index of the
 * change to blame.  Errors as above, and ERR_BATCH_DUPLICATE, ERR_BODY_TOO_LARGE. */
enum err cloud_change_group(struct client *c, struct span table, const struct cloud_change *changes,
	size_t n, char (*etags)[CLOUD_ETAG_MAX], struct err_detail *detail);

/* ERR_TABLE_EXISTS; ERR_TABLE_BEING_DELETED for half a minute after a removal. */
enum err cloud_table_create(struct client *c, struct span table, struct err_detail *detail);
/* ERR_TABLE_NOT_FOUND. */
enum err cloud_table_delete(struct client *c, struct span table, struct err_detail *detail);

/* ---- for group.c ---- */

/* The request for one change. */
const char *cloud_change_method(const struct cloud_change *change);
void cloud_change_path(struct span table, const struct cloud_change *change, struct buf *out);
void cloud_change_body(const struct cloud_change *change, struct buf *out);
struct span cloud_change_condition(const struct cloud_change *change);
/* Decides what an error means after a lost response (again: to an earlier try; e: ERR_OUTCOME_UNKNOWN) by reading
 * the n rows of changes that are all done or none.  One row alone tells nothing: it may have been as its change
 * leaves it before.  ERR_OK: each is as its change leaves it; etags (may be NULL) gets their ETags.
 * ERR_OUTCOME_UNKNOWN: one is not, but somebody may have changed it since.  Other errors stay. */
enum err cloud_change_resolve(struct client *c, struct span table,
	const struct cloud_change *changes, size_t n, bool again, enum err e,
	char (*etags)[CLOUD_ETAG_MAX], struct err_detail *detail);

#endif
