/* SPDX-License-Identifier: MIT
 * Names and equality of typed values.  Equality compares the stored form: the two zeros differ, and
 * all NaNs are equal. */
#include "model/value.h"

#include "base/compiler.h"

#include <math.h>
#include <stddef.h>

static const char *const names[EDM_COUNT_] = {
#define X(symbol_, name_) [EDM_##symbol_] = name_,
	EDM_LIST(X)
#undef X
};

const char *edm_name(enum edm_type type)
{
	BUG_ON((unsigned)type >= EDM_COUNT_);
	return names[type];
}

bool edm_from_name(struct span name, enum edm_type *ret)
{
	for (size_t i = 0; i < EDM_COUNT_; i++) {
		if (span_is(name, names[i])) {
			*ret = (enum edm_type)i;
			return true;
		}
	}
	return false;
}

static bool same_double(double a, double b)
{
	if (isnan(a) || isnan(b))
		return isnan(a) && isnan(b);
	return memcmp(&a, &b, sizeof(a)) == 0;
}

bool value_same(const struct value *a, const struct value *b)
{
	if (a->type != b->type)
		return false;
	switch (a->type) {
	case EDM_STRING:
	case EDM_BINARY:
		return span_eq(a->bytes, b->bytes);
	case EDM_BOOLEAN:
		return a->boolean == b->boolean;
	case EDM_INT32:
		return a->int32 == b->int32;
	case EDM_INT64:
		return a->int64 == b->int64;
	case EDM_DOUBLE:
		return same_double(a->dbl, b->dbl);
	case EDM_DATETIME:
		return a->ticks == b->ticks;
	case EDM_GUID:
		return memcmp(a->guid, b->guid, sizeof(a->guid)) == 0;
	case EDM_COUNT_:
		break;
	}
	return false;
}
