/* SPDX-License-Identifier: MIT
 * Get and Set Service Properties, Get Service Stats.  There is one copy of the data, so the
 * secondary is never behind. */
#include "rest/core/properties.h"

#include "base/clock.h"
#include "codec/http_date.h"
#include "codec/service_properties_xml.h"
#include "codec/xml.h"
#include "rest/core/rest_service.h"

static enum properties_form form_of(const struct request_context *c)
{
	return version_has(c->version, VERSION_METRICS) ? PROPERTIES_NEW : PROPERTIES_OLD;
}

static enum err answer(struct response *r)
{
	if (!buf_ok(&r->body))
		return ERR_NO_MEMORY;
	r->status = 200;
	response_header_str(r, "Content-Type", "application/xml");
	return ERR_OK;
}

enum err op_get_properties(struct request_context *c, struct response *r)
{
	struct service_properties p;
	enum err e =
		service_properties_load(buf_span(&c->secrets.properties[c->rest->properties]), &p);
	if (e == ERR_OK) {
		service_properties_to_xml(&p, form_of(c), &r->body);
		e = answer(r);
	}
	service_properties_fini(&p);
	return e;
}

/* Replaces the sections that the request has. */
static enum err change(void *arg, struct span old, struct buf *ret)
{
	struct request_context *c = arg;
	struct service_properties p;
	enum err e = service_properties_load(old, &p);
	if (e == ERR_OK)
		e = service_properties_from_xml(c->request->body, form_of(c), &p, &c->detail);
	if (e == ERR_OK)
		service_properties_to_xml(&p, PROPERTIES_NEW, ret);
	service_properties_fini(&p);
	return e;
}

enum err op_set_properties(struct request_context *c, struct response *r)
{
	enum err e = account_properties_change(c->service, ORIGIN_REST, span_of(c->url.account),
		c->rest->properties, change, c, &c->detail);
	if (e == ERR_OK)
		r->status = 202;
	return e;
}

enum err op_get_stats(struct request_context *c, struct response *r)
{
	(void)c;
	buf_add_str(&r->body,
		XML_DECLARATION "<StorageServiceStats><GeoReplication><Status>live</Status>"
				"<LastSyncTime>");
	http_date_add(&r->body, clock_ticks());
	buf_add_str(&r->body, "</LastSyncTime></GeoReplication></StorageServiceStats>");
	return answer(r);
}
