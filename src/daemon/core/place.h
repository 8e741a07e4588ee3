/* SPDX-License-Identifier: MIT
 * PATH on the command line: ACCOUNT/TABLE/PARTITION/ROW.json, with the names that a mount shows. */
#ifndef DAEMON_CORE_PLACE_H
#define DAEMON_CORE_PLACE_H

#include "daemon/core/command.h"
#include "service/tree/names.h"

struct place {
	struct resolved_name name; /* the last component, in its directory; of "/" empty */
	struct item item;          /* what stands there; kind ITEM_NONE: nothing */
	uint64_t table;            /* the table that the path leads through; 0: none */
};

/* Finds the item at a path, from "/" on.  Borrows path.  *ret is zeroed, or to be freed with
 * place_fini() also after an error.  making: the last name, and a partition before it, need not exist,
 * and a name that means nothing is its own error.  Else ERR_NOT_FOUND.  ERR_ACCOUNT_NOT_FOUND,
 * ERR_TABLE_NOT_FOUND, ERR_NOT_A_DIRECTORY. */
enum err place_find(struct service *s, const char *path, bool making, struct place *ret,
	struct err_detail *detail);
void place_fini(struct place *p);

/* Prints "rowfs COMMAND: PATH: CODE: message (line N, column N)".  Returns EXIT_FAILED. */
int place_fail(struct cmd_env *env, const char *command, const char *path, enum err e,
	const struct err_detail *why);

#endif
