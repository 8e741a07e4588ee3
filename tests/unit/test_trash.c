/* SPDX-License-Identifier: MIT
 * The trash over the in-memory engine: what is kept, what is not, and the bounds. */
#include "base/clock.h"
#include "check.h"
#include "service/change/entities.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/tree/trash.h"
#include "service_table.h"
#include "store/engines.h"

#include <stdio.h>

#define MUST(cond_) BUG_ON(!(cond_))

struct world {
	struct service *service;
	struct store *store;
	struct trash *trash;
	uint64_t table;
	struct item partition;
};

static void world_init(struct world *w, struct trash_limits limits, uint64_t quota)
{
	*w = (struct world){ 0 };
	MUST(store_open_memory(&w->store) == ERR_OK);
	if (quota != 0)
		store_set_file_limits(w->store, quota, quota);
	MUST(service_new(w->store, &w->service) == ERR_OK);
	uint64_t account;
	service_table(w->service, &account, &w->table);
	service_partition(w->service, w->table, &w->partition);
	MUST(trash_new(w->service, &limits, &w->trash) == ERR_OK);
}

static void world_fini(struct world *w)
{
	item_fini(&w->partition);
	trash_free(w->trash);
	service_free(w->service);
}

/* Names and sizes of all in the trash. */
struct content {
	char names[4096];
	size_t n, bytes;
	int64_t mtime_ns; /* of the last one */
	uint64_t oldest;  /* the first one's id */
};

static bool on_file(void *arg, const struct item *it)
{
	struct content *c = arg;
	size_t used = strlen(c->names);
	snprintf(c->names + used, sizeof(c->names) - used, "%.*s ", (int)(it->key.n - 29),
		it->key.p + 29);
	c->oldest = c->n == 0 ? it->id : c->oldest;
	c->n++;
	c->bytes += it->size;
	c->mtime_ns = it->attrs.mtime_ns;
	return true;
}

static struct content content(struct world *w)
{
	struct content c = { 0 };
	MUST(store_list(w->store, NULL, STORE_TRASH, CLASS_NAMED, (struct span){ 0 }, false,
		     WANT_ATTRS, on_file, &c) == ERR_OK);
	return c;
}

static struct dentry spot_of(struct world *w, const char *rk)
{
	return (struct dentry){ .dir = &w->partition, .class = CLASS_KEYED, .key = span_of(rk) };
}

/* A document of that size. */
static int64_t put_row(struct world *w, const char *rk, size_t size)
{
	char text[1024];
	struct entity e = { 0 };
	MUST(size >= 2 && size < sizeof(text));
	memset(text, ' ', size);
	text[0] = '{';
	text[size - 1] = '}';
	struct entity_op op = { .kind = ENTITY_UPSERT,
		.pk = SPAN_LIT("p"),
		.rk = span_of(rk),
		.entity = &e,
		.document = span_make(text, size),
		.attrs = ATTRS_UNSET };
	MUST(entities_apply(w->service, ORIGIN_MOUNT, w->table, &op, 1, 0, NULL) == ERR_OK);
	return op.version;
}

static bool remove_row(struct world *w, const char *rk, size_t size)
{
	bool kept = false;
	put_row(w, rk, size);
	const struct dentry at = spot_of(w, rk);
	CHECK_ERR(trash_unlink(w->trash, &at, &kept, NULL), ERR_OK);
	struct item it = { 0 };
	CHECK_ERR(store_child(w->store, NULL, w->partition.id, CLASS_KEYED, span_of(rk), WANT_ATTRS,
			  &it),
		ERR_NOT_FOUND);
	return kept;
}

/* What a trimming meets and does. */
struct trimming {
	unsigned gone, over;
	uint64_t used; /* a file that somebody reads */
	unsigned free; /* of the others: those asked about */
};

static void count_gone(void *arg, struct span name)
{
	struct trimming *t = arg;
	(void)name;
	t->gone++;
}

static bool is_used(void *arg, uint64_t id)
{
	struct trimming *t = arg;
	t->free += id != t->used;
	return id == t->used;
}

static void count_over(void *arg, uint64_t id)
{
	struct trimming *t = arg;
	CHECK(id != t->used);
	t->over++;
}

static unsigned trim_beside(struct world *w, uint64_t used)
{
	struct trimming t = { .used = used };
	const struct trash_watch watch = {
		.in_use = is_used, .over = count_over, .gone = count_gone, .arg = &t
	};
	trash_set_watch(w->trash, &watch);
	trash_trim(w->trash);
	CHECK_EQ_INT(t.over, t.free);
	return t.gone;
}

static unsigned trim(struct world *w)
{
	return trim_beside(w, 0);
}

static const struct trash_limits wide = TRASH_LIMITS_USUAL;

TEST(a_removed_row_is_kept_with_its_time)
{
	struct world w;
	world_init(&w, wide, 0);
	int64_t version = put_row(&w, "r", 10);
	const struct dentry at = spot_of(&w, "r");
	bool kept;
	CHECK_ERR(trash_unlink(w.trash, &at, &kept, NULL), ERR_OK);
	CHECK(kept);
	struct content c = content(&w);
	CHECK_EQ_STR(c.names, "Tab-p-r.json ");
	CHECK_EQ_INT(c.n, 1);
	CHECK_EQ_INT(c.bytes, 10);
	CHECK_EQ_INT(c.mtime_ns, ticks_to_unix_ns(version));
	world_fini(&w);
}

TEST(what_is_not_there_keeps_nothing)
{
	struct world w;
	world_init(&w, wide, 0);
	(void)put_row(&w, "r", 10);
	const struct dentry at = spot_of(&w, "r"), none = spot_of(&w, "none");
	bool kept;
	CHECK_ERR(trash_unlink(w.trash, &none, &kept, NULL), ERR_NOT_FOUND);
	CHECK(!kept);
	CHECK_EQ_INT(content(&w).n, 0);
	CHECK_ERR(trash_unlink(w.trash, &at, &kept, NULL), ERR_OK);
	CHECK_EQ_INT(content(&w).n, 1);
	world_fini(&w);
}

TEST(the_bound_on_bytes_holds_from_both_sides)
{
	struct world w;
	world_init(&w, (struct trash_limits){ 1000, 100, TICKS_PER_SECOND * 1000 }, 0);
	char rk[8];
	for (int i = 0; i < 10; i++) {
		snprintf(rk, sizeof(rk), "%d", i);
		CHECK(remove_row(&w, rk, 100));
		CHECK_EQ_INT(trim(&w), 0);
	}
	CHECK(remove_row(&w, "x", 2));
	CHECK(trim(&w) >= 1);
	CHECK(content(&w).bytes <= 1000);
	CHECK_EQ_INT(trim(&w), 0);
	CHECK(strncmp(content(&w).names, "Tab-p-1.json ", 13) == 0);
	CHECK(!remove_row(&w, "large", 1001));
	CHECK(remove_row(&w, "fits", 1000));
	(void)trim(&w);
	CHECK_EQ_STR(content(&w).names, "Tab-p-fits.json ");
	world_fini(&w);
}

TEST(the_bound_on_files_holds_from_both_sides)
{
	struct world w;
	world_init(&w, (struct trash_limits){ 100000, 5, TICKS_PER_SECOND * 1000 }, 0);
	char rk[8];
	for (int i = 0; i < 5; i++) {
		snprintf(rk, sizeof(rk), "%d", i);
		CHECK(remove_row(&w, rk, 10));
		CHECK_EQ_INT(trim(&w), 0);
	}
	CHECK(remove_row(&w, "5", 10));
	CHECK_EQ_INT(trim(&w), 1);
	CHECK_EQ_STR(content(&w).names,
		"Tab-p-1.json Tab-p-2.json Tab-p-3.json Tab-p-4.json Tab-p-5.json ");
	trash_left(w.trash, 10); /* as if one had been moved out */
	CHECK(remove_row(&w, "6", 10));
	CHECK_EQ_INT(trim(&w), 0);
	world_fini(&w);
}

TEST(what_is_read_stays_until_nobody_reads_it)
{
	struct world w;
	world_init(&w, (struct trash_limits){ 100000, 2, TICKS_PER_SECOND * 1000 }, 0);
	CHECK(remove_row(&w, "0", 10));
	uint64_t used = content(&w).oldest;
	CHECK(remove_row(&w, "1", 10));
	CHECK(remove_row(&w, "2", 10));
	CHECK_EQ_INT(trim_beside(&w, used), 1);
	CHECK_EQ_STR(content(&w).names, "Tab-p-0.json Tab-p-2.json ");
	CHECK(remove_row(&w, "3", 10));
	CHECK_EQ_INT(trim(&w), 1);
	CHECK_EQ_STR(content(&w).names, "Tab-p-2.json Tab-p-3.json ");
	world_fini(&w);
}

static int64_t pretended;

static int64_t pretend(void)
{
	return pretended;
}

TEST(what_is_too_old_goes)
{
	struct world w;
	pretended = TICKS_UNIX_EPOCH + 1000 * TICKS_PER_SECOND;
	clock_set_source(pretend);
	world_init(&w, (struct trash_limits){ 1000, 100, TICKS_PER_SECOND * 10 }, 0);
	CHECK(remove_row(&w, "a", 10));
	pretended += 5 * TICKS_PER_SECOND;
	CHECK(remove_row(&w, "b", 10));
	pretended += 5 * TICKS_PER_SECOND;
	CHECK_EQ_INT(trim(&w), 0);
	pretended += TICKS_PER_SECOND;
	CHECK_EQ_INT(trim(&w), 1);
	CHECK_EQ_STR(content(&w).names, "Tab-p-b.json ");
	pretended += 5 * TICKS_PER_SECOND;
	CHECK_EQ_INT(trim(&w), 1);
	CHECK_EQ_INT(trim(&w), 0);
	CHECK(remove_row(&w, "c", 10));
	CHECK_EQ_INT(trim(&w), 0);
	clock_set_source(NULL);
	world_fini(&w);
}

TEST(more_than_one_batch_goes)
{
	struct world w;
	world_init(&w, (struct trash_limits){ 100000, 10000, TICKS_PER_SECOND * 1000 }, 0);
	char rk[8];
	for (int i = 0; i < 1000; i++) {
		snprintf(rk, sizeof(rk), "%d", i);
		CHECK(remove_row(&w, rk, 10));
	}
	trash_free(w.trash);
	struct trash_limits few = { 100000, 10, TICKS_PER_SECOND * 1000 };
	MUST(trash_new(w.service, &few, &w.trash) == ERR_OK);
	CHECK_EQ_INT(trim(&w), 990);
	CHECK_EQ_INT(content(&w).n, 10);
	world_fini(&w);
}

TEST(a_bound_of_nothing_keeps_nothing_and_drops_nothing)
{
	struct world w;
	world_init(&w, wide, 0);
	CHECK(remove_row(&w, "a", 10));
	trash_free(w.trash);
	struct trash_limits off = { 0, 10, TICKS_PER_SECOND * 1000 };
	MUST(trash_new(w.service, &off, &w.trash) == ERR_OK);
	CHECK(!remove_row(&w, "b", 10));
	CHECK_EQ_INT(trim(&w), 0);
	CHECK_EQ_STR(content(&w).names, "Tab-p-a.json ");
	world_fini(&w);
}

TEST(without_quota_a_row_goes_all_the_same)
{
	struct world w;
	world_init(&w, wide, 25);
	CHECK(remove_row(&w, "a", 20));
	CHECK(!remove_row(&w, "b", 6));
	CHECK(remove_row(&w, "c", 5));
	CHECK(!remove_row(&w, "d", 26));
	CHECK_EQ_STR(content(&w).names, "Tab-p-a.json Tab-p-c.json ");
	world_fini(&w);
}

/* ---- a row there and back ---- */

/* The row's version; 0: it is not there. */
static int64_t version_of(struct world *w, const char *rk)
{
	struct item it = { 0 };
	enum err e = entity_row(w->service, NULL, w->table, SPAN_LIT("p"), span_of(rk), &it);
	int64_t version = e == ERR_OK ? it.version : 0;
	CHECK(e == ERR_OK || e == ERR_NOT_FOUND);
	item_fini(&it);
	return version;
}

static enum err restore(struct world *w, const struct trash_name *file, const char *rk)
{
	const struct item table = { .id = w->table, .kind = ITEM_TABLE };
	return trash_restore(w->trash, ORIGIN_REST, &table, span_make(file->text, file->n),
		SPAN_LIT("p"), span_of(rk), NULL);
}

TEST(a_row_is_kept_at_its_version_and_restored)
{
	struct world w;
	struct trash_name file = { .n = 0 };
	world_init(&w, wide, 0);
	int64_t version = put_row(&w, "r", 10);
	const struct dentry at = spot_of(&w, "r");
	CHECK_ERR(trash_keep(w.trash, &at, version - 1, &file, NULL), ERR_CONDITION_NOT_MET);
	CHECK_EQ_INT(version_of(&w, "r"), version);
	CHECK_ERR(trash_keep(w.trash, &at, version, &file, NULL), ERR_OK);
	CHECK_EQ_INT(version_of(&w, "r"), 0);
	CHECK_EQ_STR(content(&w).names, "Tab-p-r.json ");
	CHECK_ERR(trash_keep(w.trash, &at, version, &file, NULL), ERR_NOT_FOUND);
	CHECK_ERR(restore(&w, &file, "r"), ERR_OK);
	CHECK(version_of(&w, "r") > version);
	CHECK_EQ_INT(content(&w).n, 0);
	CHECK_ERR(restore(&w, &file, "r"), ERR_NOT_FOUND);
	world_fini(&w);
}

TEST(a_row_that_was_made_anew_stays)
{
	struct world w;
	struct trash_name file = { .n = 0 };
	world_init(&w, wide, 0);
	const struct dentry at = spot_of(&w, "r");
	CHECK_ERR(trash_keep(w.trash, &at, put_row(&w, "r", 10), &file, NULL), ERR_OK);
	int64_t anew = put_row(&w, "r", 20);
	CHECK_ERR(restore(&w, &file, "r"), ERR_ENTITY_EXISTS);
	CHECK_EQ_INT(version_of(&w, "r"), anew);
	CHECK_EQ_INT(content(&w).n, 1);
	world_fini(&w);
}

TEST(a_row_that_cannot_be_kept_is_not_touched)
{
	struct world w;
	struct trash_name file = { .n = 0 };
	world_init(&w, (struct trash_limits){ 20, 10, TICKS_PER_SECOND * 1000 }, 0);
	int64_t large = put_row(&w, "large", 21), small = put_row(&w, "small", 20);
	const struct dentry at = spot_of(&w, "large"), fits = spot_of(&w, "small");
	CHECK_ERR(trash_keep(w.trash, &at, large, &file, NULL), ERR_NOT_SUPPORTED);
	CHECK_EQ_INT(version_of(&w, "large"), large);
	CHECK_ERR(trash_keep(w.trash, &fits, small, &file, NULL), ERR_OK);
	world_fini(&w);
}

TEST(the_service_knows_its_trash_while_it_is_there)
{
	struct world w;
	world_init(&w, wide, 0);
	CHECK(service_trash(w.service) == w.trash);
	trash_free(w.trash);
	w.trash = NULL;
	CHECK(service_trash(w.service) == NULL);
	world_fini(&w);
}

/* clang-format off */
RUN_TESTS(
	T(a_removed_row_is_kept_with_its_time),
	T(what_is_not_there_keeps_nothing),
	T(the_bound_on_bytes_holds_from_both_sides),
	T(the_bound_on_files_holds_from_both_sides),
	T(what_is_read_stays_until_nobody_reads_it),
	T(what_is_too_old_goes),
	T(more_than_one_batch_goes),
	T(a_bound_of_nothing_keeps_nothing_and_drops_nothing),
	T(without_quota_a_row_goes_all_the_same),
	T(a_row_is_kept_at_its_version_and_restored),
	T(a_row_that_was_made_anew_stays),
	T(a_row_that_cannot_be_kept_is_not_touched),
	T(the_service_knows_its_trash_while_it_is_there))
/* clang-format on */
