/* SPDX-License-Identifier: MIT
 * Prometheus' text format, version 0.0.4: a family of samples has a HELP and a TYPE line,
 * then its samples, one a line.  The caller keeps the samples of a family together, writes
 * each family once, and uses base units (seconds, bytes). */
#ifndef CODEC_PROMETHEUS_TEXT_H
#define CODEC_PROMETHEUS_TEXT_H

#include "base/buf.h"

#define PROMETHEUS_LABELS 4

struct prometheus_sample {
	const char *family;
	const char *suffix; /* "_bucket" and its kin; NULL: none */
	struct {
		const char *name;  /* NULL: no more */
		struct span value; /* UTF-8; escaped by the writer */
	} labels[PROMETHEUS_LABELS];
	uint64_t value;
	unsigned decimals; /* of value: it is value / 10^decimals */
};

/* type: "counter" (a name in _total), "gauge", "histogram". */
void prometheus_family(struct buf *out, const char *name, const char *type, const char *help);
void prometheus_sample(struct buf *out, const struct prometheus_sample *s);

#endif
