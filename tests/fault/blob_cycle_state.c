/* SPDX-License-Identifier: MIT
 * The state of the store after each operation, as it should be and as it is. */
#include "blob_cycle.h"
#include "blob_cycle_parts.h"
#include "service/blobs/blobs.h"
#include "service/blobs/blocks.h"
#include "service/blobs/containers.h"
#include "service/blobs/snapshot_key.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- as it should be ---- */

static uint64_t hash_of(const char *p, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)p[i]) * UINT64_C(0x100000001b3);
	return h;
}

/* A blob in a state: by its bytes' hash, so a state is small. */
struct shown {
	bool there, snapshot, leased;
	enum blob_type type;
	uint64_t size, pages, hash;
	unsigned metadata, staged;
};

static void tell_shown(const char *name, const struct shown *b, char *out)
{
	size_t at = strlen(out);
	if (b->there)
		(void)snprintf(out + at, BLOB_CYCLE_STATE - at,
			" %s%s type %d size %llu pages %llu hash %llx n %u staged %u%s;", name,
			b->snapshot ? " snapshot" : "", (int)b->type, (unsigned long long)b->size,
			(unsigned long long)b->pages, (unsigned long long)b->hash, b->metadata,
			b->staged, b->leased ? " leased" : "");
}

static void tell_container(unsigned cycle, unsigned metadata, char *out)
{
	size_t at = strlen(out);
	(void)snprintf(out + at, BLOB_CYCLE_STATE - at, "[%u] n %u:", cycle, metadata);
}

/* Returns what a blob of these operations' bytes is, one behind the other. */
static struct shown made_of(unsigned number, enum step first, enum step second)
{
	char *bytes = malloc(2 * MOST);
	if (bytes == NULL)
		errx(2, "out of memory");
	size_t n = blob_cycle_bytes(at_step(number, first), bytes).n;
	if (second != first)
		n += blob_cycle_bytes(at_step(number, second), bytes + n).n;
	struct shown b = { .there = true,
		.type = BLOB_BLOCK,
		.size = n,
		.hash = hash_of(bytes, n),
		.metadata = number };
	free(bytes);
	return b;
}

static struct shown disk_of(unsigned number, bool written, bool cleared)
{
	char bytes[MOST];
	memset(bytes, 0, DISK_BYTES);
	if (written)
		(void)blob_cycle_bytes(at_step(number, WRITE_PAGES), bytes + WRITTEN_AT);
	if (cleared)
		memset(bytes + CLEARED_AT, 0, CLEARED);
	return (struct shown){ .there = true,
		.type = BLOB_PAGES,
		.size = DISK_BYTES,
		.pages = (written ? WRITTEN / 512 : 0) - (cleared ? CLEARED / 512 : 0),
		.hash = hash_of(bytes, DISK_BYTES),
		.metadata = at_step(number, MAKE_DISK) };
}

static struct shown log_of(unsigned number)
{
	struct shown b = { .hash = hash_of("", 0) };
	if (step_of(number) != MAKE_LOG)
		b = made_of(number, APPEND, step_of(number) == APPEND ? APPEND : APPEND_MORE);
	b.there = true;
	b.type = BLOB_APPEND;
	b.metadata = at_step(number, MAKE_LOG);
	return b;
}

static struct shown without_content(unsigned staged)
{
	return (struct shown){ .there = true, .hash = hash_of("", 0), .staged = staged };
}

/* In the order of a listing. */
enum place {
	IS_BLOCK,
	IS_COPY,
	IS_DISK,
	IS_DISK_SNAPSHOT,
	IS_LIST,
	IS_LIST_SNAPSHOT,
	IS_LOG,
	IS_MOVED,
	PLACES
};
static const char *const places[PLACES] = { "block", "copy", "disk", "disk", "list", "list", "log",
	"moved" };

static struct shown snapshot_of(struct shown b)
{
	b.snapshot = true;
	return b;
}

/* Returns whether the step writes a blob. */
static bool write_of(struct shown c[PLACES], unsigned number, enum step step)
{
	if (step == PUT_SMALL || step == PUT_LARGE) {
		c[IS_BLOCK] = made_of(number, step, step);
		c[IS_BLOCK].leased = step == PUT_LARGE;
	} else if (step == STAGE_ONE || step == STAGE_TWO) {
		c[IS_LIST] = without_content(step == STAGE_ONE ? 1 : 2);
	} else if (step == COMMIT) {
		c[IS_LIST] = made_of(number, STAGE_ONE, STAGE_TWO);
	} else if (step >= MAKE_LOG && step <= APPEND_MORE) {
		c[IS_LOG] = log_of(number);
	} else if (step >= MAKE_DISK && step <= CLEAR_PAGES) {
		c[IS_DISK] = disk_of(number, step > MAKE_DISK, step == CLEAR_PAGES);
	} else {
		return false;
	}
	return true;
}

static void happen(struct shown c[PLACES], unsigned number)
{
	enum step step = step_of(number);
	if (write_of(c, number, step))
		return;
	if (step == SNAPSHOT_DISK) {
		c[IS_DISK_SNAPSHOT] = snapshot_of(c[IS_DISK]);
	} else if (step == SNAPSHOT_LIST) {
		c[IS_LIST_SNAPSHOT] = snapshot_of(c[IS_LIST]);
	} else if (step == COPY) {
		c[IS_COPY] = c[IS_LIST];
	} else if (step == LEASE) {
		c[IS_BLOCK].leased = true;
	} else if (step == METADATA) {
		c[IS_LIST].metadata = number;
	} else if (step == MOVE) {
		c[IS_MOVED] = c[IS_COPY];
		c[IS_COPY].there = false;
	} else if (step == DELETE) {
		c[IS_DISK].there = c[IS_DISK_SNAPSHOT].there = false;
	}
}

/* Appends the container of a cycle after the operation `number`. */
static void expect_container(unsigned cycle, unsigned number, char *out)
{
	struct shown c[PLACES] = { 0 };
	unsigned first = cycle * BLOB_STEPS + 1, last = first + BLOB_STEPS - 1;
	bool renamed = cycle == 0 && number > first; /* its second operation sets metadata */
	for (unsigned i = first; i <= number && i <= last; i++)
		happen(c, i);
	tell_container(cycle, renamed ? first + 1 : first, out);
	for (unsigned i = 0; i < PLACES; i++)
		tell_shown(places[i], &c[i], out);
}

static void expected(unsigned number, char out[BLOB_CYCLE_STATE])
{
	out[0] = '\0';
	if (number == 0)
		return;
	if (step_of(number) == CREATE && cycle_of(number) > 0)
		expect_container(cycle_of(number) - 1, number, out);
	expect_container(cycle_of(number), number, out);
}

/* ---- as it is ---- */

static unsigned number_in(struct span metadata)
{
	char text[32];
	unsigned n = 0;
	(void)snprintf(text, sizeof(text), "%.*s", (int)(metadata.n < 31 ? metadata.n : 31),
		metadata.n > 0 ? metadata.p : "");
	(void)sscanf(text, "n:%u", &n);
	return n;
}

struct seen {
	struct service *service;
	unsigned writer, n, cycles[4], metadata[4];
	uint64_t ids[4];
	char keys[PLACES + 1][80];
	unsigned nkeys;
};

static bool on_container(void *arg, const struct collection *c)
{
	struct seen *s = arg;
	char name[40];
	unsigned writer, cycle;
	(void)snprintf(name, sizeof(name), "%.*s", (int)c->name.n, c->name.p);
	if (sscanf(name, "cycle-%u-%u", &writer, &cycle) == 2 && writer == s->writer && s->n < 4) {
		s->cycles[s->n] = cycle;
		s->metadata[s->n] = number_in(c->metadata);
		s->ids[s->n++] = c->id;
	}
	return true;
}

static bool on_blob(void *arg, const struct blob_listed *b)
{
	struct seen *s = arg;
	if (s->nkeys <= PLACES && b->name.n + b->snapshot.n + 2 < sizeof(s->keys[0])) {
		char *key = s->keys[s->nkeys++];
		struct span made =
			b->snapshot.n > 0 ? snapshot_key(b->name, b->snapshot, key) : b->name;
		if (made.p != key)
			memcpy(key, made.p, made.n);
		key[made.n] = '\0';
	}
	return true;
}

static enum err look_at(struct service *s, uint64_t container, const char *key, char *out)
{
	struct blob_info b;
	struct blob_blocks blocks = { 0 };
	struct span name, time;
	char text[16], *bytes = NULL;
	enum err e = blob_look(s, container, span_of(key), &b);
	if (e != ERR_OK)
		return e;
	const struct blob_record *r = &b.record;
	snapshot_key_split(span_of(key), &name, &time);
	if (r->size <= MOST && (bytes = malloc(MOST)) != NULL)
		e = blob_read(s, r, 0, bytes, r->size);
	else
		e = ERR_CORRUPT;
	if (e == ERR_OK && r->type == BLOB_NONE)
		e = blob_blocks_load(s, &b, &blocks);
	/* A name without blocks is what a Put Block that failed may leave.  No reader sees it. */
	struct shown seen = { .there = r->type != BLOB_NONE || blocks.nstaged > 0,
		.snapshot = time.n > 0,
		.leased = span_eq(r->lease.id, span_of(LEASE_ID)),
		.type = r->type,
		.size = r->size,
		.pages = r->pages,
		.hash = e == ERR_OK ? hash_of(bytes, r->size) : 0,
		.metadata = number_in(r->metadata),
		.staged = (unsigned)blocks.nstaged };
	(void)snprintf(text, sizeof(text), "%.*s", (int)name.n, name.p);
	tell_shown(text, &seen, out);
	blob_blocks_fini(&blocks);
	blob_info_fini(&b);
	free(bytes);
	return e;
}

static enum err tell_all(struct seen *s, uint64_t account, char *out)
{
	static const struct blob_listing all = {
		.prefix = SPAN_LIT(""), .max = 5000, .snapshots = true, .uncommitted = true
	};
	struct buf next = BUF_INIT(1024);
	enum err e = collection_list(s->service, &collection_container, account, SPAN_LIT(""),
		SPAN_LIT(""), 5000, on_container, s, &next);
	for (unsigned i = 0; e == ERR_OK && i < s->n; i++) {
		s->nkeys = 0;
		tell_container(s->cycles[i], s->metadata[i], out);
		e = blob_list(s->service, s->ids[i], &all, on_blob, s, &next);
		for (unsigned k = 0; e == ERR_OK && k < s->nkeys; k++)
			e = look_at(s->service, s->ids[i], s->keys[k], out);
	}
	buf_fini(&next);
	return e;
}

enum err blob_cycle_tell(
	struct service *service, uint64_t account, unsigned writer, char out[BLOB_CYCLE_STATE])
{
	struct seen s = { .service = service, .writer = writer };
	out[0] = '\0';
	return account == 0 ? ERR_OK : tell_all(&s, account, out);
}

bool blob_cycle_find(const char state[BLOB_CYCLE_STATE], unsigned last, unsigned *ret_number)
{
	char want[BLOB_CYCLE_STATE];
	unsigned cycle = 0;
	(void)sscanf(state, "[%u]", &cycle); /* an earlier one is gone */
	for (unsigned number = cycle * BLOB_STEPS; number <= last; number++) {
		expected(number, want);
		if (strcmp(state, want) == 0) {
			*ret_number = number;
			return true;
		}
	}
	return false;
}
