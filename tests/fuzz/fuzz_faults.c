/* SPDX-License-Identifier: MIT
 * Rules of faults on order: a text is understood, and then says the same when it is written again,
 * or it is refused whole with a reason. */
#include "fuzz.h"
#include "service/core/fault_rules.h"

static struct fault_rule first[FAULT_RULES_MAX], second[FAULT_RULES_MAX];

static void write_all(const struct fault_rule *rules, size_t n, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		fault_rule_write(&rules[i], out);
		buf_add_char(out, '\n');
	}
	MUST(buf_ok(out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf once = BUF_INIT(FAULT_TEXT_MAX), twice = BUF_INIT(FAULT_TEXT_MAX);
	struct err_detail why = { 0 };
	size_t n = 1, again = 1;
	if (fault_rules_parse(span_make(data, size), first, &n, &why) != ERR_OK) {
		MUST(n == 0 && why.text[0] != '\0');
		return 0;
	}
	write_all(first, n, &once);
	MUST(fault_rules_parse(buf_span(&once), second, &again, &why) == ERR_OK && again == n);
	write_all(second, n, &twice);
	MUST(span_eq(buf_span(&once), buf_span(&twice)));
	buf_fini(&once);
	buf_fini(&twice);
	return 0;
}
