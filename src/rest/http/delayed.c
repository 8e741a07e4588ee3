/* SPDX-License-Identifier: MIT */
#include "rest/http/delayed.h"

#include "base/clock.h"
#include "rest/http/connection.h"

void delayed_init(struct delayed *d)
{
	mutex_init(&d->lock, RANK_DELAYED);
	d->first = NULL;
}

void delayed_fini(struct delayed *d)
{
	mutex_destroy(&d->lock);
}

void delayed_add(struct delayed *d, struct connection *c)
{
	c->resume_us = clock_mono_us() + c->response.wait_ms * UINT64_C(1000);
	mutex_lock(&d->lock);
	c->next_delayed = d->first;
	d->first = c;
	mutex_unlock(&d->lock);
}

/* Takes the due connections out of the list: they may be freed as soon as they are resumed. */
static struct connection *take_due(struct delayed *d, bool all)
{
	struct connection *due = NULL, **at = &d->first;
	uint64_t now = clock_mono_us();
	mutex_lock(&d->lock);
	while (*at != NULL) {
		struct connection *c = *at;
		if (!all && now < c->resume_us) {
			at = &c->next_delayed;
			continue;
		}
		*at = c->next_delayed;
		c->next_delayed = due;
		due = c;
	}
	mutex_unlock(&d->lock);
	return due;
}

void delayed_resume(struct delayed *d, bool all)
{
	struct connection *c = take_due(d, all);
	while (c != NULL) {
		struct connection *next = c->next_delayed;
		MHD_resume_connection(c->mhd);
		c = next;
	}
}
