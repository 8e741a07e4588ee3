/* SPDX-License-Identifier: MIT
 * The Queue service, described (rest_service.h). */
#ifndef REST_QUEUES_QUEUES_H
#define REST_QUEUES_QUEUES_H

#include "rest/core/rest_service.h"

extern const struct rest_service rest_queues;

#endif
