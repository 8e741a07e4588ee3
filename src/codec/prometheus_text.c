/* SPDX-License-Identifier: MIT */
#include "codec/prometheus_text.h"

#include <inttypes.h>

static void add_escaped(struct buf *out, struct span s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '\n') {
			buf_add_str(out, "\\n");
			continue;
		}
		if (s.p[i] == '\\' || s.p[i] == '"')
			buf_add_char(out, '\\');
		buf_add_char(out, s.p[i]);
	}
}

void prometheus_family(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_addf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void add_value(struct buf *out, uint64_t value, unsigned decimals)
{
	uint64_t unit = 1;
	for (unsigned i = 0; i < decimals; i++)
		unit *= 10;
	buf_addf(out, "%" PRIu64, value / unit);
	if (decimals > 0)
		buf_addf(out, ".%0*" PRIu64, (int)decimals, value % unit);
}

void prometheus_sample(struct buf *out, const struct prometheus_sample *s)
{
	buf_add_str(out, s->family);
	if (s->suffix != NULL)
		buf_add_str(out, s->suffix);
	size_t n = 0;
	for (; n < PROMETHEUS_LABELS && s->labels[n].name != NULL; n++) {
		buf_addf(out, "%c%s=\"", n == 0 ? '{' : ',', s->labels[n].name);
		add_escaped(out, s->labels[n].value);
		buf_add_char(out, '"');
	}
	buf_add_str(out, n > 0 ? "} " : " ");
	add_value(out, s->value, s->decimals);
	buf_add_char(out, '\n');
}

void prometheus_single(
	struct buf *out, const char *name, const char *type, uint64_t value, const char *help)
{
	prometheus_family(out, name, type, help);
	prometheus_sample(out, &(struct prometheus_sample){ .family = name, .value = value });
}
