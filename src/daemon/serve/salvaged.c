/* SPDX-License-Identifier: MIT */
#include "daemon/serve/salvaged.h"

#include "daemon/core/signals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define KEY_SHOWN 80
#define LINE_BYTES 768

static int shown(struct span s)
{
	return (int)(s.n < KEY_SHOWN ? s.n : KEY_SHOWN);
}

static bool same_name(struct span a, struct span b)
{
	return a.n == b.n && strncasecmp(a.p, b.p, a.n) == 0;
}

/* A loss of which it is not known where it was may be of any table. */
static bool concerns(const struct loss_teller *t, const struct store_loss *loss)
{
	if (t->account.p == NULL)
		return true;
	if (loss->account.p == NULL)
		return loss->place == NULL;
	return same_name(loss->account, t->account) &&
		(loss->table.p == NULL || same_name(loss->table, t->table));
}

static void PRINTF_LIKE(2, 3) add(char line[LINE_BYTES], const char *fmt, ...)
{
	size_t at = strlen(line);
	va_list args;
	va_start(args, fmt);
	(void)vsnprintf(line + at, LINE_BYTES - at, fmt, args);
	va_end(args);
}

static void tell(struct loss_teller *t, const char *line)
{
	progress_clear(&t->progress);
	(void)command_fail(stderr, t->command, "%s", line);
	t->told++;
}

void on_loss(void *teller, const struct store_loss *loss)
{
	struct loss_teller *t = teller;
	char line[LINE_BYTES] = "";
	if (!concerns(t, loss))
		return;
	if (t->account.p == NULL && loss->account.p != NULL) {
		add(line, "%.*s", shown(loss->account), loss->account.p);
		if (loss->table.p != NULL)
			add(line, "/%.*s", shown(loss->table), loss->table.p);
		add(line, ": ");
	}
	if (loss->pk.p != NULL)
		add(line, "PartitionKey '%.*s'", shown(loss->pk), loss->pk.p);
	if (loss->rk.p != NULL)
		add(line, ", RowKey '%.*s'", shown(loss->rk), loss->rk.p);
	else if (loss->place != NULL)
		add(line, "%s'%.*s'", loss->pk.p != NULL ? ", " : "", KEY_SHOWN, loss->place);
	if (loss->pk.p != NULL || loss->place != NULL)
		add(line, ": ");
	add(line, "%s", loss->why);
	/* Rows may be many; what was lost of their partition as a whole is told in any case. */
	if (loss->rk.p == NULL || t->most == 0 || t->rows++ < t->most)
		tell(t, line);
}

bool on_salvage_progress(void *teller, uint64_t done, uint64_t total)
{
	struct loss_teller *t = teller;
	progress_show(&t->progress, done, done, total);
	return !signals_cancelled(NULL);
}

void loss_teller_start(struct loss_teller *t, const char *command)
{
	const struct cmd_env env = { .err = stderr, .err_fd = STDERR_FILENO };
	t->command = command;
	progress_start(&t->progress, &env, "pages");
}

void loss_teller_end(struct loss_teller *t, struct store_salvage *s, const char *option)
{
	char line[LINE_BYTES];
	progress_clear(&t->progress);
	if (t->most > 0 && t->rows > t->most)
		(void)command_fail(
			stderr, t->command, "... and %" PRIu64 " rows more", t->rows - t->most);
	if (s->lost_pages > 0) {
		(void)snprintf(line, sizeof(line),
			"%" PRIu64 " of %" PRIu64 " pages of the file are missing or damaged",
			s->lost_pages, s->pages);
		tell(t, line);
	}
	if (s->broken > 0) {
		(void)snprintf(line, sizeof(line),
			"%" PRIu64 " records lead to lost pages before their keys end", s->broken);
		tell(t, line);
	}
	if (s->doubtful > 0) {
		(void)snprintf(line, sizeof(line),
			"%" PRIu64 " documents stand on pages that may be free: they may be old or "
			"removed, and were %s%s",
			s->doubtful, s->take_doubtful ? "taken" : "left out", option);
		tell(t, line);
	}
	s->losses = t->told;
}

enum err salvaged_make(struct salvaged *s, const char *command, const char *store,
	const char *target, struct err_detail *why)
{
	const char *slash = strchr(target, '/');
	memset(s, 0, sizeof(*s));
	enum err e = scratch_make(&s->scratch, "salvage", why);
	if (e != ERR_OK)
		return e;
	if (slash != NULL) {
		s->teller.account = span_make(target, (size_t)(slash - target));
		s->teller.table = span_of(slash + 1);
	}
	s->salvage.lost = on_loss;
	s->salvage.progress = on_salvage_progress;
	s->salvage.arg = &s->teller;
	loss_teller_start(&s->teller, command);
	e = service_salvage_store(store, s->scratch.path, &s->salvage, why);
	loss_teller_end(&s->teller, &s->salvage, "; 'rowfs salvage --doubtful' takes them");
	return e;
}

void salvaged_remove(struct salvaged *s)
{
	scratch_remove(&s->scratch);
}
