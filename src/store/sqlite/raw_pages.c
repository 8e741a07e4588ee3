/* SPDX-License-Identifier: MIT
 * The formats are SQLite's (fileformat2.html): the header of a file, the list of free pages, the log.
 * A log is sound up to the last commit before the first frame whose running checksum is wrong, as
 * SQLite takes it. */
#include "store/sqlite/raw_pages.h"

#include "store/sqlite/page_file.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "SQLite format 3"
#define HEADER_PAGES 28
#define HEADER_FREE 32
#define HEADER_FREE_COUNT 36
#define HEADER_LARGEST_ROOT 52 /* 0: there is no pointer map */

#define MAP_FIRST 2
#define MAP_ENTRY 5
#define MAP_OF_ROOT 1

#define LOG_HEADER 32
#define FRAME_HEADER 24
#define FRAME (FRAME_HEADER + PAGE_BYTES)
#define LOG_MAGIC 0x377f0682u

static bool read_at(int fd, void *out, size_t n, uint64_t at)
{
	size_t got = 0;
	while (got < n) {
		ssize_t more = TEMP_FAILURE_RETRY(
			pread(fd, (char *)out + got, n - got, (off_t)(at + got)));
		if (more <= 0)
			return false;
		got += (size_t)more;
	}
	return true;
}

static enum err size_of(int fd, uint64_t *ret)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return err_from_errno(errno);
	*ret = st.st_size > 0 ? (uint64_t)st.st_size : 0;
	return ERR_OK;
}

bool raw_page(const struct raw_pages *p, uint32_t number, unsigned char out[PAGE_BYTES])
{
	if (number < 1 || number > p->n)
		return false;
	if (p->frame != NULL && p->frame[number] != 0)
		return read_at(p->log_fd, out, PAGE_BYTES,
			LOG_HEADER + (uint64_t)(p->frame[number] - 1) * FRAME + FRAME_HEADER);
	return read_at(p->fd, out, PAGE_BYTES, (uint64_t)(number - 1) * PAGE_BYTES) &&
		(!p->sealed || page_is_whole(out, number));
}

/* ---- the log ---- */

struct log {
	bool big; /* endian: its checksums */
	uint32_t sum[2];
	unsigned char salt[8];
	uint32_t frames; /* up to the last commit */
	uint32_t pages;  /* of the store after it */
	uint32_t *page;  /* by frame, from 0 */
};

static void add_sum(struct log *l, const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint32_t a, b;
		memcpy(&a, p + i, 4);
		memcpy(&b, p + i + 4, 4);
		l->sum[0] += (l->big ? be32toh(a) : le32toh(a)) + l->sum[1];
		l->sum[1] += (l->big ? be32toh(b) : le32toh(b)) + l->sum[0];
	}
}

static bool sum_is(const struct log *l, const unsigned char *p)
{
	return l->sum[0] == raw_u32(p) && l->sum[1] == raw_u32(p + 4);
}

static bool begin_log(struct log *l, int fd)
{
	unsigned char head[LOG_HEADER];
	if (!read_at(fd, head, sizeof(head), 0) || (raw_u32(head) & ~1u) != LOG_MAGIC ||
		raw_u32(head + 8) != PAGE_BYTES)
		return false;
	l->big = raw_u32(head) & 1;
	memcpy(l->salt, head + 16, sizeof(l->salt));
	add_sum(l, head, 24);
	return sum_is(l, head + 24);
}

static void read_frames(struct log *l, int fd, uint32_t most)
{
	unsigned char frame[FRAME];
	for (uint32_t i = 0; i < most; i++) {
		if (!read_at(fd, frame, FRAME, LOG_HEADER + (uint64_t)i * FRAME) ||
			memcmp(frame + 8, l->salt, sizeof(l->salt)) != 0)
			return;
		add_sum(l, frame, 8);
		add_sum(l, frame + FRAME_HEADER, PAGE_BYTES);
		if (!sum_is(l, frame + 16))
			return;
		l->page[i] = raw_u32(frame);
		if (raw_u32(frame + 4) != 0) {
			l->frames = i + 1;
			l->pages = raw_u32(frame + 4);
		}
	}
}

/* l->page is the caller's to free. */
static enum err read_log(struct log *l, int fd)
{
	uint64_t bytes = 0;
	enum err e = fd < 0 ? ERR_OK : size_of(fd, &bytes);
	if (e != ERR_OK || bytes < LOG_HEADER + FRAME)
		return e;
	uint64_t most = (bytes - LOG_HEADER) / FRAME;
	if (most > UINT32_MAX / 2 || !begin_log(l, fd))
		return ERR_OK;
	l->page = calloc((size_t)most, sizeof(*l->page));
	if (l->page == NULL)
		return ERR_NO_MEMORY;
	read_frames(l, fd, (uint32_t)most);
	return ERR_OK;
}

static enum err lay_over(struct raw_pages *p, const struct log *l)
{
	if (l->frames == 0)
		return ERR_OK;
	p->frame = calloc((size_t)p->n + 1, sizeof(*p->frame));
	if (p->frame == NULL)
		return ERR_NO_MEMORY;
	for (uint32_t i = 0; i < l->frames; i++)
		if (l->page[i] >= 1 && l->page[i] <= p->n)
			p->frame[l->page[i]] = i + 1;
	return ERR_OK;
}

/* ---- the file ---- */

/* By the first page that has the right sum: the header may be what is damaged. */
static bool find_sum(const struct raw_pages *p, uint32_t pages)
{
	unsigned char page[PAGE_BYTES];
	for (uint32_t i = 1; i <= pages; i++)
		if (read_at(p->fd, page, PAGE_BYTES, (uint64_t)(i - 1) * PAGE_BYTES) &&
			page_is_whole(page, i))
			return true;
	return false;
}

static bool read_head(const struct raw_pages *p, unsigned char out[PAGE_BYTES])
{
	return raw_page(p, 1, out) && memcmp(out, MAGIC, sizeof(MAGIC)) == 0;
}

/* Every page that can be there: those of the file, and each frame of the log may add one. */
static enum err count_pages(struct raw_pages *p, const struct log *l)
{
	unsigned char head[PAGE_BYTES];
	uint64_t bytes = 0;
	enum err e = size_of(p->fd, &bytes);
	if (e != ERR_OK)
		return e;
	uint64_t pages = (bytes + PAGE_BYTES - 1) / PAGE_BYTES;
	p->n = pages + l->frames < INT32_MAX ? (uint32_t)(pages + l->frames) : INT32_MAX;
	p->sealed = find_sum(p, pages < INT32_MAX ? (uint32_t)pages : INT32_MAX);
	p->should = l->frames > 0 ? l->pages : 0;
	if (p->should == 0 && read_head(p, head))
		p->should = raw_u32(head + HEADER_PAGES);
	if (p->should == 0 || p->should > INT32_MAX)
		p->should = p->n;
	if (p->n > p->should)
		p->n = p->should;
	return ERR_OK;
}

/* Room at the end of pages that is not SQLite's. */
static size_t reserved(const struct raw_pages *p)
{
	unsigned char head[PAGE_BYTES];
	if (p->sealed || (read_head(p, head) && head[PAGE_RESERVED_AT] == PAGE_SUM_BYTES))
		return PAGE_SUM_BYTES;
	return 0;
}

/* A page of the list and those that it names; the next one, 0 at the end or where it breaks. */
static uint32_t read_free_page(struct raw_pages *p, uint32_t number, uint32_t *found)
{
	unsigned char page[PAGE_BYTES];
	if (!raw_page(p, number, page) || p->mark[number] != RAW_UNSEEN)
		return 0;
	uint32_t n = raw_u32(page + 4);
	p->mark[number] = RAW_FREE;
	++*found;
	if (n > p->usable / 4 - 2)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t free_one = raw_u32(page + 8 + 4 * (size_t)i);
		if (free_one >= 1 && free_one <= p->n)
			p->mark[free_one] = RAW_FREE;
	}
	*found += n;
	return raw_u32(page);
}

static void read_free(struct raw_pages *p)
{
	unsigned char head[PAGE_BYTES];
	uint32_t found = 0;
	if (!read_head(p, head))
		return;
	uint32_t next = raw_u32(head + HEADER_FREE);
	while (next != 0)
		next = read_free_page(p, next, &found);
	p->free_known = found == raw_u32(head + HEADER_FREE_COUNT);
}

/* The first entry of a pointer map is that of the first table's root. */
static bool finds_maps(const struct raw_pages *p)
{
	unsigned char page[PAGE_BYTES];
	if (read_head(p, page))
		return raw_u32(page + HEADER_LARGEST_ROOT) != 0;
	return raw_page(p, MAP_FIRST, page) && page[0] == MAP_OF_ROOT;
}

static void mark_maps(struct raw_pages *p)
{
	uint32_t step = (uint32_t)(p->usable / MAP_ENTRY) + 1;
	for (uint32_t at = MAP_FIRST; p->has_maps && at <= p->n; at += step)
		p->mark[at == RAW_LOCKED_PAGE && at < p->n ? at + 1 : at] = RAW_MAP;
}

enum err raw_pages_init(struct raw_pages *p, int fd, int log_fd)
{
	struct log log = { 0 };
	*p = (struct raw_pages){ .fd = fd, .log_fd = log_fd };
	enum err e = read_log(&log, log_fd);
	if (e == ERR_OK)
		e = count_pages(p, &log);
	if (e == ERR_OK)
		e = lay_over(p, &log);
	free(log.page);
	if (e != ERR_OK)
		return e;
	/* The header may be another one in the log. */
	p->usable = PAGE_BYTES - reserved(p);
	p->mark = calloc((size_t)p->n + 1, sizeof(*p->mark));
	if (p->mark == NULL)
		return ERR_NO_MEMORY;
	p->has_maps = finds_maps(p);
	mark_maps(p);
	read_free(p);
	return ERR_OK;
}

void raw_pages_fini(struct raw_pages *p)
{
	free(p->mark);
	free(p->frame);
	p->mark = NULL;
	p->frame = NULL;
}
