/* SPDX-License-Identifier: MIT
 * The operations. */
#include "blob_cycle.h"

#include "blob_cycle_parts.h"
#include "service/blobs/blob_move.h"
#include "service/blobs/blobs.h"
#include "service/blobs/blocks.h"
#include "service/blobs/containers.h"
#include "service/blobs/copy.h"
#include "service/blobs/leases.h"
#include "service/blobs/page_write.h"

#include <stdio.h>
#include <string.h>

static const unsigned lengths[BLOB_STEPS] = { [PUT_SMALL] = 300,
	[STAGE_ONE] = 5000,
	[STAGE_TWO] = 70000,
	[APPEND] = 200,
	[APPEND_MORE] = 70000,
	[WRITE_PAGES] = WRITTEN,
	[PUT_LARGE] = 70000 };

struct span blob_cycle_bytes(unsigned number, char *out)
{
	unsigned n = lengths[step_of(number)];
	for (unsigned i = 0; i < n; i++)
		out[i] = (char)(number * 31 + i * 7 + i / 251);
	return span_make(out, n);
}

struct act {
	struct service *service;
	uint64_t account, container;
	unsigned writer, number;
	char container_name[40], metadata[32], *bytes;
	struct err_detail *detail;
};

static const struct blob_conditions none = { 0 };
static const struct blob_conditions leased = { .lease = SPAN_LIT(LEASE_ID) };

static struct span container_name(unsigned writer, unsigned cycle, char out[40])
{
	(void)snprintf(out, 40, "cycle-%u-%04u", writer, cycle);
	return span_of(out);
}

static enum err create(const struct act *a)
{
	struct collection c = { .name = span_of(a->container_name),
		.metadata = span_of(a->metadata),
		.policies = SPAN_LIT("") };
	return collection_create(
		a->service, ORIGIN_REST, &collection_container, a->account, &c, a->detail);
}

static enum err delete_before(const struct act *a)
{
	char name[40];
	uint64_t id;
	int64_t etag;
	struct span metadata = span_of(a->metadata);
	struct collection_edit edit = { .metadata = &metadata };
	if (cycle_of(a->number) == 0)
		return collection_set(a->service, ORIGIN_REST, &collection_container, a->container,
			&edit, &etag, a->detail);
	enum err e = container_id(a->service, a->account,
		container_name(a->writer, cycle_of(a->number) - 1, name), &id);
	return e != ERR_OK ? e
			   : collection_delete(a->service, ORIGIN_REST, &collection_container, id,
				     NULL, NULL, false, a->detail);
}

static enum err upload(const struct act *a, struct blob_upload **ret)
{
	*ret = NULL;
	enum err e = blob_upload_new(a->service, ORIGIN_REST, ret);
	if (e == ERR_OK)
		e = blob_upload_add(*ret, blob_cycle_bytes(a->number, a->bytes), a->detail);
	return e == ERR_OK ? blob_upload_end(*ret, a->detail) : e;
}

static enum err put(const struct act *a)
{
	struct blob_new to = { .metadata = span_of(a->metadata) };
	const struct blob_conditions *c = step_of(a->number) == PUT_LARGE ? &leased : &none;
	int64_t etag;
	enum err e = ERR_OK;
	if (lengths[step_of(a->number)] <= BLOB_INLINE_BYTES)
		to.content = blob_cycle_bytes(a->number, a->bytes);
	else
		e = upload(a, &to.upload);
	if (e == ERR_OK)
		e = blob_put(a->service, ORIGIN_REST, a->container, SPAN_LIT("block"), &to, c,
			&etag, a->detail);
	blob_upload_free(to.upload);
	return e;
}

static struct blob_change target(const struct act *a, const char *name)
{
	return (struct blob_change){ .service = a->service,
		.origin = ORIGIN_REST,
		.container = a->container,
		.name = span_of(name),
		.conditions = &none,
		.detail = a->detail };
}

static struct block_id block_id_of(enum step step)
{
	return (struct block_id){ .n = 3, .bytes = { 'i', 'd', step == STAGE_ONE ? '1' : '2' } };
}

static enum err stage(const struct act *a)
{
	struct blob_upload *u;
	struct blob_change w = target(a, "list");
	struct block_id id = block_id_of(step_of(a->number));
	enum err e = upload(a, &u);
	if (e == ERR_OK)
		e = block_put(&w, &id, u);
	blob_upload_free(u);
	return e;
}

static enum err commit(const struct act *a)
{
	struct blob_change w = target(a, "list");
	struct block_choice blocks[] = { { BLOCK_STAGED, block_id_of(STAGE_ONE) },
		{ BLOCK_LATEST, block_id_of(STAGE_TWO) } };
	return blocks_commit(&w,
		&(struct blocks_new){ .metadata = span_of(a->metadata), .blocks = blocks, .n = 2 });
}

static enum err make_log(const struct act *a)
{
	struct blob_change w = target(a, "log");
	return append_create(&w, &(struct append_new){ .metadata = span_of(a->metadata) });
}

static enum err append(const struct act *a)
{
	static const struct append_conditions always = { -1, -1 };
	struct append_result result;
	struct blob_upload *u;
	struct blob_change w = target(a, "log");
	enum err e = upload(a, &u);
	if (e == ERR_OK)
		e = append_block(&w, u, &always, &result);
	blob_upload_free(u);
	return e;
}

static enum err change_pages(const struct act *a)
{
	struct page_result result;
	struct page_target t = { .service = a->service,
		.origin = ORIGIN_REST,
		.container = a->container,
		.name = SPAN_LIT("disk"),
		.conditions = &none };
	struct page_blob_new to = { .metadata = span_of(a->metadata), .size = DISK_BYTES };
	if (step_of(a->number) == MAKE_DISK)
		return page_blob_create(&t, &to, &result, a->detail);
	if (step_of(a->number) == WRITE_PAGES)
		return pages_write(
			&t, WRITTEN_AT, blob_cycle_bytes(a->number, a->bytes), &result, a->detail);
	return pages_clear(&t, CLEARED_AT, CLEARED, &result, a->detail);
}

static struct blob_copy copy_of(const struct act *a, const char *from)
{
	return (struct blob_copy){ .service = a->service,
		.origin = ORIGIN_REST,
		.container = a->container,
		.name = SPAN_LIT("copy"),
		.conditions = &none,
		.from_container = a->container,
		.from_name = span_of(from),
		.from_conditions = &none };
}

static enum err copy(const struct act *a)
{
	struct blob_copy c = copy_of(a, "list");
	int64_t etag;
	return blob_copy(&c, &etag, a->detail);
}

static enum err snapshot(const struct act *a)
{
	struct blob_copy c = copy_of(a, step_of(a->number) == SNAPSHOT_DISK ? "disk" : "list");
	char time[SNAPSHOT_TIME_CHARS + 1];
	int64_t etag;
	return blob_snapshot(&c, time, &etag, a->detail);
}

static enum err lease(const struct act *a)
{
	struct lease_request r = {
		.action = LEASE_ACQUIRE, .id = SPAN_LIT(LEASE_ID), .seconds = LEASE_INFINITE
	};
	struct lease_result answer;
	return blob_lease(a->service, ORIGIN_REST, a->container, SPAN_LIT("block"), &r, &none,
		&answer, a->detail);
}

static enum err set_metadata(const struct act *a)
{
	int64_t etag;
	return blob_set_metadata(a->service, ORIGIN_REST, a->container, SPAN_LIT("list"),
		span_of(a->metadata), &none, &etag, a->detail);
}

static enum err move(const struct act *a)
{
	struct blob_name from = { a->container, SPAN_LIT("copy") };
	struct blob_name to = { a->container, SPAN_LIT("moved") };
	return blob_move(a->service, ORIGIN_REST, from, to, false, a->detail);
}

static enum err delete (const struct act *a) {
	return blob_delete(a->service, ORIGIN_REST, a->container, SPAN_LIT("disk"), SNAPSHOTS_TOO,
		&none, a->detail);
}

static const struct {
	const char *name;
	enum err (*act)(const struct act *a);
} steps[BLOB_STEPS] = {
	[CREATE] = { "container", create },
	[DELETE_BEFORE] = { "container's end", delete_before },
	[PUT_SMALL] = { "small put", put },
	[STAGE_ONE] = { "first block", stage },
	[STAGE_TWO] = { "second block", stage },
	[COMMIT] = { "list of blocks", commit },
	[MAKE_LOG] = { "append blob", make_log },
	[APPEND] = { "append", append },
	[APPEND_MORE] = { "append of several pieces", append },
	[MAKE_DISK] = { "page blob", change_pages },
	[WRITE_PAGES] = { "pages", change_pages },
	[CLEAR_PAGES] = { "clear of pages", change_pages },
	[SNAPSHOT_DISK] = { "snapshot of pages", snapshot },
	[SNAPSHOT_LIST] = { "snapshot of blocks", snapshot },
	[COPY] = { "copy", copy },
	[LEASE] = { "lease", lease },
	[METADATA] = { "metadata", set_metadata },
	[PUT_LARGE] = { "large put", put },
	[MOVE] = { "move", move },
	[DELETE] = { "end of a blob with snapshots", delete },
};

/* A move is the mount's: a sync makes it durable, as for rows. */
bool blob_cycle_is_durable(unsigned number)
{
	return step_of(number) != MOVE;
}

const char *blob_cycle_name(unsigned number)
{
	return steps[step_of(number)].name;
}

enum err blob_cycle_do(struct service *s, uint64_t account, unsigned writer, unsigned number,
	struct err_detail *detail)
{
	char bytes[MOST];
	struct act a = { .service = s,
		.account = account,
		.writer = writer,
		.number = number,
		.bytes = bytes,
		.detail = detail };
	struct span container = container_name(writer, cycle_of(number), a.container_name);
	(void)snprintf(a.metadata, sizeof(a.metadata), "n:%u\n", number);
	enum err e = step_of(number) == CREATE ? ERR_OK
					       : container_id(s, account, container, &a.container);
	return e == ERR_OK ? steps[step_of(number)].act(&a) : e;
}
