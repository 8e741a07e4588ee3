/* SPDX-License-Identifier: MIT */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

void library_load(struct library *l, const char *file, const char *package,
	const struct library_function *functions, size_t n, void *table)
{
	void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL)
		l->e = err_set(&l->detail, ERR_NOT_SUPPORTED, "%s; install the package %s",
			dlerror(), package);
	for (size_t i = 0; l->e == ERR_OK && i < n; i++) {
		void *function = dlsym(handle, functions[i].name);
		if (function == NULL)
			l->e = err_set(&l->detail, ERR_NOT_SUPPORTED,
				"%s has no function %s; install a newer package %s", file,
				functions[i].name, package);
		/* ISO C has no cast from void * to a function; POSIX says that they are alike. */
		memcpy((char *)table + functions[i].at, &function, sizeof(function));
	}
}

enum err library_result(const struct library *l, struct err_detail *detail)
{
	if (l->e != ERR_OK && detail != NULL)
		*detail = l->detail;
	return l->e;
}
