/* SPDX-License-Identifier: MIT
 * The XML bodies' common ground: a strict reader that makes a small tree, and what writers
 * need.  The only user of libxml2. */
#ifndef CODEC_XML_H
#define CODEC_XML_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

#define XML_BYTES_MAX ((size_t)64 * 1024)
#define XML_DEPTH_MAX 16
#define XML_DECLARATION "<?xml version=\"1.0\" encoding=\"utf-8\"?>"

/* An element.  Prefixes, attributes, comments and processing instructions are dropped. */
struct xml_node {
	struct span name; /* without prefix */
	struct span text; /* all characters that stand in it directly, CDATA too; never NULL */
	struct xml_node *first, *next; /* its elements; its next sibling */
};

/* Blanks of XML off both ends. */
struct span xml_trim(struct span s);
/* Without the byte order mark that may stand first. */
struct span xml_skip_bom(struct span text);

/* The document's root; everything lives in the arena.  UTF-8 only, whatever the declaration
 * says; nothing is ever fetched or printed.  ERR_BODY_TOO_LARGE above XML_BYTES_MAX;
 * ERR_XML_INVALID for what is not well-formed, is nested deeper than XML_DEPTH_MAX, has a DTD
 * or refers to an entity that XML does not predefine; ERR_NO_MEMORY. */
enum err xml_parse(
	struct span text, struct arena *arena, struct xml_node **ret, struct err_detail *detail);

/* One child that an element may have; the table of them ends with name == NULL. */
struct xml_field {
	const char *name;
	bool required;
};
/* Sorts the children of an element, which holds nothing else but blanks, by the table:
 * ret[i] is the child fields[i].name or NULL.  ERR_XML_INVALID, naming it, for a child that
 * is unknown, stands twice, or is missing. */
enum err xml_fields(const struct xml_node *node, const struct xml_field *fields,
	const struct xml_node **ret, struct err_detail *detail);
/* The text of an element without elements in it, as it stands.  ERR_XML_INVALID. */
enum err xml_text(const struct xml_node *node, struct span *ret, struct err_detail *detail);

/* s with what markup needs escaped.  What XML cannot carry (control characters, U+FFFE,
 * invalid UTF-8) sets out->failed. */
void xml_add_text(struct buf *out, struct span s);
/* <name>text</name>, or <name /> where the text is empty. */
void xml_add_element(struct buf *out, const char *name, struct span text);

#endif
