/* SPDX-License-Identifier: MIT
 * The service properties of an account (protocol sections 2.13, 2.14).  rowfs stores and returns
 * the settings for logging and metrics, without effect.  It enforces the CORS rules. */
#ifndef MODEL_SERVICE_PROPERTIES_H
#define MODEL_SERVICE_PROPERTIES_H

#include "base/arena.h"
#include "base/span.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIMIT_RETENTION_DAYS 365
#define LIMIT_CORS_RULES 5
#define LIMIT_CORS_ORIGINS 64
#define LIMIT_CORS_HEADERS 64       /* items with a full header name, in each list */
#define LIMIT_CORS_PREFIXES 2       /* items that end in '*' */
#define LIMIT_CORS_ITEM 256         /* bytes of one origin or header */
#define LIMIT_CORS_BYTES (2 * 1024) /* of all rules, without the XML tags */

struct retention {
	bool enabled;
	uint32_t days; /* 1 to 365; 0 unless enabled */
};

struct logging_settings {
	bool read, write, delete;
	struct retention retention;
};

struct metrics_settings {
	bool enabled;
	bool include_apis; /* false unless enabled */
	struct retention retention;
};

/* The lists hold the text that the client sent: items between commas, maybe with blanks around
 * them.  p is never NULL. */
struct cors_rule {
	struct span origins, methods; /* an origin "*" allows all */
	struct span exposed, allowed; /* header names; an item that ends in '*' is a prefix */
	uint32_t max_age;             /* seconds */
};

struct service_properties {
	struct logging_settings logging;
	struct metrics_settings hour, minute;
	struct cors_rule cors[LIMIT_CORS_RULES];
	size_t ncors;
	struct arena arena; /* owns the strings of the rules; a zeroed arena is empty */
};

/* Sets the defaults of a new account.  The result owns no memory. */
void service_properties_default(struct service_properties *p);
void service_properties_fini(struct service_properties *p);

/* Takes the first item from a list, without the blanks around it.  Returns false at the end.  An
 * item can be empty ("a,,b"); an empty or blank list has no items. */
bool cors_list_next(struct span *list, struct span *ret);
/* Returns true for an HTTP token, which may contain '*'. */
bool cors_is_header_name(struct span s);

#endif
