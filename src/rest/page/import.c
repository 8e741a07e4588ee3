/* SPDX-License-Identifier: MIT
 * Imports rows for the page, by the importer of "rowfs import": the body is a part of NDJSON or CSV. */
#include "base/compiler.h"
#include "rest/page/page_data.h"
#include "service/core/tables.h"
#include "service/transfer/importer.h"

#define ERRORS_SHOWN 20

/* The errors of an import, which become members of the response. */
struct errors {
	struct json_build *b;
	size_t n;
};

static void on_error(void *arg, enum err e, const struct err_detail *detail)
{
	struct errors *errors = arg;
	if (errors->n++ >= ERRORS_SHOWN)
		return;
	json_open_object(errors->b, NULL);
	json_add_count(errors->b, "line", detail->line);
	json_add_str(errors->b, "message", err_message(e, detail));
	json_close(errors->b);
}

static enum err read_options(const struct page_ask *ask, struct import_options *o)
{
	static const char *const modes[] = {
		[IMPORT_INSERT] = "insert", [IMPORT_UPSERT] = "upsert", [IMPORT_MERGE] = "merge"
	};
	struct span format = SPAN_LIT(""), mode = SPAN_LIT("");
	(void)query_params_find(&ask->params, "format", &format);
	(void)query_params_find(&ask->params, "mode", &mode);
	size_t i = 0;
	while (i < ARRAY_LEN(modes) && !span_is(mode, modes[i]))
		i++;
	if (i == ARRAY_LEN(modes) || !(span_is(format, "csv") || span_is(format, "ndjson")))
		return err_set(ask->detail, ERR_INVALID_INPUT,
			"format is ndjson or csv, and mode is insert, upsert or merge.");
	o->mode = (enum import_mode)i;
	o->format = span_is(format, "csv") ? TRANSFER_CSV : TRANSFER_NDJSON;
	return ERR_OK;
}

static enum err run(const struct page_ask *ask, uint64_t table_id, const struct import_options *o,
	struct import_counts *ret)
{
	struct importer *im = NULL;
	enum err e = importer_new(ask->service, ORIGIN_REST, table_id, o, &im);
	if (e == ERR_OK)
		e = importer_feed(im, ask->body, ask->detail);
	if (e == ERR_OK)
		e = importer_end(im, ask->detail);
	if (im != NULL)
		*ret = *importer_counts(im);
	importer_free(im);
	return e;
}

enum err page_import(const struct page_ask *ask, struct json_build *b)
{
	struct errors errors = { .b = b };
	struct import_options o = { .on_error = on_error, .arg = &errors };
	struct import_counts counts = { 0 };
	struct item table = { 0 };
	enum err e = read_options(ask, &o);
	if (e == ERR_OK)
		e = table_find(ask->service, ask->account, ask->table, &table);
	if (e != ERR_OK)
		return e;
	json_open_array(b, "errors"); /* the first ones */
	e = run(ask, table.id, &o, &counts);
	json_close(b);
	json_add_count(b, "done", counts.done);
	json_add_count(b, "refused", counts.refused);
	item_fini(&table);
	return e;
}
