/* SPDX-License-Identifier: MIT
 * Get and Set Service Properties, Get Service Stats.  There is one copy of the data, so the
 * secondary is never behind. */
#include "rest/core/properties.h"

#include "base/clock.h"
#include "codec/service_properties_xml.h"
#include "codec/xml.h"
#include "model/versions.h"

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
	enum err e = service_properties_load(buf_span(&c->secrets.properties), &p);
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
	enum err e = account_properties_change(
		c->service, ORIGIN_REST, span_of(c->url.account), change, c, &c->detail);
	if (e == ERR_OK)
		r->status = 202;
	return e;
}

/* Adds a date such as "Wed, 23 Oct 2013 22:05:54 GMT". */
static void add_http_date(struct buf *out, int64_t ticks)
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
		"Aug", "Sep", "Oct", "Nov", "Dec" };
	struct timespec t = ticks_to_timespec(ticks);
	struct tm tm;
	if (gmtime_r(&t.tv_sec, &tm) == NULL)
		return; /* the year is out of range: leave the element empty */
	buf_addf(out, "%s, %02d %s %d %02d:%02d:%02d GMT", days[tm.tm_wday], tm.tm_mday,
		months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

enum err op_get_stats(struct request_context *c, struct response *r)
{
	(void)c;
	buf_add_str(&r->body,
		XML_DECLARATION "<StorageServiceStats><GeoReplication><Status>live</Status>"
				"<LastSyncTime>");
	add_http_date(&r->body, clock_ticks());
	buf_add_str(&r->body, "</LastSyncTime></GeoReplication></StorageServiceStats>");
	return answer(r);
}
