/* SPDX-License-Identifier: MIT
 * XML as events, under the rules that hold for every body: UTF-8 only, no DTD, no entities
 * but the predefined ones, bounded.  xml.h makes a tree of them, atom_entry.h an entry. */
#ifndef CODEC_XML_EVENTS_H
#define CODEC_XML_EVENTS_H

#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

#define XML_DEPTH_MAX 16
/* Processing instructions in a document. */
#define XML_INSTRUCTIONS_MAX 1000

/* What begins an element.  Everything lives until the handler returns. */
struct xml_start {
	struct span space, name; /* the namespace ("" without one), the name without prefix */
	size_t offset;           /* in the text, of about the end of the tag */
	int nattributes;         /* private */
	const unsigned char **attributes;
};

/* An error of a handler ends the reading, and is what xml_events() returns. */
struct xml_handler {
	enum err (*start)(void *arg, const struct xml_start *start);
	enum err (*end)(void *arg);
	/* Characters, in any number of pieces; CDATA too. */
	enum err (*text)(void *arg, struct span text);
};

/* The value of an attribute of that namespace; false if it is not there. */
bool xml_attribute(
	const struct xml_start *start, const char *space, const char *name, struct span *ret);

/* Reads one document.  Whatever its declaration says it is UTF-8; nothing is ever fetched or
 * printed.  ERR_BODY_TOO_LARGE above bytes_max; ERR_XML_INVALID for what is not well-formed,
 * is nested deeper than XML_DEPTH_MAX, has more than XML_INSTRUCTIONS_MAX instructions, a DTD
 * or an entity that XML does not predefine; ERR_NO_MEMORY; what a handler returned (the detail
 * is then its business).  The detail has the place. */
enum err xml_events(struct span text, size_t bytes_max, const struct xml_handler *handler,
	void *arg, struct err_detail *detail);

/* Blanks of XML off both ends. */
struct span xml_trim(struct span s);
/* Without the byte order mark that may stand first. */
struct span xml_skip_bom(struct span text);

#endif
