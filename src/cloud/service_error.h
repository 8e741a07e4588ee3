/* SPDX-License-Identifier: MIT
 * A response of the Table service that is an error, as one of ours. */
#ifndef CLOUD_SERVICE_ERROR_H
#define CLOUD_SERVICE_ERROR_H

#include "base/err.h"
#include "cloud/http.h"

/* Returns ERR_OK for a status from 200 to 299.  Else the error of the service's code and status, with
 * its message in the detail; ERR_THROTTLED for 429 and 503, ERR_OUTCOME_UNKNOWN for 408, 500, 502
 * and 504.  A refused signature with a clock that is 5 minutes off names the clock. */
enum err service_error(const struct http_response *r, struct err_detail *detail);
/* The same for an operation of a group: its status and body. */
enum err service_error_of(int status, struct span body, struct err_detail *detail);

#endif
