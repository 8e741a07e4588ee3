/* SPDX-License-Identifier: MIT
 * Loads a shared library when its first function is needed, so that programs that never need it
 * start sooner and do not depend on its package. */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include "base/err.h"

#include <stddef.h>

/* A function, and where its address goes. */
struct library_function {
	const char *name;
	size_t at; /* offset of a function pointer in the caller's table */
};

/* A library; zeroed at first. */
struct library {
	enum err e;
	struct err_detail detail;
};

/* Loads `file`, a soname, and writes the address of each function into the table.  The library
 * stays loaded until the process ends.  Call it once for each library, by pthread_once(3); it
 * leaves the result in l. */
void library_load(struct library *l, const char *file, const char *package,
	const struct library_function *functions, size_t n, void *table);

/* Returns the result of library_load().  ERR_NOT_SUPPORTED: the library or one of the functions is
 * not there; the detail says which, and names the Debian package.  detail may be NULL. */
enum err library_result(const struct library *l, struct err_detail *detail);

#endif
