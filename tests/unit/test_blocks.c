/* SPDX-License-Identifier: MIT
 * Blobs of blocks and append blobs, over SQLite. */
#include "base/clock.h"
#include "check.h"
#include "service/blobs/blobs.h"
#include "service/blobs/blocks.h"
#include "service/blobs/containers.h"
#include "service/check/verify.h"
#include "service/core/accounts.h"
#include "store/engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What the helpers cannot go on without. */
#define MUST(cond_) BUG_ON(!(cond_))

static const struct blob_conditions none = { 0 };

struct world {
	struct service *service;
	uint64_t container;
	char path[40];
};

static struct world world_begin(void)
{
	struct world w = { .path = "/tmp/rowfs-blob-XXXXXX" };
	struct store *store;
	struct item it = { 0 };
	struct collection c = {
		.name = SPAN_LIT("photos"), .metadata = SPAN_LIT(""), .policies = SPAN_LIT("")
	};
	int fd = mkstemp(w.path);
	MUST(fd >= 0 && close(fd) == 0 && unlink(w.path) == 0);
	MUST(store_create(w.path, NULL) == ERR_OK);
	MUST(store_open(w.path, 0, &store, NULL, NULL) == ERR_OK);
	MUST(service_new(store, &w.service) == ERR_OK);
	MUST(account_create(w.service, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL, NULL) ==
		ERR_OK);
	MUST(account_find(w.service, SPAN_LIT("acct"), &it) == ERR_OK);
	MUST(collection_create(w.service, ORIGIN_REST, &collection_container, it.id, &c, NULL) ==
		ERR_OK);
	MUST(container_id(w.service, it.id, SPAN_LIT("photos"), &w.container) == ERR_OK);
	item_fini(&it);
	return w;
}

static void world_end(struct world *w)
{
	service_free(w->service);
	(void)unlink(w->path);
}

static bool tell_finding(void *arg, const char *finding)
{
	(void)arg;
	printf("# finding: %s\n", finding);
	return true;
}

static enum err verify(struct world *w)
{
	struct verify_counts counts;
	return service_verify(w->service, tell_finding, NULL, NULL, &counts);
}

static struct blob_change target(struct world *w)
{
	return (struct blob_change){ .service = w->service,
		.origin = ORIGIN_REST,
		.container = w->container,
		.name = SPAN_LIT("x"),
		.conditions = &none };
}

static struct block_id id_of(unsigned number)
{
	struct block_id id = { .n = 6 };
	char text[16];
	(void)snprintf(text, sizeof(text), "%06u", number);
	memcpy(id.bytes, text, id.n);
	return id;
}

static struct blob_upload *upload(struct world *w, const char *text)
{
	struct blob_upload *u;
	MUST(blob_upload_new(w->service, ORIGIN_REST, &u) == ERR_OK);
	MUST(blob_upload_add(u, span_of(text), NULL) == ERR_OK);
	MUST(blob_upload_end(u, NULL) == ERR_OK);
	return u;
}

static enum err stage(struct world *w, unsigned number, const char *text)
{
	struct blob_change change = target(w);
	struct block_id id = id_of(number);
	struct blob_upload *u = upload(w, text);
	enum err e = block_put(&change, &id, u);
	blob_upload_free(u);
	return e;
}

static enum err commit(struct world *w, unsigned number)
{
	struct blob_change change = target(w);
	const struct block_choice one = { BLOCK_LATEST, id_of(number) };
	const struct blocks_new to = { .metadata = SPAN_LIT(""), .blocks = &one, .n = 1 };
	return blocks_commit(&change, &to);
}

/* The children of the blob in the store, and its staged blocks. */
static void count(struct world *w, uint64_t *ret_children, size_t *ret_staged)
{
	struct blob_info b;
	struct blob_blocks have;
	MUST(blob_look(w->service, w->container, SPAN_LIT("x"), &b) == ERR_OK);
	MUST(blob_blocks_load(w->service, &b, &have) == ERR_OK);
	*ret_children = b.item.size;
	*ret_staged = have.nstaged;
	blob_blocks_fini(&have);
	blob_info_fini(&b);
}

TEST(a_key_is_read_as_it_was_written)
{
	char key[STAGED_KEY_CHARS + 1];
	struct staged got;
	for (uint8_t n = 0; n <= BLOCK_ID_BYTES; n++) {
		struct staged b = {
			.id = { .n = n }, .version = 12345 + n, .size = 1ull << n % 40
		};
		for (uint8_t i = 0; i < n; i++)
			b.id.bytes[i] = (char)(255 - i);
		CHECK(staged_key_read(staged_key(&b, key), &got));
		CHECK(block_id_cmp(&got.id, &b.id) == 0);
		CHECK(got.version == b.version && got.size == b.size);
	}
	CHECK(!staged_key_read(SPAN_LIT("y"), &got));
	CHECK(!staged_key_read(SPAN_LIT("yzz.0000000000000001.0000000000000001"), &got));
	CHECK(!staged_key_read(SPAN_LIT("x.0000000000000001.0000000000000001"), &got));
}

/* Puts the extents of staged blocks from number `first` up to `end`, as they are in the store. */
static void fill(struct world *w, uint64_t blob, unsigned first, unsigned end)
{
	enum {
		AT_ONCE = 1000
	};
	static char keys[AT_ONCE][STAGED_KEY_CHARS + 1];
	static struct change changes[AT_ONCE];
	while (first < end) {
		size_t n = 0;
		for (; n < AT_ONCE && first < end; n++, first++) {
			const struct staged b = { .id = id_of(first),
				.version = service_next_version(w->service),
				.size = 1 };
			changes[n] = (struct change){ .op = CHANGE_PUT,
				.at = { .parent = blob,
					.class = CLASS_BLOB,
					.key = staged_key(&b, keys[n]) },
				.kind = ITEM_EXTENT,
				.attrs = ATTRS_UNSET };
		}
		MUST(service_apply(w->service, ORIGIN_REST, changes, n, false, NULL) == ERR_OK);
		changes_fini(changes, n);
	}
}

static uint64_t blob_id(struct world *w)
{
	struct blob_info b;
	MUST(blob_look(w->service, w->container, SPAN_LIT("x"), &b) == ERR_OK);
	uint64_t id = b.id;
	blob_info_fini(&b);
	return id;
}

TEST(BL4_at_most_100000_blocks_are_staged)
{
	struct world w = world_begin();
	CHECK_ERR(stage(&w, 0, "x"), ERR_OK);
	fill(&w, blob_id(&w), 1, BLOCKS_STAGED_MAX - 1);
	CHECK_ERR(stage(&w, BLOCKS_STAGED_MAX - 1, "x"), ERR_OK);
	CHECK_ERR(stage(&w, BLOCKS_STAGED_MAX, "x"), ERR_BLOCK_COUNT);
	world_end(&w);
}

TEST(a_block_that_is_put_again_replaces_the_other)
{
	struct world w = world_begin();
	uint64_t children;
	size_t staged;
	for (int i = 0; i < 10; i++)
		CHECK_ERR(stage(&w, 1, "x"), ERR_OK);
	CHECK_ERR(stage(&w, 2, "x"), ERR_OK);
	count(&w, &children, &staged);
	CHECK_EQ_INT(staged, 2);
	staged_sweep(w.service, ORIGIN_REST, w.container, SPAN_LIT("x"));
	count(&w, &children, &staged);
	CHECK_EQ_INT(staged, 2);
	CHECK_EQ_INT(children, 2);
	CHECK_ERR(commit(&w, 1), ERR_OK);
	count(&w, &children, &staged);
	CHECK_EQ_INT(staged, 0);
	CHECK_EQ_INT(children, 2); /* the list, the block */
	CHECK_ERR(verify(&w), ERR_OK);
	world_end(&w);
}

static int64_t told_time;

static int64_t tell_time(void)
{
	return told_time;
}

TEST(a_staged_block_lasts_a_week)
{
	told_time = clock_ticks();
	clock_set_source(tell_time);
	struct world w = world_begin();
	uint64_t children;
	size_t staged;
	CHECK_ERR(stage(&w, 1, "one"), ERR_OK);
	told_time += 7 * 24 * 3600 * TICKS_PER_SECOND - TICKS_PER_SECOND;
	CHECK_ERR(stage(&w, 2, "two"), ERR_OK);
	count(&w, &children, &staged);
	CHECK_EQ_INT(staged, 2);
	told_time += 2 * TICKS_PER_SECOND;
	count(&w, &children, &staged);
	CHECK_EQ_INT(staged, 1);
	CHECK_ERR(commit(&w, 1), ERR_BLOCK_LIST);
	CHECK_ERR(commit(&w, 2), ERR_OK);
	count(&w, &children, &staged);
	CHECK_EQ_INT(children, 2);
	/* A committed block lasts. */
	told_time += 30 * 24 * 3600 * TICKS_PER_SECOND;
	staged_sweep(w.service, ORIGIN_REST, w.container, SPAN_LIT("x"));
	count(&w, &children, &staged);
	CHECK_EQ_INT(children, 2);
	world_end(&w);
	clock_set_source(NULL);
}

TEST(a_check_finds_a_lost_block_and_a_damaged_list)
{
	for (int lost = 0; lost < 2; lost++) {
		struct world w = world_begin();
		struct blob_info b;
		struct block block;
		char got[3], key[EXTENT_KEY_CHARS + 1];
		CHECK_ERR(stage(&w, 1, "one"), ERR_OK);
		CHECK_ERR(commit(&w, 1), ERR_OK);
		CHECK_ERR(verify(&w), ERR_OK);
		CHECK_ERR(blob_find(w.service, w.container, SPAN_LIT("x"), &b), ERR_OK);
		CHECK_ERR(block_list_load(
				  service_store(w.service), NULL, b.record.extent, 0, 1, &block),
			ERR_OK);
		struct change c = { .op = CHANGE_DELETE,
			.flags = CHANGE_RECURSIVE,
			.at = { .id = block.extent },
			.attrs = ATTRS_UNSET };
		if (lost)
			c.at = (struct item_ref){ .parent = b.record.extent,
				.class = CLASS_BLOB,
				.key = extent_key(0, key) };
		CHECK_ERR(service_apply(w.service, ORIGIN_COMMAND, &c, 1, true, NULL), ERR_OK);
		changes_fini(&c, 1);
		CHECK(blob_read(w.service, &b.record, 0, got, 3) != ERR_OK);
		CHECK_ERR(verify(&w), ERR_CORRUPT);
		blob_info_fini(&b);
		world_end(&w);
	}
}

/* Lets the record say that the blob has so many blocks. */
static void pretend(struct world *w, uint64_t blocks)
{
	struct blob_info b;
	struct buf text = BUF_INIT(BLOB_RECORD_LIMIT);
	MUST(blob_find(w->service, w->container, SPAN_LIT("x"), &b) == ERR_OK);
	b.record.blocks = b.record.size = blocks;
	blob_record_write(&b.record, &text);
	struct change c = { .op = CHANGE_PUT,
		.at = blob_place(w->container, SPAN_LIT("x")),
		.kind = ITEM_BLOB,
		.item_flags = ITEM_MADE,
		.body = buf_span(&text),
		.attrs = ATTRS_UNSET };
	MUST(service_apply(w->service, ORIGIN_COMMAND, &c, 1, true, NULL) == ERR_OK);
	changes_fini(&c, 1);
	buf_fini(&text);
	blob_info_fini(&b);
}

TEST(BL10_an_append_blob_has_at_most_50000_blocks)
{
	struct world w = world_begin();
	const struct append_new to = { .metadata = SPAN_LIT("") };
	const struct append_conditions any = { -1, -1 };
	struct append_result now = { 0 };
	struct blob_change change = target(&w);
	unsigned i = BLOCKS_MAX - BLOCKS_MAX % BLOCKS_OF_PIECE;
	CHECK_ERR(append_create(&change, &to), ERR_OK);
	pretend(&w, i);
	for (; i <= BLOCKS_MAX; i++) {
		struct blob_upload *u = upload(&w, "x");
		change = target(&w);
		CHECK_ERR(append_block(&change, u, &any, &now),
			i < BLOCKS_MAX ? ERR_OK : ERR_BLOCK_COUNT);
		if (i < BLOCKS_MAX)
			CHECK(now.offset == i && now.blocks == i + 1);
		blob_upload_free(u);
	}
	world_end(&w);
}

RUN_TESTS(T(a_key_is_read_as_it_was_written), T(BL4_at_most_100000_blocks_are_staged),
	T(a_block_that_is_put_again_replaces_the_other), T(a_staged_block_lasts_a_week),
	T(a_check_finds_a_lost_block_and_a_damaged_list),
	T(BL10_an_append_blob_has_at_most_50000_blocks))
