/* SPDX-License-Identifier: MIT
 * Get and Set Table ACL.  The stored text is parsed before it is returned: older versions of rowfs
 * stored times as they were sent. */
#include "codec/access_policy_xml.h"
#include "rest/tables/ops.h"
#include "service/core/tables.h"

enum err op_get_acl(struct request_context *c, struct response *r)
{
	struct access_policies p = { 0 };
	struct buf stored = BUF_INIT(RESPONSE_BODY_LIMIT);
	uint64_t table;
	enum err e = context_table(c, &table);
	if (e == ERR_OK)
		e = table_policies_get(c->service, table, &stored);
	if (e == ERR_OK)
		e = access_policies_from_xml(buf_span(&stored), &p, NULL);
	if (e == ERR_OK)
		access_policies_to_xml(&p, &r->body);
	arena_fini(&p.arena);
	buf_fini(&stored);
	if (e != ERR_OK)
		return e == ERR_XML_INVALID || e == ERR_XML_VALUE ? ERR_CORRUPT : e;
	if (!buf_ok(&r->body))
		return ERR_NO_MEMORY;
	r->status = 200;
	response_header_str(r, "Content-Type", "application/xml");
	return ERR_OK;
}

static enum err set(struct request_context *c, uint64_t table, const struct access_policies *p)
{
	struct buf xml = BUF_INIT(RESPONSE_BODY_LIMIT);
	if (p->n > 0)
		access_policies_to_xml(p, &xml);
	enum err e = buf_ok(&xml) ? ERR_OK : ERR_NO_MEMORY;
	if (e == ERR_OK)
		e = table_policies_set(c->service, ORIGIN_REST, table, buf_span(&xml), &c->detail);
	buf_fini(&xml);
	return e;
}

enum err op_set_acl(struct request_context *c, struct response *r)
{
	struct access_policies p;
	uint64_t table;
	enum err e = context_table(c, &table);
	if (e != ERR_OK)
		return e;
	e = access_policies_from_xml(c->request->body, &p, &c->detail);
	if (e == ERR_OK)
		e = set(c, table, &p);
	arena_fini(&p.arena);
	if (e == ERR_OK)
		r->status = 204;
	return e;
}
