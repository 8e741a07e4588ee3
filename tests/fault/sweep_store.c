/* SPDX-License-Identifier: MIT
 * The small store, its copies and its dumps. */
#include "sweep_store.h"

#include "calls.h"
#include "service/core/accounts.h"
#include "store/engines.h"
#include "sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sweep_ids ids;
static char top[80], folder[100];
static char *small; /* the file's bytes */
static size_t small_n;
static uint64_t first_new; /* ids from here on are new */

/* ---- making it ---- */

static int64_t version;

static struct change put(uint64_t parent, enum item_kind kind, const char *key, struct span body)
{
	bool named = kind == ITEM_FILE || kind == ITEM_FOLDER;
	return (struct change){ .op = CHANGE_PUT,
		.kind = kind,
		.version = ++version,
		.at = { .parent = parent,
			.class = named ? CLASS_NAMED : CLASS_KEYED,
			.key = span_of(key) },
		.name = SPAN_LIT("Tab"),
		.attrs = ATTRS_UNSET,
		.body = body };
}

static uint64_t make(struct store *s, struct change c)
{
	MUST_DO(store_apply(s, &c, 1, false, NULL));
	uint64_t id = c.now.id;
	changes_fini(&c, 1);
	return id;
}

static void write_to(struct store *s, uint64_t id, size_t n)
{
	char *text = malloc(n);
	MUST_DO(text ? ERR_OK : ERR_NO_MEMORY);
	for (size_t i = 0; i < n; i++)
		text[i] = (char)('a' + i % 23);
	struct change c = { .op = CHANGE_WRITE, .at = { .id = id }, .version = ++version };
	c.body = span_make(text, n);
	(void)make(s, c);
	free(text);
}

static void fill(struct store *s)
{
	char large[6000], key[8];
	struct span doc = SPAN_LIT("{\"A\":1}\n");
	int n = snprintf(large, sizeof(large), "{\"A\":\"%05000d\"}\n", 7);
	struct buf secrets = BUF_INIT(10000);
	MUST_DO(account_fresh_body(&secrets));
	ids.account = make(s, put(STORE_ROOT, ITEM_ACCOUNT, "acc", buf_span(&secrets)));
	buf_fini(&secrets);
	ids.table = make(s, put(ids.account, ITEM_TABLE, "tab", SPAN_LIT("")));
	ids.p = make(s, put(ids.table, ITEM_PARTITION, "p", doc));
	ids.a = make(s, put(ids.p, ITEM_ROW, "a", doc));
	ids.b = make(s, put(ids.p, ITEM_ROW, "b", span_make(large, (size_t)n)));
	ids.f = make(s, put(ids.p, ITEM_FILE, "f", doc));
	write_to(s, ids.f, 8);
	ids.g = make(s, put(ids.p, ITEM_FILE, "g", doc));
	write_to(s, ids.g, 40000);
	ids.folder = make(s, put(ids.p, ITEM_FOLDER, ".d", doc));
	ids.inner = make(s, put(ids.folder, ITEM_FILE, "inner", doc));
	write_to(s, ids.inner, 100);
	ids.q = make(s, put(ids.table, ITEM_PARTITION, "q", doc));
	for (int i = 0; i < 40; i++) {
		(void)snprintf(key, sizeof(key), "r%02d", i);
		(void)make(s, put(ids.q, ITEM_ROW, key, doc));
	}
}

static void read_small(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	MUST_DO(fd >= 0 && fstat(fd, &st) == 0 ? ERR_OK : ERR_IO);
	small_n = (size_t)st.st_size;
	small = malloc(small_n);
	MUST_DO(small && read(fd, small, small_n) == (ssize_t)small_n ? ERR_OK : ERR_IO);
	(void)close(fd);
}

void sweep_begin(const char *where)
{
	char path[128];
	struct store *s;
	(void)snprintf(top, sizeof(top), "%.40s/every-call-XXXXXX", where);
	MUST_DO(mkdtemp(top) ? ERR_OK : ERR_IO);
	(void)snprintf(folder, sizeof(folder), "%s/1", top);
	MUST_DO(mkdir(folder, 0700) == 0 ? ERR_OK : ERR_IO);
	sweep_path(path, sizeof(path), false);
	MUST_DO(store_create(path, NULL));
	MUST_DO(store_open(path, 0, &s, NULL, NULL));
	fill(s);
	store_close(s);
	first_new = ids.q + 41;
	read_small(path);
}

/* ---- its copies ---- */

static void empty_folder(void)
{
	char name[400];
	struct dirent *e;
	DIR *d = opendir(folder);
	MUST_DO(d ? ERR_OK : ERR_IO);
	while ((e = readdir(d)) != NULL) {
		(void)snprintf(name, sizeof(name), "%s/%s", folder, e->d_name);
		if (e->d_name[0] != '.')
			(void)unlink(name);
	}
	(void)closedir(d);
}

void sweep_path(char *out, size_t n, bool there)
{
	calls_watch("/dev/null/nothing");
	empty_folder();
	(void)snprintf(out, n, "%s/s.rowfs", folder);
	if (there) {
		int fd = open(out, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
		MUST_DO(fd >= 0 && write(fd, small, small_n) == (ssize_t)small_n ? ERR_OK : ERR_IO);
		(void)close(fd);
	}
	calls_watch(out);
}

bool sweep_folder_has_only(const char *path, char *extra, size_t n)
{
	const char *own = strrchr(path, '/') + 1;
	struct dirent *e;
	DIR *d = opendir(folder);
	MUST_DO(d ? ERR_OK : ERR_IO);
	while ((e = readdir(d)) != NULL) {
		const char *tail = e->d_name + strlen(own);
		bool is_own = strncmp(e->d_name, own, strlen(own)) == 0 &&
			(!*tail || strcmp(tail, ".v1") == 0 || strcmp(tail, ".v1.2") == 0);
		if (e->d_name[0] != '.' && !is_own)
			(void)snprintf(extra, n, "%s", e->d_name);
	}
	(void)closedir(d);
	return extra[0] == '\0';
}

void sweep_end(void)
{
	calls_watch("/dev/null/nothing");
	empty_folder();
	(void)rmdir(folder);
	(void)rmdir(top);
	free(small);
}

/* ---- its dumps ---- */

struct list {
	struct item *v;
	size_t n, cap;
};

static bool keep(void *arg, const struct item *it)
{
	struct list *l = arg;
	if (l->n == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 64;
		l->v = reallocarray(l->v, l->cap, sizeof(*l->v));
		MUST_DO(l->v ? ERR_OK : ERR_NO_MEMORY);
	}
	MUST_DO(item_copy(&l->v[l->n++], it));
	return true;
}

static void add_number(struct buf *out, const char *name, int64_t n, int64_t first)
{
	if (n >= first)
		buf_addf(out, " %s new", name);
	else
		buf_addf(out, " %s %" PRId64, name, n);
}

static void add_content(struct store *s, const struct item *it, struct buf *out)
{
	char bytes[4096];
	size_t n;
	for (uint64_t at = 0; at < it->size; at += n) {
		MUST_DO(store_file_read(s, NULL, it->id, at, bytes, sizeof(bytes), &n));
		MUST_DO(n > 0 ? ERR_OK : ERR_CORRUPT);
		buf_add(out, bytes, n);
	}
}

static void add_item(struct store *s, const struct item *it, struct buf *out)
{
	/* What is in the trash begins with the time. */
	size_t skip = it->parent == STORE_TRASH && it->key.n > 28 ? 28 : 0;
	if (it->kind == ITEM_MESSAGE) /* so does the key of a message, with three times */
		skip = 48;
	buf_addf(out, "%d %d ", (int)it->kind, (int)it->class);
	buf_add(out, it->key.p + skip, it->key.n - skip);
	buf_addf(out, " %.*s", (int)it->name.n, it->name.p);
	add_number(out, "id", (int64_t)it->id, (int64_t)first_new);
	add_number(out, "version", it->version, SWEEP_VERSION);
	add_number(out, "mtime", it->attrs.mtime_ns, INT64_C(1) << 40);
	add_number(out, "ctime", it->attrs.ctime_ns, INT64_C(1) << 40);
	buf_addf(out, " %x/%" PRIu64 " %u %x %u %u %zu ", it->flags, it->generation,
		(unsigned)it->size, it->attrs.mode, it->attrs.uid, it->attrs.gid, it->body.n);
	if (it->kind != ITEM_ACCOUNT) /* its keys are drawn */
		buf_add_span(out, it->body);
	if (it->kind == ITEM_FILE)
		add_content(s, it, out);
	buf_add_char(out, '\n');
}

static void add_children(struct store *s, uint64_t id, enum item_class class, struct buf *out)
{
	struct list l = { 0 };
	MUST_DO(store_list(
		s, NULL, id, class, (struct span){ NULL, 0 }, false, WANT_BODY, keep, &l));
	for (size_t i = 0; i < l.n; i++) {
		add_item(s, &l.v[i], out);
		if (item_is_dir(l.v[i].kind)) {
			add_children(s, l.v[i].id, CLASS_KEYED, out);
			add_children(s, l.v[i].id, CLASS_NAMED, out);
			add_children(s, l.v[i].id, CLASS_QUEUE, out);
			add_children(s, l.v[i].id, CLASS_BLOB, out);
		}
		item_fini(&l.v[i]);
	}
	free(l.v);
}

void sweep_dump(struct store *s, struct buf *out)
{
	static const uint64_t tops[] = { STORE_ROOT, STORE_REJECTED, STORE_TRASH, STORE_ORPHANS };
	struct store_info info;
	buf_clear(out);
	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++) {
		struct item it;
		MUST_DO(store_get(s, NULL, tops[i], WANT_ATTRS, &it));
		add_item(s, &it, out);
		item_fini(&it);
		add_children(s, tops[i], CLASS_KEYED, out);
		add_children(s, tops[i], CLASS_NAMED, out);
	}
	store_info(s, &info);
	buf_addf(out, "files %" PRIu64 "\n", info.file_bytes);
	MUST_DO(buf_ok(out) ? ERR_OK : ERR_NO_MEMORY);
}

bool sweep_note(void *arg, const char *finding)
{
	(void)snprintf(arg, 256, "%s", finding);
	return false;
}
