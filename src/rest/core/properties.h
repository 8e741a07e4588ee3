/* SPDX-License-Identifier: MIT
 * The operations that every service has (rest/core/route.h says what each does). */
#ifndef REST_CORE_PROPERTIES_H
#define REST_CORE_PROPERTIES_H

#include "rest/core/context.h"

enum err op_get_properties(struct request_context *c, struct response *r);
enum err op_set_properties(struct request_context *c, struct response *r);
enum err op_get_stats(struct request_context *c, struct response *r);

#endif
