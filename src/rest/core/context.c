/* SPDX-License-Identifier: MIT */
#include "rest/core/context.h"

#include "base/text.h"
#include "rest/core/rest_service.h"

bool context_param(const struct request_context *c, const char *name, struct span *ret)
{
	return query_params_find(&c->url.params, name, ret);
}

struct span context_param_or_empty(const struct request_context *c, const char *name)
{
	struct span value;
	return context_param(c, name, &value) ? value : SPAN_LIT("");
}

enum err context_read_version(struct request_context *c)
{
	struct span sent = request_header(c->request, "x-ms-version");
	bool said = sent.p != NULL || context_param(c, "api-version", &sent) ||
		context_param(c, "sv", &sent);
	c->version = said ? version_parse(sent) : 0;
	if (version_has(c->version, c->rest->since))
		return ERR_OK;
	c->version = c->rest->default_version(c);
	return said ? ERR_HEADER_INVALID : ERR_OK;
}

enum err context_read_timeout(struct request_context *c)
{
	struct span text;
	int64_t seconds = 0;
	if (context_param(c, "timeout", &text) &&
		(!text_to_i64(text, &seconds) || seconds < 1 || seconds > INT32_MAX))
		return err_set(&c->detail, ERR_QUERY_VALUE,
			"%s 'timeout' is a number of seconds from 1 on.",
			err_text(ERR_QUERY_VALUE));
	c->seconds = (unsigned)seconds;
	return ERR_OK;
}
