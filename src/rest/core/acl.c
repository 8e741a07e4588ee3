/* SPDX-License-Identifier: MIT */
#include "rest/core/acl.h"

#include "codec/access_policy_xml.h"
#include "rest/core/rest_service.h"

enum err acl_read(struct request_context *c, struct buf *out)
{
	struct access_policies p;
	enum err e = access_policies_from_xml(
		c->request->body, c->rest->sas->permissions, &p, &c->detail);
	if (e == ERR_OK && p.n > 0)
		access_policies_to_xml(&p, out);
	arena_fini(&p.arena);
	return e == ERR_OK && !buf_ok(out) ? ERR_NO_MEMORY : e;
}

enum err acl_write(const struct request_context *c, struct span stored, struct response *r)
{
	struct access_policies p;
	enum err e = access_policies_from_xml(stored, c->rest->sas->permissions, &p, NULL);
	if (e == ERR_OK)
		access_policies_to_xml(&p, &r->body);
	arena_fini(&p.arena);
	if (e != ERR_OK)
		return e == ERR_XML_INVALID || e == ERR_XML_VALUE ? ERR_CORRUPT : e;
	if (!buf_ok(&r->body))
		return ERR_NO_MEMORY;
	r->status = 200;
	response_header_str(r, "Content-Type", "application/xml");
	return ERR_OK;
}
