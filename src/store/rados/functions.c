/* SPDX-License-Identifier: MIT */
#include "store/rados/functions.h"

#include "base/library.h"

#include <pthread.h>

struct librados librados;

static struct library library;

static void load(void)
{
	static const struct library_function functions[] = {
#define X(name_) { "rados_" #name_, offsetof(struct librados, name_) },
		LIBRADOS_FUNCTIONS
#undef X
	};
	library_load(&library, "librados.so.2", "librados2", functions,
		sizeof(functions) / sizeof(functions[0]), &librados);
}

enum err librados_load(struct err_detail *detail)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, load);
	return library_result(&library, detail);
}
