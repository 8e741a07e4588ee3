/* SPDX-License-Identifier: MIT
 * What the check of a store counts and says of ordinary files, over both engines. */
#include "check.h"
#include "model/filename.h"
#include "service/check/verify.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/tree/tree.h"
#include "service_table.h"
#include "store/engines.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MUST(cond_) BUG_ON(!(cond_))
#define DEPTH 400

struct world {
	char path[32]; /* "": in memory */
	struct store *store;
	struct service *service;
	uint64_t table, partition;
	char said[2048];
};

static void world_init(struct world *w, bool in_memory)
{
	struct item p = { 0 };
	*w = (struct world){ 0 };
	if (in_memory) {
		MUST(store_open_memory(&w->store) == ERR_OK);
	} else {
		(void)snprintf(w->path, sizeof(w->path), "/tmp/rowfs-verify-XXXXXX");
		int fd = mkstemp(w->path);
		MUST(fd >= 0 && close(fd) == 0 && unlink(w->path) == 0);
		MUST(store_create(w->path, NULL) == ERR_OK);
		MUST(store_open(w->path, 0, &w->store, NULL, NULL) == ERR_OK);
	}
	MUST(service_new(w->store, &w->service) == ERR_OK);
	uint64_t account;
	service_table(w->service, &account, &w->table);
	service_partition(w->service, w->table, &p);
	w->partition = p.id;
	item_fini(&p);
}

static void world_fini(struct world *w)
{
	service_free(w->service);
	if (w->path[0] != '\0')
		(void)unlink(w->path);
}

static uint64_t put(struct world *w, uint64_t parent, enum item_kind kind, struct span name)
{
	struct change c = { .op = CHANGE_PUT,
		.kind = kind,
		.at = { .parent = parent, .class = CLASS_NAMED, .key = name },
		.attrs = ATTRS_UNSET,
		.version = store_version_floor(w->store) + 1 };
	MUST(store_apply(w->store, &c, 1, false, NULL) == ERR_OK);
	uint64_t id = c.now.id;
	changes_fini(&c, 1);
	return id;
}

static uint64_t put_file(struct world *w, uint64_t parent, const char *name)
{
	return put(w, parent, ITEM_FILE, span_of(name));
}

static uint64_t put_folder(struct world *w, uint64_t parent, const char *name)
{
	return put(w, parent, ITEM_FOLDER, span_of(name));
}

static bool on_finding(void *arg, const char *finding)
{
	struct world *w = arg;
	size_t n = strlen(w->said);
	(void)snprintf(w->said + n, sizeof(w->said) - n, "; %s", finding);
	return true;
}

/* "FILES FINDINGS; finding; finding". */
static const char *verify(struct world *w)
{
	static char text[2100];
	struct verify_counts counts;
	w->said[0] = '\0';
	enum err e = service_verify(w->service, on_finding, NULL, w, &counts);
	CHECK_ERR(e, counts.findings > 0 ? ERR_CORRUPT : ERR_OK);
	CHECK_EQ_INT(counts.partitions, 1);
	(void)snprintf(
		text, sizeof(text), "%d %d%s", (int)counts.files, (int)counts.findings, w->said);
	return text;
}

TEST(files_are_counted_wherever_they_are)
{
	for (int engine = 0; engine < 2; engine++) {
		struct world w;
		world_init(&w, engine == 0);
		CHECK_EQ_STR(verify(&w), "0 0");
		put_file(&w, w.partition, "beside");
		(void)put_folder(&w, w.partition, ".empty");
		uint64_t several = put_folder(&w, w.partition, ".several");
		put_file(&w, put_folder(&w, several, "a"), "file");
		(void)put_folder(&w, several, "b");
		put_file(&w, put_folder(&w, several, "c"), "file");
		put_file(&w, several, "d");
		CHECK_EQ_STR(verify(&w), "4 0");
		char key[LIMIT_NAME_BYTES + 1], to_be[LIMIT_NAME_BYTES + 1];
		(void)memset(key, 'k', sizeof(key));
		(void)filename_encode(span_make(key, sizeof(key)), FILENAME_PARTITION, to_be);
		put_file(&w, put_folder(&w, w.table, to_be), "file");
		CHECK_EQ_STR(verify(&w), "5 0");
		put_file(&w, STORE_REJECTED, "1");
		put_file(&w, STORE_TRASH, "1");
		put_file(&w, STORE_TRASH, "2");
		CHECK_EQ_STR(verify(&w), "8 0");
		put_file(&w, STORE_ORPHANS, "1"); /* it was removed */
		CHECK_EQ_STR(verify(&w), "8 0");
		world_fini(&w);
	}
}

TEST(folders_are_looked_into_however_deep_they_are)
{
	for (int engine = 0; engine < 2; engine++) {
		struct world w;
		world_init(&w, engine == 0);
		uint64_t at = w.partition;
		for (int depth = 0; depth < DEPTH; depth++) {
			put_file(&w, at, "before");
			uint64_t deeper = put_folder(&w, at, "folder");
			put_file(&w, put_folder(&w, at, "later folder"), "behind");
			at = deeper;
		}
		put_file(&w, at, "last");
		CHECK_EQ_STR(verify(&w), "801 0");
		put_file(&w, at, "no/name");
		CHECK_EQ_STR(verify(&w),
			"802 1; acct/Tab/p/no/name: the name of an ordinary file is not allowed");
		world_fini(&w);
	}
}

TEST(names_of_files_are_held_against_the_rule_wherever_they_are)
{
	char name[LIMIT_FILE_NAME_BYTES + 1];
	memset(name, 'x', sizeof(name));
	struct span longest = span_make(name, LIMIT_FILE_NAME_BYTES);
	struct span too_long = span_make(name, LIMIT_FILE_NAME_BYTES + 1);
	for (int engine = 0; engine < 2; engine++) {
		struct world w;
		world_init(&w, engine == 0);
		uint64_t folder = put_folder(&w, w.partition, ".f");
		const struct {
			uint64_t dir;
			const char *where;
		} places[] = { { w.partition, "acct/Tab/p/" }, { folder, "acct/Tab/p/" },
			{ STORE_REJECTED, ".rowfs/rejected/" }, { STORE_TRASH, ".rowfs/trash/" } };
		for (int i = 0; i < 4; i++) {
			put(&w, places[i].dir, ITEM_FILE, longest);
			CHECK(strstr(verify(&w), " 0") != NULL);
			uint64_t id = put(&w, places[i].dir, ITEM_FILE, too_long);
			char want[256];
			(void)snprintf(want, sizeof(want),
				"%d 1; %s%.80s: the name of an ordinary file is not allowed", i + 2,
				places[i].where, name);
			CHECK_EQ_STR(verify(&w), want);
			CHECK_ERR(tree_drop(w.service, id), ERR_OK);
		}
		world_fini(&w);
	}
}

/* clang-format off */
RUN_TESTS(
	T(files_are_counted_wherever_they_are),
	T(folders_are_looked_into_however_deep_they_are),
	T(names_of_files_are_held_against_the_rule_wherever_they_are))
/* clang-format on */
