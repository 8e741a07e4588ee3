/* SPDX-License-Identifier: MIT
 * Blobs, over the in-memory engine with each set of abilities and over SQLite. */
#include "base/clock.h"
#include "base/crc64.h"
#include "check.h"
#include "model/limits.h"
#include "service/blobs/blobs.h"
#include "service/blobs/containers.h"
#include "service/blobs/copy.h"
#include "service/blobs/leases.h"
#include "service/check/verify.h"
#include "service/core/accounts.h"
#include "store/engines.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What the helpers cannot go on without. */
#define MUST(cond_) BUG_ON(!(cond_))

struct world {
	struct service *service;
	uint64_t account, container;
	bool spans;    /* extents can move into their blobs */
	char path[40]; /* SQLite's file; empty: in memory */
};

static void world_begin(struct world *w, struct store *store)
{
	struct item it = { 0 };
	MUST(service_new(store, &w->service) == ERR_OK);
	MUST(account_create(w->service, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL, NULL) ==
		ERR_OK);
	MUST(account_find(w->service, SPAN_LIT("acct"), &it) == ERR_OK);
	w->account = it.id;
	w->spans = service_can(w->service, STORE_CAN_SPAN | STORE_CAN_MOVE_DIRS);
	item_fini(&it);
	struct collection c = {
		.name = SPAN_LIT("photos"), .metadata = SPAN_LIT(""), .policies = SPAN_LIT("")
	};
	MUST(collection_create(w->service, ORIGIN_REST, &collection_container, w->account, &c,
		     NULL) == ERR_OK);
	MUST(container_id(w->service, w->account, SPAN_LIT("photos"), &w->container) == ERR_OK);
}

static struct world world_with(unsigned abilities)
{
	struct world w = { 0 };
	struct store *store;
	MUST(store_open_memory_with(abilities, &store) == ERR_OK);
	world_begin(&w, store);
	return w;
}

static struct world world_sqlite(void)
{
	struct world w = { .path = "/tmp/rowfs-blob-XXXXXX" };
	struct store *store;
	int fd = mkstemp(w.path);
	MUST(fd >= 0 && close(fd) == 0 && unlink(w.path) == 0);
	MUST(store_create(w.path, NULL) == ERR_OK);
	MUST(store_open(w.path, 0, &store, NULL, NULL) == ERR_OK);
	world_begin(&w, store);
	return w;
}

static bool tell_finding(void *arg, const char *finding)
{
	(void)arg;
	printf("# finding: %s\n", finding);
	return true;
}

/* Every test ends with a check of its store, and leaves no upload. */
static void world_end(struct world *w)
{
	struct verify_counts counts;
	struct item orphans = { 0 };
	CHECK_ERR(service_verify(w->service, tell_finding, NULL, NULL, &counts), ERR_OK);
	CHECK_ERR(store_get(service_store(w->service), NULL, STORE_ORPHANS, WANT_ATTRS, &orphans),
		ERR_OK);
	CHECK_EQ_INT(orphans.size, 0);
	item_fini(&orphans);
	service_free(w->service);
	w->service = NULL;
	if (w->path[0] != '\0')
		(void)unlink(w->path);
}

/* Runs a test over SQLite and over every set of abilities in memory. */
#define OVER_ALL(w_) \
	for (unsigned all_ = 0; all_ <= STORE_ABILITIES_MEMORY + 1; all_++) \
		for (struct world w_ = all_ > STORE_ABILITIES_MEMORY ? world_sqlite() \
								     : world_with(all_); \
			w_.service != NULL; world_end(&w_))

/* ---- short words ---- */

static const struct blob_conditions none = { 0 };

/* Byte i of a content that a seed names. */
static char byte_of(unsigned seed, size_t i)
{
	return (char)(seed + i * 7 + (i >> 12));
}

static char *content(unsigned seed, size_t n)
{
	char *p = malloc(n + 1);
	MUST(p != NULL);
	for (size_t i = 0; i < n; i++)
		p[i] = byte_of(seed, i);
	return p;
}

static enum err put_if(struct world *w, const char *name, unsigned seed, size_t n,
	const struct blob_conditions *conditions, int64_t *ret_etag)
{
	char *bytes = content(seed, n);
	struct blob_new to = { .metadata = SPAN_LIT("k:v\n"), .content = span_make(bytes, n) };
	enum err e = ERR_OK;
	if (n > BLOB_INLINE_BYTES) {
		to.content = SPAN_LIT("");
		MUST(blob_upload_new(w->service, ORIGIN_REST, &to.upload) == ERR_OK);
		e = blob_upload_add(to.upload, span_make(bytes, n / 3), NULL);
		if (e == ERR_OK)
			e = blob_upload_add(to.upload, span_make(bytes + n / 3, n - n / 3), NULL);
		if (e == ERR_OK)
			e = blob_upload_end(to.upload, NULL);
	}
	if (e == ERR_OK)
		e = blob_put(w->service, ORIGIN_REST, w->container, span_of(name), &to, conditions,
			ret_etag, NULL);
	blob_upload_free(to.upload);
	free(bytes);
	return e;
}

static int64_t put(struct world *w, const char *name, unsigned seed, size_t n)
{
	int64_t etag = 0;
	CHECK_ERR(put_if(w, name, seed, n, &none, &etag), ERR_OK);
	return etag;
}

static bool holds(struct world *w, const char *name, unsigned seed, size_t n)
{
	struct blob_info b = { 0 };
	char *got = malloc(n + 1);
	MUST(got != NULL && blob_find(w->service, w->container, span_of(name), &b) == ERR_OK);
	bool same = b.record.size == n && blob_read(w->service, &b.record, 0, got, n) == ERR_OK;
	for (size_t i = 0; i < n && same; i++)
		same = got[i] == byte_of(seed, i);
	blob_info_fini(&b);
	free(got);
	return same;
}

/* ---- tests ---- */

TEST(the_sum_is_that_of_the_service)
{
	char bytes[512];
	uint8_t out[CRC64_BYTES];
	static const uint8_t right[CRC64_BYTES] = { 0xbb, 0xae, 0xb5, 0x06, 0x29, 0x90, 0xf3,
		0x87 };
	memset(bytes, 'a', sizeof(bytes));
	crc64_write(crc64_add(0, span_make(bytes, sizeof(bytes))), out);
	CHECK(memcmp(out, right, sizeof(right)) == 0);
	uint64_t half = crc64_add(0, span_make(bytes, 100));
	crc64_write(crc64_add(half, span_make(bytes + 100, 412)), out);
	CHECK(memcmp(out, right, sizeof(right)) == 0);
	CHECK_EQ_INT(crc64_add(0, SPAN_LIT("")), 0);
}

/* Bit by bit, as the polynomial says. */
static uint64_t slow_sum(struct span s)
{
	uint64_t v = UINT64_MAX;
	for (size_t i = 0; i < s.n; i++) {
		v ^= (unsigned char)s.p[i];
		for (int bit = 0; bit < 8; bit++)
			v = v >> 1 ^ ((v & 1) != 0 ? UINT64_C(0x9A6C9329AC4BC9B5) : 0);
	}
	return ~v;
}

TEST(the_sum_is_the_same_in_parts_of_any_length)
{
	char bytes[400];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 37 + 11);
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		uint64_t begun = crc64_add(0, span_make(bytes, n));
		CHECK(begun == slow_sum(span_make(bytes, n)));
		CHECK(crc64_add(begun, span_make(bytes + n, sizeof(bytes) - n)) ==
			slow_sum(span_make(bytes, sizeof(bytes))));
	}
}

TEST(a_record_is_read_as_it_was_written)
{
	struct buf text = BUF_INIT(BLOB_RECORD_LIMIT);
	struct blob_record back;
	const struct blob_record r = { .type = BLOB_BLOCK,
		.etag = 77,
		.made = 66,
		.size = 3,
		.properties = { .content_type = SPAN_LIT("text/plain; a=b:c"),
			.md5 = SPAN_LIT("AAAA") },
		.metadata = SPAN_LIT("a:1\nb:\n"),
		.content = SPAN_LIT("x\n\n") };
	blob_record_write(&r, &text);
	CHECK_ERR(blob_record_read(buf_span(&text), &back), ERR_OK);
	CHECK(back.type == BLOB_BLOCK && back.etag == 77 && back.made == 66 && back.size == 3);
	CHECK(span_eq(back.properties.content_type, r.properties.content_type));
	CHECK(span_eq(back.properties.md5, r.properties.md5) && back.properties.encoding.n == 0);
	CHECK(span_eq(back.metadata, r.metadata) && span_eq(back.content, r.content));
	/* Cut anywhere, it is no record. */
	for (size_t n = 0; n < text.len; n++)
		CHECK_ERR(blob_record_read(span_make(text.data, n), &back), ERR_CORRUPT);
	buf_fini(&text);
	static const char *const wrong[] = { "", "\n", "\n\n\n", "type:block\n\n",
		"type:other\n\n\n", "size:1\n\n\n", "size:-1\n\n\n", "unknown:1\n\n\n",
		"extent:5\nsize:9\n\n\nx", "type:block\netag:x\n\n\n" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		CHECK_ERR(blob_record_read(span_of(wrong[i]), &back), ERR_CORRUPT);
}

TEST(a_blob_holds_what_was_put)
{
	static const size_t sizes[] = { 0, 1, BLOB_INLINE_BYTES, BLOB_INLINE_BYTES + 1,
		EXTENT_PIECE_BYTES, EXTENT_PIECE_BYTES + 1, (size_t)1 << 20, ((size_t)1 << 20) + 1,
		3000000 };
	OVER_ALL(w)
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		int64_t etag;
		enum err e = put_if(&w, "a/b", (unsigned)i, sizes[i], &none, &etag);
		if (!w.spans && sizes[i] > BLOB_INLINE_BYTES) {
			CHECK_ERR(e, ERR_CROSS_DEVICE);
			continue;
		}
		CHECK_ERR(e, ERR_OK);
		CHECK(holds(&w, "a/b", (unsigned)i, sizes[i]));
	}
}

TEST(a_range_is_read_from_any_offset)
{
	struct world w = world_sqlite();
	const size_t n = 200000;
	struct blob_info b = { 0 };
	char got[70000];
	put(&w, "x", 5, n);
	CHECK_ERR(blob_find(w.service, w.container, SPAN_LIT("x"), &b), ERR_OK);
	for (size_t at = 0; at < n; at += 9973) {
		size_t part = n - at < sizeof(got) ? n - at : sizeof(got);
		CHECK_ERR(blob_read(w.service, &b.record, at, got, part), ERR_OK);
		CHECK(got[0] == byte_of(5, at) && got[part - 1] == byte_of(5, at + part - 1));
	}
	/* Who replaces it takes the content away from its readers. */
	put(&w, "x", 6, n);
	CHECK_ERR(blob_read(w.service, &b.record, 0, got, 1), ERR_GONE);
	blob_info_fini(&b);
	world_end(&w);
}

TEST(replaced_content_takes_no_space)
{
	OVER_ALL(w)
	{
		struct item it = { 0 };
		struct blob_info b = { 0 };
		if (!w.spans || !service_can(w.service, STORE_COUNTS_EXACT))
			continue;
		for (unsigned i = 0; i < 5; i++)
			put(&w, "x", i, 100000);
		CHECK_ERR(blob_find(w.service, w.container, SPAN_LIT("x"), &b), ERR_OK);
		CHECK_ERR(store_get(service_store(w.service), NULL, b.id, WANT_ATTRS, &it), ERR_OK);
		CHECK_EQ_INT(it.size, 1);
		item_fini(&it);
		uint64_t extent = b.record.extent, id = b.id;
		blob_info_fini(&b);
		put(&w, "x", 9, 10);
		CHECK_ERR(store_get(service_store(w.service), NULL, extent, WANT_ATTRS, &it),
			ERR_NOT_FOUND);
		CHECK_ERR(store_get(service_store(w.service), NULL, id, WANT_ATTRS, &it), ERR_OK);
		CHECK_EQ_INT(it.size, 0);
		item_fini(&it);
	}
}

TEST(conditions_decide_a_change)
{
	OVER_ALL(w)
	{
		int64_t got;
		struct blob_conditions absent = { .none_match = ETAG_ANY };
		CHECK_ERR(put_if(&w, "x", 1, 10, &absent, &got), ERR_OK);
		int64_t first = got;
		CHECK_ERR(put_if(&w, "x", 2, 10, &absent, &got), ERR_BLOB_EXISTS);
		struct blob_conditions same = { .match = first };
		CHECK_ERR(put_if(&w, "x", 3, 10, &same, &got), ERR_OK);
		CHECK(got > first);
		CHECK_ERR(put_if(&w, "x", 4, 10, &same, &got), ERR_BLOB_CONDITION);
		CHECK_ERR(put_if(&w, "y", 4, 10, &same, &got), ERR_BLOB_CONDITION);
		CHECK_ERR(blob_delete(w.service, ORIGIN_REST, w.container, SPAN_LIT("x"),
				  SNAPSHOTS_NONE, &same, NULL),
			ERR_BLOB_CONDITION);
		CHECK(holds(&w, "x", 3, 10));
		CHECK_ERR(blob_set_metadata(w.service, ORIGIN_REST, w.container, SPAN_LIT("y"),
				  SPAN_LIT(""), &none, &got, NULL),
			ERR_BLOB_NOT_FOUND);
		CHECK_ERR(blob_set_metadata(w.service, ORIGIN_REST, w.container, SPAN_LIT("x"),
				  SPAN_LIT("a b:1\n"), &none, &got, NULL),
			ERR_METADATA_INVALID);
	}
}

TEST(a_condition_by_time_has_whole_seconds)
{
	const int64_t etag = 1000 * INT64_C(10000000) + 5;
	struct blob_conditions c = { .has_since = true, .modified_since = etag - 5 };
	CHECK_ERR(blob_conditions_read(&c, etag), ERR_NOT_MODIFIED);
	CHECK_ERR(blob_conditions_write(&c, etag), ERR_BLOB_CONDITION);
	c.modified_since -= 10000000;
	CHECK_ERR(blob_conditions_read(&c, etag), ERR_OK);
	c = (struct blob_conditions){ .has_unmodified = true, .unmodified_since = etag - 5 };
	CHECK_ERR(blob_conditions_read(&c, etag), ERR_OK);
	c.unmodified_since -= 10000000;
	CHECK_ERR(blob_conditions_read(&c, etag), ERR_BLOB_CONDITION);
	c = (struct blob_conditions){ .none_match = etag };
	CHECK_ERR(blob_conditions_read(&c, etag), ERR_NOT_MODIFIED);
	CHECK_ERR(blob_conditions_read(&c, etag + 1), ERR_OK);
	c.has_since = true; /* one of both that holds is enough */
	CHECK_ERR(blob_conditions_read(&c, etag), ERR_OK);
}

/* ---- lists ---- */

struct names {
	char text[400];
	size_t n;
};

static bool on_name(void *arg, const struct blob_listed *b)
{
	struct names *l = arg;
	l->n += (size_t)snprintf(l->text + l->n, sizeof(l->text) - l->n, "%s%.*s ",
		b->is_prefix ? ">" : "", (int)b->name.n, b->name.p);
	return true;
}

static const char *list(struct world *w, const char *prefix, const char *delimiter, size_t max)
{
	static struct names l;
	struct buf marker = BUF_INIT(2000), next = BUF_INIT(2000);
	l = (struct names){ 0 };
	do {
		struct blob_listing how = { .prefix = span_of(prefix),
			.delimiter = span_of(delimiter),
			.marker = marker.len > 0 ? buf_span(&marker) : SPAN_LIT(""),
			.max = max };
		buf_clear(&next);
		CHECK_ERR(blob_list(w->service, w->container, &how, on_name, &l, &next), ERR_OK);
		buf_clear(&marker);
		buf_add_span(&marker, buf_span(&next));
	} while (next.len > 0);
	buf_fini(&marker);
	buf_fini(&next);
	return l.text;
}

TEST(a_list_has_groups_and_pages)
{
	static const char *const names[] = { "a", "a/1", "a/2/x", "a/2/y", "a/3", "a0", "b", "é" };
	OVER_ALL(w)
	{
		for (size_t i = 0; i < ARRAY_LEN(names); i++)
			put(&w, names[i], 1, 1);
		for (size_t max = 1; max < 10; max++) {
			CHECK_EQ_STR(list(&w, "", "", max), "a a/1 a/2/x a/2/y a/3 a0 b é ");
			CHECK_EQ_STR(list(&w, "", "/", max), "a >a/ a0 b é ");
			CHECK_EQ_STR(list(&w, "a/", "/", max), "a/1 >a/2/ a/3 ");
			CHECK_EQ_STR(list(&w, "a/2/", "/", max), "a/2/x a/2/y ");
			CHECK_EQ_STR(list(&w, "a", "2/", max), "a a/1 >a/2/ a/3 a0 ");
			CHECK_EQ_STR(list(&w, "c", "/", max), "");
		}
	}
}

/* ---- several writers ---- */

#define WRITERS 4
#define PUTS 25
struct writer {
	struct world *w;
	unsigned number;
	pthread_t thread;
};

static void *write_often(void *arg)
{
	struct writer *t = arg;
	int64_t etag;
	for (unsigned i = 0; i < PUTS; i++)
		CHECK_ERR(put_if(t->w, "x", t->number, i % 2 ? 100 : 70000, &none, &etag), ERR_OK);
	return NULL;
}

TEST(of_several_writers_one_is_seen_whole)
{
	struct world w = world_sqlite();
	struct writer all[WRITERS];
	for (unsigned i = 0; i < WRITERS; i++) {
		all[i] = (struct writer){ .w = &w, .number = i };
		MUST(pthread_create(&all[i].thread, NULL, write_often, &all[i]) == 0);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		(void)pthread_join(all[i].thread, NULL);
	bool whole = false;
	for (unsigned i = 0; i < WRITERS; i++)
		whole = whole || holds(&w, "x", i, 70000) || holds(&w, "x", i, 100);
	CHECK(whole);
	/* The next change removes what overtaken ones have left. */
	put(&w, "x", 1, 10);
	struct item it = { 0 };
	CHECK_ERR(store_child(service_store(w.service), NULL, w.container, CLASS_BLOB,
			  SPAN_LIT("x"), WANT_ATTRS, &it),
		ERR_OK);
	CHECK_EQ_INT(it.size, 0);
	item_fini(&it);
	world_end(&w);
}

/* ---- what ends early ---- */

TEST(an_upload_that_no_blob_takes_leaves_nothing)
{
	OVER_ALL(w)
	{
		struct blob_upload *u;
		char *bytes = content(1, 2000000);
		CHECK_ERR(blob_upload_new(w.service, ORIGIN_REST, &u), ERR_OK);
		CHECK_ERR(blob_upload_add(u, span_make(bytes, 2000000), NULL), ERR_OK);
		CHECK(blob_upload_extent(u) != 0);
		if (all_ % 2) /* as after a crash */
			CHECK_ERR(blob_uploads_drop(w.service), ERR_OK);
		blob_upload_free(u);
		free(bytes);
	}
}

TEST(damaged_content_is_told)
{
	struct world w = world_sqlite();
	struct blob_info b = { 0 };
	char key[EXTENT_KEY_CHARS + 1], got[100];
	struct verify_counts counts;
	put(&w, "x", 1, 300000);
	CHECK_ERR(blob_find(w.service, w.container, SPAN_LIT("x"), &b), ERR_OK);
	struct change c = { .op = CHANGE_DELETE,
		.at = { .parent = b.record.extent, .class = CLASS_BLOB, .key = extent_key(1, key) },
		.attrs = ATTRS_UNSET };
	CHECK_ERR(service_apply(w.service, ORIGIN_COMMAND, &c, 1, true, NULL), ERR_OK);
	changes_fini(&c, 1);
	CHECK_ERR(blob_read(w.service, &b.record, 0, got, 100), ERR_OK);
	CHECK_ERR(blob_read(w.service, &b.record, EXTENT_PIECE_BYTES, got, 100), ERR_CORRUPT);
	blob_info_fini(&b);
	CHECK_ERR(service_verify(w.service, tell_finding, NULL, NULL, &counts), ERR_CORRUPT);
	CHECK_EQ_INT(counts.findings, 1);
	CHECK_ERR(blob_delete(w.service, ORIGIN_REST, w.container, SPAN_LIT("x"), SNAPSHOTS_NONE,
			  &none, NULL),
		ERR_OK);
	world_end(&w);
}

static enum err delete_container(struct world *w)
{
	return collection_delete(w->service, ORIGIN_REST, &collection_container, w->container, NULL,
		NULL, false, NULL);
}

TEST(a_snapshot_without_its_blob_is_told)
{
	struct world w = world_sqlite();
	struct blob_copy from = { .service = w.service,
		.from_container = w.container,
		.from_name = SPAN_LIT("x"),
		.from_conditions = &none };
	char time[SNAPSHOT_TIME_CHARS + 1];
	struct verify_counts counts;
	int64_t etag = put(&w, "x", 1, 10);
	CHECK_ERR(blob_snapshot(&from, time, &etag, NULL), ERR_OK);
	struct change c = { .op = CHANGE_DELETE,
		.flags = CHANGE_RECURSIVE,
		.at = blob_place(w.container, SPAN_LIT("x")),
		.attrs = ATTRS_UNSET };
	CHECK_ERR(service_apply(w.service, ORIGIN_COMMAND, &c, 1, true, NULL), ERR_OK);
	changes_fini(&c, 1);
	CHECK_ERR(service_verify(w.service, tell_finding, NULL, NULL, &counts), ERR_CORRUPT);
	CHECK_EQ_INT(counts.findings, 1);
	CHECK_ERR(delete_container(&w), ERR_OK);
	world_end(&w);
}

TEST(a_container_goes_with_its_blobs)
{
	OVER_ALL(w)
	{
		int64_t etag;
		put(&w, "x", 1, 10);
		CHECK_ERR(delete_container(&w), ERR_OK);
		CHECK_ERR(delete_container(&w), ERR_CONTAINER_NOT_FOUND);
		CHECK_ERR(put_if(&w, "x", 1, 10, &none, &etag), ERR_CONTAINER_NOT_FOUND);
		struct collection to = { .name = SPAN_LIT("photos"),
			.metadata = SPAN_LIT("a:1\n"),
			.policies = SPAN_LIT(""),
			.access = CONTAINER_ALL };
		CHECK_ERR(collection_create(w.service, ORIGIN_REST, &collection_container,
				  w.account, &to, NULL),
			ERR_OK);
		struct collection i = { 0 };
		CHECK_ERR(container_find(w.service, w.account, SPAN_LIT("photos"), &i), ERR_OK);
		CHECK(i.access == CONTAINER_ALL && span_is(i.metadata, "a:1\n") &&
			i.etag == to.etag);
		CHECK_EQ_INT(i.item.size, 0);
		collection_fini(&i);
	}
}

static int64_t told_time;
static int64_t tell_time(void)
{
	return told_time;
}

static const struct lease_request take_it = { LEASE_ACQUIRE,
	SPAN_LIT("aaaaaaaa-0000-4000-8000-000000000001"), { NULL, 0 }, 15 };

static enum err lease_x(struct world *w, const struct lease_request *r)
{
	struct lease_result a;
	return blob_lease(w->service, ORIGIN_REST, w->container, SPAN_LIT("x"), r, &none, &a, NULL);
}

TEST(an_expired_lease_is_renewed_unless_the_blob_was_changed)
{
	const struct lease_request renew = { .action = LEASE_RENEW, .id = take_it.id };
	int64_t etag;
	told_time = clock_ticks();
	clock_set_source(tell_time);
	OVER_ALL(w)
	{
		size_t n = w.spans ? 100000 : 100;
		put(&w, "x", 1, n);
		CHECK_ERR(lease_x(&w, &take_it), ERR_OK);
		told_time += 15 * TICKS_PER_SECOND - 1;
		CHECK_ERR(put_if(&w, "x", 2, 10, &none, &etag), ERR_LEASE_ID_MISSING);
		told_time += 1;
		CHECK_ERR(lease_x(&w, &renew), ERR_OK);
		CHECK_ERR(put_if(&w, "x", 2, 10, &none, &etag), ERR_LEASE_ID_MISSING);
		CHECK(holds(&w, "x", 1, n));
		told_time += 15 * TICKS_PER_SECOND;
		CHECK_ERR(put_if(&w, "x", 2, 10, &none, &etag), ERR_OK);
		CHECK_ERR(lease_x(&w, &renew), ERR_LEASE_OTHER_ID);
	}
	clock_set_source(NULL);
}

struct taker {
	struct world *world;
	pthread_t thread;
	bool ended;
	enum err error;
};

static void *take_container(void *arg)
{
	struct taker *t = arg;
	struct lease_result a;
	t->error = container_lease(
		t->world->service, ORIGIN_REST, t->world->container, &take_it, &none, &a, NULL);
	return NULL;
}

/* Between the look at the lease and the deletion somebody has time to take it. */
static enum err delete_unless_leased(void *arg, const struct collection *now)
{
	struct taker *t = arg;
	struct timespec until;
	enum err e = container_check_delete(t->world->service, now, &none);
	MUST(pthread_create(&t->thread, NULL, take_container, t) == 0);
	MUST(clock_gettime(CLOCK_REALTIME, &until) == 0);
	until.tv_nsec += 100 * 1000 * 1000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	t->ended = pthread_timedjoin_np(t->thread, NULL, &until) == 0;
	return e;
}

TEST(a_container_is_not_leased_while_it_is_deleted)
{
	struct world w = world_sqlite();
	struct taker t = { .world = &w };
	CHECK_ERR(collection_delete(w.service, ORIGIN_REST, &collection_container, w.container,
			  delete_unless_leased, &t, false, NULL),
		ERR_OK);
	if (!t.ended)
		(void)pthread_join(t.thread, NULL);
	CHECK_ERR(t.error, ERR_CONTAINER_NOT_FOUND);
	world_end(&w);
}

RUN_TESTS(T(the_sum_is_that_of_the_service), T(the_sum_is_the_same_in_parts_of_any_length),
	T(a_record_is_read_as_it_was_written), T(a_blob_holds_what_was_put),
	T(a_range_is_read_from_any_offset), T(replaced_content_takes_no_space),
	T(conditions_decide_a_change), T(a_condition_by_time_has_whole_seconds),
	T(a_list_has_groups_and_pages), T(of_several_writers_one_is_seen_whole),
	T(an_upload_that_no_blob_takes_leaves_nothing), T(damaged_content_is_told),
	T(a_snapshot_without_its_blob_is_told),
	T(an_expired_lease_is_renewed_unless_the_blob_was_changed),
	T(a_container_is_not_leased_while_it_is_deleted), T(a_container_goes_with_its_blobs))
