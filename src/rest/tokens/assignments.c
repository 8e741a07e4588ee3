/* SPDX-License-Identifier: MIT */
#include "rest/tokens/assignments.h"

#include "codec/json_read.h"
#include "rest/tokens/roles.h"

#include <string.h>

#define LIST "assignments"

/* Splits "ROLE@ACCOUNT".  The account's p is NULL for every account. */
static struct span split_role(struct span text, struct span *ret_account)
{
	const char *at = text.n > 0 ? memchr(text.p, '@', text.n) : NULL;
	*ret_account = (struct span){ 0 };
	if (at == NULL)
		return text;
	size_t n = (size_t)(at - text.p);
	*ret_account = span_make(at + 1, text.n - n - 1);
	return span_make(text.p, n);
}

/* Returns the roles of a member that is a text or a list of them. */
static uint32_t read_roles(
	const struct json_t *from, const char *name, char service, const char *account)
{
	size_t n = json_read_count(from, name);
	uint32_t roles = 0;
	for (size_t i = 0; i < n; i++) {
		struct span of, role = split_role(json_read_item(from, name, i), &of);
		if (of.p == NULL || span_is(of, account))
			roles |= roles_find(role, service);
	}
	return roles;
}

/* Returns true if the claim is this text, or a list that has it. */
static bool has_claim(const struct json_t *claims, const char *name, struct span wanted)
{
	size_t n = json_read_count(claims, name);
	for (size_t i = 0; i < n; i++) {
		struct span one = json_read_item(claims, name, i);
		if (one.p != NULL && span_eq(one, wanted))
			return true;
	}
	return false;
}

static bool applies(const struct json_t *assignment, const struct json_t *claims)
{
	const char *name = NULL;
	while ((name = json_read_next(assignment, name)) != NULL)
		if (strcmp(name, "role") != 0 &&
			!has_claim(claims, name, json_read_text(assignment, name)))
			return false;
	return true;
}

uint32_t assignments_roles(
	const struct json_t *file, const struct json_t *claims, char service, const char *account)
{
	size_t n = file != NULL ? json_read_count(file, LIST) : 0;
	uint32_t roles = read_roles(claims, "roles", service, account);
	for (size_t i = 0; i < n; i++) {
		const struct json_t *assignment = json_read_object(file, LIST, i);
		if (applies(assignment, claims))
			roles |= read_roles(assignment, "role", service, account);
	}
	return roles;
}

/* ---- checking ---- */

static enum err bad(size_t i, const char *why, struct err_detail *detail)
{
	return err_set(detail, ERR_INVALID_INPUT, "assignment %zu %s", i + 1, why);
}

static bool is_role(struct span text)
{
	struct span account, role = split_role(text, &account);
	return (roles_find(role, 't') | roles_find(role, 'q') | roles_find(role, 'b')) != 0;
}

/* A misspelt role would allow nothing, and a claim without a text would match nothing. */
static enum err check_one(const struct json_t *file, size_t i, struct err_detail *detail)
{
	const struct json_t *assignment = json_read_object(file, LIST, i);
	if (assignment == NULL)
		return bad(i, "is no object", detail);
	size_t roles = json_read_count(assignment, "role"), members = 0;
	const char *name = NULL;
	while ((name = json_read_next(assignment, name)) != NULL) {
		if (strcmp(name, "role") != 0 && json_read_text(assignment, name).p == NULL)
			return bad(i, "has a claim that is no text", detail);
		members++;
	}
	if (roles == 0 || members < 2)
		return bad(i, "needs a 'role' and a claim", detail);
	for (size_t j = 0; j < roles; j++)
		if (!is_role(json_read_item(assignment, "role", j)))
			return bad(i, "names a role that rowfs does not know", detail);
	return ERR_OK;
}

enum err assignments_check(const struct json_t *file, struct err_detail *detail)
{
	size_t n = json_read_count(file, LIST);
	enum err e = ERR_OK;
	if (json_read_has(file, LIST) && !json_read_is_array(file, LIST))
		return err_set(detail, ERR_INVALID_INPUT, "'assignments' is no array");
	if (n > ASSIGNMENTS_MAX)
		return err_set(detail, ERR_INVALID_INPUT, "it has more than %d assignments",
			ASSIGNMENTS_MAX);
	for (size_t i = 0; i < n && e == ERR_OK; i++)
		e = check_one(file, i, detail);
	return e;
}
