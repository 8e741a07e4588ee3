/* SPDX-License-Identifier: MIT
 * The service's own text comes first, because clients compare it.  The specific cause follows. */
#include "rest/tables/error_body.h"

#include "base/clock.h"
#include "base/compiler.h"
#include "base/text.h"
#include "codec/xml.h"

#define MESSAGE_LIMIT 4096

/* Details that are complete texts of the service. */
static bool stands_alone(const char *text)
{
	static const char *const beginnings[] = { "Bad Request - Error in query syntax.",
		"If-None-Match HTTP header cannot be", "More than one If-Match is specified.",
		"Syntax error at position ", "The etag value '",
		"The 'PartitionKey' parameter of value", "The 'RowKey' parameter of value" };
	for (size_t i = 0; i < ARRAY_LEN(beginnings); i++)
		if (strncmp(text, beginnings[i], strlen(beginnings[i])) == 0)
			return true;
	return false;
}

static void add_reason(enum err e, const struct err_detail *detail, struct buf *out)
{
	const char *own = err_text(e);
	const char *particular = detail != NULL ? detail->text : "";
	bool alone = stands_alone(particular) || e == ERR_OUT_OF_RANGE;
	if (particular[0] == '\0' || (!alone && strncmp(particular, own, strlen(own)) != 0))
		buf_add_str(out, own);
	if (particular[0] != '\0' && out->len > 0 && out->data[out->len - 1] != ':')
		buf_add_char(out, ' ');
	buf_add_str(out, particular);
	if (detail != NULL && detail->line > 0)
		buf_addf(out, " (line %u, column %u)", detail->line, detail->column);
}

static void add_message(const struct error_facts *f, struct buf *out)
{
	char time[CLOCK_TEXT_MAX];
	clock_format_full(clock_ticks(), time);
	if (f->indexed)
		buf_addf(out, "%zu:", f->detail->op);
	add_reason(f->e, f->detail, out);
	buf_addf(out, "\nRequestId:%s\nTime:%s", f->request_id, time);
}

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
	struct buf message = BUF_INIT(MESSAGE_LIMIT);
	add_message(f, &message);
	/* Details quote the client's input and may be cut inside a character. */
	struct span text = buf_span(&message);
	text.n = utf8_valid_prefix(text);
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
