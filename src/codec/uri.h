/* SPDX-License-Identifier: MIT
 * The pieces of a request target: percent-encoding, the query string, and the OData path
 * that names a resource (protocol sections 1.2 and 1.3).  Nothing here knows accounts or
 * hosts. */
#ifndef CODEC_URI_H
#define CODEC_URI_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>

/* ret borrows from s where nothing is encoded, else lives in the arena.  plus: '+' is a
 * blank (query strings).  ERR_INVALID_INPUT for '%' without two hex digits, for what is not
 * UTF-8 afterwards, and for NUL; ERR_NO_MEMORY. */
enum err percent_decode(
	struct span s, bool plus, struct arena *arena, struct span *ret, struct err_detail *detail);
/* A key as it stands between the quotes of an entity URL (Location, odata.id): quotes
 * doubled, and everything percent-encoded, with upper-case digits, that RFC 3986 does not
 * allow in a path segment.  So A-Z a-z 0-9 - . _ ~ ! $ & ( ) * + , ; = : @ stay: clients
 * compare keys with the undecoded text, and a '+' in a path is a plus.  '{', '}', '"', '%',
 * '/', blank and what is not ASCII never stay. */
void percent_encode_key(struct span key, struct buf *out);
/* Everything but unreserved characters (RFC 3986 section 2.3): a value in a query string. */
void percent_encode_value(struct span value, struct buf *out);

/* The target of a request line: "http://host:port/path?query", "/path?query" or less. */
struct url_parts {
	struct span host;  /* with its port; p NULL: the form is not absolute */
	struct span path;  /* "/" where the absolute form has none */
	struct span query; /* without the '?' */
};
/* Cuts, and checks nothing; spans borrow from target. */
void url_split(struct span target, struct url_parts *ret);

struct query_param {
	struct span name, value; /* decoded */
};

struct query_params {
	struct query_param *all; /* in their order; duplicates are kept */
	size_t n;
};

/* query: without the '?', as on the wire.  Names and values are decoded, '+' is a blank; a
 * name without '=' has an empty value, empty pieces ("a=1&&b=2") are left out. */
enum err query_params_parse(struct span query, struct arena *arena, struct query_params *ret,
	struct err_detail *detail);
/* The first parameter of this name (exact case), as *ret; false if there is none. */
bool query_params_find(const struct query_params *p, const char *name, struct span *ret);
size_t query_params_count(const struct query_params *p, const char *name);

enum resource_kind {
	RESOURCE_SERVICE,  /* "" or "/" */
	RESOURCE_METADATA, /* $metadata */
	RESOURCE_TABLES,   /* Tables, Tables() */
	RESOURCE_TABLE,    /* Tables('t') */
	RESOURCE_ENTITIES, /* t, t() */
	RESOURCE_ENTITY,   /* t(PartitionKey='p',RowKey='r') */
	RESOURCE_BATCH,    /* $batch */
};

struct resource {
	enum resource_kind kind;
	struct span table;  /* TABLE, ENTITIES, ENTITY: as the request spells it */
	struct span pk, rk; /* ENTITY: UTF-8, un-doubled */
};

/* path: percent-encoded, behind the account's segment, with or without '/' at either end.
 * Keys in either order, blanks between the tokens; the names of keys have exact case.
 * Spans in ret borrow from path or live in the arena; an empty key has a p that is not NULL.
 * ERR_INVALID_INPUT with "Bad Request - Error in query syntax." for what names nothing.
 * Table names and keys are not checked against the model here. */
enum err resource_parse(
	struct span path, struct arena *arena, struct resource *ret, struct err_detail *detail);

#endif
