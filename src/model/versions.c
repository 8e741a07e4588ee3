/* SPDX-License-Identifier: MIT */
#include "model/versions.h"

#include "model/access_policy.h"

#include <stddef.h>
#include <stdint.h>

struct rule {
	int since, until;
};

static const struct rule rules[] = {
#define X(symbol_, since_, until_, text_) [VERSION_##symbol_] = { since_, until_ },
	VERSION_RULE_LIST(X)
#undef X
};

int version_first(enum version_rule rule)
{
	return rules[rule].since;
}

bool version_has(int version, enum version_rule rule)
{
	const struct rule *r = &rules[rule];
	return version >= r->since && (r->until == 0 || version < r->until);
}

int version_parse(struct span text)
{
	int64_t ticks;
	int n = 0;

	if (text.n != 10 || !policy_time_parse(text, &ticks))
		return 0;
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] != '-')
			n = n * 10 + (text.p[i] - '0');
	return n;
}
