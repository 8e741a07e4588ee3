/* SPDX-License-Identifier: MIT */
#include "service/core/fault_rules.h"

#include "base/compiler.h"
#include "base/text.h"
#include "model/names.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define SECONDS_MAX 86400
#define WAIT_USUAL_MS 30000 /* of a time-out: the service's own */
#define SURE 1000           /* thousandths */

static const char *const kinds[FAULT_KINDS_] = {
	[FAULT_BUSY] = "busy",
	[FAULT_LOST] = "lost",
	[FAULT_CLOSED] = "closed",
	[FAULT_TIMEOUT] = "timeout",
	[FAULT_DELETING] = "deleting",
};

/* The services whose requests can have faults.  The name is the key of a rule. */
static const struct {
	const char *name;
	enum metrics_front_end front_end;
	enum err (*check)(struct span name, struct err_detail *detail);
} services[] = {
	{ "table", METRICS_REST, table_name_check },
	{ "queue", METRICS_QUEUE, queue_name_check },
	{ "blob", METRICS_BLOB, container_name_check },
};

enum key {
	KEY_FAULT,
	KEY_ACCOUNT,
	KEY_OP,
	KEY_COUNT,
	KEY_FOR,
	KEY_WAIT,
	KEY_PROBABILITY,
	KEY_SEED,
	KEYS_,
	KEY_CONTAINER = KEYS_ /* a service's name */
};

static const char *const keys[KEYS_] = {
	[KEY_FAULT] = "fault",
	[KEY_ACCOUNT] = "account",
	[KEY_OP] = "op",
	[KEY_COUNT] = "count",
	[KEY_FOR] = "for",
	[KEY_WAIT] = "wait",
	[KEY_PROBABILITY] = "probability",
	[KEY_SEED] = "seed",
};

struct reader {
	unsigned line;
	struct span word;  /* that is being read */
	struct span value; /* behind its '=' */
	unsigned seen;     /* a bit for each key of the rule */
	struct err_detail *detail;
};

const char *fault_kind_name(enum fault_kind kind)
{
	return kinds[kind];
}

/* ---- reading ---- */

static enum err complain(const struct reader *r, const char *what)
{
	int n = r->word.n < 60 ? (int)r->word.n : 60;
	return err_set(
		r->detail, ERR_INVALID_INPUT, "line %u: '%.*s' %s", r->line, n, r->word.p, what);
}

/* The part up to one of the bytes, which is removed from *rest with it. */
static struct span next(struct span *rest, const char *ends)
{
	size_t n = 0;
	while (n < rest->n && strchr(ends, rest->p[n]) == NULL)
		n++;
	struct span part = span_make(rest->p, n);
	n += n < rest->n;
	*rest = span_make(rest->p + n, rest->n - n);
	return part;
}

static enum err read_name(const struct reader *r, char ret[FAULT_NAME_MAX])
{
	if (r->value.n == 0 || r->value.n >= FAULT_NAME_MAX || !utf8_valid(r->value))
		return complain(r, "is no name");
	memcpy(ret, r->value.p, r->value.n);
	ret[r->value.n] = '\0';
	return ERR_OK;
}

/* A number with up to three decimals. */
static bool read_thousandths(struct span text, uint64_t max, uint32_t *ret)
{
	struct span rest = text;
	struct span whole = next(&rest, ".");
	uint64_t n = 0, decimals = 0;
	if (!text_to_u64(whole, &n) || n > max)
		return false;
	n *= 1000;
	if (whole.n < text.n) {
		if (rest.n == 0 || rest.n > 3 || !text_to_u64(rest, &decimals))
			return false;
		n += decimals * (rest.n == 1 ? 100 : rest.n == 2 ? 10 : 1);
	}
	*ret = (uint32_t)n;
	return n > 0 && n <= max * 1000;
}

static enum err read_kind(const struct reader *r, struct fault_rule *ret)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (span_is(r->value, kinds[i])) {
			ret->kind = (enum fault_kind)i;
			return ERR_OK;
		}
	return complain(r, "is no fault: there are busy, lost, closed, timeout and deleting");
}

static enum err read_value(const struct reader *r, enum key key, struct fault_rule *ret)
{
	static const char seconds[] = "wants seconds, such as 2 or 0.5; a day at most";
	bool ok;
	switch (key) {
	case KEY_FAULT:
		return read_kind(r, ret);
	case KEY_ACCOUNT:
		return account_name_check(r->value, NULL) == ERR_OK ? read_name(r, ret->account)
								    : complain(r, "is no account");
	case KEY_OP:
		return read_name(r, ret->op);
	case KEY_COUNT:
		ok = text_to_u64(r->value, &ret->count) && ret->count > 0;
		return ok ? ERR_OK : complain(r, "wants a number from 1 on");
	case KEY_FOR:
		ok = read_thousandths(r->value, SECONDS_MAX, &ret->for_ms);
		return ok ? ERR_OK : complain(r, seconds);
	case KEY_WAIT:
		ok = read_thousandths(r->value, SECONDS_MAX, &ret->wait_ms);
		return ok ? ERR_OK : complain(r, seconds);
	case KEY_PROBABILITY:
		ok = read_thousandths(r->value, 1, &ret->thousandths);
		return ok ? ERR_OK : complain(r, "wants a number from 0.001 to 1");
	case KEY_SEED:
		ret->has_seed = text_to_u64(r->value, &ret->seed);
		return ret->has_seed ? ERR_OK : complain(r, "wants a number");
	case KEY_CONTAINER:
		break;
	}
	return ERR_OK;
}

static enum err read_container(const struct reader *r, size_t service, struct fault_rule *ret)
{
	memcpy(ret->service, services[service].name, strlen(services[service].name) + 1);
	if (span_is(r->value, "*"))
		return ERR_OK;
	return services[service].check(r->value, NULL) == ERR_OK
		? read_name(r, ret->container)
		: complain(r, "is no name of one; * means all");
}

static enum err read_word(struct reader *r, struct fault_rule *ret)
{
	struct span rest = r->word, name = next(&rest, "=");
	size_t key = 0, service = 0;
	r->value = rest;
	while (key < KEYS_ && !span_is(name, keys[key]))
		key++;
	while (service < ARRAY_LEN(services) && !span_is(name, services[service].name))
		service++;
	if (name.n == r->word.n || (key == KEYS_ && service == ARRAY_LEN(services)))
		return complain(r,
			"is no word of a rule: there are fault=, account=, table=, queue=, op=, "
			"count=, for=, wait=, probability= and seed=");
	if ((r->seen & 1u << key) != 0)
		return complain(r, "says twice what a rule says once");
	r->seen |= 1u << key;
	return key == KEY_CONTAINER ? read_container(r, service, ret)
				    : read_value(r, (enum key)key, ret);
}

/* Blank lines have no words, and are no rules. */
static enum err read_line(struct reader *r, struct span line, struct fault_rule *ret)
{
	enum err e = ERR_OK;
	r->seen = 0;
	*ret = (struct fault_rule){ .thousandths = SURE, .line = r->line };
	line = next(&line, "#");
	while (line.n > 0 && e == ERR_OK) {
		r->word = next(&line, " \t\r");
		if (r->word.n > 0)
			e = read_word(r, ret);
	}
	if (e == ERR_OK && r->seen != 0 && (r->seen & 1u << KEY_FAULT) == 0)
		e = err_set(r->detail, ERR_INVALID_INPUT,
			"line %u: a rule names its fault, such as fault=busy", r->line);
	if (ret->kind == FAULT_TIMEOUT && ret->wait_ms == 0)
		ret->wait_ms = WAIT_USUAL_MS;
	return e;
}

enum err fault_rules_parse(
	struct span text, struct fault_rule *ret, size_t *ret_n, struct err_detail *detail)
{
	struct reader r = { .detail = detail };
	enum err e = ERR_OK;
	size_t n = 0;
	*ret_n = 0;
	if (text.n > FAULT_TEXT_MAX)
		return err_set(
			detail, ERR_INVALID_INPUT, "rules have %zu bytes at most", FAULT_TEXT_MAX);
	while (text.n > 0 && e == ERR_OK) {
		struct fault_rule rule;
		r.line++;
		e = read_line(&r, next(&text, "\n;"), &rule);
		if (e != ERR_OK || r.seen == 0)
			continue;
		if (n == FAULT_RULES_MAX)
			e = err_set(detail, ERR_INVALID_INPUT, "line %u: there can be %d rules",
				r.line, FAULT_RULES_MAX);
		else
			ret[n++] = rule;
	}
	if (e == ERR_OK)
		*ret_n = n;
	return e;
}

/* ---- operations ---- */

static bool has_op(const struct metrics *m, enum metrics_front_end front_end, const char *beginning)
{
	struct metrics_figures f;
	for (size_t i = 0; metrics_read(m, front_end, i, &f); i++)
		if (strncasecmp(f.name, beginning, strlen(beginning)) == 0)
			return true;
	return false;
}

static bool is_known(const struct fault_rule *r, const struct metrics *m)
{
	for (size_t i = 0; i < ARRAY_LEN(services); i++)
		if ((r->service[0] == '\0' || strcmp(r->service, services[i].name) == 0) &&
			has_op(m, services[i].front_end, r->op))
			return true;
	return false;
}

enum err fault_rules_check_ops(const struct fault_rule *rules, size_t n, const struct metrics *m,
	struct err_detail *detail)
{
	if (n > 0 && !is_known(&(struct fault_rule){ 0 }, m))
		return err_set(detail, ERR_INVALID_INPUT,
			"no REST socket is open here, and only its requests can have faults");
	for (size_t i = 0; i < n; i++)
		if (!is_known(&rules[i], m))
			return err_set(detail, ERR_INVALID_INPUT,
				"line %u: no operation begins with '%s'; .rowfs/metrics names them",
				rules[i].line, rules[i].op);
	return ERR_OK;
}

/* ---- writing ---- */

static void add_name(struct buf *out, const char *key, const char *name)
{
	if (name[0] != '\0')
		buf_addf(out, " %s=%s", key, name);
}

static void add_thousandths(struct buf *out, enum key key, uint32_t n)
{
	buf_addf(out, " %s=%" PRIu32, keys[key], n / 1000);
	if (n % 1000 != 0)
		buf_addf(out, ".%03" PRIu32, n % 1000);
}

void fault_rule_write(const struct fault_rule *r, struct buf *out)
{
	buf_addf(out, "fault=%s", kinds[r->kind]);
	add_name(out, keys[KEY_ACCOUNT], r->account);
	if (r->service[0] != '\0')
		add_name(out, r->service, r->container[0] != '\0' ? r->container : "*");
	add_name(out, keys[KEY_OP], r->op);
	if (r->count != 0)
		buf_addf(out, " count=%" PRIu64, r->count);
	if (r->for_ms != 0)
		add_thousandths(out, KEY_FOR, r->for_ms);
	if (r->wait_ms != 0)
		add_thousandths(out, KEY_WAIT, r->wait_ms);
	if (r->thousandths != SURE)
		add_thousandths(out, KEY_PROBABILITY, r->thousandths);
	if (r->has_seed)
		buf_addf(out, " seed=%" PRIu64, r->seed);
}
