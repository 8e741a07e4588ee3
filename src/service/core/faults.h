/* SPDX-License-Identifier: MIT
 * Faults on order: requests of the REST socket that fail because a rule says so, for testing
 * clients.  rest/core asks for each request, in one place.  Without rules that costs one load.
 *
 * Any number of threads may use it.  Times are clock_mono_us(). */
#ifndef SERVICE_CORE_FAULTS_H
#define SERVICE_CORE_FAULTS_H

#include "service/core/fault_rules.h"

struct faults;

/* The most bytes of faults_write(): a rule, and what is left of it, is shorter than 512. */
#define FAULTS_SHOWN_MAX ((size_t)FAULT_RULES_MAX * 512)

struct faults *faults_new(void); /* NULL when memory is out */
void faults_free(struct faults *f);

/* Replaces all rules by those of the text, or adds these; "" removes all.  The metrics have the
 * names of the operations.  On an error the old rules stay.  Errors of fault_rules.h. */
enum err faults_set(struct faults *f, const struct metrics *m, struct span text, bool add,
	uint64_t now_us, struct err_detail *detail);
/* Returns the error of a text of rules.  Errors of fault_rules.h. */
enum err faults_check(const struct metrics *m, struct span text, struct err_detail *detail);
/* Returns true if there may be rules. */
bool faults_are_set(const struct faults *f);

struct fault_request {
	struct span account, container;
	const char *service, *op;
};

struct fault {
	enum fault_kind kind;
	uint32_t wait_ms;
};

/* Returns true if this request has a fault, and counts it: that of the first rule that fits. */
bool faults_take(
	struct faults *f, const struct fault_request *q, uint64_t now_us, struct fault *ret);

/* Appends the rules that still hold, with what is left of them, a line each. */
void faults_write(struct faults *f, uint64_t now_us, struct buf *out);
/* Returns how many rules still hold. */
size_t faults_rules(struct faults *f, uint64_t now_us);
/* Returns how many requests have had this fault since the start. */
uint64_t faults_taken(const struct faults *f, enum fault_kind kind);

#endif
