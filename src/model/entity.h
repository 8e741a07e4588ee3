/* SPDX-License-Identifier: MIT
 * An entity: two keys, a Timestamp and up to 252 typed properties.  It owns one arena
 * that holds everything its spans point to (unless a decoder says that spans borrow from
 * the input text). */
#ifndef MODEL_ENTITY_H
#define MODEL_ENTITY_H

#include "base/arena.h"
#include "base/err.h"
#include "base/span.h"
#include "model/limits.h"
#include "model/value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct property {
	struct span name;
	struct value value;
};

struct entity {
	struct span pk, rk; /* UTF-8; valid only if has_pk, has_rk */
	bool has_pk, has_rk;
	int64_t timestamp;      /* ticks; 0: not known */
	struct property *props; /* in the order of the document */
	size_t nprops, cap;
	struct arena arena;
};

/* A zeroed struct is an empty entity. */
void entity_fini(struct entity *e);
/* Empty again, memory kept for reuse. */
void entity_reset(struct entity *e);

/* Appends; name and value are borrowed as they are (copy into e->arena first where they
 * would not live long enough).  No checks.  ERR_NO_MEMORY. */
enum err entity_add(struct entity *e, struct span name, const struct value *value);
/* NULL if there is none. */
struct property *entity_find(const struct entity *e, struct span name);

/* Size in bytes by the service's formula (protocol section 5.4). */
size_t entity_size(const struct entity *e);

/* One property by itself: its name, its value's size and range. */
enum err property_check(const struct property *p, struct err_detail *detail);

/* Every rule of the model that a decoder has not enforced yet: keys, property names,
 * duplicates, 252 properties, value sizes, ranges, 1 MiB in all. */
enum err entity_check(const struct entity *e, struct err_detail *detail);

/* into gets the properties of patch: replaced in place where the name exists, else
 * appended (the service's merge).  Deep-copies into into->arena. */
enum err entity_merge(struct entity *into, const struct entity *patch);

#endif
