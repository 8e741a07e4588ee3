/* SPDX-License-Identifier: MIT
 * The files of the folder `files`, which embed.py writes into the program. */
#ifndef REST_PAGE_PAGE_FILES_H
#define REST_PAGE_PAGE_FILES_H

#include <stddef.h>

struct page_file {
	const char *path; /* in a URL; index.html is "/" */
	const char *type; /* of its content, for the header */
	const unsigned char *bytes;
	size_t n;
};

extern const struct page_file page_files[];
extern const size_t page_nfiles;

#endif
