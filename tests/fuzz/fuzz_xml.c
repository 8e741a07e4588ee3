/* SPDX-License-Identifier: MIT
 * The XML bodies: whatever is read is written as something that reads back as the same. */
#include "codec/access_policy_xml.h"
#include "codec/service_properties_xml.h"
#include "fuzz.h"

static bool same_policy(const struct access_policy *a, const struct access_policy *b)
{
	return span_eq(a->id, b->id) && a->has_policy == b->has_policy &&
		!a->start.p == !b->start.p && span_eq(a->start, b->start) &&
		!a->expiry.p == !b->expiry.p && span_eq(a->expiry, b->expiry) &&
		!a->permission.p == !b->permission.p && span_eq(a->permission, b->permission);
}

static void policies(struct span xml, const char *letters)
{
	struct access_policies a, b;
	struct err_detail detail = { 0 };
	enum err e = access_policies_from_xml(xml, letters, &a, &detail);
	if (e == ERR_OK) {
		struct buf text = BUF_INIT(1 << 20);
		access_policies_to_xml(&a, &text);
		MUST(buf_ok(&text) && a.n <= LIMIT_POLICIES);
		MUST(access_policies_from_xml(buf_span(&text), letters, &b, NULL) == ERR_OK);
		MUST(a.n == b.n);
		for (size_t i = 0; i < a.n; i++)
			MUST(same_policy(&a.all[i], &b.all[i]));
		arena_fini(&b.arena);
		buf_fini(&text);
	} else {
		MUST(e == ERR_XML_INVALID || e == ERR_XML_VALUE || e == ERR_BODY_TOO_LARGE);
		MUST(detail.text[0] != '\0');
	}
	arena_fini(&a.arena);
}

static bool same_retention(const struct retention *a, const struct retention *b)
{
	return a->enabled == b->enabled && a->days == b->days;
}

static bool same_metrics(const struct metrics_settings *a, const struct metrics_settings *b)
{
	return a->enabled == b->enabled && a->include_apis == b->include_apis &&
		same_retention(&a->retention, &b->retention);
}

static bool same_rule(const struct cors_rule *a, const struct cors_rule *b)
{
	return span_eq(a->origins, b->origins) && span_eq(a->methods, b->methods) &&
		span_eq(a->exposed, b->exposed) && span_eq(a->allowed, b->allowed) &&
		a->max_age == b->max_age;
}

static bool same_properties(const struct service_properties *a, const struct service_properties *b)
{
	const struct logging_settings *l = &a->logging, *m = &b->logging;
	bool same = a->ncors == b->ncors && same_metrics(&a->hour, &b->hour) &&
		same_metrics(&a->minute, &b->minute) && l->read == m->read &&
		l->write == m->write &&
		l->delete == m->delete &&same_retention(&l->retention, &m->retention);
	for (size_t i = 0; same && i < a->ncors; i++)
		same = same_rule(&a->cors[i], &b->cors[i]);
	return same;
}

static void properties(struct span xml, enum properties_form form)
{
	struct service_properties a, b;
	struct err_detail detail = { 0 };
	service_properties_default(&a);
	enum err e = service_properties_from_xml(xml, form, &a, &detail);
	if (e == ERR_OK) {
		struct buf text = BUF_INIT(64 * 1024);
		service_properties_to_xml(&a, PROPERTIES_NEW, &text);
		MUST(buf_ok(&text));
		MUST(service_properties_load(buf_span(&text), &b) == ERR_OK);
		MUST(same_properties(&a, &b));
		MUST(service_properties_have_cors(buf_span(&text)) == (a.ncors > 0));
		service_properties_fini(&b);
		buf_fini(&text);
	} else {
		MUST(e == ERR_XML_INVALID || e == ERR_XML_VALUE || e == ERR_BODY_TOO_LARGE);
		MUST(detail.text[0] != '\0');
	}
	service_properties_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span xml = span_make(data, size);

	policies(xml, POLICY_LETTERS_TABLE);
	policies(xml, POLICY_LETTERS_QUEUE);
	properties(xml, PROPERTIES_NEW);
	properties(xml, PROPERTIES_OLD);
	return 0;
}
