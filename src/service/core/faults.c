/* SPDX-License-Identifier: MIT */
#include "service/core/faults.h"

#include "base/lock.h"
#include "base/log.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct active {
	struct fault_rule rule; /* count: what is left */
	uint64_t end_us;        /* 0: none */
	uint64_t random;
	uint64_t taken;
};

struct faults {
	struct mutex lock;
	atomic_size_t n; /* changed under the lock */
	struct active *rules;
	_Atomic uint64_t taken[FAULT_KINDS_];
};

struct faults *faults_new(void)
{
	struct faults *f = calloc(1, sizeof(*f));
	if (f != NULL)
		mutex_init(&f->lock, RANK_FAULTS);
	return f;
}

void faults_free(struct faults *f)
{
	if (f == NULL)
		return;
	mutex_destroy(&f->lock);
	free(f->rules);
	free(f);
}

/* Removes the rules whose time is over. */
static size_t drop_ended(struct faults *f, uint64_t now_us)
{
	size_t n = 0, all = atomic_load(&f->n);
	lock_assert_held(&f->lock);
	for (size_t i = 0; i < all; i++)
		if (f->rules[i].end_us == 0 || now_us < f->rules[i].end_us)
			f->rules[n++] = f->rules[i];
	atomic_store(&f->n, n);
	return n;
}

/* ---- setting ---- */

/* A room of FAULT_RULES_MAX rules, and their number. */
static enum err read_rules(const struct metrics *m, struct span text, struct fault_rule **ret,
	size_t *ret_n, struct err_detail *detail)
{
	*ret = calloc(FAULT_RULES_MAX, sizeof(**ret));
	if (*ret == NULL)
		return ERR_NO_MEMORY;
	enum err e = fault_rules_parse(text, *ret, ret_n, detail);
	return e == ERR_OK ? fault_rules_check_ops(*ret, *ret_n, m, detail) : e;
}

enum err faults_check(const struct metrics *m, struct span text, struct err_detail *detail)
{
	struct fault_rule *rules;
	size_t n;
	enum err e = read_rules(m, text, &rules, &n, detail);
	free(rules);
	return e;
}

static struct active begin(const struct fault_rule *r, size_t i, uint64_t now_us)
{
	return (struct active){ .rule = *r,
		.end_us = r->for_ms != 0 ? now_us + r->for_ms * UINT64_C(1000) : 0,
		.random = r->has_seed ? r->seed : now_us + i };
}

/* Takes over the new rules. */
static enum err install(struct faults *f, struct active *rules, size_t n, bool add, uint64_t now_us,
	struct err_detail *detail)
{
	mutex_lock(&f->lock);
	size_t old = add ? drop_ended(f, now_us) : 0;
	struct active *dropped = rules;
	bool fits = n + old <= FAULT_RULES_MAX;
	if (fits) {
		memmove(rules + old, rules, n * sizeof(*rules));
		if (old > 0)
			memcpy(rules, f->rules, old * sizeof(*rules));
		dropped = f->rules;
		f->rules = rules;
		atomic_store(&f->n, n + old);
	}
	mutex_unlock(&f->lock);
	free(dropped);
	return fits ? ERR_OK
		    : err_set(detail, ERR_INVALID_INPUT, "there can be %d rules, and %zu hold",
			      FAULT_RULES_MAX, old);
}

enum err faults_set(struct faults *f, const struct metrics *m, struct span text, bool add,
	uint64_t now_us, struct err_detail *detail)
{
	struct fault_rule *rules;
	struct active *all = calloc(FAULT_RULES_MAX, sizeof(*all));
	size_t n = 0;
	enum err e = read_rules(m, text, &rules, &n, detail);
	if (e == ERR_OK && all == NULL)
		e = ERR_NO_MEMORY;
	for (size_t i = 0; e == ERR_OK && i < n; i++)
		all[i] = begin(&rules[i], i, now_us);
	free(rules);
	if (e != ERR_OK) {
		free(all);
		return e;
	}
	e = install(f, all, n, add, now_us, detail);
	if (e == ERR_OK && n > 0)
		log_warning("faults on order: requests of the REST socket fail by rules (%zu of "
			    "them); see .rowfs/faults",
			n);
	return e;
}

bool faults_are_set(const struct faults *f)
{
	return atomic_load_explicit(&f->n, memory_order_relaxed) > 0;
}

/* ---- requests ---- */

static bool name_is(const char *wanted, struct span name)
{
	return wanted[0] == '\0' ||
		(strlen(wanted) == name.n && strncasecmp(wanted, name.p, name.n) == 0);
}

static bool fits(const struct fault_rule *r, const struct fault_request *q)
{
	/* Only a table or queue can be on its way out. */
	return !(r->kind == FAULT_DELETING && q->container.n == 0) &&
		name_is(r->account, q->account) && name_is(r->service, span_of(q->service)) &&
		name_is(r->container, q->container) &&
		strncasecmp(r->op, q->op, strlen(r->op)) == 0;
}

/* splitmix64: any seed will do. */
static uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static bool happens(struct active *a)
{
	return random_next(&a->random) % 1000 < a->rule.thousandths;
}

static void take(struct faults *f, struct active *a, uint64_t now_us, struct fault *ret)
{
	*ret = (struct fault){ a->rule.kind, a->rule.wait_ms };
	a->taken++;
	atomic_fetch_add(&f->taken[a->rule.kind], 1);
	if (a->rule.count == 0 || --a->rule.count > 0)
		return;
	a->end_us = now_us > 0 ? now_us : 1;
	(void)drop_ended(f, a->end_us);
}

bool faults_take(
	struct faults *f, const struct fault_request *q, uint64_t now_us, struct fault *ret)
{
	bool found = false;
	mutex_lock(&f->lock);
	size_t n = drop_ended(f, now_us);
	for (size_t i = 0; i < n && !found; i++) {
		found = fits(&f->rules[i].rule, q) && happens(&f->rules[i]);
		if (found)
			take(f, &f->rules[i], now_us, ret);
	}
	mutex_unlock(&f->lock);
	return found;
}

/* ---- what there is ---- */

void faults_write(struct faults *f, uint64_t now_us, struct buf *out)
{
	mutex_lock(&f->lock);
	size_t n = drop_ended(f, now_us);
	for (size_t i = 0; i < n; i++) {
		const struct active *a = &f->rules[i];
		struct fault_rule left = a->rule;
		if (a->end_us != 0) /* at least a thousandth: it has not ended */
			left.for_ms = (uint32_t)((a->end_us - now_us + 999) / 1000);
		fault_rule_write(&left, out);
		buf_addf(out, " # had by %" PRIu64 "\n", a->taken);
	}
	mutex_unlock(&f->lock);
}

size_t faults_rules(struct faults *f, uint64_t now_us)
{
	mutex_lock(&f->lock);
	size_t n = drop_ended(f, now_us);
	mutex_unlock(&f->lock);
	return n;
}

uint64_t faults_taken(const struct faults *f, enum fault_kind kind)
{
	return atomic_load(&f->taken[kind]);
}
