/* SPDX-License-Identifier: MIT */
#include "daemon/rows/rows.h"

const struct rows *rows_of(const struct cmd_env *env)
{
	return env->client != NULL ? &rows_of_elsewhere : &rows_of_store;
}
