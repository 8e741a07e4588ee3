/* SPDX-License-Identifier: MIT */
#include "rest/tokens/roles.h"

#include "base/compiler.h"
#include "service/sas/sas.h"

#include <ctype.h>

static const struct role {
	const char *name; /* without blanks, in lower case */
	char service;
	const char *service_letters, *containers, *objects;
	bool policies, delegates;
} roles[] = {
	{ "storagetabledatacontributor", 't', "l", "lcwd", "raud", false, false },
	{ "storagetabledatareader", 't', "l", "l", "r", false, false },
	{ "storagequeuedatacontributor", 'q', "l", "rwcd", "rapud", false, true },
	{ "storagequeuedatareader", 'q', "l", "r", "r", false, true },
	{ "storagequeuedatamessageprocessor", 'q', "", "", "rp", false, true },
	{ "storagequeuedatamessagesender", 'q', "", "", "a", false, true },
	{ "storagequeuedelegator", 'q', "", "", "", false, true },
	{ "storageblobdataowner", 'b', "l", "rlwcd", "rwcad", true, true },
	{ "storageblobdatacontributor", 'b', "l", "rlwcd", "rwcad", false, true },
	{ "storageblobdatareader", 'b', "l", "rl", "r", false, true },
	{ "storageblobdelegator", 'b', "", "", "", false, true },
};

static const struct role everything = { NULL, 0, "rwlacdup", "rwlacdup", "rwlacdup", false, true };

static uint32_t bit(size_t i)
{
	return UINT32_C(1) << i;
}

/* Compares with a name of the table. */
static bool same(struct span text, const char *name)
{
	for (size_t i = 0; i < text.n; i++) {
		char c = text.p[i];
		if (c == ' ' || c == '.' || c == '-' || c == '_')
			continue;
		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if (*name == '\0' || c != *name++)
			return false;
	}
	return *name == '\0';
}

uint32_t roles_find(struct span name, char service)
{
	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if (roles[i].service == service && same(name, roles[i].name))
			return bit(i);
	return 0;
}

static uint32_t bits_of(const char *text)
{
	uint32_t bits;
	(void)sas_letters(span_of(text), text, &bits);
	return bits;
}

static void add(struct grants *g, const struct role *r)
{
	g->service |= bits_of(r->service_letters);
	g->containers |= bits_of(r->containers);
	g->objects |= bits_of(r->objects);
	g->policies = g->policies || r->policies;
	g->delegates = g->delegates || r->delegates;
}

struct grants roles_grants(uint32_t wanted, char service)
{
	struct grants g = { .roles = wanted };
	if ((wanted & ROLES_ALL) != 0)
		add(&g, &everything);
	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if ((wanted & bit(i)) != 0 && roles[i].service == service)
			add(&g, &roles[i]);
	return g;
}

uint32_t roles_next(uint32_t set, char service)
{
	uint32_t mask = ROLES_ALL;
	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		mask |= roles[i].service == service ? bit(i) : 0;
	return (set - mask) & mask; /* counts in the bits of the mask */
}
