/* SPDX-License-Identifier: MIT
 * The admin socket: figures and health for programs that watch the server.
 *
 *   /metrics       Prometheus' text format
 *   /health/live   200 while the process answers
 *   /health/ready  200 if requests can be served, else 503 with the reasons
 *
 * It needs no credential and changes nothing, so only GET and HEAD are allowed. */
#ifndef REST_ADMIN_ADMIN_H
#define REST_ADMIN_ADMIN_H

#include "rest/core/rest_service.h"

extern const struct rest_service rest_admin;

#endif
