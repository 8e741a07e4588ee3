/* SPDX-License-Identifier: MIT
 * A service SAS may leave start, expiry and permissions to a policy stored with its resource.
 * So they can be changed or revoked after the token was issued. */
#include "codec/access_policy_xml.h"
#include "service/sas/sas.h"

#define POLICIES_LIMIT ((size_t)4 << 20)
#define SHOWN 64

static enum err read_policies(
	struct service *service, struct span account, const struct sas *s, struct sas_terms *t)
{
	enum err e = s->of->policies(service, account, sas_container(s), &t->xml);

	if (e == ERR_OK)
		e = access_policies_from_xml(
			buf_span(&t->xml), s->of->permissions, &t->policies, NULL);
	return e == ERR_XML_INVALID || e == ERR_XML_VALUE ? ERR_CORRUPT : e;
}

static const struct access_policy *find_policy(const struct access_policies *p, struct span id)
{
	for (size_t i = 0; i < p->n; i++) {
		if (span_eq(p->all[i].id, id))
			return &p->all[i];
	}
	return NULL;
}

static enum err take_one(
	struct span *mine, struct span stored, const char *name, struct err_detail *detail)
{
	if (mine->n > 0 && stored.n > 0)
		return err_set(detail, ERR_AUTH_FAILED,
			"Both the token and its stored policy give '%s'.", name);
	if (stored.n > 0)
		*mine = stored;
	return ERR_OK;
}

static enum err take_policy(struct service *service, struct span account, const struct sas *s,
	struct sas_terms *t, struct err_detail *detail)
{
	enum err e = read_policies(service, account, s, t);

	if (e != ERR_OK)
		return e;
	const struct access_policy *p = find_policy(&t->policies, s->si);
	if (p == NULL)
		return err_set(detail, ERR_AUTH_FAILED, "There is no stored policy '%.*s' (si).",
			s->si.n < SHOWN ? (int)s->si.n : SHOWN, s->si.p);
	e = take_one(&t->start, p->start, "st", detail);
	if (e == ERR_OK)
		e = take_one(&t->expiry, p->expiry, "se", detail);
	return e == ERR_OK ? take_one(&t->permissions, p->permission, "sp", detail) : e;
}

enum err sas_terms_read(struct service *service, struct span account, const struct sas *s,
	struct sas_terms *ret, struct err_detail *detail)
{
	*ret = (struct sas_terms){ .start = s->st,
		.expiry = s->se,
		.permissions = s->sp,
		.xml = BUF_INIT(POLICIES_LIMIT) };
	enum err e = s->si.n > 0 ? take_policy(service, account, s, ret, detail) : ERR_OK;

	if (e == ERR_OK && ret->expiry.n == 0)
		e = err_set(detail, ERR_AUTH_FAILED, "The token has no 'se'.");
	if (e == ERR_OK && ret->permissions.n == 0)
		e = err_set(detail, ERR_AUTH_FAILED, "The token has no 'sp'.");
	return e;
}

void sas_terms_fini(struct sas_terms *t)
{
	arena_fini(&t->policies.arena);
	buf_fini(&t->xml);
}
