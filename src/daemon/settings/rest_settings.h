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

/* Each takes one value; ERR_INVALID_INPUT with what is wrong, as the end of a sentence that
 * begins with the option.  Paths become absolute. */
enum err rest_settings_endpoint(
	struct rest_settings *s, const char *value, struct err_detail *detail);
/* Of an admin socket: the endpoint, and an empty value. */
enum err rest_settings_admin(struct rest_settings *s, const char *value, struct err_detail *detail);
/* Of the page: an endpoint. */
enum err rest_settings_page(struct rest_settings *s, const char *value, struct err_detail *detail);
enum err rest_settings_admin_public(
	struct rest_settings *s, const char *value, struct err_detail *detail);
enum err rest_settings_cert(struct rest_settings *s, const char *value, struct err_detail *detail);
enum err rest_settings_key(struct rest_settings *s, const char *value, struct err_detail *detail);
/* A UUID. */
enum err rest_settings_tenant(
	struct rest_settings *s, const char *value, struct err_detail *detail);
/* "basic" or "jwks:FILE". */
enum err rest_settings_oauth(struct rest_settings *s, const char *value, struct err_detail *detail);
/* "strong" or "legacy". */
enum err rest_settings_tls(struct rest_settings *s, const char *value, struct err_detail *detail);
/* "UID[:UID...]" or "none". */
enum err rest_settings_trust(struct rest_settings *s, const char *value, struct err_detail *detail);
/* Rules of faults on order, with ';' between them.  Which operations there are is checked when the
 * socket opens. */
enum err rest_settings_faults(
	struct rest_settings *s, const char *value, struct err_detail *detail);
/* Of the access log: a file or "-"; "combined" or "json"; a number from 1 on. */
enum err rest_settings_access_log(
	struct rest_settings *s, const char *value, struct err_detail *detail);
enum err rest_settings_access_format(
	struct rest_settings *s, const char *value, struct err_detail *detail);
enum err rest_settings_access_sample(
	struct rest_settings *s, const char *value, struct err_detail *detail);
enum err rest_settings_access_slow(
	struct rest_settings *s, const char *value, struct err_detail *detail);
/* The environment variable ROWFS_REST_LIMITS, which tests set; and whether the options go
 * together: a whole sentence. */
enum err rest_settings_finish(struct rest_settings *s, struct err_detail *detail);

#endif
