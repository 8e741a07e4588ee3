/* SPDX-License-Identifier: MIT
 * Says who makes a change: the service, or the shadow alone.  Private to cloudstore/. */
#ifndef CLOUDSTORE_TARGET_H
#define CLOUDSTORE_TARGET_H

#include "cloudstore/core.h"

enum target {
	TARGET_SHADOW, /* the shadow alone */
	TARGET_ROW,
	TARGET_TABLE,
	TARGET_CROSSING, /* a row that moves to another partition */
};

/* Finds the target of one change.  Reads the shadow only.  ERR_NOT_PERMITTED, ERR_NOT_SUPPORTED: an account
 * elsewhere has no such change; *why says what to do instead.  ERR_CROSS_DEVICE: mv(1) copies it instead.
 * Errors of cloudstore_place_find(). */
enum err target_of(
	struct cloudstore *s, const struct change *c, enum target *ret, struct err_detail *why);

#endif
