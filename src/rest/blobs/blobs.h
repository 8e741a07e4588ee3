/* SPDX-License-Identifier: MIT
 * The Blob service on the socket. */
#ifndef REST_BLOBS_BLOBS_H
#define REST_BLOBS_BLOBS_H

#include "rest/core/rest_service.h"

extern const struct rest_service rest_blobs;

#endif
