/* SPDX-License-Identifier: MIT
 * stat: what a store holds.  Rows are not read: a partition knows how many children it
 * has, and the ordinary files among them are counted.  Of messages the keys are read.  Which
 * partitions are hot is known only where the store is being served.  Of an account elsewhere the tables
 * are listed, which is one request; each other count would cost more. */
#include "base/clock.h"
#include "cloud/traffic.h"
#include "codec/json_build.h"
#include "daemon/core/hottest.h"
#include "daemon/core/progress.h"
#include "model/key.h"
#include "model/limits.h"
#include "service/core/admission.h"
#include "service/core/faults.h"
#include "service/queue/queue_stats.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST 10
#define PAGE 1024 /* partitions between two calls of the store */

struct large {
	uint64_t rows;
	char *path[3]; /* account, table, PartitionKey */
};

struct totals {
	uint64_t accounts, tables, partitions, rows;
	struct queue_stats queues;
	uint64_t files;                /* ordinary ones under names that could have been rows' */
	struct large largest[LARGEST]; /* most rows first */
	size_t nlargest;
};

struct id {
	uint64_t id, size;
	bool empty_rows; /* there may be some */
	char *name;      /* partitions: the key in order form */
};

struct walk {
	struct cmd_env *env;
	struct store *store;
	struct store_view *view;
	struct totals *totals;
	bool shallow; /* down to the tables */
	const char *account, *table;
	struct id *children; /* of the directory being listed */
	size_t n, cap;
	enum err e;
};

static void drop(struct large *l)
{
	for (size_t i = 0; i < ARRAY_LEN(l->path); i++)
		free(l->path[i]);
}

static enum err remember(struct walk *w, const struct id *partition, uint64_t rows)
{
	struct totals *t = w->totals;
	size_t at = t->nlargest;
	while (at > 0 && t->largest[at - 1].rows < rows)
		at--;
	if (at == LARGEST)
		return ERR_OK;
	char *key = strdup(partition->name);
	struct large l = { rows, { strdup(w->account), strdup(w->table), key } };
	if (l.path[0] == NULL || l.path[1] == NULL || key == NULL) {
		drop(&l);
		return ERR_NO_MEMORY;
	}
	key_from_order(key, strlen(key), key);
	if (t->nlargest == LARGEST)
		drop(&t->largest[--t->nlargest]);
	memmove(&t->largest[at + 1], &t->largest[at], (t->nlargest - at) * sizeof(l));
	t->largest[at] = l;
	t->nlargest++;
	return ERR_OK;
}

/* Collects children; of partitions a page at a time. */
static bool collect(void *arg, const struct item *it)
{
	struct walk *w = arg;
	struct span name = it->kind == ITEM_TABLE ? it->name : it->key;
	if (w->n == w->cap) {
		size_t cap = w->cap == 0 ? 64 : w->cap * 2;
		struct id *more = reallocarray(w->children, cap, sizeof(*more));
		if (more == NULL) {
			w->e = ERR_NO_MEMORY;
			return false;
		}
		w->children = more;
		w->cap = cap;
	}
	bool empty_rows = (it->flags & ITEM_HELD_EMPTY) != 0;
	w->children[w->n] = (struct id){ it->id, it->size, empty_rows, strndup(name.p, name.n) };
	if (w->children[w->n].name == NULL) {
		w->e = ERR_NO_MEMORY;
		return false;
	}
	w->n++;
	return it->kind != ITEM_PARTITION || w->n < PAGE;
}

struct named {
	uint64_t all, files;
};

/* Files with a leading dot are meant to be files; what ends in .json waits for its document. */
static bool count_one(void *arg, const struct item *it)
{
	struct named *n = arg;
	n->all++;
	n->files += it->kind == ITEM_FILE && it->key.n > 0 && it->key.p[0] != '.' &&
		!span_ends(it->key, SPAN_LIT(".json"));
	return true;
}

static bool count_empty(void *arg, const struct item *it)
{
	*(uint64_t *)arg += item_is_empty_row(it);
	return true;
}

static enum err walk_partition(struct walk *w, const struct id *partition)
{
	struct named named = { 0 };
	uint64_t empty = 0;
	enum err e = store_list(w->store, w->view, partition->id, CLASS_NAMED, (struct span){ 0 },
		false, WANT_ATTRS, count_one, &named);
	if (e == ERR_OK && partition->empty_rows)
		e = store_list(w->store, w->view, partition->id, CLASS_KEYED, (struct span){ 0 },
			false, WANT_ATTRS, count_empty, &empty);
	if (e != ERR_OK)
		return e;
	uint64_t others = named.all + empty;
	uint64_t rows = partition->size > others ? partition->size - others : 0;
	w->totals->files += named.files;
	w->totals->partitions++;
	w->totals->rows += rows;
	return remember(w, partition, rows);
}

/* Calls fn for each child directory of parent. */
static enum err each(
	struct walk *w, uint64_t parent, enum err (*fn)(struct walk *w, const struct id *child))
{
	struct walk page = *w;
	struct span after = { 0 };
	char *last = NULL;
	enum err e;
	bool more;
	page.children = NULL;
	page.cap = 0;
	do {
		page.n = 0;
		page.e = ERR_OK;
		e = store_list(w->store, w->view, parent, CLASS_KEYED, after, false, WANT_ATTRS,
			collect, &page);
		if (e == ERR_OK)
			e = page.e;
		if (e == ERR_OK && w->env->cancelled(w->env->cancel_arg))
			e = ERR_CANCELLED;
		for (size_t i = 0; e == ERR_OK && i < page.n; i++)
			e = fn(w, &page.children[i]);
		more = e == ERR_OK && page.n == PAGE && fn == walk_partition;
		free(last);
		last = more ? strdup(page.children[page.n - 1].name) : NULL;
		after = last != NULL ? span_of(last) : (struct span){ 0 };
		for (size_t i = 0; i < page.n; i++)
			free(page.children[i].name);
	} while (more && last != NULL);
	free(page.children);
	return more ? ERR_NO_MEMORY : e;
}

static enum err walk_table(struct walk *w, const struct id *table)
{
	w->totals->tables++;
	w->table = table->name;
	return w->shallow ? ERR_OK : each(w, table->id, walk_partition);
}

static enum err walk_account(struct walk *w, const struct id *account)
{
	w->totals->accounts++;
	w->account = account->name;
	return each(w, account->id, walk_table);
}

static enum err print_json(struct cmd_env *env, const struct totals *t,
	const struct store_info *info, const struct hottest *hottest)
{
	struct json_build b;
	json_begin(&b);
	json_add_count(&b, "accounts", t->accounts);
	json_add_count(&b, "tables", t->tables);
	if (info->traffic == NULL) {
		json_add_count(&b, "partitions", t->partitions);
		json_add_count(&b, "rows", t->rows);
		json_add_count(&b, "files", t->files);
	}
	json_add_count(&b, "queues", t->queues.queues);
	json_add_count(&b, "messages", t->queues.messages);
	json_add_count(&b, "visible_messages", t->queues.visible);
	if (t->queues.oldest >= 0)
		json_add_count(&b, "oldest_message_seconds", (uint64_t)t->queues.oldest);
	json_add_count(&b, "bytes", info->bytes);
	json_add_count(&b, "log_bytes", info->log_bytes);
	json_add_count(&b, "file_bytes", info->file_bytes);
	json_add_count(&b, "blob_bytes", info->piece_bytes);
	json_open_array(&b, "largest_partitions");
	for (size_t i = 0; i < t->nlargest; i++) {
		json_open_object(&b, NULL);
		json_add_str(&b, "account", t->largest[i].path[0]);
		json_add_str(&b, "table", t->largest[i].path[1]);
		json_add_str(&b, "partition_key", t->largest[i].path[2]);
		json_add_count(&b, "rows", t->largest[i].rows);
		json_close(&b);
	}
	json_close(&b);
	hottest_add(&b, hottest);
	if (info->traffic != NULL)
		traffic_add(&b, info->traffic);
	json_add_count(
		&b, "fault_rules", faults_rules(service_faults(env->service), clock_mono_us()));
	return json_end_print(&b, env->out);
}

static void print_bytes(FILE *out, const struct store_info *info)
{
	char a[NUMBER_MAX], b[NUMBER_MAX];
	if (!info->remote)
		fprintf(out, "on disk     %s, of that %s of log\n", size_text(info->bytes, a),
			size_text(info->log_bytes, b));
	else if (info->bytes > 0)
		fprintf(out, "on disk     %s in the whole pool, before copies\n",
			size_text(info->bytes, a));
	else
		fputs("on disk     not known: the manager of the cluster does not tell\n", out);
}

/* "3 read, 1,200 query ..." */
static void print_traffic(FILE *out, const struct traffic *t)
{
	char a[NUMBER_MAX];
	uint64_t all = 0;
	for (enum traffic_kind kind = 0; kind < TRAFFIC_KINDS_; kind++)
		all += atomic_load(&t->sent[kind]);
	fprintf(out, "requests    %s since it was mounted:", number_text(all, a));
	for (enum traffic_kind kind = 0; kind < TRAFFIC_KINDS_; kind++)
		fprintf(out, "%s %s %s", kind > 0 ? "," : "",
			number_text(atomic_load(&t->sent[kind]), a), traffic_kind_name(kind));
	fprintf(out, "\n            %s of them again after a fault\n",
		number_text(atomic_load(&t->again), a));
}

static void print_largest(FILE *out, const struct totals *t, const struct store_info *info)
{
	char a[NUMBER_MAX];
	if (t->nlargest > 0)
		fputs("\nlargest partitions\n", out);
	for (size_t i = 0; i < t->nlargest; i++)
		fprintf(out, "%12s  %s/%s/%s\n", number_text(t->largest[i].rows, a),
			t->largest[i].path[0], t->largest[i].path[1],
			t->largest[i].path[2][0] != '\0' ? t->largest[i].path[2] : "%_");
	if (t->nlargest > 0 && info->large_rows > 0 && t->largest[0].rows >= info->large_rows)
		fprintf(out,
			"warning: partitions of %s rows and more: their writers wait for "
			"seconds when Ceph recovers them\n",
			number_text(info->large_rows, a));
}

static void print_text(struct cmd_env *env, const struct totals *t, const struct store_info *info,
	const struct hottest *hottest)
{
	char a[NUMBER_MAX], b[NUMBER_MAX], c[NUMBER_MAX];
	fprintf(env->out, "accounts    %s\n", number_text(t->accounts, a));
	fprintf(env->out, "tables      %s\n", number_text(t->tables, a));
	if (info->traffic != NULL) {
		print_traffic(env->out, info->traffic);
	} else {
		fprintf(env->out, "partitions  %s\n", number_text(t->partitions, a));
		fprintf(env->out, "rows        %s\n", number_text(t->rows, a));
	}
	fprintf(env->out, "queues      %s\n", number_text(t->queues.queues, a));
	if (t->queues.queues > 0)
		fprintf(env->out, "messages    %s, of that %s visible",
			number_text(t->queues.messages, a), number_text(t->queues.visible, b));
	if (t->queues.oldest >= 0)
		fprintf(env->out, "; the oldest was put %s s ago",
			number_text((uint64_t)t->queues.oldest, a));
	if (t->queues.queues > 0)
		fputs("\n", env->out);
	print_bytes(env->out, info);
	fprintf(env->out, "files       %s beside the rows\n", size_text(info->file_bytes, c));
	if (info->piece_bytes > 0)
		fprintf(env->out, "blobs       %s\n", size_text(info->piece_bytes, c));
	if (t->files > 0)
		fprintf(env->out,
			"            %s in partitions are no rows: a row's name ends in .json\n",
			number_text(t->files, a));
	print_largest(env->out, t, info);
	hottest_print(env->out, hottest);
	struct buf rules = BUF_INIT(FAULTS_SHOWN_MAX);
	faults_write(service_faults(env->service), clock_mono_us(), &rules);
	if (rules.len > 0)
		fprintf(env->out, "\nfaults on order: requests of the REST socket fail\n%.*s",
			(int)rules.len, rules.data);
	buf_fini(&rules);
}

static int run(struct cmd_env *env, const struct args *args)
{
	struct totals t = { 0 };
	struct store_info info;
	struct walk w = { .env = env, .store = service_store(env->service), .totals = &t };
	store_info(w.store, &info);
	w.shallow = info.traffic != NULL;
	enum err e = store_view_hold(w.store, &w.view);
	if (e == ERR_OK)
		e = each(&w, STORE_ROOT, walk_account);
	if (e == ERR_OK)
		e = queue_stats(env->service, w.view, true, &t.queues);
	store_view_close(w.store, w.view);
	store_info(w.store, &info);
	struct hottest *hottest = hottest_partitions(env->service);
	if (e == ERR_OK && args_has(args, "json"))
		e = print_json(env, &t, &info, hottest);
	else if (e == ERR_OK)
		print_text(env, &t, &info, hottest);
	free(hottest);
	for (size_t i = 0; i < t.nlargest; i++)
		drop(&t.largest[i]);
	if (e != ERR_OK)
		return command_fail(env->err, "stat", "'%s': %s", env->store, err_text(e));
	return EXIT_DONE;
}

static const struct option_spec options[] = {
	{ "json", 0, NULL, "as one JSON object" },
	{ NULL },
};

const struct command command_stat = {
	.name = "stat",
	.topic = TOPIC_CARE,
	.synopsis = "STORE [--json]",
	.summary = "Counts accounts, tables, partitions, rows, messages and bytes",
	.help = "Lists the largest partitions and, of a store that is being served, the hottest.  STORE may be the\n"
		"directory where it is mounted.  Of an account elsewhere, that or the URL, it counts the tables and\n"
		"the requests that the mount has made, by kind.\n",
	.options = options,
	.min_words = 1,
	.max_words = 1,
	.flags = COMMAND_READS | COMMAND_MOUNTED,
	.data = run,
};
