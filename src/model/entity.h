/* SPDX-License-Identifier: MIT
 * An entity: two keys, a Timestamp and up to 252 typed properties.  It owns an arena for the bytes
 * of its spans.  A decoder may let spans borrow from its input instead; its header then says so. */
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
	int64_t timestamp;      /* ticks; 0: unknown */
	struct property *props; /* in the order of the document; the entity owns the array */
	size_t nprops, cap;
	struct arena arena;
};

/* Frees everything.  The entity is empty again; a zeroed struct is an empty entity too. */
void entity_fini(struct entity *e);
/* Empties the entity and keeps its memory for the next one. */
void entity_reset(struct entity *e);

/* Appends a property without checks.  Name and value are borrowed: copy them into e->arena if they
 * do not live as long as the entity.  ERR_NO_MEMORY. */
enum err entity_add(struct entity *e, struct span name, const struct value *value);
/* Returns the property with this name, or NULL. */
struct property *entity_find(const struct entity *e, struct span name);

/* Returns the size in bytes by the service's formula (protocol section 5.4). */
size_t entity_size(const struct entity *e);

/* Checks the name of one property, and the size and range of its value. */
enum err property_check(const struct property *p, struct err_detail *detail);

/* Checks every rule that decoders leave to the model: keys, property names, duplicates, value sizes
 * and ranges, 252 properties, 1 MiB in all. */
enum err entity_check(const struct entity *e, struct err_detail *detail);

/* Merges patch into an entity, as the service does.  A property that exists is replaced in its
 * position; a new one is appended.  Copies the strings into into->arena.  ERR_NO_MEMORY. */
enum err entity_merge(struct entity *into, const struct entity *patch);

#endif
