/* SPDX-License-Identifier: MIT
 * The Table service, described (rest_service.h). */
#ifndef REST_TABLES_TABLES_H
#define REST_TABLES_TABLES_H

#include "rest/core/rest_service.h"

extern const struct rest_service rest_tables;

#endif
