/* SPDX-License-Identifier: MIT
 * The operations that queues and containers have in common: list, change metadata, read and replace
 * the stored access policies. */
#ifndef REST_CORE_COLLECTIONS_H
#define REST_CORE_COLLECTIONS_H

#include "rest/core/context.h"
#include "service/core/collections.h"

/* The differences between queues and containers.  struct rest_service points to them. */
struct rest_collections {
	const struct collection_type *type;
	const char *element;         /* of a list: "Queue", in a "Queues" */
	const char *const *includes; /* words of `include` besides metadata; NULL at the end */
	unsigned changed_status;     /* of a change */
	/* The next four may be NULL.  Adds what a list shows beside name and metadata. */
	void (*add_properties)(struct service *s, const struct collection *c, struct buf *out);
	/* Adds the headers of a response about a collection of which etag and access are set. */
	void (*add_headers)(const struct collection *c, struct response *r);
	/* Checks whether the request may read the collection that was found. */
	enum err (*check_read)(struct request_context *c, const struct collection *now);
	/* Sets the check of a change, and the access. */
	enum err (*begin_change)(struct request_context *c, struct collection_edit *to);
};

/* Sets *ret to the id of the URL's collection.  Its `missing` error. */
enum err rest_collection_id(struct request_context *c, uint64_t *ret);
/* Finds the URL's collection for a read.  On ERR_OK call collection_fini().  The errors of
 * check_read(). */
enum err rest_collection_find(struct request_context *c, struct collection *ret);

/* rest/core/route.h */
enum err op_list_collections(struct request_context *c, struct response *r);
enum err op_set_collection_metadata(struct request_context *c, struct response *r);
enum err op_get_collection_acl(struct request_context *c, struct response *r);
enum err op_set_collection_acl(struct request_context *c, struct response *r);

#endif
