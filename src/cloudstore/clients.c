/* SPDX-License-Identifier: MIT */
#include "cloudstore/clients.h"

void clients_init(
	struct clients *c, const struct endpoint *at, const struct client_options *options)
{
	*c = (struct clients){ .at = *at, .options = *options };
	mutex_init(&c->lock, RANK_CLOUD_CLIENTS);
}

void clients_fini(struct clients *c)
{
	while (c->n > 0)
		client_free(c->rest[--c->n]);
	mutex_destroy(&c->lock);
	endpoint_wipe(&c->at);
}

enum err clients_take(struct clients *c, struct client **ret, struct err_detail *why)
{
	mutex_lock(&c->lock);
	*ret = c->n > 0 ? c->rest[--c->n] : NULL;
	mutex_unlock(&c->lock);
	return *ret != NULL ? ERR_OK : client_new(&c->at, &c->options, ret, why);
}

void clients_give(struct clients *c, struct client *client)
{
	mutex_lock(&c->lock);
	bool kept = c->n < CLIENTS_AT_REST;
	if (kept)
		c->rest[c->n++] = client;
	mutex_unlock(&c->lock);
	if (!kept)
		client_free(client);
}
