/* SPDX-License-Identifier: MIT
 * Parts that the client left out stay out: an identifier can have no policy, and a policy no start.
 * An empty Start, Expiry or Permission counts as left out. */
#include "codec/access_policy_xml.h"

#include "base/clock.h"
#include "base/text.h"
#include "codec/xml.h"

/* ---- values ---- */

static enum err keep(struct access_policies *p, struct span s, struct span *ret)
{
	*ret = arena_copy(&p->arena, s);
	return ret->p == NULL ? ERR_NO_MEMORY : ERR_OK;
}

/* Stores the one form that all clients can read: azure-cli 2.45 fails on others. */
static enum err keep_time(struct access_policies *p, struct span s, struct span *ret)
{
	char text[CLOCK_TEXT_MAX];
	int64_t ticks;
	if (!policy_time_parse(s, &ticks))
		return ERR_XML_VALUE;
	return keep(p, span_make(text, (size_t)clock_format_full(ticks, text)), ret);
}

/* Accepts each letter once, in any order. */
static enum err keep_permission(struct access_policies *p, struct span s, struct span *ret)
{
	for (size_t i = 0; i < s.n; i++) {
		if (strchr(p->letters, s.p[i]) == NULL || memchr(s.p, s.p[i], i) != NULL)
			return ERR_XML_VALUE;
	}
	return keep(p, s, ret);
}

/* ---- reading ---- */

static enum err read_id(struct access_policies *p, const struct xml_node *node, struct span *ret,
	struct err_detail *detail)
{
	struct span id;
	enum err e = xml_text(node, &id, detail);
	if (e != ERR_OK)
		return e;
	size_t units = utf16_len(id);
	if (units < 1 || units > LIMIT_POLICY_ID)
		return err_set(detail, ERR_XML_VALUE,
			"The XML element 'Id' holds %zu characters; 1 to %d are allowed.", units,
			LIMIT_POLICY_ID);
	for (size_t i = 0; i < p->n; i++) {
		if (span_eq(p->all[i].id, id))
			return err_set(detail, ERR_XML_INVALID,
				"Two XML elements 'Id' hold the same identifier.");
	}
	return keep(p, id, ret);
}

/* Reads an optional value, which keep_it() checks and stores. */
static enum err read_value(struct access_policies *p, const struct xml_node *node,
	enum err (*keep_it)(struct access_policies *p, struct span s, struct span *ret),
	struct span *ret, struct err_detail *detail)
{
	struct span text = { 0 };
	if (node == NULL)
		return ERR_OK;
	enum err e = xml_text(node, &text, detail);
	if (e != ERR_OK)
		return e;
	text = xml_trim(text);
	if (text.n == 0)
		return ERR_OK;
	e = keep_it(p, text, ret);
	if (e == ERR_XML_VALUE)
		return err_set(detail, e,
			"The value '%.*s' of the XML element '%.*s' is not in the correct format.",
			text.n < 60 ? (int)text.n : 60, text.p, (int)node->name.n, node->name.p);
	return e;
}

static enum err read_policy(struct access_policies *p, const struct xml_node *node,
	struct access_policy *ret, struct err_detail *detail)
{
	static const struct xml_field fields[] = { { "Start", false }, { "Expiry", false },
		{ "Permission", false }, { 0 } };
	const struct xml_node *found[3];
	enum err e = xml_fields(node, fields, found, detail);
	if (e == ERR_OK)
		e = read_value(p, found[0], keep_time, &ret->start, detail);
	if (e == ERR_OK)
		e = read_value(p, found[1], keep_time, &ret->expiry, detail);
	if (e == ERR_OK)
		e = read_value(p, found[2], keep_permission, &ret->permission, detail);
	ret->has_policy = true;
	return e;
}

static enum err read_identifier(
	struct access_policies *p, const struct xml_node *node, struct err_detail *detail)
{
	static const struct xml_field fields[] = { { "Id", true }, { "AccessPolicy", false },
		{ 0 } };
	const struct xml_node *found[2];
	struct access_policy one = { 0 };
	if (!span_is(node->name, "SignedIdentifier"))
		return err_set(detail, ERR_XML_INVALID,
			"The XML element '%.*s' is not supported in 'SignedIdentifiers'.",
			node->name.n < 60 ? (int)node->name.n : 60, node->name.p);
	if (p->n == LIMIT_POLICIES)
		return err_set(detail, ERR_XML_INVALID,
			"There are more than %d XML elements 'SignedIdentifier'.", LIMIT_POLICIES);
	enum err e = xml_fields(node, fields, found, detail);
	if (e == ERR_OK)
		e = read_id(p, found[0], &one.id, detail);
	if (e == ERR_OK && found[1] != NULL)
		e = read_policy(p, found[1], &one, detail);
	if (e == ERR_OK)
		p->all[p->n++] = one;
	return e;
}

static enum err read_all(
	struct access_policies *p, const struct xml_node *root, struct err_detail *detail)
{
	if (!span_is(root->name, "SignedIdentifiers"))
		return err_set(detail, ERR_XML_INVALID,
			"The XML document is not a list 'SignedIdentifiers'.");
	if (xml_trim(root->text).n > 0)
		return err_set(detail, ERR_XML_INVALID,
			"The XML element 'SignedIdentifiers' must not contain text.");
	enum err e = ERR_OK;
	for (const struct xml_node *c = root->first; c != NULL && e == ERR_OK; c = c->next)
		e = read_identifier(p, c, detail);
	return e;
}

enum err access_policies_from_xml(struct span xml, const char *letters, struct access_policies *ret,
	struct err_detail *detail)
{
	*ret = (struct access_policies){ .letters = letters };
	if (xml_skip_bom(xml).n == 0)
		return ERR_OK;
	struct arena arena = { 0 };
	struct xml_node *root = NULL;
	enum err e = xml_parse(xml, &arena, &root, detail);
	if (e == ERR_OK)
		e = read_all(ret, root, detail);
	arena_fini(&arena);
	return e;
}

/* ---- writing ---- */

static void add_optional(struct buf *out, const char *name, struct span value)
{
	if (value.p != NULL)
		xml_add_element(out, name, value);
}

static void add_policy(const struct access_policy *p, struct buf *out)
{
	if (!p->has_policy)
		return;
	if (p->start.p == NULL && p->expiry.p == NULL && p->permission.p == NULL) {
		buf_add_str(out, "<AccessPolicy />");
		return;
	}
	buf_add_str(out, "<AccessPolicy>");
	add_optional(out, "Start", p->start);
	add_optional(out, "Expiry", p->expiry);
	add_optional(out, "Permission", p->permission);
	buf_add_str(out, "</AccessPolicy>");
}

void access_policies_to_xml(const struct access_policies *p, struct buf *out)
{
	buf_add_str(out, XML_DECLARATION);
	if (p->n == 0) {
		buf_add_str(out, "<SignedIdentifiers />");
		return;
	}
	buf_add_str(out, "<SignedIdentifiers>");
	for (size_t i = 0; i < p->n; i++) {
		buf_add_str(out, "<SignedIdentifier>");
		xml_add_element(out, "Id", p->all[i].id);
		add_policy(&p->all[i], out);
		buf_add_str(out, "</SignedIdentifier>");
	}
	buf_add_str(out, "</SignedIdentifiers>");
}
