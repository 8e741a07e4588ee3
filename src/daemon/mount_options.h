/* SPDX-License-Identifier: MIT
 * The -o options of a mount: ours, those that go on to the kernel, and those of fstab that
 * mean nothing here. */
#ifndef DAEMON_MOUNT_OPTIONS_H
#define DAEMON_MOUNT_OPTIONS_H

#include "daemon/args.h"
#include "daemon/rest_settings.h"
#include "fs/fs.h"

#include <limits.h>

struct mount_options {
	struct fs_options fs; /* generic points to `generic` */
	char generic[1024];
	char log[PATH_MAX];        /* "": none */
	char source[PATH_MAX];     /* fsname=; "": the store */
	uint32_t partition_target; /* entities a second; 0: no throttle */
	struct rest_settings rest;
};

/* Reads every -o that was given.  False after a message to err. */
bool mount_options_parse(const struct args *args, struct mount_options *ret, FILE *err);

#endif
