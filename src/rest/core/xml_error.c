/* SPDX-License-Identifier: MIT */
#include "rest/core/xml_error.h"

#include "base/text.h"
#include "codec/xml.h"
#include "rest/core/error_message.h"

enum err param_number(struct request_context *c, const char *name, int64_t min, int64_t max,
	int64_t otherwise, int64_t *ret)
{
	struct span text;
	*ret = otherwise;
	if (!context_param(c, name, &text))
		return ERR_OK;
	if (!text_to_i64(text, ret))
		return err_set(&c->detail, ERR_QUERY_VALUE, "%s '%s' is a number.",
			err_text(ERR_QUERY_VALUE), name);
	if (*ret >= min && *ret <= max)
		return ERR_OK;
	c->out_of_range = (struct param_range){ name, text, min, max };
	return ERR_QUERY_RANGE;
}

void xml_error_write(const struct request_context *c, enum err e, struct response *r)
{
	const struct param_range *range = &c->out_of_range;
	struct buf message = BUF_INIT(ERROR_MESSAGE_LIMIT);
	error_message(e, &c->detail, false, c->request_id, &message);
	response_clear(r);
	r->status = err_http(e);
	response_header_str(r, "x-ms-error-code", err_code(e));
	response_header_str(r, "Content-Type", "application/xml");
	buf_addf(&r->body, XML_DECLARATION "<Error><Code>%s</Code><Message>", err_code(e));
	xml_add_message(&r->body, buf_span(&message));
	buf_add_str(&r->body, "</Message>");
	if (e == ERR_QUERY_RANGE && range->name != NULL) {
		buf_addf(&r->body,
			"<QueryParameterName>%s</QueryParameterName><QueryParameterValue>",
			range->name);
		xml_add_message(&r->body, range->value);
		buf_addf(&r->body,
			"</QueryParameterValue><MinimumAllowed>%lld</MinimumAllowed>"
			"<MaximumAllowed>%lld</MaximumAllowed>",
			(long long)range->min, (long long)range->max);
	}
	buf_add_str(&r->body, "</Error>");
	buf_fini(&message);
}
