/* SPDX-License-Identifier: MIT */
#include "service/transfer/importer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES (16u << 10) /* read at once */

/* Also asks while nothing is committed, as with an input without valid records. */
static bool is_wanted(const struct importer *im, const struct import_options *o)
{
	return o->on_progress == NULL || o->on_progress(o->arg, importer_counts(im));
}

static enum err feed_file(struct importer *im, FILE *in, const struct import_options *options,
	char block[BLOCK_BYTES], struct err_detail *detail)
{
	for (;;) {
		size_t n = fread(block, 1, BLOCK_BYTES, in);
		int code = n == 0 && ferror(in) ? errno : 0;
		enum err e = ERR_OK;
		if (n > 0)
			e = importer_feed(im, span_make(block, n), detail);
		else if (code == 0)
			return importer_end(im, detail);
		else
			e = importer_flush(im, detail);
		if (e == ERR_OK && !is_wanted(im, options)) {
			e = importer_flush(im, detail); /* keep what was read */
			e = e == ERR_OK ? ERR_CANCELLED : e;
		}
		if (e != ERR_OK)
			return e;
		if (code != 0)
			return err_set(detail, err_from_errno(code), "cannot read the input: %s",
				strerrordesc_np(code));
	}
}

enum err import_stream(struct service *s, enum origin origin, uint64_t table_id, FILE *in,
	const struct import_options *options, struct import_counts *counts,
	struct err_detail *detail)
{
	struct importer *im;
	*counts = (struct import_counts){ 0 };
	enum err e = importer_new(s, origin, table_id, options, &im);
	if (e != ERR_OK)
		return e;
	char *block = malloc(BLOCK_BYTES);
	e = block != NULL ? feed_file(im, in, options, block, detail) : ERR_NO_MEMORY;
	*counts = *importer_counts(im);
	bool here = options->commit == NULL && counts->done > 0;
	enum err synced = here ? store_sync(service_store(s)) : ERR_OK;
	free(block);
	importer_free(im);
	return e != ERR_OK ? e : synced;
}
