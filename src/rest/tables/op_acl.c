/* SPDX-License-Identifier: MIT
 * Get and Set Table ACL. */
#include "rest/core/acl.h"
#include "rest/tables/ops.h"
#include "service/core/tables.h"

enum err op_get_acl(struct request_context *c, struct response *r)
{
	struct buf stored = BUF_INIT(RESPONSE_BODY_LIMIT);
	uint64_t table;
	enum err e = context_table(c, &table);
	if (e == ERR_OK)
		e = table_policies_get(c->service, table, &stored);
	if (e == ERR_OK)
		e = acl_write(c, buf_span(&stored), r);
	buf_fini(&stored);
	return e;
}

enum err op_set_acl(struct request_context *c, struct response *r)
{
	struct buf xml = BUF_INIT(RESPONSE_BODY_LIMIT);
	uint64_t table;
	enum err e = context_table(c, &table);
	if (e == ERR_OK)
		e = acl_read(c, &xml);
	if (e == ERR_OK)
		e = table_policies_set(c->service, ORIGIN_REST, table, buf_span(&xml), &c->detail);
	buf_fini(&xml);
	if (e == ERR_OK)
		r->status = 204;
	return e;
}
