/* SPDX-License-Identifier: MIT */
#include "fs/refused/unsaved.h"

#include "base/clock.h"
#include "base/crypto.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/text.h"
#include "codec/json_build.h"
#include "store/store.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define ID_WAITING (UINT64_C(1) << STORE_ID_BITS)

#define TRY_EVERY_US 1000000

struct entry {
	uint64_t id; /* 0: free */
	struct buf name, bytes;
};

struct unsaved {
	struct mutex lock;
	struct entry entries[UNSAVED_MAX]; /* guarded by lock */
	uint64_t last_id;                  /* guarded by lock */
	size_t bytes;                      /* of all; guarded by lock */
	atomic_uint n;                     /* entries; changed with the lock held */
	_Atomic uint64_t next_try_us;
};

struct unsaved *unsaved_new(void)
{
	struct unsaved *w = calloc(1, sizeof(*w));
	if (w != NULL && mutex_init(&w->lock, RANK_UNSAVED) != 0) {
		free(w);
		return NULL;
	}
	if (w != NULL)
		w->last_id = ID_WAITING;
	return w;
}

bool unsaved_is_id(uint64_t id)
{
	return id > ID_WAITING;
}

static void drop(struct unsaved *w, struct entry *e)
{
	w->bytes -= e->bytes.len;
	atomic_fetch_sub(&w->n, 1);
	buf_fini(&e->name);
	buf_fini(&e->bytes);
	e->id = 0;
}

void unsaved_free(struct unsaved *w)
{
	if (w == NULL)
		return;
	for (size_t i = 0; i < UNSAVED_MAX; i++) {
		struct entry *e = &w->entries[i];
		if (e->id == 0)
			continue;
		log_warning("%zu refused bytes, '%.*s', are lost: the store could not take them",
			e->bytes.len, (int)e->name.len, e->name.data);
		drop(w, e);
	}
	mutex_destroy(&w->lock);
	free(w);
}

/* id 0: the oldest. */
static struct entry *find(struct unsaved *w, uint64_t id)
{
	lock_assert_held(&w->lock);
	struct entry *found = NULL;
	for (size_t i = 0; i < UNSAVED_MAX; i++) {
		struct entry *e = &w->entries[i];
		if (e->id != 0 && (id == 0 ? found == NULL || e->id < found->id : e->id == id))
			found = e;
	}
	return found;
}

static struct entry *make_room(struct unsaved *w, size_t n)
{
	lock_assert_held(&w->lock);
	struct entry *oldest;
	while (w->bytes + n > UNSAVED_MAX_BYTES && (oldest = find(w, 0)) != NULL)
		drop(w, oldest);
	for (size_t i = 0; i < UNSAVED_MAX; i++)
		if (w->entries[i].id == 0)
			return &w->entries[i];
	oldest = find(w, 0);
	drop(w, oldest);
	return oldest;
}

uint64_t unsaved_put(struct unsaved *w, struct span name, struct span bytes)
{
	struct buf name_copy = BUF_INIT(4096), copy = BUF_INIT(UNSAVED_MAX_BYTES);
	buf_add_span(&name_copy, name);
	buf_add_span(&copy, bytes);
	if (!buf_ok(&name_copy) || !buf_ok(&copy)) {
		buf_fini(&name_copy);
		buf_fini(&copy);
		return 0;
	}
	mutex_lock(&w->lock);
	struct entry *e = make_room(w, bytes.n);
	*e = (struct entry){ ++w->last_id, name_copy, copy };
	w->bytes += bytes.n;
	atomic_fetch_add(&w->n, 1);
	uint64_t id = e->id;
	mutex_unlock(&w->lock);
	return id;
}

bool unsaved_append(struct unsaved *w, uint64_t id, struct span bytes)
{
	mutex_lock(&w->lock);
	struct entry *e = find(w, id);
	bool fits = e != NULL && w->bytes + bytes.n <= UNSAVED_MAX_BYTES;
	if (fits && !span_ends(buf_span(&e->bytes), bytes)) {
		size_t before = e->bytes.len;
		buf_add_span(&e->bytes, bytes);
		fits = buf_ok(&e->bytes);
		w->bytes += e->bytes.len - before;
	}
	mutex_unlock(&w->lock);
	return fits;
}

void unsaved_drop(struct unsaved *w, uint64_t id)
{
	mutex_lock(&w->lock);
	struct entry *e = find(w, id);
	if (e != NULL)
		drop(w, e);
	mutex_unlock(&w->lock);
}

bool unsaved_has(struct unsaved *w, struct span name)
{
	bool has = false;
	if (name.n == 0 || atomic_load(&w->n) == 0)
		return atomic_load(&w->n) > 0;
	mutex_lock(&w->lock);
	for (size_t i = 0; i < UNSAVED_MAX && !has; i++)
		has = w->entries[i].id != 0 && span_eq(buf_span(&w->entries[i].name), name);
	mutex_unlock(&w->lock);
	return has;
}

bool unsaved_is_due(struct unsaved *w)
{
	uint64_t now = clock_mono_us(), due = atomic_load(&w->next_try_us);
	return now >= due &&
		atomic_compare_exchange_strong(&w->next_try_us, &due, now + TRY_EVERY_US);
}

uint64_t unsaved_first(struct unsaved *w, struct buf *name, struct buf *bytes)
{
	mutex_lock(&w->lock);
	const struct entry *e = find(w, 0);
	uint64_t id = e != NULL ? e->id : 0;
	if (e != NULL) {
		buf_add_span(name, buf_span(&e->name));
		buf_add_span(bytes, buf_span(&e->bytes));
	}
	mutex_unlock(&w->lock);
	return buf_ok(name) && buf_ok(bytes) ? id : 0;
}

static void dump_one(const struct entry *e, struct buf *out)
{
	struct span bytes = buf_span(&e->bytes);
	struct json_build b;
	json_begin(&b);
	json_add_text(&b, "name", buf_span(&e->name));
	json_add_count(&b, "bytes", bytes.n);
	if (utf8_valid(bytes)) {
		json_add_text(&b, "content", bytes);
	} else {
		struct buf text = BUF_INIT(bytes.n / 3 * 4 + 4);
		base64_encode(bytes, &text);
		json_add_text(&b, "base64", buf_span(&text));
		if (!buf_ok(&text))
			b.failed = true;
		buf_fini(&text);
	}
	json_end(&b, out);
	buf_add_char(out, '\n');
}

void unsaved_dump(struct unsaved *w, struct buf *out)
{
	mutex_lock(&w->lock);
	uint64_t done = 0;
	for (;;) {
		const struct entry *next = NULL;
		for (size_t i = 0; i < UNSAVED_MAX; i++) {
			const struct entry *e = &w->entries[i];
			if (e->id > done && (next == NULL || e->id < next->id))
				next = e;
		}
		if (next == NULL)
			break;
		dump_one(next, out);
		done = next->id;
	}
	mutex_unlock(&w->lock);
}
