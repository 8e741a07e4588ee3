/* SPDX-License-Identifier: MIT
 * A service for fuzz targets that send requests. */
#ifndef FUZZ_SMALL_SERVICE_H
#define FUZZ_SMALL_SERVICE_H

#include "service/core/service.h"

/* Returns a service over the in-memory engine, with a table "tab" of account "acct", whose id it sets
 * in *account.  The caller frees it with service_free().  Aborts if it cannot be made. */
struct service *small_service_new(uint64_t *account);

#endif
