/* SPDX-License-Identifier: MIT
 * The hottest partitions of a served store, for people and for programs. */
#ifndef DAEMON_CORE_HOTTEST_H
#define DAEMON_CORE_HOTTEST_H

#include "codec/json_build.h"
#include "service/core/admission.h"

#include <stdio.h>

/* Adds the array "hottest_partitions".  h may be NULL: it is empty. */
void hottest_add(struct json_build *b, const struct hottest *h);
/* Prints a heading and a line for each; nothing if there are none or h is NULL. */
void hottest_print(FILE *out, const struct hottest *h);

#endif
