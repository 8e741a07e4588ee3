/* SPDX-License-Identifier: MIT */
#include "power_cut_disk.h"

#include "calls.h"

#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FDS 4096
#define NAMES 1024

static void *need(void *p)
{
	if (p == NULL)
		errx(2, "out of memory");
	return p;
}

/* ---- reading a record ---- */

/* The names and descriptors of the process that was recorded, as they were at the time. */
struct reader {
	struct record *r;
	size_t room;
	uint32_t of_name[NAMES], of_fd[FDS];
	struct {
		uint32_t thread, file;
		size_t at;
	} begun[64];
	size_t nbegun;
};

static uint32_t name_number(struct record *r, const char *name)
{
	for (uint32_t i = 0; i < r->nnames; i++) {
		if (strcmp(r->names[i], name) == 0)
			return i;
	}
	if (r->nnames == NAMES)
		errx(2, "more than %d names", NAMES);
	r->names = need(reallocarray(r->names, r->nnames + 1, sizeof(*r->names)));
	r->names[r->nnames] = need(strdup(name));
	return r->nnames++;
}

static struct op *add(struct reader *rd, enum op_kind kind, uint32_t file)
{
	struct record *r = rd->r;
	if (r->n == rd->room) {
		rd->room = rd->room ? 2 * rd->room : 1024;
		r->ops = need(reallocarray(r->ops, rd->room, sizeof(*r->ops)));
	}
	struct op *op = &r->ops[r->n++];
	*op = (struct op){
		.kind = kind, .file = file, .name = NO_FILE, .old_name = NO_FILE, .began = 0
	};
	return op;
}

static uint32_t file_of(const struct reader *rd, const struct calls_record *c, uint32_t name)
{
	uint32_t file = c->fd >= 0 && c->fd < FDS ? rd->of_fd[c->fd] : NO_FILE;
	return file != NO_FILE ? file : rd->of_name[name];
}

/* The first that is heard of a name: its file is made. */
static void read_open(struct reader *rd, const struct calls_record *c, uint32_t name)
{
	if (rd->of_name[name] == NO_FILE) {
		rd->of_name[name] = rd->r->nfiles++;
		add(rd, OP_NAME, rd->of_name[name])->name = name;
	} else if (c->flags & CALLS_R_EMPTIED) {
		add(rd, OP_SIZE, rd->of_name[name]);
	}
	if (c->fd >= 0 && c->fd < FDS)
		rd->of_fd[c->fd] = rd->of_name[name];
}

static void read_names(
	struct reader *rd, const struct calls_record *c, uint32_t name, const unsigned char *second)
{
	uint32_t file = rd->of_name[name];
	bool renames = c->flags & CALLS_R_RENAME, links = c->flags & CALLS_R_LINK;
	struct op *op = add(rd, OP_NAME, renames || links ? file : NO_FILE);
	if (renames || links)
		op->name = name_number(rd->r, (const char *)second);
	if (!links) {
		op->old_name = name;
		rd->of_name[name] = NO_FILE;
	}
	if (op->name != NO_FILE)
		rd->of_name[op->name] = file;
}

static void read_sync(struct reader *rd, const struct calls_record *c, uint32_t file)
{
	size_t i = 0;
	while (i < rd->nbegun && (rd->begun[i].thread != c->thread || rd->begun[i].file != file))
		i++;
	if (c->flags & CALLS_R_BEGIN) {
		if (i == sizeof(rd->begun) / sizeof(rd->begun[0]))
			errx(2, "too many syncs at a time");
		rd->begun[i].thread = c->thread;
		rd->begun[i].file = file;
		rd->begun[i].at = rd->r->n;
		rd->nbegun += i == rd->nbegun;
	} else if (i < rd->nbegun) {
		struct op *op = add(rd, OP_SYNC, file);
		op->began = rd->begun[i].at;
		op->folder = c->flags & CALLS_R_FOLDER;
		rd->r->syncs++;
		rd->begun[i] = rd->begun[--rd->nbegun];
	}
}

static unsigned char *copy(const unsigned char *data, size_t n)
{
	unsigned char *p = need(malloc(n + 1));
	memcpy(p, data, n);
	p[n] = '\0';
	return p;
}

static void read_one(struct reader *rd, const struct calls_record *c, const char *text,
	const unsigned char *data)
{
	if (c->kind == 0) {
		add(rd, OP_MARK, NO_FILE)->data = copy(data, c->n);
		return;
	}
	rd->r->calls += c->kind != CALLS_CLOSE && !(c->flags & CALLS_R_BEGIN);
	bool folder = c->flags & CALLS_R_FOLDER || strcmp(text, ".") == 0;
	uint32_t name = folder ? NO_FILE : name_number(rd->r, text);
	if (folder) {
		if (c->kind == CALLS_SYNC)
			read_sync(rd, c, NO_FILE);
	} else if (c->kind == CALLS_OPEN) {
		read_open(rd, c, name);
	} else if (c->kind == CALLS_CLOSE) {
		rd->of_fd[c->fd] = NO_FILE;
	} else if (c->kind == CALLS_NAME) {
		read_names(rd, c, name, data);
	} else if (c->kind == CALLS_SYNC) {
		read_sync(rd, c, file_of(rd, c, name));
	} else if (c->kind == CALLS_WRITE) {
		struct op *op = add(rd, OP_WRITE, file_of(rd, c, name));
		op->at = c->at;
		op->n = c->n;
		op->data = copy(data, c->n);
	} else if (c->kind == CALLS_TRUNCATE && c->flags & CALLS_R_ALLOCATE) {
		errx(2, "fallocate is not modelled");
	} else if (c->kind == CALLS_TRUNCATE) {
		add(rd, OP_SIZE, file_of(rd, c, name))->n = c->n;
	}
}

void record_read(struct record *r, const char *path)
{
	struct calls_record c;
	char *name;
	unsigned char *data;
	memset(r, 0, sizeof(*r));
	FILE *f = fopen(path, "rbe");
	struct reader *rd = need(calloc(1, sizeof(*rd)));
	if (f == NULL)
		err(2, "%s", path);
	rd->r = r;
	memset(rd->of_name, 0xff, sizeof(rd->of_name));
	memset(rd->of_fd, 0xff, sizeof(rd->of_fd));
	while (calls_next(f, &c, &name, &data))
		read_one(rd, &c, name, data);
	(void)fclose(f);
	free(rd);
}

void record_free(struct record *r)
{
	for (size_t i = 0; i < r->n; i++)
		free((void *)(uintptr_t)r->ops[i].data);
	for (uint32_t i = 0; i < r->nnames; i++)
		free(r->names[i]);
	free(r->names);
	free(r->ops);
}

/* ---- the disk ---- */

struct bytes {
	unsigned char *p;
	size_t n, room;
};

struct disk {
	const struct record *r;
	size_t at;
	struct bytes *files;   /* what is surely there */
	uint32_t names[NAMES]; /* as surely: the files that have them */
	size_t *pending;       /* numbers of operations */
	size_t npending, room;
};

struct disk *disk_new(const struct record *r)
{
	struct disk *d = need(calloc(1, sizeof(*d)));
	d->r = r;
	d->files = need(calloc(r->nfiles + 1, sizeof(*d->files)));
	memset(d->names, 0xff, sizeof(d->names));
	return d;
}

void disk_free(struct disk *d)
{
	for (uint32_t i = 0; i < d->r->nfiles; i++)
		free(d->files[i].p);
	free(d->files);
	free(d->pending);
	free(d);
}

size_t disk_at(const struct disk *d)
{
	return d->at;
}

size_t disk_pending(const struct disk *d)
{
	return d->npending;
}

static void resize(struct bytes *b, size_t n)
{
	if (n > b->room) {
		b->room = 2 * n;
		b->p = need(realloc(b->p, b->room));
	}
	if (n > b->n)
		memset(b->p + b->n, 0, n - b->n);
	b->n = n;
}

static void junk(unsigned char *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (unsigned char)(mix(seed + i / 8) >> (i % 8));
}

static void write_torn(struct bytes *b, const struct op *op, uint64_t seed)
{
	size_t unit = seed & 1 ? 512 : 4096;
	unsigned how = (unsigned)(seed >> 1) % 3; /* the first part, the last, any */
	size_t first = op->at / unit, last = (op->at + op->n - 1) / unit;
	size_t cut = first + mix(seed) % (last - first + 1);
	if (op->at + op->n > b->n && seed & 64)
		resize(b, op->at + op->n);
	for (size_t u = first; u <= last; u++) {
		if (how == 0 ? u > cut : how == 1 ? u <= cut : (mix(seed + u) & 1) != 0)
			continue;
		size_t from = u * unit > op->at ? u * unit : op->at;
		size_t to = (u + 1) * unit < op->at + op->n ? (u + 1) * unit : op->at + op->n;
		if (to > b->n)
			resize(b, to);
		memcpy(b->p + from, op->data + (from - op->at), to - from);
	}
}

static void write_to(struct bytes *b, const struct op *op, enum fate fate, uint64_t seed)
{
	size_t end = op->at + op->n, before = b->n;
	if (fate == LOST || op->n == 0)
		return;
	if (fate == TORN) {
		write_torn(b, op, seed);
		return;
	}
	if (end > b->n)
		resize(b, end);
	if (fate == DONE)
		memcpy(b->p + op->at, op->data, op->n);
	else if (fate == JUNK && end > before)
		junk(b->p + before, end - before, seed);
}

static void set_names(uint32_t names[NAMES], const struct op *op)
{
	if (op->old_name != NO_FILE)
		names[op->old_name] = NO_FILE;
	if (op->name != NO_FILE)
		names[op->name] = op->file;
}

static void do_op(
	struct bytes *b, uint32_t names[NAMES], const struct op *op, enum fate fate, uint64_t seed)
{
	if (op->kind == OP_WRITE)
		write_to(b, op, fate, seed);
	else if (fate != DONE)
		return;
	else if (op->kind == OP_SIZE)
		resize(b, op->n);
	else if (op->kind == OP_NAME)
		set_names(names, op);
}

static void sync_done(struct disk *d, const struct op *sync)
{
	size_t kept = 0;
	for (size_t i = 0; i < d->npending; i++) {
		const struct op *op = &d->r->ops[d->pending[i]];
		bool covered = d->pending[i] < sync->began &&
			(sync->folder ? op->kind == OP_NAME
				      : op->kind != OP_NAME && op->file == sync->file);
		if (covered)
			do_op(op->kind == OP_NAME ? NULL : &d->files[op->file], d->names, op, DONE,
				0);
		else
			d->pending[kept++] = d->pending[i];
	}
	d->npending = kept;
}

bool disk_step(struct disk *d)
{
	if (d->at == d->r->n)
		return false;
	const struct op *op = &d->r->ops[d->at];
	if (op->kind == OP_SYNC) {
		sync_done(d, op);
	} else if (op->kind != OP_MARK) {
		if (d->npending == d->room) {
			d->room = d->room ? 2 * d->room : 64;
			d->pending = need(reallocarray(d->pending, d->room, sizeof(*d->pending)));
		}
		d->pending[d->npending++] = d->at;
	}
	d->at++;
	return true;
}

/* ---- images ---- */

static uint64_t hash_bytes(uint64_t h, const unsigned char *p, size_t n)
{
	while (n >= 8) {
		uint64_t x;
		memcpy(&x, p, 8);
		h = (h ^ x) * UINT64_C(0x9fb21c651e98df25);
		h ^= h >> 32;
		p += 8;
		n -= 8;
	}
	while (n-- > 0)
		h = (h ^ *p++) * UINT64_C(0x100000001b3);
	return mix(h);
}

void disk_image(struct disk *d, const unsigned char *fates, uint64_t seed, struct image *ret)
{
	uint32_t names[NAMES];
	struct bytes *files = need(calloc(d->r->nfiles + 1, sizeof(*files)));
	memcpy(names, d->names, sizeof(names));
	for (uint32_t i = 0; i < d->r->nfiles; i++) {
		if (d->files[i].n > 0) {
			resize(&files[i], d->files[i].n);
			memcpy(files[i].p, d->files[i].p, d->files[i].n);
		}
	}
	for (size_t i = 0; i < d->npending; i++) {
		const struct op *op = &d->r->ops[d->pending[i]];
		do_op(op->kind == OP_NAME ? NULL : &files[op->file], names, op, fates[i],
			mix(seed + i));
	}
	memset(ret, 0, sizeof(*ret));
	ret->files = need(calloc(d->r->nnames + 1, sizeof(*ret->files)));
	for (uint32_t i = 0; i < d->r->nnames; i++) {
		if (names[i] == NO_FILE)
			continue;
		struct image_file *f = &ret->files[ret->n++];
		f->name = d->r->names[i];
		f->n = files[names[i]].n;
		f->bytes = copy(f->n ? files[names[i]].p : (const unsigned char *)"", f->n);
		ret->hash = hash_bytes(ret->hash + i, f->bytes, f->n) + mix(f->n);
	}
	for (uint32_t i = 0; i < d->r->nfiles; i++)
		free(files[i].p);
	free(files);
}

void image_write(const struct image *im, const char *folder)
{
	int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = opendir(folder);
	if (dir < 0 || list == NULL)
		err(2, "%s", folder);
	for (struct dirent *e; (e = readdir(list)) != NULL;) {
		if (e->d_type == DT_REG)
			(void)unlinkat(dir, e->d_name, 0);
	}
	(void)closedir(list);
	for (size_t i = 0; i < im->n; i++) {
		const struct image_file *f = &im->files[i];
		int fd = openat(dir, f->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		for (size_t at = 0; fd >= 0 && at < f->n;) {
			ssize_t n = write(fd, f->bytes + at, f->n - at);
			if (n <= 0)
				err(2, "%s/%s", folder, f->name);
			at += (size_t)n;
		}
		if (fd < 0 || close(fd) != 0)
			err(2, "%s/%s", folder, f->name);
	}
	(void)close(dir);
}

void image_free(struct image *im)
{
	for (size_t i = 0; i < im->n; i++)
		free(im->files[i].bytes);
	free(im->files);
}
