/* SPDX-License-Identifier: MIT */
#include "service/check/verify_parts.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define NAME_SHOWN 80 /* bytes of a name in a finding */

bool verify_find(struct verify *v, const char *finding)
{
	v->counts->findings++;
	if (v->fn != NULL && !v->fn(v->arg, finding))
		v->stopped = true;
	return !v->stopped;
}

bool verify_lacks_memory(struct verify *v, bool lacks)
{
	v->no_memory = v->no_memory || lacks;
	v->stopped = v->stopped || lacks;
	return lacks;
}

int verify_shown(struct span s)
{
	return (int)(s.n < NAME_SHOWN ? s.n : NAME_SHOWN);
}

void PRINTF_LIKE(3, 4) verify_report(struct verify *v, struct span name, const char *fmt, ...)
{
	char what[256], line[768];
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	(void)snprintf(line, sizeof(line), "%.*s%s%.*s%s%.*s%s%.*s: %s", verify_shown(v->account),
		v->account.p != NULL ? v->account.p : "", v->account.n > 0 ? "/" : "",
		verify_shown(v->table), v->table.p != NULL ? v->table.p : "",
		v->table.n > 0 ? "/" : "", verify_shown(v->partition),
		v->partition.p != NULL ? v->partition.p : "", v->partition.p != NULL ? "/" : "",
		verify_shown(name), name.p != NULL ? name.p : "", what);
	(void)verify_find(v, line);
}

void verify_tell_done(struct verify *v)
{
	v->done++;
	if (v->progress != NULL && v->done % 256 == 0)
		v->progress(v->arg, VERIFY_ITEMS, v->done, v->expected.items);
}

void verify_count(struct verify *v, const struct item *dir, struct span name)
{
	if (v->exact && !v->stopped && dir->size != v->children)
		verify_report(v, name, "%" PRIu64 " children counted, %" PRIu64 " found", dir->size,
			v->children);
}

enum err verify_tolerate(struct verify *v, struct span name, enum err e)
{
	if (e != ERR_CORRUPT)
		return e;
	verify_report(v, name, "not all of what is in it can be read");
	return ERR_OK;
}
