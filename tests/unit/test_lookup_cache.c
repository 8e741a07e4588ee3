/* SPDX-License-Identifier: MIT
 * What is remembered of accounts, tables and partitions is never older than the store. */
#include "check.h"
#include "service/change/entities.h"
#include "service/core/accounts.h"
#include "service/core/lookup_cache.h"
#include "service/core/tables.h"
#include "service/tree/tree.h"
#include "store/engines.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define MUST(cond_) BUG_ON(!(cond_))
#define ACCOUNT SPAN_LIT("acct")
#define TABLE SPAN_LIT("Tab")
#define ROUNDS 2000

struct world {
	struct service *service;
	uint64_t account;
	atomic_bool over;
};

static void world_start(struct world *w)
{
	struct store *store;
	struct item it = { 0 };
	*w = (struct world){ 0 };
	MUST(store_open_memory(&store) == ERR_OK && service_new(store, &w->service) == ERR_OK);
	MUST(account_create(w->service, ORIGIN_COMMAND, ACCOUNT, NULL, NULL, NULL) == ERR_OK);
	MUST(account_find(w->service, ACCOUNT, &it) == ERR_OK);
	w->account = it.id;
	item_fini(&it);
	MUST(table_create(w->service, ORIGIN_COMMAND, w->account, TABLE, NULL, NULL) == ERR_OK);
}

static uint64_t table_of(struct world *w)
{
	uint64_t id = 0;
	(void)table_id(w->service, w->account, TABLE, &id);
	return id;
}

static enum err apply(struct world *w, enum entity_op_kind kind, const char *pk)
{
	struct entity e = { 0 };
	struct entity_op op = { .kind = kind,
		.pk = span_of(pk),
		.rk = SPAN_LIT("r"),
		.entity = &e,
		.attrs = ATTRS_UNSET };
	return entities_apply(w->service, ORIGIN_COMMAND, table_of(w), &op, 1, ENTITIES_SET, NULL);
}

static enum err look(struct world *w, const char *pk)
{
	struct item it = { 0 };
	enum err e = entity_row(w->service, NULL, table_of(w), span_of(pk), SPAN_LIT("r"), &it);
	item_fini(&it);
	return e;
}

static bool has_key(struct world *w, const struct account_keys *keys)
{
	struct account_secrets a;
	MUST(account_secrets_get(w->service, ACCOUNT, &a) == ERR_OK);
	bool same = memcmp(a.keys.key[0], keys->key[0], keys->len[0]) == 0;
	account_secrets_fini(&a);
	return same;
}

static void *ask(void *arg)
{
	struct world *w = arg;
	struct account_secrets a;
	while (!atomic_load(&w->over))
		if (account_secrets_get(w->service, ACCOUNT, &a) == ERR_OK)
			account_secrets_fini(&a);
	return NULL;
}

TEST(a_new_key_counts_at_once_while_others_ask)
{
	struct world w;
	struct account_keys keys;
	pthread_t threads[2];
	unsigned old = 0;
	world_start(&w);
	for (size_t i = 0; i < 2; i++)
		MUST(pthread_create(&threads[i], NULL, ask, &w) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		MUST(account_key_regenerate(w.service, ORIGIN_COMMAND, ACCOUNT, 0, &keys, NULL) ==
			ERR_OK);
		old += !has_key(&w, &keys);
	}
	atomic_store(&w.over, true);
	for (size_t i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ_INT(old, 0);
	service_free(w.service);
}

TEST(a_removed_account_is_gone_at_once)
{
	struct world w;
	struct account_secrets a;
	world_start(&w);
	MUST(account_secrets_get(w.service, ACCOUNT, &a) == ERR_OK);
	account_secrets_fini(&a);
	CHECK_ERR(account_remove(w.service, ORIGIN_COMMAND, ACCOUNT, true, NULL), ERR_OK);
	CHECK_ERR(account_secrets_get(w.service, ACCOUNT, &a), ERR_ACCOUNT_NOT_FOUND);
	CHECK_EQ_INT(table_of(&w), 0);
	service_free(w.service);
}

TEST(a_table_that_is_made_again_is_another_one)
{
	struct world w;
	world_start(&w);
	uint64_t before = table_of(&w), id;
	CHECK_ERR(apply(&w, ENTITY_UPSERT, "p"), ERR_OK);
	CHECK_ERR(look(&w, "p"), ERR_OK);
	CHECK_EQ_INT(table_of(&w), before);
	CHECK_ERR(table_delete(w.service, ORIGIN_COMMAND, before, NULL), ERR_OK);
	CHECK_ERR(table_id(w.service, w.account, TABLE, &id), ERR_TABLE_NOT_FOUND);
	MUST(table_create(w.service, ORIGIN_COMMAND, w.account, TABLE, NULL, NULL) == ERR_OK);
	CHECK(table_of(&w) != before && table_of(&w) != 0);
	CHECK_ERR(look(&w, "p"), ERR_NOT_FOUND);
	/* Any case of the name is the same table. */
	CHECK_ERR(table_id(w.service, w.account, SPAN_LIT("TAB"), &id), ERR_OK);
	CHECK_EQ_INT(id, table_of(&w));
	service_free(w.service);
}

TEST(a_partition_that_comes_back_is_found)
{
	struct world w;
	world_start(&w);
	for (int i = 0; i < 3; i++) {
		CHECK_ERR(apply(&w, ENTITY_INSERT, "p"), ERR_OK);
		CHECK_ERR(look(&w, "p"), ERR_OK);
		CHECK_ERR(look(&w, "p"), ERR_OK);
		CHECK_ERR(apply(&w, ENTITY_DELETE, "p"), ERR_OK);
		CHECK_ERR(look(&w, "p"), ERR_NOT_FOUND);
	}
	service_free(w.service);
}

static void rename_partition(struct world *w, const char *from, const char *to)
{
	struct item table = { 0 };
	MUST(table_find(w->service, ACCOUNT, TABLE, &table) == ERR_OK);
	const struct dentry a = { .dir = &table, .class = CLASS_KEYED, .key = span_of(from) };
	const struct dentry b = { .dir = &table, .class = CLASS_KEYED, .key = span_of(to) };
	CHECK_ERR(tree_move(w->service, &a, &b, 0, NULL, NULL, NULL), ERR_OK);
	item_fini(&table);
}

TEST(a_renamed_partition_answers_to_its_new_key_only)
{
	struct world w;
	world_start(&w);
	CHECK_ERR(apply(&w, ENTITY_INSERT, "p"), ERR_OK);
	CHECK_ERR(look(&w, "p"), ERR_OK);
	rename_partition(&w, "p", "q");
	CHECK_ERR(look(&w, "p"), ERR_NOT_FOUND);
	CHECK_ERR(look(&w, "q"), ERR_OK);
	rename_partition(&w, "q", "p");
	CHECK_ERR(look(&w, "q"), ERR_NOT_FOUND);
	CHECK_ERR(look(&w, "p"), ERR_OK);
	service_free(w.service);
}

TEST(what_is_read_during_a_change_is_not_remembered)
{
	struct lookup_cache *k = lookup_cache_new();
	uint64_t id = 0, moment;
	MUST(k != NULL);
	CHECK(!lookup_cache_child(k, 1, SPAN_LIT("t"), &id, &moment));
	lookup_cache_child_is(k, 1, SPAN_LIT("t"), 7, moment);
	CHECK(lookup_cache_child(k, 1, SPAN_LIT("t"), &id, &moment) && id == 7);
	CHECK(!lookup_cache_child(k, 2, SPAN_LIT("t"), &id, &moment));
	lookup_cache_changing(k);
	CHECK(!lookup_cache_child(k, 1, SPAN_LIT("t"), &id, &moment));
	lookup_cache_child_is(k, 1, SPAN_LIT("t"), 7, moment);
	CHECK(!lookup_cache_child(k, 1, SPAN_LIT("t"), &id, &moment));
	lookup_cache_changed(k);
	lookup_cache_child_is(k, 1, SPAN_LIT("t"), 7, moment);
	CHECK(!lookup_cache_child(k, 1, SPAN_LIT("t"), &id, &moment));
	lookup_cache_free(k);
}

RUN_TESTS(T(a_new_key_counts_at_once_while_others_ask), T(a_removed_account_is_gone_at_once),
	T(a_table_that_is_made_again_is_another_one), T(a_partition_that_comes_back_is_found),
	T(a_renamed_partition_answers_to_its_new_key_only),
	T(what_is_read_during_a_change_is_not_remembered))
