/* SPDX-License-Identifier: MIT
 * A damaged store's rows in a temporary store of their own, for a command that only reads them; and
 * how losses are told. */
#ifndef DAEMON_SERVE_SALVAGED_H
#define DAEMON_SERVE_SALVAGED_H

#include "daemon/core/progress.h"
#include "daemon/core/scratch.h"
#include "service/check/salvage.h"

/* The lines that say what was lost, on standard error. */
struct loss_teller {
	const char *command;
	struct span account, table; /* of this table only; p NULL: of all */
	struct progress progress;
	uint64_t most;       /* lines about single rows; 0: all */
	uint64_t rows, told; /* such that were lost; lines */
};

/* on_loss, on_salvage_progress: for struct store_salvage, whose arg the teller is. */
void on_loss(void *teller, const struct store_loss *loss);
bool on_salvage_progress(void *teller, uint64_t done, uint64_t total);
void loss_teller_start(struct loss_teller *t, const char *command);
/* Tells the losses of the file as a whole, and counts them as losses. */
void loss_teller_end(struct loss_teller *t, struct store_salvage *s, const char *option);

struct salvaged {
	struct scratch scratch;
	struct store_salvage salvage;
	struct loss_teller teller;
};

/* The losses of a table (ACCOUNT/TABLE) are told and counted.  salvaged_remove() either way. */
enum err salvaged_make(struct salvaged *s, const char *command, const char *store,
	const char *target, struct err_detail *why);
void salvaged_remove(struct salvaged *s);

#endif
