/* SPDX-License-Identifier: MIT
 * Queues: create, delete, metadata, and how rest/core/collections.h serves them. */
#include "rest/core/metadata_headers.h"
#include "rest/queues/ops.h"
#include "service/queue/queues.h"

#include <stdio.h>

static const char *const includes[] = { NULL };

const struct rest_collections queue_collections = {
	.type = &collection_queue,
	.element = "Queue",
	.includes = includes,
	.changed_status = 204,
};

enum err op_create_queue(struct request_context *c, struct response *r)
{
	struct buf metadata = BUF_INIT(4 * LIMIT_METADATA_BYTES);
	bool created = false;
	enum err e = metadata_from_headers(c, &metadata);
	if (e == ERR_OK)
		e = queue_create(c->service, ORIGIN_REST, c->secrets.id, c->container,
			buf_span(&metadata), &created, &c->detail);
	buf_fini(&metadata);
	r->status = created ? 201 : 204;
	return e;
}

enum err op_delete_queue(struct request_context *c, struct response *r)
{
	uint64_t id;
	enum err e = rest_collection_id(c, &id);
	if (e == ERR_OK)
		e = queue_delete(c->service, ORIGIN_REST, id, &c->detail);
	r->status = 204;
	return e;
}

enum err op_get_queue_metadata(struct request_context *c, struct response *r)
{
	struct collection q = { 0 };
	char count[24];
	enum err e = rest_collection_find(c, &q);
	if (e != ERR_OK)
		return e;
	(void)snprintf(count, sizeof(count), "%llu", (unsigned long long)q.children);
	response_header_str(r, "x-ms-approximate-messages-count", count);
	response_header_str(r, "Cache-Control", "no-cache");
	metadata_to_headers(q.metadata, r);
	collection_fini(&q);
	r->status = 200;
	return ERR_OK;
}
