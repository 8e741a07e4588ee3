/* SPDX-License-Identifier: MIT
 * Rules for faults on order, as text: which requests of the REST socket fail, how, and how often.
 * service/core/faults.h applies them.
 *
 * A rule is a line of words KEY=VALUE; ';' ends a line too, and '#' begins a comment:
 *
 *   fault=busy account=devstoreaccount1 table=Orders op=insert count=3 */
#ifndef SERVICE_CORE_FAULT_RULES_H
#define SERVICE_CORE_FAULT_RULES_H

#include "base/buf.h"
#include "base/err.h"
#include "model/limits.h"
#include "service/core/metrics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fault_kind {
	FAULT_BUSY,     /* refused, nothing is done */
	FAULT_LOST,     /* done, and the response is 500 */
	FAULT_CLOSED,   /* done, and the connection is closed without a response */
	FAULT_TIMEOUT,  /* nothing is done, and the response comes late */
	FAULT_DELETING, /* refused, as if the table or queue were being deleted */
	FAULT_KINDS_
};

#define FAULT_RULES_MAX 64
/* Bytes of a text of rules. */
#define FAULT_TEXT_MAX ((size_t)32 << 10)
#define FAULT_NAME_MAX 64 /* bytes of a name of any kind, with its NUL */

/* What is "" holds for every request. */
struct fault_rule {
	enum fault_kind kind;
	char account[FAULT_NAME_MAX];
	char service[FAULT_NAME_MAX];   /* "table", "queue" or "blob" */
	char container[FAULT_NAME_MAX]; /* the table or queue */
	char op[FAULT_NAME_MAX];        /* how the name of the operation begins */
	uint64_t count;                 /* of requests that may still have it; 0: no limit */
	uint32_t for_ms;                /* how long the rule holds; 0: no limit */
	uint32_t wait_ms;               /* how much later the response comes */
	uint32_t thousandths;           /* the probability */
	uint64_t seed;
	bool has_seed;
	unsigned line; /* of the text; 1-based */
};

/* Reads rules; *ret_n gets their number, at most FAULT_RULES_MAX.  ERR_INVALID_INPUT for all of them if
 * one is wrong; the detail names its line. */
enum err fault_rules_parse(
	struct span text, struct fault_rule *ret, size_t *ret_n, struct err_detail *detail);
/* Checks that each rule's operation is one of those that the metrics know.  ERR_INVALID_INPUT; also if
 * they know none, since then no REST socket is open. */
enum err fault_rules_check_ops(const struct fault_rule *rules, size_t n, const struct metrics *m,
	struct err_detail *detail);
/* Appends the rule as fault_rules_parse() reads it, without a line end. */
void fault_rule_write(const struct fault_rule *r, struct buf *out);
/* Returns the word for a kind, such as "busy". */
const char *fault_kind_name(enum fault_kind kind);

#endif
