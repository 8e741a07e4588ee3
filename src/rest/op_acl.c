/* SPDX-License-Identifier: MIT
 * Get and Set Table ACL.  What is kept is what we would write: the text is shown as it is. */
#include "codec/access_policy_xml.h"
#include "rest/call.h"
#include "service/tables.h"

enum err op_get_acl(struct call *c, struct response *r)
{
	static const struct access_policies none;
	uint64_t table;
	enum err e = call_table(c, &table);
	if (e == ERR_OK)
		e = table_policies_get(c->service, table, &r->body);
	if (e != ERR_OK)
		return e;
	if (r->body.len == 0)
		access_policies_to_xml(&none, &r->body);
	if (!buf_ok(&r->body))
		return ERR_NO_MEMORY;
	r->status = 200;
	response_header_str(r, "Content-Type", "application/xml");
	return ERR_OK;
}

static enum err set(struct call *c, uint64_t table, const struct access_policies *p)
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

enum err op_set_acl(struct call *c, struct response *r)
{
	struct access_policies p;
	uint64_t table;
	enum err e = call_table(c, &table);
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
