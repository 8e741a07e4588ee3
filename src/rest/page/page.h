/* SPDX-License-Identifier: MIT
 * The page: shows and changes tables, queues and blobs in a browser.
 *
 *   /?link=TOKEN      once: hands out the session, a cookie
 *   /, /page.js ...   the embedded files, for everybody
 *   /accounts ...     data (rest/page/page_data.h)
 *   /table/ACCOUNT/   the Table service, as an owner of the account; so /queue/ and /blob/
 *
 * The last two need the session.  The Host header must name this machine, against DNS rebinding, and
 * an Origin must be the page's.  A change needs the header x-ms-version, which pages of other origins
 * cannot send. */
#ifndef REST_PAGE_PAGE_H
#define REST_PAGE_PAGE_H

#include "rest/core/rest_service.h"

/* Bytes of what page_start() writes, with NUL. */
#define PAGE_LINK_BYTES 64

extern const struct rest_service rest_page;

/* Makes the secrets of the process and writes the path and query of the one-time link.  Call it
 * before a socket serves the page; earlier sessions end. */
void page_start(char link[PAGE_LINK_BYTES]);

#endif
