/* SPDX-License-Identifier: MIT
 * A damaged store: a small one with all that a store holds is damaged on disk, opened, read,
 * checked and changed.  Whatever can be read is what was there: each directory that is listed
 * without an error, with all its documents and file contents, is that of one and the same commit.
 * What cannot be read, check() finds.  A change that succeeds reads back.  What is salvaged of it is
 * of one commit, and makes a store without findings.
 * Input: a byte that says which store (bit 0: as a kill leaves it, with a log; 1: checksums are
 * made right again, so that the damage gets past them: then only no crash; 2: opened read-only; any of 4
 * to 6: not checked, which takes its time; 7: salvaged first),
 * then damages of 8 bytes each. */
#include "fuzz.h"
#include "query/filter.h"
#include "service/check/salvage.h"
#include "service/check/verify.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "service/query/queries.h"
#include "service/transfer/importer.h"
#include "store/engines.h"
#include "store/sqlite/page_sum.h"
#include "store_dump.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KILLED 1
#define RESEALED 2
#define READ_ONLY 4
#define UNCHECKED 0x70
#define SALVAGED 0x80

#define COMMITS 6
#define DAMAGES_MAX 16
#define DAMAGE_BYTES 8

struct bytes {
	unsigned char *p;
	size_t n;
};

static char directory[64], path[80], log_path[80];
static struct bytes closed, killed, killed_log;
static struct store_dump states[COMMITS + 1]; /* the first one: of the closed store */
static uint64_t table;

/* ---- the store ---- */

static const char rows[] =
	"{\"PartitionKey\":\"p\",\"RowKey\":\"all\",\"S\":\"text\",\"I\":7,\"D\":0.5,\"B\":true,"
	"\"L@odata.type\":\"Edm.Int64\",\"L\":\"9007199254740993\","
	"\"T@odata.type\":\"Edm.DateTime\",\"T\":\"2020-02-29T12:00:00.1234567Z\","
	"\"G@odata.type\":\"Edm.Guid\",\"G\":\"01234567-89ab-cdef-0123-456789abcdef\","
	"\"X@odata.type\":\"Edm.Binary\",\"X\":\"AAECAwQ=\"}\n"
	"{\"PartitionKey\":\"p\",\"RowKey\":\"\"}\n"
	"{\"PartitionKey\":\"q\",\"RowKey\":\"\xc3\xa4\",\"S\":\"\\u0000\"}\n";

static void fill_rows(struct service *s)
{
	const struct import_options options = { .format = TRANSFER_NDJSON, .mode = IMPORT_UPSERT };
	struct importer *im;
	struct buf text = BUF_INIT((size_t)1 << 20);
	buf_add_str(&text, rows);
	for (int i = 0; i < 100; i++)
		buf_addf(&text, "{\"PartitionKey\":\"many\",\"RowKey\":\"%03d\",\"N\":%d}\n", i, i);
	buf_add_str(&text, "{\"PartitionKey\":\"p\",\"RowKey\":\"large\",\"S\":\"");
	for (int i = 0; i < 9000; i++)
		buf_add_char(&text, (char)('a' + i % 26));
	buf_add_str(&text, "\"}\n");
	MUST(importer_new(s, ORIGIN_COMMAND, table, &options, &im) == ERR_OK);
	MUST(importer_feed(im, buf_span(&text), NULL) == ERR_OK);
	MUST(importer_end(im, NULL) == ERR_OK);
	importer_free(im);
	buf_fini(&text);
}

static void apply(struct service *s, struct change c)
{
	MUST(service_apply(s, ORIGIN_COMMAND, &c, 1, false, NULL) == ERR_OK);
	item_fini(&c.now);
	item_fini(&c.old);
	item_fini(&c.left);
}

static struct item_ref named(uint64_t parent, const char *name)
{
	return (struct item_ref){ .parent = parent, .class = CLASS_NAMED, .key = span_of(name) };
}

static struct item_ref row(const char *key)
{
	return (struct item_ref){
		.parent = table, .has_pk = true, .pk = SPAN_LIT("q"), .key = span_of(key)
	};
}

static void fill_file(struct service *s, uint64_t parent, const char *name, size_t n)
{
	struct item it = { 0 };
	char *content = malloc(n + 1);
	MUST(content != NULL);
	for (size_t i = 0; i < n; i++)
		content[i] = (char)(i * 7 + i / 256);
	apply(s,
		(struct change){ .op = CHANGE_PUT,
			.kind = ITEM_FILE,
			.at = named(parent, name),
			.attrs = ATTRS_UNSET });
	MUST(store_child(service_store(s), NULL, parent, CLASS_NAMED, span_of(name), WANT_ATTRS,
		     &it) == ERR_OK);
	apply(s,
		(struct change){
			.op = CHANGE_WRITE, .at = { .id = it.id }, .body = span_make(content, n) });
	item_fini(&it);
	free(content);
}

static void fill(struct service *s)
{
	struct item account = { 0 }, t = { 0 };
	MUST(account_create(s, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL, NULL) == ERR_OK);
	MUST(account_find(s, SPAN_LIT("acct"), &account) == ERR_OK);
	MUST(table_create(s, ORIGIN_COMMAND, account.id, SPAN_LIT("Tab"), &t, NULL) == ERR_OK);
	table = t.id;
	item_fini(&t);
	item_fini(&account);
	MUST(table_policies_set(s, ORIGIN_COMMAND, table,
		     SPAN_LIT("<SignedIdentifiers><SignedIdentifier><Id>x</Id></SignedIdentifier>"
			      "</SignedIdentifiers>"),
		     NULL) == ERR_OK);
	fill_rows(s);
	fill_file(s, STORE_REJECTED, "small", 100);
	fill_file(s, STORE_REJECTED, "large", 40000);
	apply(s,
		(struct change){ .op = CHANGE_DELETE,
			.flags = CHANGE_TO_FILE,
			.at = row("\xc3\xa4"),
			.to = named(STORE_TRASH, "gone.json") });
}

static struct store *open_store(unsigned flags, struct err_detail *why, enum err *ret_e)
{
	struct store *s = NULL;
	*ret_e = store_open(path, flags, &s, NULL, why);
	return *ret_e == ERR_OK ? s : NULL;
}

static struct bytes load(const char *from)
{
	struct stat st;
	int fd = open(from, O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0 && fstat(fd, &st) == 0);
	struct bytes b = { malloc((size_t)st.st_size + 1), (size_t)st.st_size };
	MUST(b.p != NULL && read(fd, b.p, b.n) == (ssize_t)b.n);
	(void)close(fd);
	return b;
}

static void clean_up(void)
{
	DIR *d = opendir(directory);
	struct dirent *entry;
	while (d != NULL && (entry = readdir(d)) != NULL) {
		if (entry->d_name[0] != '.')
			(void)unlinkat(dirfd(d), entry->d_name, 0);
	}
	if (d != NULL)
		(void)closedir(d);
}

static void leave(void)
{
	clean_up();
	(void)rmdir(directory);
}

static void make_killed(void)
{
	enum err e;
	struct store *store = open_store(0, NULL, &e);
	struct service *s;
	MUST(store != NULL && service_new(store, &s) == ERR_OK);
	for (int i = 0; i < COMMITS; i++) {
		char text[32], name[8];
		(void)snprintf(text, sizeof(text), "{\"N\":%d}\n", i);
		(void)snprintf(name, sizeof(name), "c%d", i % 4);
		apply(s,
			(struct change){ .op = CHANGE_PUT,
				.kind = ITEM_ROW,
				.at = row(name),
				.body = span_of(text),
				.attrs = ATTRS_UNSET });
		MUST(store_dump(store, &states[i + 1]) == ERR_OK);
	}
	killed = load(path);
	killed_log = load(log_path);
	service_free(s);
}

static void make_stores(void)
{
	const char *tmp = getenv("TMPDIR");
	struct store *store;
	struct service *s;
	enum err e;
	(void)snprintf(directory, sizeof(directory), "%.40s/fuzz_store.XXXXXX",
		tmp == NULL ? "/tmp" : tmp);
	MUST(mkdtemp(directory) != NULL);
	(void)atexit(leave);
	(void)snprintf(path, sizeof(path), "%s/s", directory);
	(void)snprintf(log_path, sizeof(log_path), "%s/s-wal", directory);
	MUST(store_create(path, NULL) == ERR_OK);
	store = open_store(0, NULL, &e);
	MUST(store != NULL && service_new(store, &s) == ERR_OK);
	fill(s);
	MUST(store_dump(store, &states[0]) == ERR_OK && states[0].n < STORE_DUMP_DIRS);
	service_free(s);
	closed = load(path);
	make_killed();
}

/* ---- damage ---- */

struct damaged {
	struct bytes file, log;
};

static struct bytes copy(struct bytes b)
{
	struct bytes c = { malloc(b.n + 1), b.n };
	MUST(c.p != NULL);
	memcpy(c.p, b.p, b.n);
	return c;
}

/* d: what, two numbers of 24 bits, a value. */
static void damage(struct bytes *b, const uint8_t *d)
{
	size_t x = (size_t)(d[1] | d[2] << 8 | d[3] << 16),
	       y = (size_t)(d[4] | d[5] << 8 | d[6] << 16);
	if (b->n == 0)
		return;
	size_t pages = b->n / PAGE_BYTES, at = x % b->n;
	unsigned char *p = pages == 0 ? b->p : b->p + x % pages * PAGE_BYTES;
	unsigned char *q = pages == 0 ? b->p : b->p + y % pages * PAGE_BYTES, page[PAGE_BYTES];
	switch (d[0] & 7) {
	case 0:
		b->p[at] ^= (unsigned char)(1 << (d[7] & 7));
		break;
	case 1:
		b->p[at] = d[7];
		break;
	case 2:
		b->n = at;
		break;
	case 3: /* sectors */
		memset(b->p + at / 512 * 512, d[7], b->n - at / 512 * 512 < 512 ? b->n % 512 : 512);
		break;
	case 4:
		memmove(b->p + at, b->p + y % b->n, b->n - (y % b->n > at ? y % b->n : at));
		break;
	case 5:
		memset(p, 0, pages == 0 ? 0 : PAGE_BYTES);
		break;
	default:
		if (pages == 0)
			break;
		memcpy(page, p, PAGE_BYTES);
		memcpy(p, q, PAGE_BYTES);
		if ((d[0] & 7) == 6)
			memcpy(q, page, PAGE_BYTES);
	}
}

static void put(const char *to, struct bytes b)
{
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, b.p, b.n) == (ssize_t)b.n);
	(void)close(fd);
}

static void make_damaged(const uint8_t *data, size_t size)
{
	bool has_log = (data[0] & KILLED) != 0;
	struct bytes file = copy(has_log ? killed : closed);
	struct bytes log = copy(has_log ? killed_log : (struct bytes){ file.p, 0 });
	size_t n = (size - 1) / DAMAGE_BYTES;
	for (size_t i = 0; i < n && i < DAMAGES_MAX; i++) {
		const uint8_t *d = data + 1 + i * DAMAGE_BYTES;
		damage((d[0] & 8) != 0 && has_log ? &log : &file, d);
	}
	if ((data[0] & RESEALED) != 0) {
		for (size_t i = 0; i < file.n / PAGE_BYTES; i++)
			page_seal(file.p + i * PAGE_BYTES, (uint32_t)i + 1);
	}
	clean_up();
	put(path, file);
	if (has_log)
		put(log_path, log);
	free(file.p);
	free(log.p);
}

/* ---- what is done with it ---- */

static bool on_row(void *arg, const struct query_row *r)
{
	(void)r;
	return ++*(size_t *)arg < 1000;
}

static void query_all(struct service *s)
{
	struct filter f;
	struct query_end end = { 0 };
	size_t n = 0;
	MUST(filter_parse(SPAN_LIT("N ge 10 or S eq 'text'"), &f, NULL) == ERR_OK);
	const struct query q = { .table_id = table, .filter = &f, .decode = true };
	(void)query_run(s, NULL, &q, on_row, &n, &end);
	query_end_fini(&end);
	filter_fini(&f);
}

static bool on_finding(void *arg, const char *finding)
{
	MUST(finding[0] != '\0');
	return ++*(size_t *)arg < 100;
}

static void change_it(struct store *store, struct service *s, bool sums)
{
	struct change c = { .op = CHANGE_PUT,
		.kind = ITEM_ROW,
		.at = row("new"),
		.body = SPAN_LIT("{\"A\":1}\n"),
		.attrs = ATTRS_UNSET };
	struct item it = { 0 };
	enum err e = service_apply(s, ORIGIN_COMMAND, &c, 1, true, NULL);
	if (e == ERR_OK && sums) {
		MUST(store_get(store, NULL, c.now.id, WANT_BODY, &it) == ERR_OK);
		MUST(span_eq(it.body, SPAN_LIT("{\"A\":1}\n")));
		item_fini(&it);
	}
	item_fini(&c.now);
	item_fini(&c.old);
	item_fini(&c.left);
	struct change d = { .op = CHANGE_DELETE, .flags = CHANGE_RECURSIVE, .at = { .id = table } };
	(void)service_apply(s, ORIGIN_COMMAND, &d, 1, false, NULL);
	item_fini(&d.now);
	item_fini(&d.old);
	item_fini(&d.left);
}

static void use(struct store *store, bool sums, bool check)
{
	struct store_dump got = { 0 };
	struct service *s;
	struct verify_counts counts = { 0 };
	size_t findings = 0;
	enum err e = store_dump(store, &got), checked;
	bool right = false;
	for (size_t i = 0; i <= COMMITS; i++)
		right = right || store_dump_agrees(&got, &states[i]);
	MUST(right || !sums);
	store_dump_fini(&got);
	if (service_new(store, &s) != ERR_OK)
		return;
	if (check) {
		checked = service_verify(s, on_finding, NULL, &findings, &counts);
		MUST(checked != ERR_OK || findings == 0);
		MUST(e == ERR_OK || checked != ERR_OK || !sums);
	}
	query_all(s);
	change_it(store, s, sums);
	service_free(s);
}

/* Nothing was damaged: the last state, all of it. */
static void must_be_whole(struct store *store, bool has_log)
{
	struct store_dump got = { 0 };
	size_t n = 0;
	MUST(store != NULL && store_dump(store, &got) == ERR_OK);
	MUST(store_dump_agrees(&got, &states[has_log ? COMMITS : 0]));
	MUST(got.n == states[has_log ? COMMITS : 0].n);
	MUST(store_check(store, on_finding, NULL, &n) == ERR_OK && n == 0);
	store_dump_fini(&got);
}

/* ---- what is salvaged of it ---- */

struct salvaged {
	const struct buf *dir; /* of a state */
	bool right;
};

static void on_loss(void *arg, const struct store_loss *loss)
{
	(void)arg;
	MUST(loss->why != NULL && loss->why[0] != '\0');
}

/* Whether the directory had this row, with this document: as store_dump() writes both. */
static bool on_salvaged(void *arg, const struct item *it)
{
	struct salvaged *s = arg;
	struct buf line = BUF_INIT((size_t)1 << 20);
	buf_add_char(&line, ' ');
	buf_add_span(&line, it->key);
	buf_add_str(&line, "  ");
	buf_add_span(&line, it->body);
	buf_add_char(&line, '\n');
	MUST(buf_ok(&line));
	s->right = it->kind != ITEM_ROW ||
		(s->dir != NULL && memmem(s->dir->data, s->dir->len, line.data, line.len) != NULL);
	buf_fini(&line);
	return s->right;
}

static const struct buf *dir_of(const struct store_dump *state, uint64_t id)
{
	for (size_t i = 0; i < state->n; i++)
		if (state->dirs[i].id == id)
			return &state->dirs[i].text;
	return NULL;
}

/* Whether each row in it was one of that state. */
static bool is_part_of(
	struct store *store, const struct store_dump *got, const struct store_dump *state)
{
	struct salvaged s = { .right = true };
	for (size_t i = 0; i < got->n && s.right; i++) {
		s.dir = dir_of(state, got->dirs[i].id);
		MUST(store_list(store, NULL, got->dirs[i].id, CLASS_KEYED, (struct span){ 0 },
			     false, WANT_BODY, on_salvaged, &s) == ERR_OK);
	}
	return s.right;
}

static void use_salvaged(struct store *store, const struct store_dump *whole, bool sums)
{
	struct store_dump got = { 0 };
	struct verify_counts counts = { 0 };
	struct service *s;
	size_t findings = 0;
	bool right = false;
	if (sums) {
		MUST(store_dump(store, &got) == ERR_OK);
		for (size_t i = 0; i <= COMMITS && !right; i++)
			right = is_part_of(store, &got, &states[i]);
		MUST(right);
		MUST(whole == NULL || store_dump_agrees(&got, whole));
		store_dump_fini(&got);
	}
	MUST(service_new(store, &s) == ERR_OK);
	enum err e = service_verify(s, on_finding, NULL, &findings, &counts);
	MUST(!sums || (e == ERR_OK && findings == 0));
	service_free(s);
}

/* whole: nothing was damaged, so all of this must be there; NULL. */
static void salvage_it(const struct store_dump *whole, bool sums, bool doubtful)
{
	char to[96];
	struct store_salvage how = { .lost = on_loss, .take_doubtful = doubtful };
	struct store *store;
	struct err_detail why = { 0 };
	(void)snprintf(to, sizeof(to), "%s/salvaged", directory);
	enum err e = service_salvage_store(path, to, &how, &why);
	MUST(e == ERR_OK || e == ERR_NOT_A_STORE);
	MUST(whole == NULL || (e == ERR_OK && how.losses == 0 && how.lost_pages == 0));
	if (e == ERR_OK) {
		MUST(store_open(to, STORE_OPEN_READ_ONLY, &store, NULL, &why) == ERR_OK);
		use_salvaged(store, whole, sums && !doubtful);
		(void)unlink(to);
	}
	MUST(access(to, F_OK) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err_detail why = { 0 };
	enum err e;
	if (size < 1)
		return 0;
	if (closed.p == NULL)
		make_stores();
	make_damaged(data, size);
	if ((data[0] & SALVAGED) != 0)
		salvage_it(size > 1 ? NULL : &states[(data[0] & KILLED) != 0 ? COMMITS : 0],
			(data[0] & RESEALED) == 0, (data[0] & READ_ONLY) != 0);
	unsigned flags = (data[0] & READ_ONLY) != 0 ? STORE_OPEN_READ_ONLY : 0;
	struct store *s = open_store(flags, &why, &e);
	MUST(s != NULL || (e != ERR_OK && why.text[0] != '\0'));
	if (size == 1)
		must_be_whole(s, (data[0] & KILLED) != 0);
	if (s != NULL)
		use(s, (data[0] & RESEALED) == 0, (data[0] & UNCHECKED) == 0);
	return 0;
}
