/* SPDX-License-Identifier: MIT
 * A row as an OData JSON element (protocol sections 2.4, 2.5): spliced from the stored
 * document where that is in canonical form, without a tree; rendered from the decoded
 * entity where it is not. */
#ifndef CODEC_ENTITY_ODATA_H
#define CODEC_ENTITY_ODATA_H

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "model/entity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum odata_level {
	ODATA_NONE,    /* odata=nometadata */
	ODATA_MINIMAL, /* odata=minimalmetadata */
	ODATA_FULL,    /* odata=fullmetadata */
};

struct atom_tags;

struct odata_style {
	enum odata_level level;
	bool single; /* an answer of its own: odata.metadata comes first */
	/* Written into URLs and strings as they are: nothing in them needs an escape. */
	struct span base;          /* "http://host/account/", with the final slash */
	struct span account;       /* for odata.type */
	struct span table;         /* as the request spells it */
	bool all;                  /* no $select, or $select=* */
	const struct span *select; /* else these properties, in this order, each once; one that
				      the row lacks is null */
	size_t nselect;
	struct atom_tags *tags; /* of the rows before this one, in ATOM; or NULL */
};

struct odata_row {
	struct span pk, rk; /* UTF-8 */
	int64_t version;    /* ticks: Timestamp and ETag */
	struct span document;
	bool canonical;              /* ITEM_CANONICAL: what entity_json_encode() writes, no keys */
	const struct entity *entity; /* decoded already, or NULL */
};

/* One JSON object on one line, appended to out.  ERR_CORRUPT if the document does not decode
 * (a canonical one is trusted and only looked at as far as the level needs it), ERR_NO_MEMORY;
 * out then holds half an object.  Reaching out's limit is the caller's to ask (buf_ok()). */
enum err entity_odata_render(
	const struct odata_style *style, const struct odata_row *row, struct buf *out);

/* "base" + "table(PartitionKey='p',RowKey='r')", percent-encoded: Location, odata.id. */
void entity_odata_url(
	struct span base, struct span table, struct span pk, struct span rk, struct buf *out);

#endif
