/* SPDX-License-Identifier: MIT
 * Prometheus' text format, version 0.0.4.  A family has a HELP and a TYPE line, then its samples,
 * one a line.  The caller must write each family once, with all its samples, in base units
 * (seconds, bytes). */
#ifndef CODEC_PROMETHEUS_TEXT_H
#define CODEC_PROMETHEUS_TEXT_H

#include "base/buf.h"

#define PROMETHEUS_LABELS 4

struct prometheus_sample {
	const char *family;
	const char *suffix; /* such as "_bucket"; NULL: none */
	struct {
		const char *name;  /* NULL behind the last one */
		struct span value; /* UTF-8; escaped on output */
	} labels[PROMETHEUS_LABELS];
	uint64_t value;
	unsigned decimals; /* the value shown is value / 10^decimals */
};

/* Appends the head of a family.  type is "counter" (name ends in _total), "gauge" or
 * "histogram". */
void prometheus_family(struct buf *out, const char *name, const char *type, const char *help);
/* Appends one line. */
void prometheus_sample(struct buf *out, const struct prometheus_sample *s);
/* Appends a family of one sample without labels. */
void prometheus_single(
	struct buf *out, const char *name, const char *type, uint64_t value, const char *help);

#endif
