/* SPDX-License-Identifier: MIT
 * Finds and checks the credential of a request.  An Authorization header comes before the
 * parameters of a SAS.  A trusted peer that sends either of them is judged by it.  So clients can
 * be tested over a Unix socket. */
#include "rest/core/access.h"

#include "model/versions.h"
#include "rest/core/auth.h"
#include "rest/core/rest_service.h"

#include <strings.h>

/* ---- the check ---- */

static enum err collect_sas(
	const struct access_facts *f, struct sas *ret, struct err_detail *detail)
{
	const struct query_params *params = &f->url->params;
	*ret = (struct sas){ .of = f->rest->sas,
		.container = f->container,
		.blob = f->blob.p != NULL ? f->blob : SPAN_LIT("") };
	for (size_t i = 0; i < params->n; i++) {
		const struct query_param *param = &params->all[i];
		struct span *field = sas_field(ret, param->name);
		if (field == NULL)
			continue;
		if (field->p != NULL)
			return err_set(detail, ERR_AUTH_FAILED,
				"The parameter '%.*s' was sent more than once.", (int)param->name.n,
				param->name.p);
		*field = param->value.p != NULL ? param->value : SPAN_LIT("");
	}
	if (span_is(ret->sr, "bs"))
		(void)query_params_find(params, "snapshot", &ret->snapshot);
	return ERR_OK;
}

/* Returns true for the scheme Bearer, and leaves only the token. */
static bool is_bearer(struct span *header)
{
	static const struct span scheme = SPAN_LIT("Bearer");
	if (header->n < scheme.n || strncasecmp(header->p, scheme.p, scheme.n) != 0 ||
		(header->n > scheme.n && header->p[scheme.n] != ' '))
		return false;
	*header = span_make(header->p + scheme.n, header->n - scheme.n);
	while (header->n > 0 && header->p[0] == ' ')
		*header = span_make(header->p + 1, header->n - 1);
	return true;
}

static enum err check_header(const struct access_facts *f, struct span header, struct access *ret,
	struct err_detail *detail)
{
	if (request_header_count(f->request, "Authorization") > 1)
		return err_set(
			detail, ERR_AUTH_HEADER, "There is more than one Authorization header.");
	if (!is_bearer(&header))
		return auth_shared_key(f, header, ret, detail);
	ret->credential = CREDENTIAL_TOKEN;
	return auth_bearer(f, header, ret, detail);
}

static enum err check_sas(
	const struct access_facts *f, struct access *ret, struct err_detail *detail)
{
	enum err e = collect_sas(f, &ret->sas, detail);

	return e == ERR_OK ? auth_sas(f, &ret->sas, ret, detail) : e;
}

enum err access_check(const struct access_facts *f, struct access *ret, struct err_detail *detail)
{
	struct span header = request_header(f->request, "Authorization");
	struct span signature;

	*ret = (struct access){ .credential = CREDENTIAL_KEY };
	if (header.p != NULL)
		return check_header(f, header, ret, detail);
	ret->credential = CREDENTIAL_SAS;
	if (query_params_find(&f->url->params, "sig", &signature))
		return check_sas(f, ret, detail);
	ret->credential = f->request->peer->trusted ? CREDENTIAL_TRUSTED : CREDENTIAL_NONE;
	if (!f->request->peer->trusted)
		return err_set(detail, ERR_AUTH_NONE,
			"There is no credential: neither an Authorization header nor a shared "
			"access signature (sig).");
	ret->kind = ACCESS_OWNER;
	return ERR_OK;
}

/* ---- what it allows ---- */

/* Writes the letters of the set. */
static const char *letters(uint32_t bits, char out[27])
{
	size_t n = 0;

	for (int c = 'a'; c <= 'z'; c++) {
		if ((bits & PERMISSION(c)) != 0)
			out[n++] = (char)c;
	}
	out[n] = '\0';
	return out;
}

/* Refuses for a missing permission.  Versions without these codes report a missing resource. */
static enum err lacks(
	const struct access *a, const char *how, uint32_t wanted, struct err_detail *detail)
{
	char text[27];
	enum err e =
		version_has(a->version, VERSION_SAS_CODES) ? ERR_SAS_PERMISSION : ERR_NOT_FOUND;

	return err_set(
		detail, e, "The permissions (sp) must have %s '%s'.", how, letters(wanted, text));
}

static enum err account_sas_allows(char service, const struct access *a,
	const struct access_need *need, struct err_detail *detail)
{
	char text[27];

	if ((a->services & PERMISSION(service)) == 0)
		return err_set(
			detail, ERR_SAS_SERVICE, "The services (ss) must have '%c'.", service);
	if (need->account_types == 0)
		return err_set(
			detail, ERR_NOT_PERMITTED, "This operation requires an account key.");
	if ((a->resource_types & need->account_types) == 0)
		return err_set(detail, ERR_SAS_RESOURCE_TYPE,
			"The resource types (srt) must have one of '%s'.",
			letters(need->account_types, text));
	if (need->account_any != 0 && (a->permissions & need->account_any) == 0)
		return lacks(a, "one of", need->account_any, detail);
	if ((a->permissions & need->account_all) != need->account_all)
		return lacks(a, "all of", need->account_all, detail);
	return ERR_OK;
}

static enum err service_sas_allows(const struct access *a, const struct access_need *need,
	struct span container, struct err_detail *detail)
{
	if (need->service_all == 0 && need->service_any == 0)
		return err_set(detail, ERR_NOT_PERMITTED,
			"Only an account key or an account SAS can allow this operation.");
	/* The case of a table's name does not matter, and queues have lower case only. */
	if (container.n != a->container.n ||
		strncasecmp(container.p, a->container.p, container.n) != 0)
		return err_set(detail, ERR_NOT_PERMITTED, "The token is for '%.*s'.",
			(int)a->container.n, a->container.p);
	if ((a->permissions & need->service_all) != need->service_all)
		return lacks(a, "all of", need->service_all, detail);
	if (need->service_any != 0 && (a->permissions & need->service_any) == 0)
		return lacks(a, "one of", need->service_any, detail);
	return ERR_OK;
}

/* Returns true if these letters, for one type of resource, are enough. */
static bool has_letters(const struct access_need *need, char type, uint32_t letters)
{
	return (need->account_types & PERMISSION(type)) != 0 &&
		(need->account_any == 0 || (letters & need->account_any) != 0) &&
		(letters & need->account_all) == need->account_all;
}

/* An operation that no account SAS allows is for the key, except the policies of containers. */
static enum err token_allows(
	const struct access *a, const struct access_need *need, struct err_detail *detail)
{
	const struct grants *g = &a->bearer.grants;
	if (g->roles != 0 &&
		(has_letters(need, 's', g->service) || has_letters(need, 'c', g->containers) ||
			has_letters(need, 'o', g->objects) ||
			(need->account_types == 0 && g->policies)))
		return ERR_OK;
	return err_set(detail, ERR_SAS_PERMISSION,
		g->roles != 0 ? "The roles of the token do not allow it."
			      : "The token has no role for this service in this account.");
}

/* A key that an account key could get would say nothing about a user. */
static enum err may_delegate(const struct access *a, struct err_detail *detail)
{
	if (a->kind != ACCESS_TOKEN)
		return err_set(
			detail, ERR_AUTH_FAILED, "Only authentication scheme Bearer is supported.");
	return a->bearer.grants.delegates
		? ERR_OK
		: err_set(detail, ERR_SAS_PERMISSION,
			  "The roles of the token do not allow user delegation keys.");
}

enum err access_allows(const struct rest_service *rest, const struct access *a,
	const struct access_need *need, struct span container, struct err_detail *detail)
{
	if (need->delegates)
		return may_delegate(a, detail);
	switch (a->kind) {
	case ACCESS_OWNER:
		return ERR_OK;
	case ACCESS_ACCOUNT_SAS:
		return account_sas_allows(rest->letter, a, need, detail);
	case ACCESS_TOKEN:
		return token_allows(a, need, detail);
	case ACCESS_SERVICE_SAS:
		break;
	}
	return service_sas_allows(a, need, container, detail);
}
