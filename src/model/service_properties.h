/* SPDX-License-Identifier: MIT
 * The service properties of an account (protocol sections 2.13, 2.14): settings for logging
 * and metrics, which are kept and shown and do nothing here, and the CORS rules, which do. */
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
#define LIMIT_CORS_HEADERS 64       /* that name one header, in each list */
#define LIMIT_CORS_PREFIXES 2       /* that end in '*' */
#define LIMIT_CORS_ITEM 256         /* bytes of one origin or header */
#define LIMIT_CORS_BYTES (2 * 1024) /* of all rules, without tags */

struct retention {
	bool enabled;
	uint32_t days; /* 1 to 365; 0 where not enabled */
};

struct logging_settings {
	bool read, write, delete;
	struct retention retention;
};

struct metrics_settings {
	bool enabled;
	bool include_apis; /* false where not enabled */
	struct retention retention;
};

/* The lists are as they were sent: items with commas between them, maybe blanks around them;
 * never NULL. */
struct cors_rule {
	struct span origins, methods; /* "*" among the origins: any */
	struct span exposed, allowed; /* headers; an item that ends in '*' is a prefix */
	uint32_t max_age;             /* seconds */
};

struct service_properties {
	struct logging_settings logging;
	struct metrics_settings hour, minute;
	struct cors_rule cors[LIMIT_CORS_RULES];
	size_t ncors;
	struct arena arena; /* what the rules point to; zeroed: empty */
};

/* What an account has that never set any; owns nothing. */
void service_properties_default(struct service_properties *p);
void service_properties_fini(struct service_properties *p);

/* Takes the first item off a list, without the blanks around it; false at the end.  An item
 * may be empty ("a,,b"); an empty or blank list has none. */
bool cors_list_next(struct span *list, struct span *ret);
/* A token of HTTP; '*' is a character of one. */
bool cors_is_header_name(struct span s);

#endif
