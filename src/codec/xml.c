/* SPDX-License-Identifier: MIT
 * Reading goes through libxml2's SAX interface into a tree of our own: nothing that the
 * library would build or do for a DTD, an entity or a declared encoding ever happens,
 * because no handler for it is there, and the first sign of a DTD stops the parser.  The
 * text is checked to be UTF-8 before the library sees it, and the library is told to ignore
 * the declared encoding, so that no converter is ever loaded for a stranger. */
#include "codec/xml.h"

#include "base/compiler.h"
#include "base/text.h"

#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <pthread.h>
#include <strings.h>

#define BOM "\xef\xbb\xbf"

/* An element that is not closed yet. */
struct level {
	struct xml_node *node;
	struct xml_node **tail; /* where its next element goes */
	struct buf text;
};

struct reader {
	xmlParserCtxt *ctxt;
	struct arena *arena;
	struct xml_node *root;
	struct level open[XML_DEPTH_MAX];
	size_t depth;
	enum err error; /* why we stopped the parser */
	const char *why;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void start_library(void)
{
	xmlInitParser();
}

static void stop(struct reader *r, enum err e, const char *why)
{
	if (r->error == ERR_OK) {
		r->error = e;
		r->why = why;
	}
	xmlStopParser(r->ctxt);
}

/* ---- events ---- */

static struct xml_node *new_node(struct reader *r, const xmlChar *name)
{
	struct xml_node *n = arena_alloc(r->arena, sizeof(*n));
	if (n == NULL)
		return NULL;
	*n = (struct xml_node){ .text = SPAN_LIT("") };
	n->name = arena_copy(r->arena, span_of((const char *)name));
	return n->name.p == NULL ? NULL : n;
}

static void on_start(void *arg, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri,
	int nb_namespaces, const xmlChar **namespaces, int nb_attributes, int nb_defaulted,
	const xmlChar **attributes)
{
	struct reader *r = arg;
	if (r->error != ERR_OK)
		return;
	if (r->depth == XML_DEPTH_MAX) {
		stop(r, ERR_XML_INVALID, "elements are nested too deeply");
		return;
	}
	struct xml_node *n = new_node(r, name);
	if (n == NULL) {
		stop(r, ERR_NO_MEMORY, NULL);
		return;
	}
	if (r->depth == 0) {
		r->root = n;
	} else {
		struct level *up = &r->open[r->depth - 1];
		*up->tail = n;
		up->tail = &n->next;
	}
	r->open[r->depth++] = (struct level){ n, &n->first, BUF_INIT(XML_BYTES_MAX) };
}

static void on_end(void *arg, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
	struct reader *r = arg;
	if (r->error != ERR_OK || r->depth == 0)
		return;
	struct level *l = &r->open[--r->depth];
	bool ok = buf_ok(&l->text);
	if (ok && l->text.len > 0) {
		l->node->text = arena_copy(r->arena, buf_span(&l->text));
		ok = l->node->text.p != NULL;
	}
	buf_fini(&l->text);
	if (!ok)
		stop(r, ERR_NO_MEMORY, NULL);
}

static void on_text(void *arg, const xmlChar *p, int n)
{
	struct reader *r = arg;
	if (r->error == ERR_OK && r->depth > 0 && n > 0)
		buf_add(&r->open[r->depth - 1].text, p, (size_t)n);
}

static void on_dtd(void *arg, const xmlChar *name, const xmlChar *id, const xmlChar *system)
{
	stop(arg, ERR_XML_INVALID, "a document type is not allowed");
}

/* An entity that was not replaced by characters. */
static void on_reference(void *arg, const xmlChar *name)
{
	stop(arg, ERR_XML_INVALID, "an entity is not predefined");
}

/* No handler of errors either: nothing is printed, ctxt->lastError has it. */
static const xmlSAXHandler handlers = {
	.initialized = XML_SAX2_MAGIC,
	.startElementNs = on_start,
	.endElementNs = on_end,
	.characters = on_text,
	.ignorableWhitespace = on_text,
	.cdataBlock = on_text,
	.internalSubset = on_dtd,
	.externalSubset = on_dtd,
	.reference = on_reference,
};

/* ---- before the parser ---- */

struct span xml_trim(struct span s)
{
	return text_trim(s, " \t\r\n");
}

struct span xml_skip_bom(struct span text)
{
	return span_starts(text, SPAN_LIT(BOM)) ? span_make(text.p + 3, text.n - 3) : text;
}

/* The quoted value of encoding= in the declaration; empty if there is none.  How the
 * declaration is spelled otherwise is the parser's to judge. */
static struct span declared_encoding(struct span text)
{
	static const struct span word = SPAN_LIT("encoding");
	const char *end = span_starts(text, SPAN_LIT("<?xml")) ? memchr(text.p, '>', text.n) : NULL;
	if (end == NULL)
		return SPAN_LIT("");
	const char *p = memmem(text.p, (size_t)(end - text.p), word.p, word.n);
	if (p == NULL)
		return SPAN_LIT("");
	p += word.n;
	struct span rest = xml_trim(span_make(p, (size_t)(end - p)));
	if (!span_starts(rest, SPAN_LIT("=")))
		return SPAN_LIT("");
	rest = xml_trim(span_make(rest.p + 1, rest.n - 1));
	const char *close = rest.n < 2 ? NULL : memchr(rest.p + 1, rest.p[0], rest.n - 1);
	if (close == NULL)
		return SPAN_LIT("");
	return span_make(rest.p + 1, (size_t)(close - rest.p - 1));
}

static bool is_utf8(struct span name)
{
	return (name.n == 5 && strncasecmp(name.p, "utf-8", 5) == 0) ||
		(name.n == 4 && strncasecmp(name.p, "utf8", 4) == 0);
}

static enum err check_text(struct span text, struct err_detail *detail)
{
	if (text.n > XML_BYTES_MAX)
		return err_set(detail, ERR_BODY_TOO_LARGE,
			"The XML document is larger than %zu bytes.", XML_BYTES_MAX);
	if (!utf8_valid(text))
		return err_set_at(detail, ERR_XML_INVALID, text.p, utf8_valid_prefix(text),
			"The XML document is not valid UTF-8.");
	/* The library would take it for the end. */
	if (memchr(text.p, '\0', text.n) != NULL)
		return err_set(detail, ERR_XML_INVALID, "The document holds a NUL.");
	struct span encoding = declared_encoding(xml_skip_bom(text));
	if (encoding.n > 0 && !is_utf8(encoding))
		return err_set(detail, ERR_XML_INVALID,
			"The XML document declares the encoding '%.*s'; only utf-8 is read.",
			encoding.n < 40 ? (int)encoding.n : 40, encoding.p);
	return ERR_OK;
}

/* ---- the parser ---- */

static enum err run(struct reader *r, struct span text, struct err_detail *detail)
{
	*r->ctxt->sax = handlers;
	r->ctxt->userData = r;
	(void)xmlCtxtReadMemory(r->ctxt, text.p, (int)text.n, NULL, NULL,
		XML_PARSE_NONET | XML_PARSE_IGNORE_ENC | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	if (r->error == ERR_NO_MEMORY || r->ctxt->errNo == XML_ERR_NO_MEMORY)
		return ERR_NO_MEMORY;
	if (r->error != ERR_OK)
		return err_set(detail, r->error, "Not accepted: %s.", r->why);
	if (r->ctxt->wellFormed == 0 || r->root == NULL || r->depth > 0)
		return err_set(detail, ERR_XML_INVALID,
			"The first mistake is in line %d, column %d.", r->ctxt->lastError.line,
			r->ctxt->lastError.int2);
	return ERR_OK;
}

enum err xml_parse(
	struct span text, struct arena *arena, struct xml_node **ret, struct err_detail *detail)
{
	if (xml_skip_bom(text).n == 0)
		return err_set(detail, ERR_XML_INVALID, "The document is empty.");
	enum err e = check_text(text, detail);
	if (e != ERR_OK)
		return e;
	BUG_ON(pthread_once(&once, start_library) != 0);
	struct reader r = { .ctxt = xmlNewParserCtxt(), .arena = arena };
	if (r.ctxt == NULL)
		return ERR_NO_MEMORY;
	e = run(&r, text, detail);
	while (r.depth > 0)
		buf_fini(&r.open[--r.depth].text);
	xmlFreeDoc(r.ctxt->myDoc);
	r.ctxt->myDoc = NULL;
	xmlFreeParserCtxt(r.ctxt);
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
			"The XML element '%.*s' may not hold the element '%.*s'.",
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
				"The XML element '%s' stands twice in '%.*s'.", fields[i].name,
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
		return err_set(detail, ERR_XML_INVALID, "The XML element '%.*s' may not hold text.",
			shown(node->name), node->name.p);
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

static bool can_carry(uint32_t cp)
{
	if (cp < 0x20)
		return cp == '\t' || cp == '\n' || cp == '\r';
	return cp != 0xfffe && cp != 0xffff;
}

static const char *escape_of(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '\r': /* a reader makes a line feed of a plain one */
		return "&#xD;";
	default:
		return NULL;
	}
}

void xml_add_text(struct buf *out, struct span s)
{
	while (s.n > 0) {
		uint32_t cp;
		size_t n = utf8_decode(s, &cp);
		if (n == 0 || !can_carry(cp)) {
			out->failed = true;
			return;
		}
		const char *escape = escape_of(s.p[0]);
		if (escape != NULL)
			buf_add_str(out, escape);
		else
			buf_add(out, s.p, n);
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
