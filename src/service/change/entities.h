/* SPDX-License-Identifier: MIT
 * Entities: reading one, and change sets (entity group transactions).  Every write of a row is a
 * change set, whichever front end makes it. */
#ifndef SERVICE_CHANGE_ENTITIES_H
#define SERVICE_CHANGE_ENTITIES_H

#include "base/buf.h"
#include "codec/entity_json.h"
#include "model/entity.h"
#include "service/core/service.h"

enum entity_op_kind {
	ENTITY_INSERT,       /* the row must not exist */
	ENTITY_UPSERT,       /* insert or replace */
	ENTITY_UPSERT_MERGE, /* insert or merge */
	ENTITY_REPLACE,      /* the row must exist; if_match */
	ENTITY_MERGE,        /* the row must exist; if_match */
	ENTITY_DELETE,       /* the row must exist; if_match */
	/* no row: puts a message into a queue of the account; in sets only, which keys do not bind */
	ENTITY_MESSAGE,
};

struct entity_message {
	struct span queue, text;
	int64_t visibility_s, ttl_s; /* as message_put() takes them */
};

struct entity_op {
	enum entity_op_kind kind;
	struct span pk, rk; /* UTF-8 */
	/* not for DELETE and MESSAGE; its keys are ignored, as they were checked */
	const struct entity *entity;
	const struct entity_message *message; /* of a MESSAGE, else NULL */
	/* p not NULL: the document in the form to store, which decodes to the entity; else the
	 * entity is encoded */
	struct span document;
	unsigned document_flags;   /* enum item_flags, as document_check() sets them */
	bool if_match;             /* REPLACE, MERGE, DELETE, UPSERT: the row must have */
	int64_t if_match_version;  /* this version */
	struct span if_match_text; /* of a change set: the ETag as its text has it */
	/* UPSERT without if_match: the existing row must have this id (ERR_NOT_FOUND, ERR_GONE); 0:
	 * any row or none */
	uint64_t if_id;
	struct attrs attrs; /* of the row after an UPSERT by a file; else ATTRS_UNSET */
	/* for entity_commit_document(): admission control has counted it */
	bool admitted;

	/* Results. */
	int64_t version; /* of a message: when it was inserted */
	uint64_t id;
	/* of a service elsewhere, n 0: not known; p NULL: that of the version */
	struct span etag;
};

enum entities_flags {
	/* enforce the limits of a change set: one partition, 100 operations, each row once; bulk
	 * loads do not */
	ENTITIES_SET = 1,
	ENTITIES_DURABLE = 2, /* survives a power cut when the call returns */
	ENTITIES_CHECK = 4,   /* make all checks and change nothing; no results */
};

/* Applies operations on one table, all or none.  On failure reterr->op is the index of the
 * operation to blame.  With messages also the errors of message_put(), and
 * ERR_CROSS_DEVICE if the engine lacks STORE_CAN_SPAN. */
enum err entities_apply(struct service *s, enum origin origin, uint64_t table_id,
	struct entity_op *ops, size_t n, unsigned flags, struct err_detail *reterr);

/* Checks if a document can become the row (pk, rk).  It must be a valid entity, and keys in it must
 * equal these.  A key with a digest name must be in it (ERR_KEY_MISSING), so that a copy of the
 * file can be restored.  ret_entity may be NULL; its strings borrow from text.  *ret_flags:
 * ITEM_KEYS_INSIDE, ITEM_CANONICAL or 0; may be NULL. */
enum err document_check(struct span text, struct span pk, struct span rk, struct entity *ret_entity,
	unsigned *ret_flags, struct err_detail *detail);

/* Commits a row's file.  op is an ENTITY_UPSERT or ENTITY_INSERT with its document.
 *
 * ret is the row without its body.  ret_replaced, if not NULL, is the replaced row, if the mount
 * subscribes and there was one; else its kind is ITEM_NONE. */
enum err entity_commit_document(struct service *s, enum origin origin, uint64_t table_id,
	struct entity_op *op, bool durable, struct item *ret, struct item *ret_replaced,
	struct err_detail *detail);

/* Reads a row with its document.  ERR_NOT_FOUND, also where it has none. */
enum err entity_row(struct service *s, struct store_view *v, uint64_t table_id, struct span pk,
	struct span rk, struct item *ret);

/* Decodes a row of partition pk, with its body, to an entity with keys and Timestamp.  The spans of
 * ret may borrow from it->body. */
enum err entity_of_item(const struct item *it, struct span pk, struct entity *ret);

#endif
