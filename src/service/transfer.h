/* SPDX-License-Identifier: MIT
 * Import and export of whole tables and partitions: NDJSON and CSV, many rows a commit,
 * one consistent view out.  The command and (later) the streams of the mount share it. */
#ifndef SERVICE_TRANSFER_H
#define SERVICE_TRANSFER_H

#include "service/entities.h"

#include <stdbool.h>
#include <stdio.h>

enum transfer_format {
	TRANSFER_NDJSON,
	TRANSFER_CSV
};
enum import_mode {
	IMPORT_INSERT,
	IMPORT_UPSERT,
	IMPORT_MERGE,
	IMPORT_REPLACE
};

struct import_counts {
	uint64_t lines;   /* records read */
	uint64_t done;    /* committed */
	uint64_t refused; /* bad or conflicting; each was told to on_error */
	uint64_t bytes;   /* of input consumed */
};

struct import_options {
	enum transfer_format format;
	enum import_mode mode;
	bool stop_at_error; /* false: go on with the next line */
	/* A refused record: its line number in the input (1-based), why. */
	void (*on_error)(void *arg, uint64_t line, enum err e, const struct err_detail *detail);
	/* After every commit; false cancels (what is committed stands). */
	bool (*on_progress)(void *arg, const struct import_counts *counts);
	void *arg;
};

/* Reads records until the end of `in`: NDJSON lines are objects with PartitionKey and
 * RowKey; CSV has a header line (docs/formats.md).  Commits every 1,000 rows.
 * ERR_OK if the input was read to its end, even if records were refused. */
enum err import_stream(struct service *s, enum origin origin, uint64_t table_id, FILE *in,
	const struct import_options *options, struct import_counts *counts,
	struct err_detail *detail);

struct export_options {
	enum transfer_format format;
	const struct span *partition; /* UTF-8 key; NULL: the whole table */
	bool (*on_progress)(void *arg, uint64_t rows);
	void *arg;
};

/* One line per row, with keys and Timestamp, from one view.  ERR_NOT_FOUND where the
 * partition does not exist. */
enum err export_stream(struct service *s, uint64_t table_id, FILE *out,
	const struct export_options *options, uint64_t *ret_rows, struct err_detail *detail);

#endif
