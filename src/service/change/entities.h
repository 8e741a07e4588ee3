/* SPDX-License-Identifier: MIT
 * Entities: reading one, and change sets (entity group transactions).  Every write of a
 * row, from whichever door, is a change set. */
#ifndef SERVICE_CHANGE_ENTITIES_H
#define SERVICE_CHANGE_ENTITIES_H

#include "base/buf.h"
#include "codec/entity_json.h"
#include "model/entity.h"
#include "service/core/service.h"

enum entity_op_kind {
	ENTITY_INSERT,       /* must not exist */
	ENTITY_UPSERT,       /* insert or replace */
	ENTITY_UPSERT_MERGE, /* insert or merge */
	ENTITY_REPLACE,      /* must exist; if_match */
	ENTITY_MERGE,        /* must exist; if_match */
	ENTITY_DELETE,       /* must exist; if_match */
};

struct entity_op {
	enum entity_op_kind kind;
	struct span pk, rk;          /* UTF-8 */
	const struct entity *entity; /* not for DELETE; its keys are ignored, checked already */
	struct span document;        /* p not NULL: these bytes are the row's document as it is (it
				    decodes to the entity); else the entity is rendered */
	bool document_has_keys;
	bool document_is_canonical; /* as codec/entity_json.h writes it, without keys */
	bool if_match;              /* REPLACE, MERGE, DELETE, UPSERT: only if the row has this: */
	int64_t if_match_version;   /* its version */
	uint64_t if_id;             /* UPSERT without if_match: only if the row that is there has
				    this id (ERR_NOT_FOUND, ERR_GONE); 0: any or none */
	struct attrs attrs;         /* of the row after an UPSERT by file; else ATTRS_UNSET */
	bool admitted;              /* entity_commit_document(): it was let in and counted before */

	/* Results. */
	int64_t version;
	uint64_t id;
};

enum entities_flags {
	ENTITIES_SET = 1,     /* the limits of a change set: one partition, 100 operations, each row
				 once; bulk loads go without */
	ENTITIES_DURABLE = 2, /* survives a power cut when this returns */
	ENTITIES_CHECK = 4,   /* everything is judged as if it were done, nothing is; no results */
};

/* All or nothing, on one table.  reterr->op is the index of the operation to blame. */
enum err entities_apply(struct service *s, enum origin origin, uint64_t table_id,
	struct entity_op *ops, size_t n, unsigned flags, struct err_detail *reterr);

/* What a document must be to become the row (pk, rk): a valid entity whose keys, where it
 * holds any, are these; and it must hold a key whose name takes the digest form
 * (ERR_KEY_MISSING), so that a copy of the file can be restored.  ret_entity may be NULL;
 * its strings borrow from text. */
enum err document_check(struct span text, struct span pk, struct span rk, struct entity *ret_entity,
	bool *ret_has_keys, struct err_detail *detail);

/* The commit of a row file: op is an ENTITY_UPSERT or ENTITY_INSERT with its document; draft,
 * if not NULL, is the empty ordinary file that held the name until now and goes in the same step.
 * ret: the row, without its body; ret_replaced, if not NULL: the row that it replaced, if
 * the mount watches and there was one (else its kind is ITEM_NONE). */
enum err entity_commit_document(struct service *s, enum origin origin, uint64_t table_id,
	struct entity_op *op, const struct place *draft, bool durable, struct item *ret,
	struct item *ret_replaced, struct err_detail *detail);

/* The row, with its body.  ERR_NOT_FOUND. */
enum err entity_row(struct service *s, struct store_view *v, uint64_t table_id, struct span pk,
	struct span rk, struct item *ret);

/* Decodes a row item (with body) that belongs to partition pk into an entity with keys and
 * Timestamp; ret's spans may borrow from it->body. */
enum err entity_of_item(const struct item *it, struct span pk, struct entity *ret);

#endif
