/* SPDX-License-Identifier: MIT
 * The service over engines that can do less, as one over a network will: what still works, and what
 * is refused with which error.  Every set of abilities, each in memory.  And beside another service
 * on the same store, whose changes are external. */
#include "base/clock.h"
#include "check.h"
#include "model/key.h"
#include "service/change/entities.h"
#include "service/check/verify.h"
#include "service/core/accounts.h"
#include "service/core/partition_keys.h"
#include "service/core/tables.h"
#include "service/transfer/importer.h"
#include "service/tree/trash.h"
#include "service/tree/tree.h"
#include "service/view/views.h"
#include "service_table.h"
#include "store/engines.h"

#include <stdio.h>
#include <string.h>

/* What the helpers cannot go on without. */
#define MUST(cond_) BUG_ON(!(cond_))

struct world {
	struct service *service;
	uint64_t account, table;
};

static struct world world_of(struct store *store)
{
	struct world w = { 0 };
	MUST(service_new(store, &w.service) == ERR_OK);
	service_table(w.service, &w.account, &w.table);
	return w;
}

static struct world world_with(unsigned abilities)
{
	struct store *store;
	MUST(store_open_memory_with(abilities, &store) == ERR_OK);
	return world_of(store);
}

/* Runs a test over every set of abilities. */
#define OVER_ALL(w_) \
	for (unsigned all_ = 0; all_ <= STORE_ABILITIES_MEMORY; all_++) \
		for (struct world w_ = world_with(all_); w_.service != NULL; \
			service_free(w_.service), w_.service = NULL)

static bool can(struct world *w, unsigned ability)
{
	return service_can(w->service, ability);
}

static enum err put_row(struct world *w, const char *pk, const char *rk)
{
	struct entity e = { 0 };
	struct entity_op op = { .kind = ENTITY_UPSERT,
		.pk = span_of(pk),
		.rk = span_of(rk),
		.entity = &e,
		.attrs = ATTRS_UNSET };
	enum err result =
		entities_apply(w->service, ORIGIN_REST, w->table, &op, 1, ENTITIES_SET, NULL);
	entity_fini(&e);
	return result;
}

static enum err row_is(struct world *w, const char *pk, const char *rk)
{
	struct item it = { 0 };
	enum err e = entity_row(w->service, NULL, w->table, span_of(pk), span_of(rk), &it);
	item_fini(&it);
	return e;
}

static struct item child(struct world *w, uint64_t parent, enum item_class class, const char *key)
{
	struct item it = { 0 };
	(void)store_child(service_store(w->service), NULL, parent, class, span_of(key), 0, &it);
	return it;
}

static bool exists(struct world *w, uint64_t id)
{
	struct item it = { 0 };
	enum err e = store_get(service_store(w->service), NULL, id, 0, &it);
	item_fini(&it);
	return e == ERR_OK;
}

static struct dentry spot(const struct item *dir, enum item_class class, const char *key)
{
	return (struct dentry){ .dir = dir, .class = class, .key = span_of(key) };
}

/* ERR_OK with the ability, else ERR_CROSS_DEVICE. */
static void expect(struct world *w, unsigned ability, enum err e)
{
	CHECK_ERR(e, can(w, ability) ? ERR_OK : ERR_CROSS_DEVICE);
}

TEST(rows_and_change_sets_need_no_ability)
{
	OVER_ALL(w)
	{
		struct entity e = { 0 };
		struct entity_op ops[2] = {
			{ .kind = ENTITY_INSERT, .pk = SPAN_LIT("p"), .rk = SPAN_LIT("1") },
			{ .kind = ENTITY_DELETE, .pk = SPAN_LIT("p"), .rk = SPAN_LIT("2") },
		};
		ops[0].entity = &e;
		ops[0].attrs = ops[1].attrs = ATTRS_UNSET;
		CHECK_ERR(put_row(&w, "p", "2"), ERR_OK);
		CHECK_ERR(
			entities_apply(w.service, ORIGIN_REST, w.table, ops, 2, ENTITIES_SET, NULL),
			ERR_OK);
		CHECK_ERR(row_is(&w, "p", "1"), ERR_OK);
		CHECK_ERR(row_is(&w, "p", "2"), ERR_NOT_FOUND);
		entity_fini(&e);
	}
}

TEST(a_rename_is_one_step_or_EXDEV)
{
	OVER_ALL(w)
	{
		MUST(put_row(&w, "p", "1") == ERR_OK && put_row(&w, "q", "1") == ERR_OK);
		struct item account = { 0 }, table = { 0 };
		MUST(store_get(service_store(w.service), NULL, w.account, 0, &account) == ERR_OK);
		MUST(store_get(service_store(w.service), NULL, w.table, 0, &table) == ERR_OK);
		struct item p = child(&w, w.table, CLASS_KEYED, "p");
		struct item q = child(&w, w.table, CLASS_KEYED, "q");
		struct dentry a = spot(&p, CLASS_KEYED, "1"), b = spot(&p, CLASS_KEYED, "2");
		struct dentry there = spot(&q, CLASS_KEYED, "2"),
			      file = spot(&p, CLASS_NAMED, ".f");
		/* Within a partition always, also where the row becomes a file on its way. */
		CHECK_ERR(tree_move(w.service, &a, &b, 0, NULL, NULL, NULL), ERR_OK);
		CHECK_ERR(tree_move(w.service, &b, &file, 0, NULL, NULL, NULL), ERR_OK);
		CHECK_ERR(tree_move(w.service, &file, &b, 0, NULL, NULL, NULL), ERR_OK);
		expect(&w, STORE_CAN_SPAN, tree_move(w.service, &b, &there, 0, NULL, NULL, NULL));
		CHECK_ERR(row_is(&w, "p", "2"), can(&w, STORE_CAN_SPAN) ? ERR_NOT_FOUND : ERR_OK);
		struct dentry from = spot(&table, CLASS_KEYED, "p"),
			      to = spot(&table, CLASS_KEYED, "r");
		expect(&w, STORE_CAN_MOVE_DIRS,
			tree_move(w.service, &from, &to, 0, NULL, NULL, NULL));
		from = spot(&account, CLASS_KEYED, "tab");
		to = spot(&account, CLASS_KEYED, "other");
		to.name = SPAN_LIT("Other");
		expect(&w, STORE_CAN_MOVE_DIRS,
			tree_move(w.service, &from, &to, 0, NULL, NULL, NULL));
		CHECK_ERR(row_is(&w, "q", "1"), ERR_OK);
		item_fini(&account);
		item_fini(&table);
		item_fini(&p);
		item_fini(&q);
	}
}

TEST(a_removed_row_is_kept_where_its_file_can_be_made_in_the_same_step)
{
	static const struct trash_limits limits = TRASH_LIMITS_USUAL;
	OVER_ALL(w)
	{
		struct trash *t;
		bool kept = false;
		MUST(put_row(&w, "p", "1") == ERR_OK);
		MUST(trash_new(w.service, &limits, &t) == ERR_OK);
		struct item p = child(&w, w.table, CLASS_KEYED, "p");
		struct dentry a = spot(&p, CLASS_KEYED, "1");
		CHECK_ERR(trash_unlink(t, &a, &kept, NULL), ERR_OK);
		CHECK_EQ_INT(kept, can(&w, STORE_CAN_SPAN));
		CHECK_ERR(row_is(&w, "p", "1"), ERR_NOT_FOUND);
		struct item folder = { 0 };
		MUST(store_get(service_store(w.service), NULL, STORE_TRASH, 0, &folder) == ERR_OK);
		CHECK_EQ_INT(folder.size > 0, kept);
		item_fini(&folder);
		item_fini(&p);
		trash_free(t);
	}
}

TEST(a_file_that_is_open_can_be_removed_and_replaced)
{
	OVER_ALL(w)
	{
		struct attrs attrs = ATTRS_UNSET;
		struct item a = { 0 }, b = { 0 };
		MUST(put_row(&w, "p", "1") == ERR_OK);
		struct item p = child(&w, w.table, CLASS_KEYED, "p");
		struct dentry at = spot(&p, CLASS_NAMED, ".a"), other = spot(&p, CLASS_NAMED, ".b");
		bool stays = can(&w, STORE_CAN_SPAN);
		CHECK_ERR(tree_create_file(w.service, &at, &attrs, &a, NULL), ERR_OK);
		CHECK_ERR(tree_create_file(w.service, &other, &attrs, &b, NULL), ERR_OK);
		CHECK_ERR(tree_move(w.service, &at, &other, TREE_KEEP_REPLACED, NULL, NULL, NULL),
			ERR_OK);
		CHECK_EQ_INT(exists(&w, b.id), stays);
		CHECK_ERR(tree_orphan(w.service, &other, NULL), ERR_OK);
		CHECK_EQ_INT(exists(&w, a.id), stays);
		CHECK_ERR(tree_drop_orphans(w.service), ERR_OK);
		CHECK(!exists(&w, a.id) && !exists(&w, b.id));
		item_fini(&a);
		item_fini(&b);
		item_fini(&p);
	}
}

TEST(an_import_commits_partition_by_partition_where_it_must)
{
	static char text[4000];
	OVER_ALL(w)
	{
		struct import_options options = { .format = TRANSFER_NDJSON,
			.mode = IMPORT_UPSERT };
		struct importer *im;
		size_t n = 0;
		for (int i = 0; i < 40; i++)
			n += (size_t)snprintf(text + n, sizeof(text) - n,
				"{\"PartitionKey\":\"p%d\",\"RowKey\":\"%d\",\"A\":%d}\n",
				i / 3 % 4, i, i);
		MUST(importer_new(w.service, ORIGIN_COMMAND, w.table, &options, &im) == ERR_OK);
		CHECK_ERR(importer_feed(im, span_make(text, n), NULL), ERR_OK);
		CHECK_ERR(importer_end(im, NULL), ERR_OK);
		CHECK_EQ_INT(importer_counts(im)->done, 40);
		CHECK_EQ_INT(importer_counts(im)->refused, 0);
		CHECK_ERR(row_is(&w, "p0", "0"), ERR_OK);
		CHECK_ERR(row_is(&w, "p1", "39"), ERR_OK);
		importer_free(im);
	}
}

TEST(without_views_streams_read_what_is_there_and_snapshots_are_refused)
{
	OVER_ALL(w)
	{
		struct view *v;
		struct view_info info;
		struct store_view *moment;
		struct views *views = service_views(w.service);
		bool views_held = can(&w, STORE_CAN_VIEW);
		CHECK_ERR(snapshot_make(views, SPAN_LIT("s"), &info, NULL),
			views_held ? ERR_OK : ERR_NOT_SUPPORTED);
		CHECK_EQ_INT(views_list(views, &info, 1), views_held);
		CHECK_ERR(views_open(views, SPAN_LIT("stream"), &v), ERR_OK);
		CHECK_ERR(view_begin(v, &moment), ERR_OK);
		CHECK_EQ_INT(moment != NULL, views_held);
		view_end(v);
		views_close(v);
		uint64_t room = views_room(views);
		if (views_held)
			CHECK_ERR(snapshot_drop(views, SPAN_LIT("s")), ERR_OK);
		CHECK_EQ_INT(views_room(views) - room, views_held);
	}
}

static bool on_finding(void *arg, const char *finding)
{
	(void)arg;
	printf("# %s\n", finding);
	return true;
}

TEST(a_check_of_a_sound_store_finds_nothing_where_counts_are_estimates)
{
	OVER_ALL(w)
	{
		struct verify_counts counts;
		MUST(put_row(&w, "p", "1") == ERR_OK && put_row(&w, "p", "2") == ERR_OK);
		CHECK_ERR(service_verify(w.service, on_finding, NULL, NULL, &counts), ERR_OK);
		CHECK_EQ_INT(counts.rows, 2);
	}
}

TEST(a_table_goes_with_all_that_is_in_it)
{
	OVER_ALL(w)
	{
		MUST(put_row(&w, "p", "1") == ERR_OK && put_row(&w, "q", "1") == ERR_OK);
		CHECK_ERR(table_delete(w.service, ORIGIN_REST, w.table, NULL), ERR_OK);
		CHECK(!exists(&w, w.table));
		CHECK_ERR(account_remove(w.service, ORIGIN_COMMAND, SPAN_LIT("acct"), true, NULL),
			ERR_OK);
	}
}

/* ---- another process with the same store ---- */

/* Two services on one store; the second one is the external writer. */
struct pair {
	struct world here, there;
};

static struct pair pair_new(void)
{
	struct pair p = { .here = world_with(STORE_ABILITIES_MEMORY) };
	struct store *again;
	MUST(store_open_memory_again(service_store(p.here.service), &again) == ERR_OK);
	p.there = p.here;
	MUST(service_new(again, &p.there.service) == ERR_OK);
	return p;
}

static void pair_free(struct pair *p)
{
	service_free(p->here.service);
	service_free(p->there.service);
}

struct told {
	unsigned calls, external;
	uint64_t old_generation, generation;
	bool body;
};

static void on_event(void *arg, enum origin origin, const struct change *changes, size_t n)
{
	struct told *t = arg;
	t->calls++;
	t->external += origin == ORIGIN_EXTERNAL;
	t->old_generation = changes[n - 1].old.generation;
	t->generation = changes[n - 1].now.generation;
	t->body = changes[n - 1].old.body.p != NULL;
}

TEST(an_external_change_is_the_same_event_without_the_old_bytes)
{
	struct pair p = pair_new();
	struct told told = { 0 };
	CHECK_ERR(put_row(&p.here, "p", "1"), ERR_OK);
	service_subscribe(p.here.service, on_event, &told);
	CHECK_ERR(put_row(&p.there, "p", "1"), ERR_OK);
	CHECK(told.calls == 1 && told.external == 1 && !told.body);
	CHECK(told.old_generation == 1 && told.generation == 2);
	CHECK_ERR(put_row(&p.here, "p", "1"), ERR_OK);
	CHECK(told.calls == 2 && told.external == 1 && told.body);
	service_unsubscribe(p.here.service);
	CHECK_ERR(put_row(&p.there, "p", "1"), ERR_OK);
	CHECK_EQ_INT(told.calls, 2);
	pair_free(&p);
}

static struct account_keys secrets_of(struct world *w)
{
	struct account_secrets a;
	MUST(account_secrets_get(w->service, SPAN_LIT("acct"), &a) == ERR_OK);
	struct account_keys keys = a.keys;
	account_secrets_fini(&a);
	return keys;
}

/* Every cache of the service: secrets, ids of tables and partitions, keys of partitions. */
TEST(what_is_remembered_is_forgotten_with_an_external_change)
{
	struct pair p = pair_new();
	struct item it = { 0 };
	CHECK_ERR(put_row(&p.here, "p", "1"), ERR_OK);
	struct account_keys before = secrets_of(&p.here);
	CHECK_ERR(account_key_regenerate(
			  p.there.service, ORIGIN_COMMAND, SPAN_LIT("acct"), 1, NULL, NULL),
		ERR_OK);
	struct account_keys after = secrets_of(&p.here);
	CHECK(memcmp(&before, &after, sizeof(before)) != 0);

	CHECK_ERR(row_is(&p.here, "p", "1"), ERR_OK);
	struct item dir = child(&p.here, p.here.table, CLASS_KEYED, "p"), table = { 0 };
	struct partition_key key;
	struct partition_keys *keys = service_partition_keys(p.here.service);
	CHECK_ERR(partition_keys_get(keys, dir.id, &key), ERR_OK);
	MUST(store_get(service_store(p.there.service), NULL, p.there.table, 0, &table) == ERR_OK);
	struct dentry from = spot(&table, CLASS_KEYED, "p"),
		      to = spot(&table, CLASS_KEYED, "moved");
	CHECK_ERR(tree_move(p.there.service, &from, &to, 0, NULL, NULL, NULL), ERR_OK);
	CHECK_ERR(partition_keys_get(keys, dir.id, &key), ERR_OK);
	CHECK(span_is(span_make(key.pk, key.pk_n), "moved"));
	CHECK_ERR(row_is(&p.here, "p", "1"), ERR_NOT_FOUND);
	CHECK_ERR(row_is(&p.here, "moved", "1"), ERR_OK);

	CHECK_ERR(table_delete(p.there.service, ORIGIN_REST, p.there.table, NULL), ERR_OK);
	CHECK_ERR(table_find(p.here.service, SPAN_LIT("acct"), SPAN_LIT("Tab"), &it),
		ERR_TABLE_NOT_FOUND);
	item_fini(&dir);
	item_fini(&table);
	pair_free(&p);
}

/* The store below, with what a test does to its answers. */
static const struct store_ops *inner_ops;
static struct store_ops meddled;
static unsigned applied;

static enum err count_apply(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *reterr)
{
	applied++;
	return inner_ops->apply(s, changes, n, durable, reterr);
}

static enum err always_stale(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *reterr)
{
	(void)s;
	(void)changes;
	(void)n;
	(void)durable;
	(void)reterr;
	applied++;
	return ERR_STALE_VERSION;
}

static void meddle(struct world *w,
	enum err (*fn)(struct store *, struct change *, size_t, bool, struct err_detail *))
{
	struct store *s = service_store(w->service);
	inner_ops = s->ops;
	meddled = *inner_ops;
	meddled.apply = fn;
	s->ops = &meddled;
	applied = 0;
}

/* The engine does not tell of the other's change here: the answer alone has to do. */
TEST(a_writer_whose_clock_is_behind_takes_the_version_that_it_found)
{
	struct pair p = pair_new();
	struct store *there = service_store(p.there.service);
	store_listen(service_store(p.here.service), NULL, NULL);
	CHECK_ERR(put_row(&p.here, "p", "1"), ERR_OK);
	struct change c = { .op = CHANGE_PUT,
		.kind = ITEM_ROW,
		.at = { .parent = p.there.table, .has_pk = true, .pk = SPAN_LIT("p") },
		.attrs = ATTRS_UNSET };
	c.at.key = SPAN_LIT("1");
	c.body = SPAN_LIT("{}\n");
	c.version = clock_ticks() + 3600 * TICKS_PER_SECOND;
	MUST(store_apply(there, &c, 1, false, NULL) == ERR_OK);
	changes_fini(&c, 1);
	meddle(&p.here, count_apply);
	CHECK_ERR(put_row(&p.here, "p", "1"), ERR_OK);
	CHECK_EQ_INT(applied, 2);
	CHECK(service_next_version(p.here.service) > c.version);
	pair_free(&p);
}

TEST(a_change_that_is_always_overtaken_is_refused_at_last)
{
	struct world w = world_with(STORE_ABILITIES_MEMORY);
	meddle(&w, always_stale);
	uint64_t since = clock_mono_us();
	CHECK_ERR(put_row(&w, "p", "1"), ERR_THROTTLED);
	CHECK(applied > 8 && applied < 100);
	CHECK(clock_mono_us() - since > 100000);
	service_free(w.service);
}

RUN_TESTS(T(rows_and_change_sets_need_no_ability), T(a_rename_is_one_step_or_EXDEV),
	T(a_removed_row_is_kept_where_its_file_can_be_made_in_the_same_step),
	T(a_file_that_is_open_can_be_removed_and_replaced),
	T(an_import_commits_partition_by_partition_where_it_must),
	T(without_views_streams_read_what_is_there_and_snapshots_are_refused),
	T(a_check_of_a_sound_store_finds_nothing_where_counts_are_estimates),
	T(a_table_goes_with_all_that_is_in_it),
	T(an_external_change_is_the_same_event_without_the_old_bytes),
	T(what_is_remembered_is_forgotten_with_an_external_change),
	T(a_writer_whose_clock_is_behind_takes_the_version_that_it_found),
	T(a_change_that_is_always_overtaken_is_refused_at_last))
