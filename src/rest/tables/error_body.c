/* SPDX-License-Identifier: MIT */
#include "rest/tables/error_body.h"

#include "codec/xml.h"
#include "rest/core/error_message.h"
#include "rest/tables/change.h"
#include "rest/tables/table_request.h"

#include <string.h>

static void write_xml(const char *code, struct span message, struct buf *out)
{
	buf_add_str(out,
		"<?xml version=\"1.0\" encoding=\"utf-8\"?><m:error xmlns:m=\""
		"http://schemas.microsoft.com/ado/2007/08/dataservices/metadata\"><m:code>");
	buf_add_str(out, code);
	buf_add_str(out, "</m:code><m:message xml:lang=\"en-US\">");
	xml_add_message(out, message);
	buf_add_str(out, "</m:message></m:error>");
}

void response_error(struct response *r, const struct error_facts *f)
{
	struct buf message = BUF_INIT(ERROR_MESSAGE_LIMIT);
	error_message(f->e, f->detail, f->indexed, f->request_id, &message);
	struct span text = buf_span(&message);
	response_clear(r);
	r->status = err_http(f->e);
	response_header_str(r, "x-ms-error-code", err_code(f->e));
	if (f->xml) {
		response_header_str(r, "Content-Type", "application/xml");
		write_xml(err_code(f->e), text, &r->body);
	} else {
		response_header_str(r, "Cache-Control", "no-cache");
		response_header_str(r, "X-Content-Type-Options", "nosniff");
		response_header_str(
			r, "Content-Type", f->format->content_type(f->level, BODY_ERROR));
		f->format->write_error(err_code(f->e), text, &r->body);
	}
	buf_fini(&message);
}

/* Returns true if the operation's bodies are XML, whatever was negotiated.  Without a parsed URL
 * this is a guess. */
static bool is_xml(const struct request_context *c)
{
	if (c->route != NULL)
		return c->route->body == ROUTE_XML;
	if (c->url.path.p == NULL)
		return memmem(c->request->target.p, c->request->target.n, "comp=", 5) != NULL;
	return c->url.comp.p != NULL || c->url.restype.p != NULL;
}

void table_write_error(const struct request_context *c, enum err e, struct response *r)
{
	const struct table_request *t = table_request(c);
	struct error_facts facts = { .e = e,
		.detail = &c->detail,
		.request_id = c->request_id,
		.xml = is_xml(c),
		.format = t->format,
		.level = t->level };
	response_error(r, &facts);
	bool prefers =
		c->route != NULL && c->route->body == ROUTE_ODATA && span_is(c->method, "POST");
	const char *preference = prefers ? context_preference(c) : NULL;
	if (preference != NULL)
		response_header_str(r, "Preference-Applied", preference);
}
