/* SPDX-License-Identifier: MIT
 * IncludeAPIs and Days are required in an enabled section.  Elsewhere they are checked, dropped and
 * not shown. */
#include "codec/service_properties_xml.h"

#include "base/text.h"
#include "codec/xml.h"

#include <stdio.h>

#define ROOT "StorageServiceProperties"
#define VERSION_ONLY "1.0"
#define RULE_TAG "<CorsRule>"

/* For printf's "%.*s". */
static int shown(struct span s)
{
	return s.n < 60 ? (int)s.n : 60;
}

/* ---- values ---- */

static enum err bad_value(
	const struct xml_node *node, struct span text, const char *want, struct err_detail *detail)
{
	return err_set(detail, ERR_XML_VALUE,
		"The value '%.*s' of the XML element '%.*s' is not %s.", shown(text), text.p,
		shown(node->name), node->name.p, want);
}

static enum err read_word(const struct xml_node *node, struct span *ret, struct err_detail *detail)
{
	enum err e = xml_text(node, ret, detail);
	*ret = e == ERR_OK ? xml_trim(*ret) : SPAN_LIT("");
	return e;
}

static enum err read_bool(const struct xml_node *node, bool *ret, struct err_detail *detail)
{
	struct span text;
	enum err e = read_word(node, &text, detail);
	if (e != ERR_OK)
		return e;
	*ret = span_is(text, "true");
	if (!*ret && !span_is(text, "false"))
		return bad_value(node, text, "true or false", detail);
	return ERR_OK;
}

static enum err read_number(const struct xml_node *node, uint32_t min, uint32_t max, uint32_t *ret,
	struct err_detail *detail)
{
	struct span text;
	uint64_t n;
	enum err e = read_word(node, &text, detail);
	if (e != ERR_OK)
		return e;
	if (!text_to_u64(text, &n) || n < min || n > max) {
		char want[60];
		(void)snprintf(want, sizeof(want), "a number from %u to %u", min, max);
		return bad_value(node, text, want, detail);
	}
	*ret = (uint32_t)n;
	return ERR_OK;
}

static enum err read_version(const struct xml_node *node, struct err_detail *detail)
{
	struct span text;
	enum err e = read_word(node, &text, detail);
	if (e != ERR_OK)
		return e;
	return span_is(text, VERSION_ONLY) ? ERR_OK : bad_value(node, text, VERSION_ONLY, detail);
}

static enum err missing(const struct xml_node *in, const char *name, struct err_detail *detail)
{
	return err_set(detail, ERR_XML_INVALID,
		"The XML element '%s' is missing in '%.*s', which is enabled.", name,
		shown(in->name), in->name.p);
}

/* ---- logging and metrics ---- */

static enum err read_retention(
	const struct xml_node *node, struct retention *ret, struct err_detail *detail)
{
	static const struct xml_field fields[] = { { "Enabled", true }, { "Days", false }, { 0 } };
	const struct xml_node *found[2];
	struct retention r = { 0 };
	enum err e = xml_fields(node, fields, found, detail);
	if (e == ERR_OK)
		e = read_bool(found[0], &r.enabled, detail);
	if (e == ERR_OK && found[1] != NULL)
		e = read_number(found[1], 1, LIMIT_RETENTION_DAYS, &r.days, detail);
	if (e == ERR_OK && r.enabled && found[1] == NULL)
		e = missing(node, "Days", detail);
	if (!r.enabled)
		r.days = 0;
	*ret = r;
	return e;
}

static enum err read_logging(
	const struct xml_node *node, struct logging_settings *ret, struct err_detail *detail)
{
	static const struct xml_field fields[] = { { "Version", true }, { "Read", true },
		{ "Write", true }, { "Delete", true }, { "RetentionPolicy", true }, { 0 } };
	const struct xml_node *found[5];
	enum err e = xml_fields(node, fields, found, detail);
	if (e == ERR_OK)
		e = read_version(found[0], detail);
	if (e == ERR_OK)
		e = read_bool(found[1], &ret->read, detail);
	if (e == ERR_OK)
		e = read_bool(found[2], &ret->write, detail);
	if (e == ERR_OK)
		e = read_bool(found[3], &ret->delete, detail);
	return e == ERR_OK ? read_retention(found[4], &ret->retention, detail) : e;
}

static enum err read_metrics(
	const struct xml_node *node, struct metrics_settings *ret, struct err_detail *detail)
{
	static const struct xml_field fields[] = { { "Version", true }, { "Enabled", true },
		{ "IncludeAPIs", false }, { "RetentionPolicy", true }, { 0 } };
	const struct xml_node *found[4];
	struct metrics_settings m = { 0 };
	enum err e = xml_fields(node, fields, found, detail);
	if (e == ERR_OK)
		e = read_version(found[0], detail);
	if (e == ERR_OK)
		e = read_bool(found[1], &m.enabled, detail);
	if (e == ERR_OK && found[2] != NULL)
		e = read_bool(found[2], &m.include_apis, detail);
	if (e == ERR_OK && m.enabled && found[2] == NULL)
		e = missing(node, "IncludeAPIs", detail);
	if (e == ERR_OK)
		e = read_retention(found[3], &m.retention, detail);
	m.include_apis &= m.enabled;
	*ret = m;
	return e;
}

/* ---- CORS ---- */

/* The rules of one list. */
struct list_kind {
	bool (*good)(struct span item);
	const char *what; /* what an item must be */
	size_t max;       /* the most items that are one name */
	size_t prefixes;  /* the most items that end in '*'; SIZE_MAX: they count as names */
};

static bool is_printable(struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	}
	return s.n > 0;
}

static bool is_method(struct span s)
{
	static const char *const all[] = { "DELETE", "GET", "HEAD", "MERGE", "OPTIONS", "PATCH",
		"POST", "PUT" };
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		if (span_is(s, all[i]))
			return true;
	}
	return false;
}

static const struct list_kind list_origins = { is_printable, "an origin", LIMIT_CORS_ORIGINS,
	SIZE_MAX };
static const struct list_kind list_methods = { is_method, "a method that CORS rules may allow", 64,
	SIZE_MAX };
static const struct list_kind list_headers = { cors_is_header_name, "the name of a header",
	LIMIT_CORS_HEADERS, LIMIT_CORS_PREFIXES };

static enum err too_many(
	const struct xml_node *node, size_t max, const char *what, struct err_detail *detail)
{
	return err_set(detail, ERR_XML_INVALID, "The XML element '%.*s' lists more than %zu %s.",
		shown(node->name), node->name.p, max, what);
}

static enum err check_list(const struct xml_node *node, const struct list_kind *kind,
	struct span text, struct err_detail *detail)
{
	size_t items = 0, prefixes = 0;
	struct span item;
	if (text.n > 0 && text.p[text.n - 1] == ',')
		return bad_value(node, text, "a list without empty items", detail);
	while (cors_list_next(&text, &item)) {
		if (!kind->good(item))
			return bad_value(node, item, kind->what, detail);
		if (item.n > LIMIT_CORS_ITEM)
			return err_set(detail, ERR_XML_VALUE,
				"An item of the XML element '%.*s' is longer than %d characters.",
				shown(node->name), node->name.p, LIMIT_CORS_ITEM);
		if (kind->prefixes != SIZE_MAX && span_ends(item, SPAN_LIT("*")))
			prefixes++;
		else
			items++;
		if (items > kind->max)
			return too_many(node, kind->max, "items", detail);
		if (prefixes > kind->prefixes)
			return too_many(node, kind->prefixes, "prefixes", detail);
	}
	return ERR_OK;
}

/* Adds the bytes of the list to *total. */
static enum err read_list(struct service_properties *p, const struct xml_node *node,
	const struct list_kind *kind, struct span *ret, size_t *total, struct err_detail *detail)
{
	struct span text;
	enum err e = read_word(node, &text, detail);
	if (e == ERR_OK)
		e = check_list(node, kind, text, detail);
	if (e != ERR_OK)
		return e;
	*total += text.n;
	*ret = arena_copy(&p->arena, text);
	return ret->p == NULL ? ERR_NO_MEMORY : ERR_OK;
}

static enum err read_rule(struct service_properties *p, const struct xml_node *node,
	struct cors_rule *ret, size_t *total, struct err_detail *detail)
{
	static const struct xml_field fields[] = { { "AllowedOrigins", true },
		{ "AllowedMethods", true }, { "MaxAgeInSeconds", true }, { "ExposedHeaders", true },
		{ "AllowedHeaders", true }, { 0 } };
	const struct xml_node *found[5];
	enum err e = xml_fields(node, fields, found, detail);
	if (e == ERR_OK)
		e = read_list(p, found[0], &list_origins, &ret->origins, total, detail);
	if (e == ERR_OK)
		e = read_list(p, found[1], &list_methods, &ret->methods, total, detail);
	if (e == ERR_OK)
		e = read_number(found[2], 0, INT32_MAX, &ret->max_age, detail);
	if (e == ERR_OK)
		e = read_list(p, found[3], &list_headers, &ret->exposed, total, detail);
	if (e == ERR_OK)
		e = read_list(p, found[4], &list_headers, &ret->allowed, total, detail);
	if (e == ERR_OK)
		*total += xml_trim(found[2]->text).n;
	return e;
}

static enum err read_cors(
	const struct xml_node *node, struct service_properties *p, struct err_detail *detail)
{
	size_t n = 0, total = 0;
	if (xml_trim(node->text).n > 0)
		return err_set(
			detail, ERR_XML_INVALID, "The XML element 'Cors' must not contain text.");
	for (const struct xml_node *c = node->first; c != NULL; c = c->next) {
		if (!span_is(c->name, "CorsRule"))
			return err_set(detail, ERR_XML_INVALID,
				"The XML element '%.*s' is not supported in 'Cors'.",
				shown(c->name), c->name.p);
		if (n == LIMIT_CORS_RULES)
			return too_many(node, LIMIT_CORS_RULES, "rules", detail);
		enum err e = read_rule(p, c, &p->cors[n], &total, detail);
		if (e != ERR_OK)
			return e;
		n++;
	}
	if (total > LIMIT_CORS_BYTES)
		return err_set(detail, ERR_XML_INVALID,
			"The rules in the XML element 'Cors' hold %zu bytes; %d are allowed.",
			total, LIMIT_CORS_BYTES);
	p->ncors = n;
	return ERR_OK;
}

/* ---- the document ---- */

static enum err read_sections(const struct xml_node *const *found, enum properties_form form,
	struct service_properties *p, struct err_detail *detail)
{
	enum err e = ERR_OK;
	if (found[0] != NULL)
		e = read_logging(found[0], &p->logging, detail);
	if (e == ERR_OK && found[1] != NULL)
		e = read_metrics(found[1], &p->hour, detail);
	if (form == PROPERTIES_OLD)
		return e;
	if (e == ERR_OK && found[2] != NULL)
		e = read_metrics(found[2], &p->minute, detail);
	if (e == ERR_OK && found[3] != NULL)
		e = read_cors(found[3], p, detail);
	return e;
}

static enum err read_root(const struct xml_node *root, enum properties_form form,
	struct service_properties *p, struct err_detail *detail)
{
	static const struct xml_field old_fields[] = { { "Logging", false }, { "Metrics", false },
		{ 0 } };
	static const struct xml_field new_fields[] = { { "Logging", false },
		{ "HourMetrics", false }, { "MinuteMetrics", false }, { "Cors", false }, { 0 } };
	const struct xml_node *found[4] = { NULL };
	if (!span_is(root->name, ROOT))
		return err_set(detail, ERR_XML_INVALID, "The XML document is not '%s'.", ROOT);
	enum err e =
		xml_fields(root, form == PROPERTIES_OLD ? old_fields : new_fields, found, detail);
	if (e != ERR_OK)
		return e;
	if (root->first == NULL)
		return err_set(
			detail, ERR_XML_INVALID, "The XML element '%s' holds no property.", ROOT);
	return read_sections(found, form, p, detail);
}

enum err service_properties_from_xml(struct span xml, enum properties_form form,
	struct service_properties *p, struct err_detail *detail)
{
	struct arena arena = { 0 };
	struct xml_node *root = NULL;
	enum err e = xml_parse(xml, &arena, &root, detail);
	if (e == ERR_OK)
		e = read_root(root, form, p, detail);
	arena_fini(&arena);
	return e;
}

enum err service_properties_load(struct span stored, struct service_properties *ret)
{
	service_properties_default(ret);
	if (stored.n == 0)
		return ERR_OK;
	enum err e = service_properties_from_xml(stored, PROPERTIES_NEW, ret, NULL);
	return e == ERR_OK || e == ERR_NO_MEMORY ? e : ERR_CORRUPT;
}

bool service_properties_have_cors(struct span stored)
{
	/* In a value, '<' would be escaped. */
	static const struct span tag = SPAN_LIT(RULE_TAG);
	return stored.n > 0 && memmem(stored.p, stored.n, tag.p, tag.n) != NULL;
}

/* ---- writing ---- */

static void add_bool(struct buf *out, const char *name, bool value)
{
	xml_add_element(out, name, value ? SPAN_LIT("true") : SPAN_LIT("false"));
}

static void add_retention(struct buf *out, const struct retention *r)
{
	buf_add_str(out, "<RetentionPolicy>");
	add_bool(out, "Enabled", r->enabled);
	if (r->enabled)
		buf_addf(out, "<Days>%u</Days>", r->days);
	buf_add_str(out, "</RetentionPolicy>");
}

static void add_logging(struct buf *out, const struct logging_settings *l)
{
	buf_add_str(out, "<Logging><Version>" VERSION_ONLY "</Version>");
	add_bool(out, "Read", l->read);
	add_bool(out, "Write", l->write);
	add_bool(out, "Delete", l->delete);
	add_retention(out, &l->retention);
	buf_add_str(out, "</Logging>");
}

static void add_metrics(struct buf *out, const char *name, const struct metrics_settings *m)
{
	buf_addf(out, "<%s><Version>" VERSION_ONLY "</Version>", name);
	add_bool(out, "Enabled", m->enabled);
	if (m->enabled)
		add_bool(out, "IncludeAPIs", m->include_apis);
	add_retention(out, &m->retention);
	buf_addf(out, "</%s>", name);
}

static void add_cors(struct buf *out, const struct service_properties *p)
{
	if (p->ncors == 0) {
		buf_add_str(out, "<Cors />");
		return;
	}
	buf_add_str(out, "<Cors>");
	for (size_t i = 0; i < p->ncors; i++) {
		const struct cors_rule *r = &p->cors[i];
		buf_add_str(out, RULE_TAG);
		xml_add_element(out, "AllowedOrigins", r->origins);
		xml_add_element(out, "AllowedMethods", r->methods);
		buf_addf(out, "<MaxAgeInSeconds>%u</MaxAgeInSeconds>", r->max_age);
		xml_add_element(out, "ExposedHeaders", r->exposed);
		xml_add_element(out, "AllowedHeaders", r->allowed);
		buf_add_str(out, "</CorsRule>");
	}
	buf_add_str(out, "</Cors>");
}

void service_properties_to_xml(
	const struct service_properties *p, enum properties_form form, struct buf *out)
{
	buf_add_str(out, XML_DECLARATION "<" ROOT ">");
	add_logging(out, &p->logging);
	if (form == PROPERTIES_OLD) {
		add_metrics(out, "Metrics", &p->hour);
	} else {
		add_metrics(out, "HourMetrics", &p->hour);
		add_metrics(out, "MinuteMetrics", &p->minute);
		add_cors(out, p);
	}
	buf_add_str(out, "</" ROOT ">");
}
