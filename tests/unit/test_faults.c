/* SPDX-License-Identifier: MIT
 * Faults on order: the text of the rules, and which requests they meet. */
#include "check.h"
#include "service/core/faults.h"

#include <stdio.h>
#include <stdlib.h>

#define S(n_) ((uint64_t)(n_)*1000000)

static const char *const table_ops[] = { "QueryEntities", "InsertEntity", "InsertOrMergeEntity" };
static const char *const queue_ops[] = { "PutMessage" };

static struct metrics *named(void)
{
	struct metrics *m = metrics_new();
	if (m != NULL) {
		metrics_name(m, METRICS_REST, table_ops, 3);
		metrics_name(m, METRICS_QUEUE, queue_ops, 1);
	}
	return m;
}

/* ---- the text ---- */

/* The rules as they are written again, or the reason why there are none. */
static const char *again(const char *text)
{
	static struct fault_rule rules[FAULT_RULES_MAX];
	static char out[4096];
	struct buf b = BUF_INIT(sizeof(out) - 1);
	struct err_detail why = { 0 };
	size_t n = 99;
	if (fault_rules_parse(span_of(text), rules, &n, &why) != ERR_OK)
		buf_addf(&b, "%s", n == 0 ? why.text : "not whole");
	for (size_t i = 0; i < n; i++) {
		fault_rule_write(&rules[i], &b);
		buf_add_str(&b, ";");
	}
	(void)snprintf(out, sizeof(out), "%.*s", (int)b.len, b.len > 0 ? b.data : "");
	buf_fini(&b);
	return out;
}

TEST(rules_are_read_and_written)
{
	CHECK_EQ_STR(again(""), "");
	CHECK_EQ_STR(again("# nothing\n\n ; \t\n"), "");
	CHECK_EQ_STR(again("fault=busy"), "fault=busy;");
	CHECK_EQ_STR(again("  count=3 fault=lost\tqueue=jobs op=put # why\nfault=closed"),
		"fault=lost queue=jobs op=put count=3;fault=closed;");
	CHECK_EQ_STR(again("fault=busy account=dev table=Orders op=insert;fault=deleting table=*"),
		"fault=busy account=dev table=Orders op=insert;fault=deleting table=*;");
	CHECK_EQ_STR(again("fault=timeout"), "fault=timeout wait=30;");
	CHECK_EQ_STR(again("fault=timeout wait=0.25 for=86400 probability=0.5 seed=0"),
		"fault=timeout for=86400 wait=0.250 probability=0.500 seed=0;");
	CHECK_EQ_STR(again("fault=busy probability=1 wait=1.001"), "fault=busy wait=1.001;");
}

TEST(a_wrong_rule_refuses_all_and_its_line_is_named)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "fault=busy\n\ntabel=x fault=busy", "line 3: 'tabel=x' is no word" },
		{ "fault=busy;fault=buzy", "line 2: 'fault=buzy' is no fault" },
		{ "op=insert", "line 1: a rule names its fault" },
		{ "busy", "line 1: 'busy' is no word" },
		{ "fault=busy fault=lost", "line 1: 'fault=lost' says twice" },
		{ "fault=busy table=Tab queue=jobs", "line 1: 'queue=jobs' says twice" },
		{ "fault=busy table=a-b", "line 1: 'table=a-b' is no name" },
		{ "fault=busy queue=Jobs", "line 1: 'queue=Jobs' is no name" },
		{ "fault=busy account=A", "line 1: 'account=A' is no account" },
		{ "fault=busy op=", "line 1: 'op=' is no name" },
		{ "fault=busy count=0", "line 1: 'count=0' wants" },
		{ "fault=busy count=18446744073709551616", "line 1: 'count=" },
		{ "fault=busy for=0", "line 1: 'for=0' wants seconds" },
		{ "fault=busy for=86400.001", "line 1: 'for=86400.001' wants seconds" },
		{ "fault=busy wait=1.", "line 1: 'wait=1.' wants seconds" },
		{ "fault=busy wait=0.0001", "line 1: 'wait=0.0001' wants seconds" },
		{ "fault=busy probability=1.1", "line 1: 'probability=1.1' wants" },
		{ "fault=busy probability=0", "line 1: 'probability=0' wants" },
		{ "fault=busy seed=x", "line 1: 'seed=x' wants" },
	};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		const char *got = again(wrong[i].text);
		CHECK(strncmp(got, wrong[i].why, strlen(wrong[i].why)) == 0);
	}
}

TEST(there_can_be_so_many_rules)
{
	char text[(FAULT_RULES_MAX + 1) * 11 + 1];
	for (size_t i = 0; i <= FAULT_RULES_MAX; i++)
		memcpy(text + i * 11, "fault=busy;", 12);
	CHECK(strncmp(again(text), "line 65: there can be 64", 24) == 0);
	text[(size_t)FAULT_RULES_MAX * 11] = '\0';
	CHECK(strncmp(again(text), "fault=busy;", 11) == 0);
}

TEST(an_operation_must_exist)
{
	struct metrics *m = named(), *none = metrics_new();
	struct err_detail why = { 0 };
	REQUIRE(m != NULL && none != NULL);
	CHECK_ERR(faults_check(m, SPAN_LIT("fault=busy op=insertor"), NULL), ERR_OK);
	CHECK_ERR(faults_check(m, SPAN_LIT("fault=busy queue=* op=PUT"), NULL), ERR_OK);
	CHECK_ERR(
		faults_check(m, SPAN_LIT("\nfault=busy table=* op=put"), &why), ERR_INVALID_INPUT);
	CHECK(strncmp(why.text, "line 2: no operation begins with 'put'", 38) == 0);
	CHECK_ERR(faults_check(none, SPAN_LIT("fault=busy"), &why), ERR_INVALID_INPUT);
	CHECK_ERR(faults_check(none, SPAN_LIT(""), NULL), ERR_OK);
	metrics_free(m);
	metrics_free(none);
}

/* ---- requests ---- */

struct world {
	struct metrics *m;
	struct faults *f;
};

static struct world begin(const char *text)
{
	struct world w = { named(), faults_new() };
	CHECK(w.m != NULL && w.f != NULL);
	CHECK_ERR(faults_set(w.f, w.m, span_of(text), false, S(100), NULL), ERR_OK);
	return w;
}

static void end(struct world *w)
{
	faults_free(w->f);
	metrics_free(w->m);
}

static bool meets(struct world *w, uint64_t now, const char *account, const char *service,
	const char *container, const char *op)
{
	struct fault fault;
	struct fault_request q = { span_of(account), span_of(container), service, op };
	return faults_are_set(w->f) && faults_take(w->f, &q, now, &fault);
}

static const char *left(struct world *w, uint64_t now)
{
	static char out[512];
	struct buf b = BUF_INIT(sizeof(out) - 1);
	faults_write(w->f, now, &b);
	(void)snprintf(out, sizeof(out), "%.*s", (int)b.len, b.len > 0 ? b.data : "");
	buf_fini(&b);
	return out;
}

TEST(a_rule_meets_what_it_names)
{
	struct world w = begin("fault=busy account=dev table=Tab op=insert");
	CHECK(meets(&w, S(100), "dev", "table", "tAb", "InsertOrMergeEntity"));
	CHECK(!meets(&w, S(100), "dev2", "table", "Tab", "InsertEntity"));
	CHECK(!meets(&w, S(100), "dev", "queue", "Tab", "InsertEntity"));
	CHECK(!meets(&w, S(100), "dev", "table", "Tab2", "InsertEntity"));
	CHECK(!meets(&w, S(100), "dev", "table", "", "InsertEntity"));
	CHECK(!meets(&w, S(100), "dev", "table", "Tab", "QueryEntities"));
	CHECK_EQ_INT(faults_taken(w.f, FAULT_BUSY), 1);
	end(&w);
	w = begin("fault=deleting table=*");
	CHECK(meets(&w, S(100), "dev", "table", "Any", "QueryEntities"));
	CHECK(!meets(&w, S(100), "dev", "table", "", "QueryEntities"));
	end(&w);
}

TEST(a_rule_ends_with_its_count_or_its_time)
{
	struct world w = begin("fault=busy count=2; fault=lost for=1.5");
	struct fault fault;
	struct fault_request q = { SPAN_LIT("dev"), SPAN_LIT(""), "table", "QueryEntities" };
	CHECK(faults_take(w.f, &q, S(100), &fault) && fault.kind == FAULT_BUSY);
	CHECK_EQ_STR(left(&w, S(101)),
		"fault=busy count=1 # had by 1\nfault=lost for=0.500 # had by 0\n");
	CHECK(faults_take(w.f, &q, S(101), &fault) && fault.kind == FAULT_BUSY);
	CHECK(faults_take(w.f, &q, S(101), &fault) && fault.kind == FAULT_LOST);
	CHECK_EQ_INT(faults_rules(w.f, S(101)), 1);
	CHECK(!faults_take(w.f, &q, S(102), &fault));
	CHECK(!faults_are_set(w.f));
	CHECK_EQ_STR(left(&w, S(102)), "");
	end(&w);
}

TEST(new_rules_replace_the_old_ones_or_come_behind_them)
{
	struct world w = begin("fault=busy count=9");
	CHECK(meets(&w, S(100), "dev", "table", "Tab", "InsertEntity"));
	CHECK_ERR(faults_set(w.f, w.m, SPAN_LIT("fault=lost"), true, S(100), NULL), ERR_OK);
	CHECK_EQ_STR(left(&w, S(100)), "fault=busy count=8 # had by 1\nfault=lost # had by 0\n");
	CHECK_ERR(faults_set(w.f, w.m, SPAN_LIT("fault=lost;x"), false, S(100), NULL),
		ERR_INVALID_INPUT);
	CHECK_EQ_INT(faults_rules(w.f, S(100)), 2);
	CHECK_ERR(faults_set(w.f, w.m, SPAN_LIT("fault=closed"), false, S(100), NULL), ERR_OK);
	CHECK_EQ_STR(left(&w, S(100)), "fault=closed # had by 0\n");
	for (size_t i = 1; i < FAULT_RULES_MAX; i++)
		CHECK_ERR(
			faults_set(w.f, w.m, SPAN_LIT("fault=closed"), true, S(100), NULL), ERR_OK);
	CHECK_ERR(faults_set(w.f, w.m, SPAN_LIT("fault=closed"), true, S(100), NULL),
		ERR_INVALID_INPUT);
	CHECK_ERR(faults_set(w.f, w.m, SPAN_LIT(""), false, S(100), NULL), ERR_OK);
	CHECK(!faults_are_set(w.f));
	end(&w);
}

TEST(a_seed_repeats_what_chance_did)
{
	char first[101] = "", second[101] = "";
	for (int round = 0; round < 2; round++) {
		struct world w = begin("fault=busy probability=0.3 seed=7");
		for (size_t i = 0; i < 100; i++)
			(round == 0 ? first : second)[i] =
				meets(&w, S(100), "dev", "table", "Tab", "QueryEntities") ? 'x'
											  : '.';
		CHECK(faults_taken(w.f, FAULT_BUSY) > 10 && faults_taken(w.f, FAULT_BUSY) < 60);
		end(&w);
	}
	CHECK_EQ_STR(first, second);
}

RUN_TESTS(T(rules_are_read_and_written), T(a_wrong_rule_refuses_all_and_its_line_is_named),
	T(there_can_be_so_many_rules), T(an_operation_must_exist), T(a_rule_meets_what_it_names),
	T(a_rule_ends_with_its_count_or_its_time),
	T(new_rules_replace_the_old_ones_or_come_behind_them), T(a_seed_repeats_what_chance_did))
