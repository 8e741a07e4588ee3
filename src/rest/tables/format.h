/* SPDX-License-Identifier: MIT
 * The bodies of OData operations in JSON and ATOM.  Only format_json.c and format_atom.c know which
 * one is used. */
#ifndef REST_TABLES_FORMAT_H
#define REST_TABLES_FORMAT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "codec/entity_odata.h"
#include "model/entity.h"

#include <stdbool.h>
#include <stdint.h>

/* The kinds of bodies. */
enum body_kind {
	BODY_ELEMENTS, /* entities or tables */
	BODY_SERVICE,  /* the service document */
	BODY_ERROR,
};

struct format {
	const char *name;
	const char *version; /* the DataServiceVersion */
	/* Returns the value of Content-Type. */
	const char *(*content_type)(enum odata_level level, enum body_kind kind);

	/* Decodes an entity and checks it, its keys included if there are any. */
	enum err (*read_entity)(struct span body, struct entity *ret, struct err_detail *detail);
	/* Sets *ret_name to the TableName; the arena owns it.  ERR_KEY_MISSING without one. */
	enum err (*read_table)(struct span body, struct arena *arena, struct span *ret_name,
		struct err_detail *detail);

	/* Write one entity or table as the whole body. */
	enum err (*write_entity)(
		const struct odata_style *style, const struct odata_row *row, struct buf *out);
	void (*write_table)(const struct odata_style *style, struct span name, struct buf *out);
	/* A feed: begin, any number of entries, end.  first: this is the first entry.  what:
	 * "Tables" or the name of the table.  select: the raw $select, or p NULL.  begin_feed() may
	 * put shared state in the style; the arena owns it. */
	void (*begin_feed)(struct odata_style *style, struct span what, struct span select,
		struct arena *arena, struct buf *out);
	enum err (*feed_entity)(const struct odata_style *style, const struct odata_row *row,
		bool first, struct buf *out);
	void (*feed_table)(
		const struct odata_style *style, struct span name, bool first, struct buf *out);
	void (*end_feed)(const struct odata_style *style, struct buf *out);

	/* Writes the service document. */
	void (*write_service)(const struct odata_style *style, struct buf *out);
	/* Writes an error.  message includes its RequestId and Time. */
	void (*write_error)(const char *code, struct span message, struct buf *out);
};

extern const struct format format_json;
extern const struct format format_atom;

/* Chooses format and level of the response from $format, else Accept, by version (protocol section
 * 3.3).  ERR_ATOM_NOT_SUPPORTED, ERR_JSON_NOT_SUPPORTED, ERR_JSON_VERBOSE, ERR_MEDIA_TYPE; *ret and
 * *ret_level are then unchanged. */
enum err format_negotiate(struct span dollar_format, struct span accept, int version,
	const struct format **ret, enum odata_level *ret_level, struct err_detail *detail);
/* Returns the default format of a version. */
const struct format *format_default(int version);
/* Finds the format of a body from its Content-Type.  Without one it is JSON if the version has it,
 * else ATOM. */
enum err format_of_body(struct span content_type, int version, const struct format **ret,
	struct err_detail *detail);

#endif
