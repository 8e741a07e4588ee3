/* SPDX-License-Identifier: MIT
 * A typed property value, of one of the service's eight Edm types (protocol section 5.1). */
#ifndef MODEL_VALUE_H
#define MODEL_VALUE_H

#include "base/span.h"

#include <stdbool.h>
#include <stdint.h>

/* clang-format off */
#define EDM_LIST(X) \
	X(STRING,   "Edm.String") \
	X(BOOLEAN,  "Edm.Boolean") \
	X(INT32,    "Edm.Int32") \
	X(INT64,    "Edm.Int64") \
	X(DOUBLE,   "Edm.Double") \
	X(DATETIME, "Edm.DateTime") \
	X(GUID,     "Edm.Guid") \
	X(BINARY,   "Edm.Binary")
/* clang-format on */

enum edm_type {
#define X(symbol_, name_) EDM_##symbol_,
	EDM_LIST(X)
#undef X
	EDM_COUNT_
};

struct value {
	enum edm_type type;
	union {
		bool boolean;
		int32_t int32;
		int64_t int64;
		double dbl;
		int64_t ticks;     /* since 1601 (base/clock.h) */
		uint8_t guid[16];  /* in the order of the text */
		struct span bytes; /* STRING: UTF-8; BINARY: any bytes.  Borrowed. */
	};
};

/* The name in the protocol, such as "Edm.Int32", and back; false for other names. */
const char *edm_name(enum edm_type type);
bool edm_from_name(struct span name, enum edm_type *ret);
/* Compares types and stored values.  NaN equals NaN; 0.0 differs from -0.0. */
bool value_same(const struct value *a, const struct value *b);

#endif
