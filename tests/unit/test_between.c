/* SPDX-License-Identifier: MIT
 * What requests of the mount answer where another front end, or another writer, changes the store between
 * two of their looks, or has changed it and not kept yet what was there before: real requests
 * (tests/fuzz/fuse_kernel.h) over an engine that does something more after a call of its own. */
#include "../fuzz/fuse_nodes.h"
#include "check.h"
#include "fs/core/nid.h"
#include "fs/fs.h"
#include "model/filename.h"
#include "model/key.h"
#include "service/change/adoption.h"
#include "service/change/entities.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service_table.h"
#include "store/engines.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MUST(cond_) BUG_ON(!(cond_))

/* ---- an engine with something in between ---- */

struct world {
	struct kernel k;
	struct service *service;
	uint64_t table, partition;
	char rk[2 * LIMIT_KEY_BYTES], name[256];
};

static const struct store_ops *real;
static struct {
	struct world *w;
	int calls; /* until then; 0: never */
	void (*in_between)(struct world *w);
	void (*committed)(struct world *w); /* not kept yet */
} next;

static void called(void)
{
	if (next.in_between == NULL || next.calls == 0 || --next.calls > 0)
		return;
	void (*fn)(struct world * w) = next.in_between;
	next.in_between = NULL;
	fn(next.w);
}

static enum err get(
	struct store *s, struct store_view *v, uint64_t id, unsigned want, struct item *ret)
{
	enum err e = real->get(s, v, id, want, ret);
	called();
	return e;
}

static enum err child(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	struct span key, unsigned want, struct item *ret)
{
	enum err e = real->child(s, v, parent, class, key, want, ret);
	called();
	return e;
}

static enum err list(struct store *s, struct store_view *v, uint64_t parent, enum item_class class,
	struct span after, bool inclusive, unsigned want, store_list_fn fn, void *arg,
	bool *ret_more)
{
	enum err e = real->list(s, v, parent, class, after, inclusive, want, fn, arg, ret_more);
	called();
	return e;
}

static enum err apply(
	struct store *s, struct change *changes, size_t n, bool durable, struct err_detail *reterr)
{
	called();
	enum err e = real->apply(s, changes, n, durable, reterr);
	void (*fn)(struct world * w) = next.committed;
	next.committed = NULL;
	if (e == ERR_OK && fn != NULL)
		fn(next.w);
	return e;
}

/* ---- a world with one partition ---- */

static struct node dir_of(const struct world *w)
{
	return w->k.nodes[3];
}

static struct span name_of(const struct world *w)
{
	return span_make(w->name, strlen(w->name) + 1);
}

/* The row that it is about: its key, 1 or very long. */
static void begin(struct world *w, size_t key_len)
{
	static struct store_ops ops;
	const struct fuse_mkdir_in in = { .mode = 0755, .umask = 022 };
	struct store *store;
	struct item it = { 0 };
	*w = (struct world){ .k.pid = 10 };
	memset(w->rk, 'r', key_len);
	size_t n = filename_encode(span_of(w->rk), FILENAME_ROW, w->name);
	w->name[n] = '\0';
	MUST(store_open_memory(&store) == ERR_OK && service_new(store, &w->service) == ERR_OK);
	uint64_t account;
	service_table(w->service, &account, &w->table);
	w->k.fs = fuse_kernel_begin(w->service);
	w->k.nodes[0] = (struct node){ FUSE_ROOT_ID, 1, false };
	MUST(kernel_lookup(&w->k, &w->k.nodes[0], PART("acct")) != NULL);
	MUST(kernel_lookup(&w->k, &w->k.nodes[1], PART("Tab")) != NULL);
	MUST(kernel_answered(&w->k,
		     kernel_ask(&w->k, FUSE_MKDIR, w->k.nodes[2].id, PART(in), PART("p")),
		     &w->k.nodes[2], PART("p")) != NULL);
	MUST(store_child(store, NULL, w->table, CLASS_KEYED, SPAN_LIT("p"), WANT_ATTRS, &it) ==
		ERR_OK);
	w->partition = it.id;
	item_fini(&it);
	(void)kernel_lookup(&w->k, &w->k.nodes[3], PART("none"));
	real = store->ops;
	ops = *real;
	ops.get = get;
	ops.child = child;
	ops.list = list;
	ops.apply = apply;
	store->ops = &ops;
	memset(&next, 0, sizeof(next));
	next.w = w;
}

static void end(struct world *w)
{
	next.in_between = next.committed = NULL;
	for (unsigned i = 0; i < HANDLES; i++) {
		if (w->k.handles[i].used)
			kernel_release(&w->k, &w->k.handles[i]);
	}
	for (unsigned i = 0; i < NODES; i++)
		kernel_forget(&w->k, &w->k.nodes[i]);
	fuse_kernel_end(w->k.fs);
	service_free(w->service);
}

/* By another front end. */
static enum err change(struct world *w, enum entity_op_kind kind, const char *json)
{
	struct entity e = { 0 };
	struct entity_op op = { .kind = kind,
		.pk = SPAN_LIT("p"),
		.rk = span_of(w->rk),
		.entity = &e,
		.attrs = ATTRS_UNSET };
	if (json != NULL)
		MUST(entity_json_decode(span_of(json), ENTITY_JSON_FILE, &e, NULL, NULL) == ERR_OK);
	enum err result =
		entities_apply(w->service, ORIGIN_REST, w->table, &op, 1, ENTITIES_SET, NULL);
	entity_fini(&e);
	return result;
}

/* ---- a first commit in between ---- */

/* The empty file that waits for its document, made visible. */
static void make_empty_row(struct world *w)
{
	struct node dir = dir_of(w);
	MUST(kernel_create(&w->k, &dir, name_of(w), O_WRONLY) != NULL);
	w->k.pid = 11;
	MUST(kernel_lookup(&w->k, &dir, name_of(w)) != NULL);
}

static bool committed;

/* As fs/write/stage_commit.c does it. */
static void commit_first(struct world *w)
{
	static char document[3 * LIMIT_KEY_BYTES];
	struct item waits = { 0 }, now = { 0 };
	(void)snprintf(document, sizeof(document), "{\"RowKey\":\"%s\",\"A\":1}", w->rk);
	struct entity_op op = { .kind = ENTITY_UPSERT,
		.pk = SPAN_LIT("p"),
		.rk = span_of(w->rk),
		.document = span_of(document),
		.document_flags = ITEM_KEYS_INSIDE,
		.attrs = ATTRS_UNSET };
	struct store *store = service_store(w->service);
	struct span key = span_of(w->rk);
	if (store_child(store, NULL, w->partition, CLASS_NAMED, span_of(w->name), WANT_ATTRS,
		    &waits) == ERR_OK)
		MUST(adopt_file(w->service, ORIGIN_MOUNT, &waits, w->partition, key, &now) ==
			ERR_OK);
	item_fini(&waits);
	item_fini(&now);
	if (store_child(store, NULL, w->partition, CLASS_KEYED, key, WANT_ATTRS, &waits) ==
		ERR_OK) {
		op.if_id = waits.id;
		MUST(entity_commit_document(w->service, ORIGIN_MOUNT, w->table, &op, false, &now,
			     NULL, NULL) == ERR_OK);
		committed = true;
	}
	item_fini(&waits);
	item_fini(&now);
}

static int look(struct world *w, struct span name)
{
	struct fuse_entry_out out;
	const struct fuse_answer *a = kernel_ask(&w->k, FUSE_LOOKUP, dir_of(w).id, name, NONE);
	if (a->error != 0)
		return a->error;
	memcpy(&out, a->data, sizeof(out));
	return out.nodeid == 0 ? ENOENT : 0;
}

static int look_up(struct world *w)
{
	return look(w, name_of(w));
}

static int look_again(struct world *w)
{
	return look_up(w);
}

static int unlink_it(struct world *w)
{
	return kernel_ask(&w->k, FUSE_UNLINK, dir_of(w).id, name_of(w), NONE)->error;
}

static int is_gone(struct world *w)
{
	return look_up(w) == ENOENT ? 0 : EEXIST;
}

static int move_to(struct world *w, struct span name)
{
	const struct fuse_rename2_in in = { .newdir = dir_of(w).id };
	return fuse_ask(w->k.fs, FUSE_RENAME2, dir_of(w).id, w->k.pid, PART(in), name_of(w), name)
		->error;
}

static int rename_it(struct world *w)
{
	return move_to(w, PART("other.json"));
}

static int is_renamed(struct world *w)
{
	return look_up(w) == ENOENT ? look(w, PART("other.json")) : EEXIST;
}

static int make_ordinary(struct world *w)
{
	return move_to(w, PART("ordinary"));
}

static int is_ordinary(struct world *w)
{
	return look_up(w) == ENOENT ? look(w, PART("ordinary")) : EEXIST;
}

/* Whatever call of the store the commit comes after. */
static void check_first_commit(
	size_t key_len, int (*ask)(struct world *w), int (*outcome)(struct world *w))
{
	static struct world w;
	unsigned before = check_failures, commits = 0;
	bool over = false;
	for (int n = 1; !over && check_failures == before; n++) {
		begin(&w, key_len);
		make_empty_row(&w);
		committed = false;
		next.calls = n;
		next.in_between = commit_first;
		int code = ask(&w);
		over = next.in_between != NULL; /* it makes fewer calls than that */
		next.in_between = NULL;
		commits += committed;
		CHECK_EQ_INT(code, 0);
		CHECK_EQ_INT(outcome(&w), 0);
		if (check_failures != before)
			printf("# with the commit after call %d\n", n);
		end(&w);
	}
	CHECK(commits >= 2);
}

TEST(a_name_is_found_at_the_moment_of_its_first_commit)
{
	check_first_commit(1, look_up, look_again);
}

TEST(a_digest_name_is_found_at_the_moment_of_its_first_commit)
{
	check_first_commit(400, look_up, look_again);
}

TEST(what_becomes_a_row_while_it_is_removed_is_removed)
{
	check_first_commit(1, unlink_it, is_gone);
	check_first_commit(400, unlink_it, is_gone);
}

TEST(what_becomes_a_row_while_it_is_renamed_is_renamed)
{
	check_first_commit(1, rename_it, is_renamed);
	check_first_commit(1, make_ordinary, is_ordinary);
	check_first_commit(400, make_ordinary, is_ordinary);
}

/* ---- a close in between ---- */

static void upsert(struct world *w)
{
	static char document[3 * LIMIT_KEY_BYTES];
	(void)snprintf(document, sizeof(document), "{\"A\":1}");
	committed = change(w, ENTITY_UPSERT, document) == ERR_OK;
}

/* A writer of a name that was new when he opened it: whatever call of the store the row of another
 * one comes after, the last close wins. */
static void check_last_close(size_t key_len, void (*other)(struct world *w))
{
	static struct world w;
	unsigned before = check_failures, commits = 0;
	bool over = false;
	for (int n = 1; !over && check_failures == before; n++) {
		char document[3 * LIMIT_KEY_BYTES];
		struct item row = { 0 };
		begin(&w, key_len);
		struct node dir = dir_of(&w);
		struct handle *h = kernel_create(&w.k, &dir, name_of(&w), O_WRONLY);
		MUST(h != NULL && kernel_lookup(&w.k, &dir, name_of(&w)) != NULL);
		(void)snprintf(document, sizeof(document), "{\"RowKey\":\"%s\",\"B\":2}", w.rk);
		MUST(kernel_write_at(&w.k, h, 0, span_of(document)) == 0);
		committed = false;
		next.calls = n;
		next.in_between = other;
		int code = kernel_flush(&w.k, h);
		over = next.in_between != NULL;
		next.in_between = NULL;
		commits += committed;
		CHECK_EQ_INT(code, 0);
		CHECK_ERR(store_child(service_store(w.service), NULL, w.partition, CLASS_KEYED,
				  span_of(w.rk), WANT_BODY, &row),
			ERR_OK);
		CHECK(span_eq(row.body, span_of(document)));
		item_fini(&row);
		if (check_failures != before)
			printf("# with the row after call %d\n", n);
		end(&w);
	}
	CHECK(commits >= 1);
}

TEST(who_closes_last_wins_at_the_moment_of_a_first_commit)
{
	check_last_close(1, commit_first);
	check_last_close(400, commit_first);
	check_last_close(1, upsert);
}

/* ---- between a commit and what is kept of it ---- */

static struct {
	pthread_t thread;
	atomic_bool answered;
	void (*ask)(struct world *w);
} asker;

static void *ask_thread(void *arg)
{
	asker.ask(arg);
	atomic_store(&asker.answered, true);
	return NULL;
}

/* The request begins now, and cannot be answered rightly before the commit goes on: it has as long as
 * a wrong answer takes. */
static void ask_now(struct world *w)
{
	atomic_store(&asker.answered, false);
	MUST(pthread_create(&asker.thread, NULL, ask_thread, w) == 0);
	for (int i = 0; i < 50 && !atomic_load(&asker.answered); i++)
		usleep(1000);
}

static void change_and_ask(
	struct world *w, enum entity_op_kind kind, const char *json, void (*ask)(struct world *w))
{
	asker.ask = ask;
	next.committed = ask_now;
	CHECK_ERR(change(w, kind, json), ERR_OK);
	MUST(pthread_join(asker.thread, NULL) == 0);
}

static const char before[] = "{\"A\":1,\"B\":\"before\"}";
static struct handle *opened;
static struct {
	int error;
	uint64_t size;
	uint32_t links, flags;
	char text[256];
} got;

static void take_attributes(const struct fuse_answer *a)
{
	struct fuse_attr_out out;
	got.error = a->error;
	if (a->error == 0) {
		memcpy(&out, a->data, sizeof(out));
		got.size = out.attr.size;
		got.links = out.attr.nlink;
	}
}

static void ask_attributes(struct world *w)
{
	const struct fuse_getattr_in in = { .getattr_flags = FUSE_GETATTR_FH, .fh = opened->fh };
	take_attributes(kernel_ask(&w->k, FUSE_GETATTR, opened->node, PART(in), NONE));
}

static void ask_bytes(struct world *w)
{
	const struct fuse_answer *a = kernel_read_at(&w->k, opened, 0, 200);
	got.error = a->error;
	(void)snprintf(got.text, sizeof(got.text), "%.*s", (int)a->n, a->data);
}

/* Of a row that was opened when it was an ordinary file. */
static void open_and_convert(struct world *w)
{
	const struct fuse_rename2_in in = { .newdir = dir_of(w).id };
	struct node dir = dir_of(w);
	struct handle *h = kernel_create(&w->k, &dir, PART("notes"), O_WRONLY);
	MUST(h != NULL && kernel_write_at(&w->k, h, 0, span_of(before)) == 0);
	kernel_release(&w->k, h);
	opened = kernel_open_named(&w->k, &dir, PART("notes"), O_RDONLY, NULL);
	MUST(opened != NULL);
	opened->held = true;
	MUST(fuse_ask(w->k.fs, FUSE_RENAME2, dir.id, w->k.pid, PART(in), PART("notes"), name_of(w))
			->error == 0);
}

static void check_converted(
	enum entity_op_kind kind, const char *json, void (*ask)(struct world *w))
{
	static struct world w;
	begin(&w, 1);
	open_and_convert(&w);
	memset(&got, 0, sizeof(got));
	change_and_ask(&w, kind, json, ask);
	CHECK_EQ_INT(got.error, 0);
	if (ask == ask_bytes) {
		CHECK_EQ_STR(got.text, before);
	} else {
		CHECK_EQ_INT(got.size, strlen(before));
		CHECK_EQ_INT(got.links, kind != ENTITY_DELETE);
	}
	end(&w);
}

TEST(a_read_waits_for_what_was_replaced_a_moment_ago)
{
	check_converted(ENTITY_REPLACE, "{\"A\":2}", ask_bytes);
	check_converted(ENTITY_DELETE, NULL, ask_bytes);
}

TEST(fstat_waits_for_what_was_replaced_a_moment_ago)
{
	check_converted(ENTITY_REPLACE, "{\"A\":2}", ask_attributes);
	check_converted(ENTITY_DELETE, NULL, ask_attributes);
}

/* ---- open(2)'s second try ---- */

static uint64_t node_now(struct world *w)
{
	struct node dir = dir_of(w), *n = kernel_lookup(&w->k, &dir, name_of(w));
	return n == NULL ? 0 : n->id;
}

static void ask_open(struct world *w)
{
	const struct fuse_open_in in = { .flags = O_RDONLY };
	const uint64_t node = opened->node;
	const struct fuse_answer *a = kernel_ask(&w->k, FUSE_OPEN, node, PART(in), NONE);
	struct fuse_open_out out;
	got.error = a->error;
	if (a->error != 0)
		return;
	memcpy(&out, a->data, sizeof(out));
	got.flags = out.open_flags;
	opened = kernel_opened(&w->k, a->data, node, O_RDONLY, false);
	ask_bytes(w);
}

/* It was refused once: its look-up found what is replaced or removed now. */
static void check_second_try(enum entity_op_kind kind, const char *json)
{
	static struct world w;
	struct handle walk = { 0 };
	begin(&w, 1);
	MUST(change(&w, ENTITY_INSERT, "{\"A\":0}") == ERR_OK);
	memset(&got, 0, sizeof(got));
	opened = &walk;
	walk.node = node_now(&w);
	MUST(change(&w, ENTITY_REPLACE, "{\"A\":1}") == ERR_OK);
	ask_open(&w);
	CHECK_EQ_INT(got.error, ESTALE);
	walk.node = node_now(&w);
	change_and_ask(&w, kind, json, ask_open);
	CHECK_EQ_INT(got.error, 0);
	CHECK_EQ_INT(got.flags & FOPEN_DIRECT_IO, 0);
	CHECK_EQ_STR(got.text, "{\"A\":1}\n");
	end(&w);
}

TEST(the_second_try_of_an_open_waits_for_what_its_look_up_found)
{
	check_second_try(ENTITY_REPLACE, "{\"A\":2}");
	check_second_try(ENTITY_DELETE, NULL);
}

/* ---- stat(2)'s second try ---- */

static void ask_node(struct world *w, uint64_t node)
{
	const struct fuse_getattr_in in = { 0 };
	memset(&got, 0, sizeof(got));
	take_attributes(kernel_ask(&w->k, FUSE_GETATTR, node, PART(in), NONE));
}

/* Removed between the look-up and the question, and made anew, and removed again. */
TEST(a_name_that_goes_twice_while_it_is_looked_at_was_there)
{
	static struct world w;
	begin(&w, 1);
	for (int turn = 0; turn < 2; turn++) {
		MUST(change(&w, ENTITY_INSERT, "{\"A\":0}") == ERR_OK);
		uint64_t node = node_now(&w);
		MUST(change(&w, ENTITY_DELETE, NULL) == ERR_OK);
		ask_node(&w, node);
		CHECK_EQ_INT(got.error, ESTALE);
		ask_node(&w, node); /* by a descriptor: nothing was looked up */
		CHECK_EQ_INT(got.error, ESTALE);
		MUST(change(&w, ENTITY_INSERT, "{\"A\":10}") == ERR_OK);
		node = node_now(&w);
		MUST(change(&w, ENTITY_DELETE, NULL) == ERR_OK);
		ask_node(&w, node);
		CHECK_EQ_INT(got.error, 0);
		CHECK_EQ_INT(got.size, strlen("{\"A\":10}\n"));
		CHECK_EQ_INT(got.links, 0);
		CHECK_EQ_INT(node_now(&w), 0);
	}
	end(&w);
}

/* ---- a second try where the row came by another name ---- */

/* The row, under its name, is read there, and then replaces what `opened` stands for. */
static uint64_t read_and_move(struct world *w, struct span to)
{
	struct node dir = dir_of(w);
	struct handle *h;
	MUST(change(w, ENTITY_INSERT, "{\"A\":1}") == ERR_OK);
	h = kernel_open_named(&w->k, &dir, name_of(w), O_RDONLY, NULL);
	MUST(h != NULL);
	kernel_release(&w->k, h);
	MUST(move_to(w, to) == 0);
	struct node *n = kernel_lookup(&w->k, &dir, to);
	return n == NULL ? 0 : n->id;
}

/* What is known of its content says the name before. */
static void check_moved(void (*ask)(struct world *w))
{
	static struct world w;
	struct handle walk = { 0 };
	begin(&w, 1);
	walk.node = read_and_move(&w, PART("other.json"));
	opened = &walk;
	uint64_t node = read_and_move(&w, PART("other.json"));
	MUST(node != 0 && node != walk.node);
	ask(&w);
	CHECK_EQ_INT(got.error, ESTALE);
	MUST(look(&w, PART("other.json")) == 0);
	walk.node = node;
	(void)snprintf(w.rk, sizeof(w.rk), "other");
	MUST(change(&w, ENTITY_DELETE, NULL) == ERR_OK);
	ask(&w);
	CHECK_EQ_INT(got.error, 0);
	end(&w);
}

static void ask_its_node(struct world *w)
{
	ask_node(w, opened->node);
}

static void ask_to_change_its_mode(struct world *w)
{
	const struct fuse_setattr_in in = { .valid = FATTR_MODE, .mode = S_IFREG | 0600 };
	memset(&got, 0, sizeof(got));
	take_attributes(kernel_ask(&w->k, FUSE_SETATTR, opened->node, PART(in), NONE));
}

TEST(the_second_try_finds_what_was_renamed_to_the_name)
{
	check_moved(ask_open);
	CHECK_EQ_STR(got.text, "{\"A\":1}\n");
	check_moved(ask_its_node);
	CHECK_EQ_INT(got.size, strlen("{\"A\":1}\n"));
	check_moved(ask_to_change_its_mode);
	CHECK_EQ_INT(got.links, 0);
}

/* The empty file's mode is that of the row which takes its place: it must not be lost. */
TEST(the_second_try_to_set_a_mode_meets_what_lives_on)
{
	static struct world w;
	struct handle walk = { 0 };
	pid_t pid;
	begin(&w, 1);
	pid = w.k.pid;
	MUST(change(&w, ENTITY_INSERT, "{\"A\":0}") == ERR_OK);
	opened = &walk;
	walk.node = node_now(&w);
	MUST(change(&w, ENTITY_DELETE, NULL) == ERR_OK);
	ask_to_change_its_mode(&w);
	CHECK_EQ_INT(got.error, ESTALE);
	w.k.pid = pid + 2; /* another's */
	make_empty_row(&w);
	w.k.pid = pid;
	walk.node = node_now(&w);
	commit_first(&w); /* to the same row: the node still stands for it */
	ask_to_change_its_mode(&w);
	CHECK_EQ_INT(got.error, 0);
	CHECK_EQ_INT(got.links, 1);
	end(&w);
}

/* ---- an old node ---- */

static uint64_t replaced;

/* Somebody asks for what has just been replaced: by no name, so that he is not told the new size. */
static void replace_and_ask(struct world *w)
{
	struct item row = { 0 };
	pid_t pid = w->k.pid;
	MUST(store_child(service_store(w->service), NULL, w->partition, CLASS_KEYED, span_of(w->rk),
		     WANT_ATTRS, &row) == ERR_OK);
	replaced = nid_of(&row);
	item_fini(&row);
	MUST(change(w, ENTITY_REPLACE, "{\"A\":200}") == ERR_OK);
	w->k.pid = pid + 1;
	for (int turn = 0; turn < 2; turn++) {
		ask_node(w, replaced);
		MUST(got.error == ESTALE || got.size == strlen("{\"A\":11}\n"));
	}
	w->k.pid = pid;
}

/* The kernel cuts its pages of a node to the size that it is told, or fills them with zeros: nobody
 * may read by them what has another. */
TEST(a_node_is_never_read_with_the_bytes_of_another)
{
	static struct world w;
	unsigned failures = check_failures, own = 0;
	bool over = false;
	for (int n = 1; !over && check_failures == failures; n++) {
		struct handle walk = { 0 };
		begin(&w, 1);
		MUST(change(&w, ENTITY_INSERT, "{\"A\":0}") == ERR_OK);
		opened = &walk;
		walk.node = node_now(&w);
		MUST(change(&w, ENTITY_REPLACE, "{\"A\":11}") == ERR_OK);
		ask_open(&w);
		CHECK_EQ_INT(got.error, ESTALE);
		replaced = 0;
		next.calls = n;
		next.in_between = replace_and_ask;
		uint64_t found = walk.node = node_now(&w);
		ask_open(&w);
		over = next.in_between != NULL;
		next.in_between = NULL;
		CHECK_EQ_INT(got.error, 0);
		CHECK_EQ_INT(got.flags & FOPEN_DIRECT_IO, 0);
		CHECK_EQ_STR(
			got.text, found == replaced || over ? "{\"A\":11}\n" : "{\"A\":200}\n");
		own += found == replaced;
		if (check_failures != failures)
			printf("# with the change after call %d\n", n);
		end(&w);
	}
	CHECK(own >= 1);
}

/* By a link, or by a name that a listing brought back. */
TEST(a_node_that_was_replaced_is_not_opened_without_a_look_up)
{
	static struct world w;
	struct handle walk = { 0 };
	const struct fuse_open_in in = { .flags = O_WRONLY };
	begin(&w, 1);
	MUST(change(&w, ENTITY_INSERT, "{\"A\":0}") == ERR_OK);
	opened = &walk;
	walk.node = node_now(&w);
	CHECK_EQ_INT(kernel_ask(&w.k, FUSE_OPEN, walk.node, PART(in), NONE)->error, ESTALE);
	CHECK_EQ_INT(kernel_ask(&w.k, FUSE_OPEN, walk.node, PART(in), NONE)->error, ESTALE);
	MUST(change(&w, ENTITY_REPLACE, "{\"A\":200}") == ERR_OK);
	for (int turn = 0; turn < 3; turn++) {
		ask_open(&w);
		CHECK_EQ_INT(got.error, ESTALE);
	}
	walk.node = node_now(&w);
	ask_open(&w);
	CHECK_EQ_INT(got.error, 0);
	CHECK_EQ_STR(got.text, "{\"A\":200}\n");
	end(&w);
}

/* ---- what waits for what ---- */

static void wait_kept(struct world *w)
{
	service_wait_retained(w->service);
	got.error = service_is_changing(w->service);
}

TEST(who_waits_goes_on_when_all_is_kept)
{
	static struct world w;
	begin(&w, 1);
	wait_kept(&w);
	CHECK_EQ_INT(got.error, 0);
	got.error = -1;
	change_and_ask(&w, ENTITY_INSERT, "{\"A\":1}", wait_kept);
	CHECK_EQ_INT(got.error, 0);
	end(&w);
}

RUN_TESTS(T(a_name_is_found_at_the_moment_of_its_first_commit),
	T(a_digest_name_is_found_at_the_moment_of_its_first_commit),
	T(what_becomes_a_row_while_it_is_removed_is_removed),
	T(what_becomes_a_row_while_it_is_renamed_is_renamed),
	T(who_closes_last_wins_at_the_moment_of_a_first_commit),
	T(a_read_waits_for_what_was_replaced_a_moment_ago),
	T(fstat_waits_for_what_was_replaced_a_moment_ago),
	T(the_second_try_of_an_open_waits_for_what_its_look_up_found),
	T(a_name_that_goes_twice_while_it_is_looked_at_was_there),
	T(the_second_try_finds_what_was_renamed_to_the_name),
	T(the_second_try_to_set_a_mode_meets_what_lives_on),
	T(a_node_is_never_read_with_the_bytes_of_another),
	T(a_node_that_was_replaced_is_not_opened_without_a_look_up),
	T(who_waits_goes_on_when_all_is_kept))
