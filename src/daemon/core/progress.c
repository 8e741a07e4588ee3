/* SPDX-License-Identifier: MIT */
#include "daemon/core/progress.h"

#include "base/clock.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DRAW_US 100000
#define BAR_MIN 10
#define BAR_MAX 40
#define LINE_MAX_BYTES 256
#define AMOUNT_MAX 64

void progress_start(struct progress *p, const struct cmd_env *env, const char *unit)
{
	*p = (struct progress){ .fd = env->err_fd, .unit = unit, .started_us = clock_mono_us() };
	if (isatty(env->err_fd))
		p->to = env->err;
}

double progress_seconds(const struct progress *p)
{
	return (double)(clock_mono_us() - p->started_us) / 1e6;
}

static int columns(const struct progress *p)
{
	struct winsize w;
	return ioctl(p->fd, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

static int bar(char *out, int width, double share)
{
	int full = (int)(share * width + 0.5);
	out[0] = '[';
	memset(out + 1, '#', (size_t)full);
	memset(out + 1 + full, '.', (size_t)(width - full));
	out[width + 1] = ']';
	return width + 2;
}

static bool is_due(struct progress *p)
{
	uint64_t now = clock_mono_us();
	if (p->to == NULL || now - p->shown_us < DRAW_US)
		return false;
	p->shown_us = now;
	return true;
}

/* Over the line before, which may have been longer: blanks, for not every terminal knows an escape
 * sequence. */
static void draw(struct progress *p, double share, const char *text)
{
	char line[LINE_MAX_BYTES];
	int width = columns(p) - 1, used = 0;
	int room = width - (int)strlen(text) - 2;
	if (share >= 0 && room >= BAR_MIN)
		used = bar(line, room < BAR_MAX ? room : BAR_MAX, share);
	int n = snprintf(line + used, sizeof(line) - (size_t)used, "%s", text) + used;
	n = n < width ? n : width;
	int rest = p->shown > n ? p->shown - n : 0;
	fprintf(p->to, "\r%.*s%*s", n, line, rest, "");
	(void)fflush(p->to);
	p->shown = n;
}

/* "1,234 rows", "1.2 MiB" */
static const char *amount(const struct progress *p, uint64_t n, char out[AMOUNT_MAX])
{
	char number[NUMBER_MAX];
	if (p->unit == NULL)
		return size_text(n, out);
	(void)snprintf(out, AMOUNT_MAX, "%s %s", number_text(n, number), p->unit);
	return out;
}

void progress_show(struct progress *p, uint64_t count, uint64_t part, uint64_t whole)
{
	char n[AMOUNT_MAX], rate[AMOUNT_MAX], text[160];
	if (!is_due(p))
		return;
	double seconds = progress_seconds(p);
	double share = whole == 0 ? -1.0 : part < whole ? (double)part / (double)whole : 1.0;
	unsigned left = share > 0 ? (unsigned)(seconds / share - seconds + 0.5) : 0;
	amount(p, count, n);
	/* The first report of a phase comes at once, and a rate of microseconds says nothing. */
	double span = seconds > DRAW_US / 1e6 ? seconds : DRAW_US / 1e6;
	amount(p, (uint64_t)((double)count / span), rate);
	if (whole > 0)
		(void)snprintf(text, sizeof(text), " %3.0f%%  %s  %s/s  %u:%02u left", share * 100,
			n, rate, left / 60, left % 60);
	else
		(void)snprintf(text, sizeof(text), "%s  %s/s", n, rate);
	draw(p, share, text);
}

/* A phase draws its first report, however short it is. */
static void begin_phase(struct progress *p, enum verify_phase phase)
{
	progress_clear(p);
	p->shown_us = 0;
	p->started_us = clock_mono_us();
	p->phase = phase;
}

void progress_verify(struct progress *p, enum verify_phase phase, uint64_t done, uint64_t total)
{
	const char *unit = p->unit;
	if (phase != p->phase)
		begin_phase(p, phase);
	if (phase == VERIFY_PAGES)
		p->unit = "pages";
	else if (phase == VERIFY_PLACES)
		p->unit = "checks";
	progress_show(p, done, done, total);
	p->unit = unit;
}

void progress_clear(struct progress *p)
{
	if (p->shown == 0)
		return;
	fprintf(p->to, "\r%*s\r", p->shown, "");
	(void)fflush(p->to);
	p->shown = 0;
	p->shown_us = 0;
}

const char *number_text(uint64_t n, char out[NUMBER_MAX])
{
	char digits[NUMBER_MAX];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n);
	char *at = out;
	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			*at++ = ',';
		*at++ = digits[i];
	}
	*at = '\0';
	return out;
}

const char *size_text(uint64_t bytes, char out[NUMBER_MAX])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	if (bytes < 1024) {
		snprintf(out, NUMBER_MAX, "%" PRIu64 " bytes", bytes);
		return out;
	}
	double size = (double)bytes / 1024;
	size_t unit = 0;
	for (; size >= 1024 && unit + 1 < ARRAY_LEN(units); unit++)
		size /= 1024;
	snprintf(out, NUMBER_MAX, "%.1f %s", size, units[unit]);
	return out;
}
