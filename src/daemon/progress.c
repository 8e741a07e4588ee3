/* SPDX-License-Identifier: MIT */
#include "daemon/progress.h"

#include "base/clock.h"

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DRAW_US 100000
#define BAR_MIN 10
#define BAR_MAX 40

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

void progress_show(struct progress *p, uint64_t count, uint64_t part, uint64_t whole)
{
	uint64_t now = clock_mono_us();
	if (p->to == NULL || now - p->shown_us < DRAW_US)
		return;
	p->shown_us = now;
	p->visible = true;
	double seconds = progress_seconds(p);
	char n[NUMBER_MAX], rate[NUMBER_MAX], text[160], line[256];
	number_text(count, n);
	number_text(seconds > 0 ? (uint64_t)((double)count / seconds) : 0, rate);
	int used = 0;
	if (whole > 0) {
		double share = part < whole ? (double)part / (double)whole : 1.0;
		unsigned left = share > 0 ? (unsigned)(seconds / share - seconds + 0.5) : 0;
		snprintf(text, sizeof(text), " %3.0f%%  %s %s  %s/s  %u:%02u left", share * 100, n,
			p->unit, rate, left / 60, left % 60);
		int room = columns(p) - (int)strlen(text) - 3;
		if (room >= BAR_MIN)
			used = bar(line, room < BAR_MAX ? room : BAR_MAX, share);
	} else {
		snprintf(text, sizeof(text), "%s %s  %s/s", n, p->unit, rate);
	}
	snprintf(line + used, sizeof(line) - (size_t)used, "%s", text);
	fprintf(p->to, "\r%.*s\033[K", columns(p) - 1, line);
	(void)fflush(p->to);
}

void progress_clear(struct progress *p)
{
	if (!p->visible)
		return;
	p->visible = false;
	p->shown_us = 0;
	fputs("\r\033[K", p->to);
	(void)fflush(p->to);
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
