/* SPDX-License-Identifier: MIT
 * The note is the array itself.  On a machine of the other byte order its version is not that of the store,
 * so it is not read. */
#include "service/core/saved_sizes.h"

#include "base/buf.h"

#include <string.h>

_Static_assert(sizeof(struct saved_size) == 24, "kept in files");
_Static_assert(SAVED_SIZES_MAX * sizeof(struct saved_size) <= STORE_NOTE_MAX, "they fit");

int64_t saved_sizes_version(struct service *s)
{
	int64_t version = store_version_floor(service_store(s));
	return service_is_changing(s) ? 0 : version;
}

size_t saved_sizes_read(struct service *s, struct saved_size out[SAVED_SIZES_MAX])
{
	struct buf note = BUF_INIT(STORE_NOTE_MAX);
	size_t n = 0;
	if (store_note_get(service_store(s), &note) == ERR_OK && note.len % sizeof(*out) == 0) {
		n = note.len / sizeof(*out);
		n = n < SAVED_SIZES_MAX ? n : SAVED_SIZES_MAX;
		memcpy(out, note.data, n * sizeof(*out));
	}
	buf_fini(&note);
	return n;
}

void saved_sizes_write(struct service *s, int64_t version, const struct saved_size *sizes, size_t n)
{
	store_note_put(
		service_store(s), version, span_make((const char *)sizes, n * sizeof(*sizes)));
}
