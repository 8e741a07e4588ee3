/* SPDX-License-Identifier: MIT */
#include "fs/control.h"

#include "base/clock.h"
#include "fs/blob.h"
#include "fs/idset.h"
#include "fs/nid.h"
#include "fs/notify.h"
#include "fs/reason.h"
#include "fs/stages.h"

#include <inttypes.h>
#include <unistd.h>

static void write_version(struct fs *fs, struct buf *out)
{
	buf_addf(out, "rowfs %s\n", fs->version);
}

static void write_errors(struct fs *fs, struct buf *out)
{
	reasons_dump(fs->reasons, out);
}

static void write_operations(struct fs *fs, struct buf *out)
{
	static const char *const names[OP_COUNT_] = {
#define X(symbol_, name_) name_,
		OP_LIST(X)
#undef X
	};
	buf_add_str(out, "  \"operations\": {");
	const char *comma = "";
	for (size_t i = 0; i < OP_COUNT_; i++) {
		struct opstat *s = &fs->opstats.op[i];
		uint64_t count = atomic_load(&s->count);
		if (count == 0)
			continue;
		buf_addf(out,
			"%s\n    \"%s\": {\"count\": %" PRIu64 ", \"errors\": %" PRIu64
			", \"mean_us\": %" PRIu64 ", \"max_us\": %" PRIu64 "}",
			comma, names[i], count, (uint64_t)atomic_load(&s->errors),
			(uint64_t)atomic_load(&s->total_us) / count,
			(uint64_t)atomic_load(&s->max_us));
		comma = ",";
	}
	buf_add_str(out, "\n  }\n");
}

static void write_stats(struct fs *fs, struct buf *out)
{
	struct store_info store;
	struct blobs_info blobs;
	char started[CLOCK_TEXT_MAX];
	store_info(fs->store, &store);
	blobs_info(fs->blobs, &blobs);
	clock_format(fs->started, started);
	buf_addf(out, "{\n  \"version\": \"%s\",\n  \"pid\": %d,\n  \"started\": \"%s\",\n",
		fs->version, getpid(), started);
	buf_addf(out,
		"  \"store\": {\"bytes\": %" PRIu64 ", \"wal_bytes\": %" PRIu64
		", \"ordinary_file_bytes\": %" PRIu64 ", \"commits\": %" PRIu64
		", \"changes\": %" PRIu64 ", \"syncs\": %" PRIu64 "},\n",
		store.bytes, store.log_bytes, store.file_bytes, store.commits, store.changes,
		store.syncs);
	buf_addf(out,
		"  \"cache\": {\"rows\": %zu, \"bytes\": %zu, \"pinned\": %zu, \"hits\": %" PRIu64
		", \"misses\": %" PRIu64 ", \"invalidations\": %" PRIu64 "},\n",
		blobs.count, blobs.bytes, blobs.pinned, blobs.hits, blobs.misses,
		notifier_sent(fs->notifier));
	buf_addf(out, "  \"open_stages\": %zu,\n", stages_count(fs->stages));
	write_operations(fs, out);
	buf_add_str(out, "}\n");
}

/* Keep alphabetized; node ids are permanent. */
static const struct control {
	const char *name;
	uint64_t nid;
	void (*write)(struct fs *fs, struct buf *out); /* NULL: a folder of the store */
} controls[] = {
	{ "errors", 17, write_errors },
	{ "rejected", STORE_REJECTED, NULL },
	{ "stats.json", 18, write_stats },
	{ "version", 19, write_version },
};

uint64_t control_find(struct span name)
{
	for (size_t i = 0; i < ARRAY_LEN(controls); i++)
		if (span_is(name, controls[i].name))
			return controls[i].nid;
	return 0;
}

bool control_entry(size_t index, const char **ret_name, uint64_t *ret_nid)
{
	if (index >= ARRAY_LEN(controls))
		return false;
	*ret_name = controls[index].name;
	*ret_nid = controls[index].nid;
	return true;
}

enum err control_read(struct fs *fs, uint64_t nid, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_LEN(controls); i++)
		if (controls[i].nid == nid && controls[i].write != NULL) {
			controls[i].write(fs, out);
			return buf_ok(out) ? ERR_OK : ERR_NO_MEMORY;
		}
	return ERR_IS_A_DIRECTORY;
}
