/* SPDX-License-Identifier: MIT
 * The only user of libxml2, by its SAX interface.  There are no handlers for DTDs, entities and
 * encodings, and a DTD stops the parser.  The text is checked to be UTF-8 first.  The library
 * ignores the declared encoding, so it never loads a converter. */
#include "codec/xml_events.h"

#include "base/compiler.h"
#include "base/text.h"
#include "codec/xml_scan.h"

#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/parserInternals.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>

/* Bytes of a message of the library. */
#define WORDS_MAX 150
#define BOM "\xef\xbb\xbf"

struct parse {
	xmlParserCtxt *ctxt;
	const struct xml_handler *handler;
	void *arg;
	struct span text;
	struct span left; /* the rest of the text */
	size_t depth, instructions;
	bool any;       /* a root element was read */
	enum err error; /* why rowfs stopped the parser */
	struct err_detail *detail;
	struct err_detail mistake; /* the library's first error; line is 0 without one */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The library got no memory in this parse.  It does not always report that: it blames the document
 * if it has no memory for a name. */
static _Thread_local bool starved;

static void *seen(void *p)
{
	starved = starved || p == NULL;
	return p;
}

static void *get(size_t n)
{
	return seen(malloc(n));
}

static void *get_again(void *p, size_t n)
{
	return seen(realloc(p, n));
}

static char *get_copy(const char *s)
{
	return seen(strdup(s));
}

static void start_library(void)
{
	BUG_ON(xmlMemSetup(free, get, get_again, get_copy) != 0);
	xmlInitParser();
}

static void ends_with(struct parse *p, enum err e)
{
	if (e == ERR_OK)
		return;
	if (p->error == ERR_OK)
		p->error = e;
	xmlStopParser(p->ctxt);
}

/* The library's position in the text: near the end of the event. */
static size_t place(const struct parse *p)
{
	long at = xmlByteConsumed(p->ctxt);
	return at < 0 ? 0 : (size_t)at;
}

static void refuse(struct parse *p, const char *why)
{
	ends_with(p,
		err_set_at(
			p->detail, ERR_XML_INVALID, p->text.p, place(p), "Not accepted: %s.", why));
}

/* ---- events ---- */

static struct span span_of_name(const xmlChar *s)
{
	return s == NULL ? SPAN_LIT("") : span_of((const char *)s);
}

static void on_start(void *arg, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri,
	int nb_namespaces, const xmlChar **namespaces, int nb_attributes, int nb_defaulted,
	const xmlChar **attributes)
{
	struct parse *p = arg;
	if (p->error != ERR_OK)
		return;
	if (p->depth == XML_DEPTH_MAX) {
		refuse(p, "elements are nested too deeply");
		return;
	}
	p->depth++;
	p->any = true;
	const struct xml_start start = { .space = span_of_name(uri),
		.name = span_of_name(name),
		.offset = place(p),
		.nattributes = nb_attributes,
		.attributes = attributes };
	ends_with(p, p->handler->start(p->arg, &start));
}

static void on_end(void *arg, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri)
{
	struct parse *p = arg;
	if (p->error == ERR_OK) {
		p->depth--;
		ends_with(p, p->handler->end(p->arg));
	}
}

static void on_text(void *arg, const xmlChar *text, int n)
{
	struct parse *p = arg;
	if (p->error == ERR_OK && p->depth > 0 && n > 0)
		ends_with(p, p->handler->text(p->arg, span_make(text, (size_t)n)));
}

static void on_dtd(void *arg, const xmlChar *name, const xmlChar *id, const xmlChar *system)
{
	refuse(arg, "a document type is not allowed");
}

/* The library keeps every target in its dictionary, which becomes slow. */
static void on_instruction(void *arg, const xmlChar *target, const xmlChar *data)
{
	struct parse *p = arg;
	if (++p->instructions > XML_INSTRUCTIONS_MAX)
		refuse(p, "too many processing instructions");
}

/* The library's messages can be several lines and quote any length of the document. */
static void tell(const xmlError *mistake, struct err_detail *ret)
{
	const char *words = mistake->message == NULL ? "" : mistake->message;
	struct span s = xml_trim(span_make(words, strcspn(words, "\n")));
	if (s.n > WORDS_MAX)
		s.n = WORDS_MAX;
	s.n = utf8_valid_prefix(s);
	(void)err_set(ret, ERR_XML_INVALID, "The XML is not well-formed: %.*s", (int)s.n, s.p);
	ret->line = mistake->line > 0 ? (unsigned)mistake->line : 1;
	ret->column = mistake->int2 > 0 ? (unsigned)mistake->int2 : 1;
}

/* Stops at the first error.  The parser would guess at the rest, where xml_scan.h has not checked
 * the tags. */
static void on_mistake(void *arg, xmlErrorPtr mistake)
{
	struct parse *p = arg;
	if (mistake->level < XML_ERR_ERROR || p->mistake.line > 0)
		return;
	tell(mistake, &p->mistake);
	xmlStopParser(p->ctxt);
}

/* There is no handler of entities: without a DTD only predefined entities exist. */
static const xmlSAXHandler handlers = {
	.initialized = XML_SAX2_MAGIC,
	.startElementNs = on_start,
	.endElementNs = on_end,
	.characters = on_text,
	.ignorableWhitespace = on_text,
	.cdataBlock = on_text,
	.processingInstruction = on_instruction,
	.internalSubset = on_dtd,
	.externalSubset = on_dtd,
	.serror = on_mistake,
};

/* The library has five pointers for each attribute: name, prefix, namespace, begin and end of the
 * value. */
bool xml_attribute(
	const struct xml_start *start, const char *space, const char *name, struct span *ret)
{
	for (int i = 0; i < start->nattributes; i++) {
		const unsigned char **a = start->attributes + 5 * (ptrdiff_t)i;
		if (!span_is(span_of_name(a[0]), name) || !span_is(span_of_name(a[2]), space))
			continue;
		*ret = span_make(a[3], (size_t)(a[4] - a[3]));
		return true;
	}
	return false;
}

/* ---- before the parser ---- */

struct span xml_trim(struct span s)
{
	return text_trim(s, " \t\r\n");
}

struct span xml_skip_bom(struct span text)
{
	return span_starts(text, SPAN_LIT(BOM)) ? span_make(text.p + 3, text.n - 3) : text;
}

/* Returns the quoted value of encoding= in the declaration, or nothing.  The parser checks the rest
 * of the declaration. */
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

static enum err check_text(struct span text, size_t bytes_max, struct err_detail *detail)
{
	if (xml_skip_bom(text).n == 0)
		return err_set(detail, ERR_XML_INVALID, "The document is empty.");
	if (text.n > bytes_max)
		return err_set(detail, ERR_BODY_TOO_LARGE,
			"The XML document is larger than %zu bytes.", bytes_max);
	if (!utf8_valid(text))
		return err_set_at(detail, ERR_XML_INVALID, text.p, utf8_valid_prefix(text),
			"The XML document is not valid UTF-8.");
	/* The library would stop there without an error. */
	const char *nul = memchr(text.p, '\0', text.n);
	if (nul != NULL)
		return err_set_at(detail, ERR_XML_INVALID, text.p, (size_t)(nul - text.p),
			"The document contains a NUL.");
	struct span encoding = declared_encoding(xml_skip_bom(text));
	if (encoding.n > 0 && !is_utf8(encoding))
		return err_set_at(detail, ERR_XML_INVALID, text.p, (size_t)(encoding.p - text.p),
			"The XML document declares the encoding '%.*s'; only utf-8 is read.",
			encoding.n < 40 ? (int)encoding.n : 40, encoding.p);
	size_t tag;
	if (!xml_tags_are_small(text, &tag))
		return err_set_at(detail, ERR_XML_INVALID, text.p, tag,
			"Not accepted: an element has more than %d attributes.",
			XML_ATTRIBUTES_MAX);
	return ERR_OK;
}

/* ---- the parser ---- */

static void ignore(void *arg, xmlError *error)
{
	(void)arg;
	(void)error;
}

/* Ends the input after an error.  The parser would otherwise continue and read tags that xml_scan.h
 * has not checked. */
static int read_text(void *arg, char *buf, int n)
{
	struct parse *p = arg;
	if (p->left.n == 0 || p->ctxt->wellFormed == 0)
		return 0;
	size_t take = p->left.n < (size_t)n ? p->left.n : (size_t)n;
	memcpy(buf, p->left.p, take);
	p->left = span_make(p->left.p + take, p->left.n - take);
	return (int)take;
}

static enum err run(struct parse *p)
{
	*p->ctxt->sax = handlers;
	p->ctxt->userData = p;
	p->left = p->text;
	(void)xmlCtxtReadIO(p->ctxt, read_text, NULL, p, NULL, NULL,
		XML_PARSE_NONET | XML_PARSE_IGNORE_ENC | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
	if (p->error == ERR_NO_MEMORY || starved)
		return ERR_NO_MEMORY;
	if (p->error != ERR_OK)
		return p->error;
	if (p->ctxt->wellFormed != 0 && p->ctxt->nsWellFormed != 0 && p->any && p->depth == 0)
		return ERR_OK;
	if (p->detail != NULL)
		*p->detail = p->mistake;
	return ERR_XML_INVALID;
}

enum err xml_events(struct span text, size_t bytes_max, const struct xml_handler *handler,
	void *arg, struct err_detail *detail)
{
	enum err e = check_text(text, bytes_max, detail);
	if (e != ERR_OK)
		return e;
	BUG_ON(pthread_once(&once, start_library) != 0);
	/* Set for each thread: the library otherwise prints when memory is out. */
	xmlSetStructuredErrorFunc(NULL, ignore);
	starved = false;
	struct parse p = { .ctxt = xmlNewParserCtxt(),
		.handler = handler,
		.arg = arg,
		.text = text,
		.detail = detail };
	if (p.ctxt == NULL)
		return ERR_NO_MEMORY;
	e = run(&p);
	xmlFreeDoc(p.ctxt->myDoc);
	p.ctxt->myDoc = NULL;
	xmlFreeParserCtxt(p.ctxt);
	return e;
}
