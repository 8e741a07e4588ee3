/* SPDX-License-Identifier: MIT
 * Blobs' names as names of files, and blobs' records.  A file's name that means a component is the name of
 * that component.  A component has a name that means it, and fits.  A record that was read can be
 * written and read again. */
#include "fs/blob/names.h"
#include "fuzz.h"
#include "model/names.h"
#include "service/blobs/blob_record.h"
#include "service/blobs/snapshot_key.h"

#include <string.h>

static void shown_to_component(struct span shown)
{
	struct buf again = BUF_INIT(4096);
	struct blob_component c;

	if (shown.n <= LIMIT_FILE_NAME_BYTES && blob_component_read(shown, &c)) {
		MUST(c.n <= LIMIT_FILE_NAME_BYTES);
		blob_component_write(span_make(c.text, c.n), c.is_file, &again);
		MUST(buf_ok(&again));
		MUST(c.hash[0] != '\0' || span_eq(buf_span(&again), shown));
	}
	buf_fini(&again);
}

static void component_to_shown(struct span component)
{
	struct buf shown = BUF_INIT(4096);
	struct blob_component c;

	for (int beside = 0; beside < 2; beside++) {
		buf_clear(&shown);
		blob_component_write(component, beside != 0, &shown);
		MUST(buf_ok(&shown) && shown.len > 0 && shown.len <= LIMIT_FILE_NAME_BYTES);
		MUST(blob_component_read(buf_span(&shown), &c));
		MUST(c.is_file == (beside != 0) && blob_component_is(&c, component));
	}
	buf_fini(&shown);
}

static void snapshots(struct span text)
{
	struct buf shown = BUF_INIT(4096);
	struct blob_component c;
	struct span name, time;

	if (text.n <= LIMIT_FILE_NAME_BYTES && blob_component_split_snapshot(text, &name, &time)) {
		MUST(snapshot_time_check(time));
		bool read = blob_component_read(name, &c) && !c.is_file && c.hash[0] == '\0';
		if (read)
			blob_component_write_snapshot(span_make(c.text, c.n), time, &shown);
		MUST(!read || span_eq(buf_span(&shown), text));
	}
	snapshot_key_split(text, &name, &time);
	MUST(name.n + time.n <= text.n);
	buf_fini(&shown);
}

static void record(struct span text)
{
	struct buf written = BUF_INIT(BLOB_RECORD_LIMIT * 2),
		   again = BUF_INIT(BLOB_RECORD_LIMIT * 2);
	struct blob_record r;

	if (blob_record_read(text, &r) == ERR_OK) {
		blob_record_write(&r, &written);
		MUST(blob_record_read(buf_span(&written), &r) == ERR_OK);
		blob_record_write(&r, &again);
		MUST(span_eq(buf_span(&written), buf_span(&again)));
	}
	buf_fini(&again);
	buf_fini(&written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_make(data, size);

	shown_to_component(text);
	if (size == 0 || (blob_name_check(text, NULL) == ERR_OK && memchr(data, '/', size) == NULL))
		component_to_shown(text);
	snapshots(text);
	if (size <= BLOB_RECORD_LIMIT)
		record(text);
	return 0;
}
