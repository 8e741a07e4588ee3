/* SPDX-License-Identifier: MIT
 * The staged writes of blobs, by number and by name. */
#include "base/clock.h"
#include "fs/blob/room.h"
#include "fs/blob/stage_parts.h"
#include "service/blobs/blobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* How long a thread that was told to look again is expected. */
#define EXPECTED_US 10000000

struct blob_stages *blob_stages_new(void)
{
	struct blob_stages *t = calloc(1, sizeof(*t));
	if (t == NULL)
		return NULL;
	if (mutex_init(&t->lock, RANK_BLOB_STAGES) != 0) {
		free(t);
		return NULL;
	}
	if (mutex_init(&t->names, RANK_BLOB_NAMES) != 0) {
		mutex_destroy(&t->lock);
		free(t);
		return NULL;
	}
	return t;
}

static void stage_free(struct blob_stage *s)
{
	if (s->fd >= 0)
		close(s->fd);
	mutex_destroy(&s->lock);
	free(s);
}

void blob_stages_free(struct blob_stages *t)
{
	if (t == NULL)
		return;
	for (struct blob_stage *s = t->first, *next; s != NULL; s = next) {
		next = s->next;
		stage_free(s);
	}
	mutex_destroy(&t->names);
	mutex_destroy(&t->lock);
	free(t);
}

void blob_stages_lock_names(struct blob_stages *t)
{
	mutex_lock(&t->names);
}

void blob_stages_unlock_names(struct blob_stages *t)
{
	mutex_unlock(&t->names);
}

uint64_t blob_stages_number(struct blob_stages *t)
{
	mutex_lock(&t->lock);
	uint64_t n = ++t->last;
	mutex_unlock(&t->lock);
	return n;
}

/* ---- threads that look again ---- */

void blob_stages_expect(struct blob_stages *t, pid_t thread, uint64_t container, struct span name)
{
	mutex_lock(&t->lock);
	t->expected[t->next++ % EXPECTED_MAX] = (struct expected){ thread,
		blob_ino(container, name), clock_mono_us() + EXPECTED_US, ++t->last };
	mutex_unlock(&t->lock);
}

uint64_t blob_stages_wants(
	struct blob_stages *t, pid_t thread, uint64_t container, struct span name)
{
	uint64_t now = clock_mono_us(), hash = blob_ino(container, name), number = 0;
	mutex_lock(&t->lock);
	for (size_t i = 0; i < EXPECTED_MAX; i++) {
		struct expected *x = &t->expected[i];
		if (x->thread != thread || thread == 0)
			continue;
		if (x->hash == hash && x->until_us > now)
			number = x->number;
		else
			*x = (struct expected){ 0 };
	}
	mutex_unlock(&t->lock);
	return number;
}

/* The thread has come back. */
static void expect_no_more(struct blob_stages *t, uint64_t number)
{
	mutex_lock(&t->lock);
	for (size_t i = 0; i < EXPECTED_MAX; i++)
		if (t->expected[i].number == number)
			t->expected[i] = (struct expected){ 0 };
	mutex_unlock(&t->lock);
}

/* ---- stages by number and by name ---- */

static struct blob_stage *find(struct blob_stages *t, uint64_t number)
{
	lock_assert_held(&t->lock);
	struct blob_stage *s = t->first;
	while (s != NULL && s->number != number)
		s = s->next;
	return s;
}

struct blob_stage *blob_stage_get(struct blob_stages *t, uint64_t number)
{
	mutex_lock(&t->lock);
	struct blob_stage *s = find(t, number);
	if (s != NULL)
		s->refs++;
	mutex_unlock(&t->lock);
	return s;
}

struct blob_stage *blob_stage_named(struct blob_stages *t, uint64_t container, struct span name)
{
	mutex_lock(&t->lock);
	struct blob_stage *s = t->first;
	while (s != NULL &&
		!(s->fresh && !s->removed && s->container == container &&
			span_eq(blob_stage_name(s), name)))
		s = s->next;
	if (s != NULL)
		s->refs++;
	mutex_unlock(&t->lock);
	return s;
}

uint64_t blob_stage_number(const struct blob_stage *s)
{
	return s->number;
}

void blob_stages_removed(struct blob_stages *t, uint64_t container, struct span name)
{
	lock_assert_held(&t->names);
	mutex_lock(&t->lock);
	for (struct blob_stage *s = t->first; s != NULL; s = s->next)
		if (s->container == container && span_eq(blob_stage_name(s), name))
			s->removed = true;
	mutex_unlock(&t->lock);
}

/* An unnamed file beside the store, or where temporary files are if the store is no file. */
static int open_file(const struct fs *fs)
{
	char dir[4096];
	const char *slash = strrchr(fs->store_path, '/');
	size_t n = slash != NULL ? (size_t)(slash - fs->store_path) : 0;
	int fd = -1;
	if (n > 0 && n < sizeof(dir)) {
		memcpy(dir, fs->store_path, n);
		dir[n] = '\0';
		fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	}
	return fd >= 0 ? fd : open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

static struct blob_stage *new_stage(
	uint64_t container, struct span name, uint64_t number, bool fresh)
{
	struct blob_stage *s = name.n <= BLOB_NAME_BYTES ? calloc(1, sizeof(*s)) : NULL;
	if (s == NULL || mutex_init(&s->lock, RANK_BLOB_STAGE) != 0) {
		free(s);
		return NULL;
	}
	s->number = number;
	s->container = container;
	s->refs = 1;
	s->fresh = s->news = s->loaded = fresh;
	s->fd = -1;
	memcpy(s->name, name.p, name.n);
	s->name_n = name.n;
	return s;
}

/* Checks that the blob may be written. */
static enum err look(
	struct fs *fs, uint64_t container, struct span name, bool *ret_fresh, uint64_t *ret_size)
{
	struct blob_info b;
	enum err e = blob_find(fs->service, container, name, &b);
	*ret_fresh = e == ERR_BLOB_NOT_FOUND;
	*ret_size = 0;
	if (e == ERR_OK) {
		*ret_size = b.record.size;
		e = lease_check_write(&b.record.lease, SPAN_LIT(""), service_now(fs->service));
		if (e == ERR_OK && b.record.type != BLOB_BLOCK)
			e = ERR_BLOB_TYPE;
		blob_info_fini(&b);
	}
	return *ret_fresh ? ERR_OK : e;
}

enum err blob_stage_open(struct fs *fs, uint64_t container, struct span name, uint64_t number,
	struct blob_stage **ret)
{
	struct blob_stages *t = fs->blobs->stages;
	bool fresh;
	uint64_t size;
	expect_no_more(t, number);
	if (service_is_read_only(fs->service))
		return ERR_READ_ONLY;
	*ret = blob_stage_get(fs->blobs->stages, number);
	if (*ret != NULL)
		return ERR_OK;
	enum err e = look(fs, container, name, &fresh, &size);
	if (e != ERR_OK)
		return e;
	struct blob_stage *s = new_stage(container, name, number, fresh);
	if (s == NULL)
		return ERR_NO_MEMORY;
	s->size = size;
	s->fd = open_file(fs);
	if (s->fd < 0) {
		e = err_from_errno(errno);
		stage_free(s);
		return e;
	}
	mutex_lock(&t->lock);
	struct blob_stage *faster = find(t, number); /* another open of the same node */
	if (faster != NULL) {
		faster->refs++;
	} else {
		s->next = t->first;
		t->first = s;
	}
	mutex_unlock(&t->lock);
	if (faster != NULL)
		stage_free(s);
	*ret = faster != NULL ? faster : s;
	return ERR_OK;
}

void blob_stage_unref(struct blob_stages *t, struct blob_stage *s)
{
	mutex_lock(&t->lock);
	struct blob_stage **at = &t->first;
	bool last = --s->refs == 0;
	while (last && *at != s)
		at = &(*at)->next;
	if (last)
		*at = s->next;
	mutex_unlock(&t->lock);
	if (last)
		stage_free(s);
}

void blob_stages_moved(
	struct blob_stages *t, uint64_t from, struct span name, uint64_t to, struct span to_name)
{
	lock_assert_held(&t->names);
	mutex_lock(&t->lock);
	for (struct blob_stage *s = t->first; s != NULL; s = s->next)
		if (s->container == from && span_eq(blob_stage_name(s), name)) {
			memcpy(s->name, to_name.p, to_name.n);
			s->name_n = to_name.n;
			s->container = to;
		}
	mutex_unlock(&t->lock);
}

enum err blob_stage_close(struct fs *fs, struct blob_stage *s, struct err_detail *detail)
{
	mutex_lock(&s->lock);
	bool refused = s->refused;
	mutex_unlock(&s->lock);
	enum err e = refused ? ERR_OK : blob_stage_commit(fs, s, false, detail);
	blob_stage_unref(fs->blobs->stages, s);
	return e;
}
