/* SPDX-License-Identifier: MIT
 * The note is the array itself.  On a machine of the other byte order its version is not that of the store,
 * so it is not read. */
#include "service/core/kept_sizes.h"

#include "base/buf.h"

#include <string.h>

_Static_assert(sizeof(struct kept_size) == 24, "kept in files");
_Static_assert(KEPT_SIZES_MAX * sizeof(struct kept_size) <= STORE_NOTE_MAX, "they fit");

int64_t kept_sizes_version(struct service *s)
{
	int64_t version = store_version_floor(service_store(s));
	return service_is_changing(s) ? 0 : version;
}

size_t kept_sizes_read(struct service *s, struct kept_size out[KEPT_SIZES_MAX])
{
	struct buf note = BUF_INIT(STORE_NOTE_MAX);
	size_t n = 0;
	if (store_note_get(service_store(s), &note) == ERR_OK && note.len % sizeof(*out) == 0) {
		n = note.len / sizeof(*out);
		n = n < KEPT_SIZES_MAX ? n : KEPT_SIZES_MAX;
		memcpy(out, note.data, n * sizeof(*out));
	}
	buf_fini(&note);
	return n;
}

void kept_sizes_write(struct service *s, int64_t version, const struct kept_size *sizes, size_t n)
{
	store_note_put(
		service_store(s), version, span_make((const char *)sizes, n * sizeof(*sizes)));
}
