/* SPDX-License-Identifier: MIT
 * The -o options of a mount: ours, those that go on to the kernel, and those of fstab that
 * mean nothing here. */
#ifndef DAEMON_SETTINGS_MOUNT_OPTIONS_H
#define DAEMON_SETTINGS_MOUNT_OPTIONS_H

#include "base/log.h"
#include "daemon/core/args.h"
#include "daemon/settings/rest_settings.h"
#include "fs/fs.h"

#include <limits.h>

/* Of the mount of a URL. */
struct url_options {
	char connection_string[PATH_MAX]; /* its file; "": the environment has it */
	char ca_file[PATH_MAX];           /* "": the system's certificates */
	uint32_t cache_s, timeout_s;
	uint32_t rps;      /* 0: no bound */
	bool hard;         /* requests wait until the service is back */
	const char *given; /* the name of one that was given; NULL: none was */
};

struct mount_options {
	struct fs_options fs; /* generic points to `generic` */
	char generic[1024];
	char log[PATH_MAX]; /* "": none */
	enum log_level log_level;
	char source[PATH_MAX];     /* fsname=; "": the store */
	uint32_t partition_target; /* entities a second; 0: no throttle */
	uint64_t blob_space;       /* bytes; 0: the disk limits them */
	bool sync;                 /* every commit is on disk before it is acknowledged */
	bool remount, remount_check;
	bool access_given;                    /* ro or rw */
	bool shown;                           /* user_id= or group_id= */
	unsigned long flags_set, flags_clear; /* of mount(2) */
	const struct args *args;              /* what was parsed; borrowed */
	struct rest_settings rest;
	struct url_options url;
};

/* Reads every -o that was given.  False after a message to err. */
bool mount_options_parse(const struct args *args, struct mount_options *ret, FILE *err);

/* Sets an option that mount and serve share: of the socket, the log, the throttle or blobs.  Otherwise as
 * rest_settings_set(). */
enum err mount_options_set_shared(
	struct mount_options *o, const char *name, const char *value, struct err_detail *detail);

/* Whether a remount with these options is one that can be: mount(8) says again what stands in
 * fstab and what the kernel shows, and all of that must be as it is; flags of mount(2), ro and
 * rw may change.  False after a message to err that names the option. */
bool mount_options_unchanged(const struct mount_options *now, const struct args *wanted, FILE *err);

#endif
