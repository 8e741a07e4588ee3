/* SPDX-License-Identifier: MIT
 * The options of the REST socket, as mount options and as those of a command. */
#ifndef DAEMON_SETTINGS_REST_SETTINGS_H
#define DAEMON_SETTINGS_REST_SETTINGS_H

#include "base/err.h"
#include "rest/rest.h"

#include <limits.h>

struct rest_settings {
	struct rest_options options; /* its strings are those below */
	char endpoints[REST_ENDPOINTS_MAX][320];
	char cert[PATH_MAX], key[PATH_MAX];
	char tenant[40];
	char oauth[PATH_MAX + 8];
	bool has_trust, has_tls;
	size_t nadmin; /* endpoints that are admin sockets */
	size_t npage;  /* endpoints that serve the page */
	char faults[2048];
	char access_log[PATH_MAX];
	bool has_access_options; /* a format, or a choice of requests */
};

/* Sets the option of this name, such as "rest-cert"; value: "" for one that takes none.  Paths become
 * absolute.  ERR_NOT_FOUND: the socket has no such option.  ERR_INVALID_INPUT, with what is wrong, as
 * the end of a sentence that begins with the option. */
enum err rest_settings_set(
	struct rest_settings *s, const char *name, const char *value, struct err_detail *detail);
/* Adds an endpoint, as the option "rest". */
enum err rest_settings_endpoint(
	struct rest_settings *s, const char *value, struct err_detail *detail);
/* Reads the environment variable ROWFS_REST_LIMITS, which tests set, and checks that the options go
 * together.  ERR_INVALID_INPUT, with a whole sentence. */
enum err rest_settings_finish(struct rest_settings *s, struct err_detail *detail);

#endif
