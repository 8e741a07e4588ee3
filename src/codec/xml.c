/* SPDX-License-Identifier: MIT
 * Builds a small tree from the events of xml_events.h, and writes text and elements. */
#include "codec/xml.h"

#include "base/compiler.h"
#include "base/text.h"
#include "codec/xml_controls.h"

/* An open element. */
struct level {
	struct xml_node *node;
	struct xml_node **tail; /* where its next child goes */
	struct buf text;
};

struct reader {
	struct arena *arena;
	struct xml_node *root;
	struct level open[XML_DEPTH_MAX];
	size_t depth;
};

/* ---- making the tree ---- */

static struct xml_node *new_node(struct reader *r, struct span name)
{
	struct xml_node *n = arena_alloc(r->arena, sizeof(*n));
	if (n == NULL)
		return NULL;
	*n = (struct xml_node){ .text = SPAN_LIT("") };
	n->name = arena_copy(r->arena, name);
	return n->name.p == NULL ? NULL : n;
}

static enum err on_start(void *arg, const struct xml_start *start)
{
	struct reader *r = arg;
	struct xml_node *n = new_node(r, start->name);
	if (n == NULL)
		return ERR_NO_MEMORY;
	if (r->depth == 0) {
		r->root = n;
	} else {
		struct level *up = &r->open[r->depth - 1];
		*up->tail = n;
		up->tail = &n->next;
	}
	r->open[r->depth++] = (struct level){ n, &n->first, BUF_INIT(XML_BYTES_MAX) };
	return ERR_OK;
}

static enum err on_end(void *arg)
{
	struct reader *r = arg;
	struct level *l = &r->open[--r->depth];
	bool ok = buf_ok(&l->text);
	if (ok && l->text.len > 0) {
		l->node->text = arena_copy(r->arena, buf_span(&l->text));
		ok = l->node->text.p != NULL;
	}
	buf_fini(&l->text);
	return ok ? ERR_OK : ERR_NO_MEMORY;
}

static enum err on_text(void *arg, struct span text)
{
	struct reader *r = arg;
	buf_add_span(&r->open[r->depth - 1].text, text);
	return ERR_OK;
}

static const struct xml_handler handler = { on_start, on_end, on_text };

enum err xml_parse(
	struct span text, struct arena *arena, struct xml_node **ret, struct err_detail *detail)
{
	struct reader r = { .arena = arena };
	enum err e = xml_events(text, XML_BYTES_MAX, &handler, &r, detail);
	while (r.depth > 0)
		buf_fini(&r.open[--r.depth].text);
	if (e == ERR_OK)
		*ret = r.root;
	return e;
}

/* ---- walking the tree ---- */

/* For printf's "%.*s". */
static int shown(struct span name)
{
	return name.n < 60 ? (int)name.n : 60;
}

enum err xml_text(const struct xml_node *node, struct span *ret, struct err_detail *detail)
{
	if (node->first != NULL)
		return err_set(detail, ERR_XML_INVALID,
			"The XML element '%.*s' must not contain the element '%.*s'.",
			shown(node->name), node->name.p, shown(node->first->name),
			node->first->name.p);
	*ret = node->text;
	return ERR_OK;
}

static enum err take_field(const struct xml_node *node, const struct xml_node *child,
	const struct xml_field *fields, const struct xml_node **ret, struct err_detail *detail)
{
	for (size_t i = 0; fields[i].name != NULL; i++) {
		if (!span_is(child->name, fields[i].name))
			continue;
		if (ret[i] != NULL)
			return err_set(detail, ERR_XML_INVALID,
				"The XML element '%s' occurs twice in '%.*s'.", fields[i].name,
				shown(node->name), node->name.p);
		ret[i] = child;
		return ERR_OK;
	}
	return err_set(detail, ERR_XML_INVALID,
		"The XML element '%.*s' is not supported in '%.*s'.", shown(child->name),
		child->name.p, shown(node->name), node->name.p);
}

enum err xml_fields(const struct xml_node *node, const struct xml_field *fields,
	const struct xml_node **ret, struct err_detail *detail)
{
	if (xml_trim(node->text).n > 0)
		return err_set(detail, ERR_XML_INVALID,
			"The XML element '%.*s' must not contain text.", shown(node->name),
			node->name.p);
	for (size_t i = 0; fields[i].name != NULL; i++)
		ret[i] = NULL;
	for (const struct xml_node *c = node->first; c != NULL; c = c->next) {
		enum err e = take_field(node, c, fields, ret, detail);
		if (e != ERR_OK)
			return e;
	}
	for (size_t i = 0; fields[i].name != NULL; i++) {
		if (fields[i].required && ret[i] == NULL)
			return err_set(detail, ERR_XML_INVALID,
				"The XML element '%s' is missing in '%.*s'.", fields[i].name,
				shown(node->name), node->name.p);
	}
	return ERR_OK;
}

/* ---- writing ---- */

static const char *escape_of(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '\r': /* a reader replaces a plain one by a line feed */
		return "&#xD;";
	default:
		return NULL;
	}
}

/* Appends the first character of s.  Returns false if XML cannot contain it. */
static bool add_char(struct buf *out, struct span s, size_t *ret_n)
{
	uint32_t cp;
	*ret_n = utf8_decode(s, &cp);
	if (*ret_n == 0 || !xml_can_carry(cp))
		return false;
	const char *escape = escape_of(s.p[0]);
	if (escape != NULL)
		buf_add_str(out, escape);
	else
		buf_add(out, s.p, *ret_n);
	return true;
}

void xml_add_text(struct buf *out, struct span s)
{
	while (s.n > 0) {
		size_t n;
		if (!add_char(out, s, &n)) {
			out->failed = true;
			return;
		}
		s = span_make(s.p + n, s.n - n);
	}
}

void xml_add_message(struct buf *out, struct span s)
{
	while (s.n > 0) {
		size_t n;
		if (!add_char(out, s, &n))
			n = n == 0 ? 1 : n;
		s = span_make(s.p + n, s.n - n);
	}
}

void xml_add_element(struct buf *out, const char *name, struct span text)
{
	if (text.n == 0) {
		buf_addf(out, "<%s />", name);
		return;
	}
	buf_addf(out, "<%s>", name);
	xml_add_text(out, text);
	buf_addf(out, "</%s>", name);
}
