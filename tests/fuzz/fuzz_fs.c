/* SPDX-License-Identifier: MIT
 * The mount under requests of every kind, in any order, on names and handles of every kind, as the
 * kernel sends them, over the in-memory engine.  Every request is answered once (fuse_kernel.c);
 * what a close acknowledged reads back, by another process, with the size that is told; nothing
 * that was done leaves a store that check finds fault with.
 * Input: operations, each a byte that says which and what it needs. */
#include "fs/fs.h"
#include "fuse_nodes.h"
#include "fuzz.h"
#include "service/check/verify.h"
#include "service/core/accounts.h"
#include "service/core/tables.h"
#include "store/engines.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define STEPS_MAX 150

/* ---- the input ---- */

static unsigned byte(struct kernel *k)
{
	if (k->in.n == 0)
		return 0;
	unsigned ret = (unsigned char)k->in.p[0];
	k->in = span_make(k->in.p + 1, k->in.n - 1);
	return ret;
}

static const char *const names[] = { "acct", "Tab", "p", "r.json", "s.json", "t.json", "%_.json",
	"file", "r.json~", ".r.json.x", ".d", ".rowfs", "rejected", "trash", "errors", "stats.json",
	"metrics", "snapshots", "one", ".batch", ".batch-check", ".changes", ".rows.ndjson",
	".rows.csv", ".query", "top=2.ndjson", "N ge 1", "filter=N ge 1&select=N.csv",
	"PartitionKey eq 'p'", ".explain", ".count", "a%2Fb.json", "%61.json", "new", "Other", "q",
	".git", "version", "%~", "\xff.json", "\xc3\xa4.json" };

static const char *const documents[] = { "{\"A\":1}", "{}", "", "{\"A\":", "{\"A\":1}\n{\"B\":2}",
	"{\"A\":2,\"RowKey\":\"r\"}", "[{\"upsert\":{\"PartitionKey\":\"p\",\"RowKey\":\"r\"}}]",
	"{\"PartitionKey\":\"p\",\"RowKey\":\"z\",\"N\":3}\n", "PartitionKey,RowKey,N\np,y,1\n",
	"{\"D@odata.type\":\"Edm.Guid\",\"D\":\"x\"}", "\xff\xfe", "[]" };

/* With its NUL.  Never "." or "..", nor with a slash: the kernel sends none. */
static struct span name_of(struct kernel *k, char out[256])
{
	unsigned which = byte(k);
	size_t n = 0;
	if (which < 200) {
		n = strlen(names[which % ARRAY_LEN(names)]);
		memcpy(out, names[which % ARRAY_LEN(names)], n);
	} else {
		size_t want = byte(k);
		for (; n < want && n < 255 && k->in.n > 0; n++) {
			char c = (char)byte(k);
			out[n] = c == '/' || c == '\0' ? '_' : c;
		}
	}
	if (n == 0 || (n <= 2 && out[0] == '.' && (n == 1 || out[1] == '.')))
		out[n == 0 ? n++ : 0] = 'x';
	out[n] = '\0';
	return span_make(out, n + 1);
}

static struct span document_of(struct kernel *k)
{
	unsigned which = byte(k);
	if (which < 200)
		return span_of(documents[which % ARRAY_LEN(documents)]);
	size_t n = (which - 200) * 8;
	struct span ret = span_make(k->in.p, n < k->in.n ? n : k->in.n);
	k->in = span_make(k->in.p + ret.n, k->in.n - ret.n);
	return ret;
}

static struct node *node_of(struct kernel *k)
{
	struct node *n = &k->nodes[byte(k) % NODES];
	return n->id == 0 ? &k->nodes[0] : n;
}

static struct handle *handle_of(struct kernel *k, bool dir)
{
	unsigned from = byte(k);
	for (unsigned i = 0; i < HANDLES; i++) {
		struct handle *h = &k->handles[(from + i) % HANDLES];
		if (h->used && h->dir == dir)
			return h;
	}
	return NULL;
}
/* ---- what was acknowledged reads back ---- */

static void reads_back(struct kernel *k, const struct node *dir, struct span name, struct span want)
{
	uint64_t size;
	pid_t before = k->pid;
	k->pid += 1000;
	struct handle *h = kernel_open_named(k, dir, name, O_RDONLY, &size);
	MUST(h != NULL && size == want.n);
	const struct fuse_answer *a = kernel_read_at(k, h, 0, 65536);
	MUST(a->error == 0 && span_eq(span_make(a->data, a->n), want));
	kernel_release(k, h);
	k->pid = before;
}

/* In two writes, by a process of its own. */
static void write_document(struct kernel *k)
{
	char text[256];
	struct node dir = *node_of(k);
	struct span name = name_of(k, text), bytes = document_of(k);
	size_t half = byte(k) % (bytes.n + 1);
	pid_t before = k->pid;
	k->pid = before + 100;
	struct handle *h = kernel_open_named(k, &dir, name, O_WRONLY | O_TRUNC, NULL);
	if (h == NULL)
		h = kernel_create(k, &dir, name, O_WRONLY | O_TRUNC);
	if (h != NULL) {
		h->held = true;
		bool done =
			(half == 0 || kernel_write_at(k, h, 0, span_make(bytes.p, half)) == 0) &&
			(half == bytes.n ||
				kernel_write_at(k, h, half,
					span_make(bytes.p + half, bytes.n - half)) == 0);
		int code = kernel_flush(k, h);
		if (done && code == 0 && bytes.n > 0 && !dir.virtual && !kernel_is_virtual(name))
			reads_back(k, &dir, name, bytes);
		kernel_release(k, h);
	}
	k->pid = before;
}

/* ---- the operations ---- */

static void do_lookup(struct kernel *k)
{
	char text[256];
	struct node *dir = node_of(k);
	(void)kernel_lookup(k, dir, name_of(k, text));
}

static void do_forget(struct kernel *k)
{
	struct node *n = node_of(k);
	for (unsigned i = 0; i < HANDLES; i++) {
		if (k->handles[i].used && k->handles[i].node == n->id)
			return; /* the kernel keeps what is open */
	}
	kernel_forget(k, n);
}

static void do_getattr(struct kernel *k)
{
	const struct fuse_getattr_in in = { 0 };
	(void)kernel_ask(k, FUSE_GETATTR, node_of(k)->id, PART(in), NONE);
}

static void do_setattr(struct kernel *k)
{
	struct fuse_setattr_in in = { 0 };
	uint64_t id = node_of(k)->id;
	in.valid = byte(k) | (byte(k) & 7) << 8;
	in.size = byte(k) * 3;
	in.mode = S_IFREG | (byte(k) & 0777);
	in.mtime = byte(k);
	in.mtimensec = byte(k) << 20;
	struct handle *h = handle_of(k, false);
	in.valid &= ~(uint32_t)FATTR_FH;
	if (h != NULL && byte(k) % 2 == 0) {
		in.valid |= FATTR_FH;
		in.fh = h->fh;
		id = h->node;
	}
	(void)kernel_ask(k, FUSE_SETATTR, id, PART(in), NONE);
}

static const uint32_t modes[] = { O_RDONLY, O_WRONLY, O_RDWR, O_WRONLY | O_TRUNC, O_RDWR | O_TRUNC,
	O_WRONLY | O_APPEND, O_RDWR | O_EXCL, O_RDONLY | O_DIRECT };

static void do_open(struct kernel *k)
{
	char text[256];
	struct node *dir = node_of(k);
	struct span name = name_of(k, text);
	(void)kernel_open_named(k, dir, name, modes[byte(k) % ARRAY_LEN(modes)], NULL);
}

static void do_create(struct kernel *k)
{
	char text[256];
	struct node *dir = node_of(k);
	struct span name = name_of(k, text);
	(void)kernel_create(k, dir, name, modes[byte(k) % ARRAY_LEN(modes)]);
}

static void do_read(struct kernel *k)
{
	struct handle *h = handle_of(k, false);
	if (h != NULL && (h->flags & O_ACCMODE) != O_WRONLY)
		(void)kernel_read_at(k, h, byte(k) % 8 * (uint64_t)byte(k), 1 + byte(k) * 256);
}

static void do_write(struct kernel *k)
{
	struct handle *h = handle_of(k, false);
	uint64_t at = byte(k);
	if (at == 255)
		at = (uint64_t)1 << (byte(k) % 63);
	struct span bytes = document_of(k);
	if (h != NULL && bytes.n > 0 && (h->flags & O_ACCMODE) != O_RDONLY)
		(void)kernel_write_at(k, h, at, bytes);
}

static void do_flush(struct kernel *k)
{
	struct handle *h = handle_of(k, false);
	if (h != NULL)
		(void)kernel_flush(k, h);
}

static void do_release(struct kernel *k)
{
	struct handle *h = handle_of(k, byte(k) % 2 == 0);
	if (h != NULL)
		kernel_release(k, h);
}

static void do_fsync(struct kernel *k)
{
	bool dir = byte(k) % 4 == 0;
	struct handle *h = handle_of(k, dir);
	const struct fuse_fsync_in in = { .fh = h == NULL ? 0 : h->fh };
	if (h != NULL)
		(void)kernel_ask(k, dir ? FUSE_FSYNCDIR : FUSE_FSYNC, h->node, PART(in), NONE);
}

static void do_opendir(struct kernel *k)
{
	const struct fuse_open_in in = { .flags = O_RDONLY | O_DIRECTORY };
	const struct fuse_getattr_in get = { 0 };
	uint64_t id = node_of(k)->id;
	struct fuse_attr_out attr;
	const struct fuse_answer *a = kernel_ask(k, FUSE_GETATTR, id, PART(get), NONE);
	if (a->error != 0)
		return;
	memcpy(&attr, a->data, sizeof(attr));
	if ((attr.attr.mode & S_IFMT) != S_IFDIR)
		return;
	a = kernel_ask(k, FUSE_OPENDIR, id, PART(in), NONE);
	if (a->error == 0)
		(void)kernel_opened(k, a->data, id, 0, true);
}

/* Every entry lies in the answer; those with a node count as looked up. */
static void take_entries(struct kernel *k, const struct fuse_answer *a, struct handle *h)
{
	size_t at = 0;
	static char copy[READ_MAX];
	size_t n = a->n;
	bool virtual = false;
	for (unsigned i = 0; i < NODES; i++)
		virtual = virtual || (k->nodes[i].id == h->node && k->nodes[i].virtual);
	memcpy(copy, a->data, n);
	while (at < n) {
		struct fuse_direntplus e;
		MUST(n - at >= FUSE_NAME_OFFSET_DIRENTPLUS);
		memcpy(&e, copy + at, FUSE_NAME_OFFSET_DIRENTPLUS);
		MUST(e.dirent.namelen > 0 && e.dirent.namelen <= 255);
		size_t whole = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET_DIRENTPLUS + e.dirent.namelen);
		MUST(n - at >= whole);
		struct span name =
			span_make(copy + at + FUSE_NAME_OFFSET_DIRENTPLUS, e.dirent.namelen);
		MUST(memchr(name.p, '/', name.n) == NULL && memchr(name.p, 0, name.n) == NULL);
		if (e.entry_out.nodeid != 0 && !span_is(name, ".") && !span_is(name, ".."))
			(void)kernel_learn(
				k, e.entry_out.nodeid, virtual || kernel_is_virtual(name));
		at += whole;
	}
}

static void do_readdir(struct kernel *k)
{
	struct handle *h = handle_of(k, true);
	uint32_t n = 200 + byte(k) * 32;
	uint64_t at = byte(k) % 4 == 0 ? byte(k) : 0;
	if (h == NULL)
		return;
	const struct fuse_answer *a = kernel_read_at(k, h, at, n);
	if (a->error == 0)
		take_entries(k, a, h);
}

static void do_mkdir(struct kernel *k)
{
	const struct fuse_mkdir_in in = { .mode = 0755, .umask = 022 };
	char text[256];
	struct node dir = *node_of(k);
	struct span name = name_of(k, text);
	(void)kernel_answered(k, kernel_ask(k, FUSE_MKDIR, dir.id, PART(in), name), &dir, name);
}

static void do_remove(struct kernel *k)
{
	char text[256];
	struct node *dir = node_of(k);
	uint32_t op = byte(k) % 2 == 0 ? FUSE_UNLINK : FUSE_RMDIR;
	(void)kernel_ask(k, op, dir->id, name_of(k, text), NONE);
}

static void do_rename(struct kernel *k)
{
	struct fuse_rename2_in in = { 0 };
	char from[256], to[256];
	struct node *dir = node_of(k), *other = node_of(k);
	in.newdir = other->id;
	in.flags = byte(k) % 4;
	if (in.flags == 3)
		in.flags = 0;
	struct span a = name_of(k, from), b = name_of(k, to);
	(void)fuse_ask(k->fs, FUSE_RENAME2, dir->id, k->pid, PART(in), a, b);
}

static const char *const attributes[] = { "user.rowfs.etag", "user.rowfs.timestamp",
	"user.rowfs.partition_key", "user.rowfs.row_key", "user.rowfs.error", "user.rowfs.if_match",
	"user.rowfs.position", "user.rowfs.explain", "user.other", "security.capability",
	"system.posix_acl_access", "user.rowfs." };

static struct span attribute_of(struct kernel *k)
{
	const char *name = attributes[byte(k) % ARRAY_LEN(attributes)];
	return span_make(name, strlen(name) + 1);
}

static void do_getxattr(struct kernel *k)
{
	const struct fuse_getxattr_in in = { .size = byte(k) * 2 };
	struct node *n = node_of(k);
	const struct fuse_answer *a = byte(k) % 8 == 0
		? kernel_ask(k, FUSE_LISTXATTR, n->id, PART(in), NONE)
		: kernel_ask(k, FUSE_GETXATTR, n->id, PART(in), attribute_of(k));
	MUST(a->error != 0 || in.size == 0 || a->n <= in.size);
}

static void do_setxattr(struct kernel *k)
{
	struct node *n = node_of(k);
	struct span name = attribute_of(k), value = document_of(k);
	if (byte(k) % 4 == 0) {
		(void)kernel_ask(k, FUSE_REMOVEXATTR, n->id, name, NONE);
		return;
	}
	const struct fuse_setxattr_in in = { .size = (uint32_t)value.n };
	/* Without FUSE_SETXATTR_EXT: the first two members only. */
	(void)fuse_ask(k->fs, FUSE_SETXATTR, n->id, k->pid,
		span_make(&in, FUSE_COMPAT_SETXATTR_IN_SIZE), name, value);
}

static void do_special(struct kernel *k)
{
	char text[256], other[256];
	struct node dir = *node_of(k);
	struct span name = name_of(k, text);
	const struct fuse_mknod_in mknod = { .mode = (byte(k) % 2 == 0 ? S_IFREG : S_IFIFO) |
			0644 };
	const struct fuse_link_in link = { .oldnodeid = node_of(k)->id };
	switch (byte(k) % 3) {
	case 0:
		(void)kernel_answered(
			k, kernel_ask(k, FUSE_MKNOD, dir.id, PART(mknod), name), &dir, name);
		break;
	case 1:
		(void)kernel_ask(k, FUSE_SYMLINK, dir.id, name, name_of(k, other));
		break;
	default:
		(void)kernel_ask(k, FUSE_LINK, dir.id, PART(link), name);
	}
}

static void do_look(struct kernel *k)
{
	const struct fuse_access_in in = { .mask = byte(k) % 8 };
	if (byte(k) % 2 == 0)
		(void)kernel_ask(k, FUSE_STATFS, node_of(k)->id, NONE, NONE);
	else
		(void)kernel_ask(k, FUSE_ACCESS, node_of(k)->id, PART(in), NONE);
}

static void do_lock(struct kernel *k)
{
	static const uint32_t types[] = { F_RDLCK, F_WRLCK, F_UNLCK };
	struct handle *h = handle_of(k, false);
	if (h == NULL)
		return;
	unsigned how = byte(k), ask = byte(k);
	struct fuse_lk_in in = { .fh = h->fh,
		.owner = h->fh,
		.lk_flags = FUSE_LK_FLOCK,
		.lk = { .type = types[how % 3], .end = INT64_MAX } };
	if (how >= 128) { /* fcntl(2)'s */
		in.owner = (uint64_t)k->pid;
		in.lk_flags = 0;
		in.lk.start = how / 4 % 8;
		in.lk.end = ask >= 128 ? INT64_MAX : in.lk.start + ask / 16;
	}
	bool waits = ask % 8 == 0, looks = how >= 128 && ask % 8 == 1;
	fuse_interrupt_waits(waits);
	(void)kernel_ask(k,
		looks           ? FUSE_GETLK
			: waits ? FUSE_SETLKW
				: FUSE_SETLK,
		h->node, PART(in), NONE);
	fuse_interrupt_waits(false);
}

/* Holes: looks for them, or punches one. */
static void do_hole(struct kernel *k, uint32_t op)
{
	struct handle *h = handle_of(k, false);
	if (h == NULL)
		return;
	uint64_t offset = (uint64_t)byte(k) * 512;
	const struct fuse_lseek_in seek = { .fh = h->fh, .offset = offset, .whence = byte(k) % 5 };
	const struct fuse_fallocate_in allocate = {
		.fh = h->fh, .offset = offset, .length = 512, .mode = byte(k) % 32
	};
	if (op == FUSE_LSEEK)
		(void)kernel_ask(k, op, h->node, PART(seek), NONE);
	else
		(void)kernel_ask(k, op, h->node, PART(allocate), NONE);
}

static void do_unknown(struct kernel *k)
{
	static const uint32_t ops[] = { FUSE_LSEEK, FUSE_FALLOCATE, FUSE_COPY_FILE_RANGE, FUSE_BMAP,
		FUSE_IOCTL, FUSE_POLL, FUSE_READLINK, 4095 };
	char zeros[128] = { 0 };
	uint32_t op = ops[byte(k) % ARRAY_LEN(ops)];
	if (op == FUSE_LSEEK || op == FUSE_FALLOCATE)
		do_hole(k, op);
	else
		(void)kernel_ask(k, op, node_of(k)->id, PART(zeros), NONE);
}

static void do_other_process(struct kernel *k)
{
	k->pid = 10 + (pid_t)(byte(k) % 4);
}

static void (*const operations[])(struct kernel *) = { do_lookup, do_open, do_create, do_write,
	do_flush, do_release, do_read, write_document, do_rename, do_remove, do_mkdir, do_setattr,
	do_getattr, do_opendir, do_readdir, do_getxattr, do_setxattr, do_fsync, do_lock, do_forget,
	do_special, do_look, do_unknown, do_other_process };

/* ---- the world ---- */

static struct service *make_service(void)
{
	struct store *store;
	struct service *s;
	struct item account = { 0 };
	MUST(store_open_memory(&store) == ERR_OK && service_new(store, &s) == ERR_OK);
	MUST(account_create(s, ORIGIN_COMMAND, SPAN_LIT("acct"), NULL, NULL, NULL) == ERR_OK);
	MUST(account_find(s, SPAN_LIT("acct"), &account) == ERR_OK);
	MUST(table_create(s, ORIGIN_COMMAND, account.id, SPAN_LIT("Tab"), NULL, NULL) == ERR_OK);
	item_fini(&account);
	return s;
}

/* Nodes 0 to 4: the root, acct, Tab, p, and a row; 5 and on: .rowfs and .query. */
static void walk_in(struct kernel *k)
{
	const struct fuse_mkdir_in in = { .mode = 0755, .umask = 022 };
	static const char document[] = "{\"N\":1}\n";
	k->nodes[0] = (struct node){ FUSE_ROOT_ID, 1, false };
	MUST(kernel_lookup(k, &k->nodes[0], PART("acct")) != NULL);
	MUST(kernel_lookup(k, &k->nodes[1], PART("Tab")) != NULL);
	MUST(kernel_answered(k, kernel_ask(k, FUSE_MKDIR, k->nodes[2].id, PART(in), PART("p")),
		     &k->nodes[2], PART("p")) != NULL);
	struct handle *h = kernel_create(k, &k->nodes[3], PART("r.json"), O_WRONLY);
	MUST(h != NULL && kernel_write_at(k, h, 0, span_make(document, 8)) == 0 &&
		kernel_flush(k, h) == 0);
	kernel_release(k, h);
	(void)kernel_lookup(k, &k->nodes[3], PART("r.json"));
	(void)kernel_lookup(k, &k->nodes[0], PART(".rowfs"));
	(void)kernel_lookup(k, &k->nodes[2], PART(".query"));
}

static void leave(struct kernel *k)
{
	for (unsigned i = 0; i < HANDLES; i++) {
		if (k->handles[i].used)
			kernel_release(k, &k->handles[i]);
	}
	for (unsigned i = 0; i < NODES; i++)
		kernel_forget(k, &k->nodes[i]);
}

static bool on_finding(void *arg, const char *finding)
{
	(void)arg;
	(void)fprintf(stderr, "%s\n", finding);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kernel k = { .in = span_make(data, size), .pid = 10 };
	struct verify_counts counts = { 0 };
	struct service *s = make_service();
	k.fs = fuse_kernel_begin(s);
	walk_in(&k);
	for (unsigned i = 0; i < STEPS_MAX && k.in.n > 0; i++)
		operations[byte(&k) % ARRAY_LEN(operations)](&k);
	leave(&k);
	fuse_kernel_end(k.fs);
	MUST(service_verify(s, on_finding, NULL, NULL, &counts) == ERR_OK);
	service_free(s);
	return 0;
}
