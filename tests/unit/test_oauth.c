/* SPDX-License-Identifier: MIT
 * Bearer tokens with real keys: their signatures, claims and roles. */
#include "codec/json_read.h"
#include "codec/jwt.h"
#include "oauth_setup.h"

/* ---- signatures ---- */

TEST(both_algorithms_are_checked_with_the_key_that_kid_names)
{
	write_keys("");
	struct oauth *o = open_oauth(how);
	(void)judge(o, rsa, RS256, GOOD, "");
	(void)judge(o, curve, ES256, GOOD, "");
	(void)judge(o, rsa2, RS256, GOOD, "Signature verification failed");
	(void)judge(o, rsa, "{\"alg\":\"RS256\",\"kid\":\"r2\"}", GOOD, "No key");
	(void)judge(o, rsa, "{\"alg\":\"RS256\"}", GOOD, "No key");
	oauth_close(o);
}

TEST(the_key_decides_the_algorithm)
{
	write_keys("");
	struct oauth *o = open_oauth(how);
	static const char *const algorithms[] = { "none", "None", "HS256", "RS512", "PS256",
		"ES256", "rs256", "" };
	for (size_t i = 0; i < ARRAY_LEN(algorithms); i++) {
		char header[100];
		snprintf(header, sizeof(header), "{\"alg\":\"%s\",\"kid\":\"r1\"}", algorithms[i]);
		(void)judge(o, rsa, header, GOOD, "The algorithm (alg) of this key is RS256");
	}
	(void)judge(o, rsa, "{\"alg\":\"RS256\",\"kid\":\"e1\"}", GOOD, "is ES256");
	(void)judge(o, rsa, "{\"kid\":\"r1\"}", GOOD, "is RS256");
	(void)judge(o, rsa, "{\"alg\":[\"RS256\"],\"kid\":\"r1\"}", GOOD, "is RS256");
	oauth_close(o);
}

/* An attacker knows the public key, and could use it as the secret of an HMAC. */
TEST(a_token_signed_with_the_public_key_as_a_secret_is_refused)
{
	write_keys("");
	struct oauth *o = open_oauth(how);
	struct buf token = BUF_INIT(1 << 20), secret = BUF_INIT(1 << 20);
	struct bearer b;
	uint8_t code[32];
	jwt_add_key(rsa, "r1", ",\"use\":\"sig\"", &secret);
	jwt_add_unsigned("{\"alg\":\"HS256\",\"kid\":\"r1\"}", GOOD, &token);
	crypto_hmac_sha256(buf_span(&secret), span_make(token.data, token.len - 1), code);
	jwt_encode(span_make(code, sizeof(code)), &token);
	(void)check_text(o, buf_span(&token), &table, &b, "is RS256");
	buf_fini(&token);
	buf_fini(&secret);
	oauth_close(o);
}

TEST(a_token_without_or_with_a_changed_signature_is_refused)
{
	write_keys("");
	struct oauth *o = open_oauth(how);
	struct buf token = BUF_INIT(1 << 20);
	struct bearer b;
	jwt_add_unsigned(RS256, GOOD, &token);
	(void)check_text(o, buf_span(&token), &table, &b, "Signature verification failed");
	for (int i = 0; i < 2; i++) {
		buf_clear(&token);
		jwt_sign(i == 0 ? rsa : curve, i == 0 ? RS256 : ES256, GOOD, &token);
		(void)check_text(o, buf_span(&token), &table, &b, "");
		char *at = &token.data[token.len - 10];
		*at = *at == 'A' ? 'B' : 'A';
		(void)check_text(o, buf_span(&token), &table, &b, "Signature verification failed");
	}
	oauth_close(o);
	buf_fini(&token);
}

/* ---- claims ---- */

static void judge_each(struct oauth *o, const char *const (*rows)[2], size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)judge(o, rsa, RS256, rows[i][0], rows[i][1]);
}

TEST(basic_wants_times_issuer_and_audience)
{
	static const char *const rows[][2] = {
		{ GOOD, "" },
		{ "{\"iat\":1,\"nbf\":1700000000,\"exp\":1700000000," GOOD_REST "}", "" },
		{ "{\"iat\":1,\"nbf\":1,\"exp\":1699999999," GOOD_REST "}", "expired" },
		{ "{\"iat\":1,\"nbf\":1700000001,\"exp\":1700000009," GOOD_REST "}",
			"not valid yet" },
		{ "{\"iat\":1,\"nbf\":1699999999.5,\"exp\":1700000000.5," GOOD_REST "}", "" },
		{ "{\"nbf\":1,\"exp\":1700000009," GOOD_REST "}", "'iat'" },
		{ "{\"iat\":1,\"exp\":1700000009," GOOD_REST "}", "'nbf'" },
		{ "{\"iat\":1,\"nbf\":1," GOOD_REST "}", "no expiry" },
		{ "{\"iat\":1,\"nbf\":1,\"exp\":\"1700000009\"," GOOD_REST "}", "no expiry" },
		{ "{\"iat\":1,\"nbf\":1,\"exp\":1e300," GOOD_REST "}", "no expiry" },
		{ "{" GOOD_TIMES ",\"aud\":\"https://storage.azure.com\"}", "Issuer" },
		{ "{" GOOD_TIMES
		  ",\"iss\":\"https://sts.example/\",\"aud\":\"https://storage.azure.com\"}",
			"Issuer" },
		{ "{" GOOD_TIMES ",\"iss\":\"https://sts.windows.net/x/\"}", "Audience" },
	};
	struct oauth *o = open_oauth("basic");
	judge_each(o, rows, ARRAY_LEN(rows));
	struct bearer b = judge(o, rsa, "{\"alg\":\"none\"}", GOOD, "");
	CHECK_EQ_INT(b.grants.roles, ROLES_ALL);
	oauth_close(o);
}

TEST(with_keys_clocks_may_differ_by_five_minutes)
{
	static const char *const rows[][2] = {
		{ "{\"exp\":1699999700," GOOD_REST "}", "" },
		{ "{\"exp\":1699999699," GOOD_REST "}", "expired" },
		{ "{\"exp\":1800000000,\"nbf\":1700000300," GOOD_REST "}", "" },
		{ "{\"exp\":1800000000,\"nbf\":1700000301," GOOD_REST "}", "not valid yet" },
		{ "{\"exp\":1800000000,\"nbf\":\"x\"," GOOD_REST "}", "no expiry" },
		{ "{\"nbf\":1," GOOD_REST "}", "no expiry" },
	};
	write_keys("");
	struct oauth *o = open_oauth(how);
	judge_each(o, rows, ARRAY_LEN(rows));
	oauth_close(o);
}

static const char *claims_with(const char *name, const char *value)
{
	static char text[1000];
	bool is_aud = strcmp(name, "aud") == 0;
	snprintf(text, sizeof(text),
		"{" GOOD_TIMES ",\"tid\":\"t1\",\"iss\":\"%s\",\"aud\":%s%s%s}",
		is_aud ? "https://sts.windows.net/x/" : value, is_aud ? "" : "\"",
		is_aud ? value : "https://storage.azure.com", is_aud ? "" : "\"");
	return text;
}

TEST(the_audience_is_the_service_or_all_storage)
{
	static const struct {
		const char *aud;
		const char *services; /* that accept it, of t, q and b */
	} rows[] = {
		{ "\"https://storage.azure.com\"", "tqb" },
		{ "\"https://storage.azure.com/\"", "tqb" },
		{ "\"https://storage.azure.com//\"", "" },
		{ "\"e406a681-f3d4-42a8-90b6-c2b029497af1\"", "tqb" },
		{ "\"https://acct.table.core.windows.net\"", "t" },
		{ "\"https://acct.queue.core.windows.net/\"", "q" },
		{ "\"https://acct.blob.core.usgovcloudapi.net\"", "b" },
		{ "\"https://acct.blob.core.chinacloudapi.cn\"", "b" },
		{ "\"https://acct.blob.core.cloudapi.de\"", "b" },
		{ "\"https://other.table.core.windows.net\"", "" },
		{ "\"https://acct.table.core.windows.net.evil\"", "" },
		{ "\"http://storage.azure.com\"", "" },
		{ "\"https://cosmos.azure.com\"", "t" },
		{ "[\"https://example\",\"https://storage.azure.com\"]", "tqb" },
		{ "[]", "" },
		{ "7", "" },
		{ "\"\"", "" },
	};
	static const struct oauth_facts services[] = { { "table", 't', "acct", "t1", NOW },
		{ "queue", 'q', "acct", "t1", NOW }, { "blob", 'b', "acct", "t1", NOW } };
	struct oauth *o = open_oauth("basic");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf token = BUF_INIT(1 << 20);
		jwt_add_unsigned("{}", claims_with("aud", rows[i].aud), &token);
		for (size_t j = 0; j < ARRAY_LEN(services); j++) {
			struct bearer b;
			bool ok = strchr(rows[i].services, services[j].letter) != NULL;
			(void)check_text(
				o, buf_span(&token), &services[j], &b, ok ? "" : "Audience");
		}
		buf_fini(&token);
	}
	oauth_close(o);
}

TEST(the_issuer_is_that_of_the_key)
{
	static const struct {
		const char *member, *issuer, *wanted;
	} rows[] = {
		{ "", "https://anybody", "" },
		{ "\"issuer\":\"https://me/\",", "https://me/", "" },
		{ "\"issuer\":\"https://me/\",", "https://me", "Issuer" },
		{ "\"issuer\":\"https://login/{tenantid}/v2.0\",", "https://login/t1/v2.0", "" },
		{ "\"issuer\":\"https://login/{tenantid}/v2.0\",", "https://login/t2/v2.0",
			"Issuer" },
		{ "\"issuer\":\"https://login/{tenantid}/v2.0\",", "https://login/t1/v2.1",
			"Issuer" },
		{ "\"issuer\":\"https://login/{tenantid}/v2.0\",", "https://login/{tenantid}/v2.0",
			"Issuer" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		write_keys(rows[i].member);
		struct oauth *o = open_oauth(how);
		(void)judge(o, rsa, RS256, claims_with("iss", rows[i].issuer), rows[i].wanted);
		oauth_close(o);
	}
}

/* ---- roles ---- */

static uint32_t set(const char *letters)
{
	uint32_t bits = 0;
	for (; *letters != '\0'; letters++)
		bits |= UINT32_C(1) << (*letters - 'a');
	return bits;
}

TEST(roles_give_letters_in_their_service_only)
{
	static const struct {
		const char *name;
		char service;
		const char *service_letters, *containers, *objects;
	} rows[] = {
		{ "Storage Table Data Reader", 't', "l", "l", "r" },
		{ "Storage Table Data Contributor", 't', "l", "lcwd", "raud" },
		{ "Storage Queue Data Reader", 'q', "l", "r", "r" },
		{ "Storage Queue Data Contributor", 'q', "l", "rwcd", "rapud" },
		{ "Storage Queue Data Message Processor", 'q', "", "", "rp" },
		{ "Storage Queue Data Message Sender", 'q', "", "", "a" },
		{ "Storage Queue Delegator", 'q', "", "", "" },
		{ "Storage Blob Data Reader", 'b', "l", "rl", "r" },
		{ "Storage Blob Data Contributor", 'b', "l", "rlwcd", "rwcad" },
		{ "Storage Blob Data Owner", 'b', "l", "rlwcd", "rwcad" },
		{ "Storage Blob Delegator", 'b', "", "", "" },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		for (const char *s = "tqb"; *s != '\0'; s++) {
			uint32_t role = roles_find(span_of(rows[i].name), *s);
			CHECK_EQ_INT(role != 0, *s == rows[i].service);
		}
		uint32_t role = roles_find(span_of(rows[i].name), rows[i].service);
		struct grants g = roles_grants(role, rows[i].service);
		CHECK_EQ_INT(g.service, set(rows[i].service_letters));
		CHECK_EQ_INT(g.containers, set(rows[i].containers));
		CHECK_EQ_INT(g.objects, set(rows[i].objects));
		CHECK_EQ_INT(g.policies, strstr(rows[i].name, "Owner") != NULL);
		CHECK_EQ_INT(g.delegates, rows[i].service != 't');
	}
	CHECK(roles_find(SPAN_LIT("storage.table-data_READER"), 't') != 0);
	CHECK(roles_find(SPAN_LIT("Storage Table Data Reade"), 't') == 0);
	CHECK(roles_find(SPAN_LIT("Storage Table Data Readers"), 't') == 0);
	CHECK(roles_find(SPAN_LIT(""), 't') == 0);
}

TEST(every_set_of_roles_of_a_service_comes_once)
{
	size_t n = 0;
	for (uint32_t s = roles_next(0, 'b'); s != 0; s = roles_next(s, 'b'))
		n++;
	CHECK_EQ_INT(n, 31);
}

TEST(the_claim_roles_counts_where_it_names_this_account_or_none)
{
	static const struct {
		const char *roles;
		const char *objects;
	} rows[] = {
		{ "[\"Storage Table Data Reader\"]", "r" },
		{ "\"StorageTableDataReader\"", "r" },
		{ "[\"Storage Table Data Contributor@acct\"]", "raud" },
		{ "[\"Storage Table Data Contributor@other\",\"Storage Table Data Reader@acct\"]",
			"r" },
		{ "[\"Storage Table Data Contributor@acc\"]", "" },
		{ "[\"Storage Table Data Contributor@acct2\"]", "" },
		{ "[\"Storage Table Data Contributor@\"]", "" },
		{ "[\"Storage Blob Data Owner\"]", "" },
		{ "[7,null,[\"Storage Table Data Reader\"]]", "" },
		{ "{}", "" },
	};
	write_keys("");
	struct oauth *o = open_oauth(how);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char claims[1000];
		snprintf(claims, sizeof(claims), "{" GOOD_TIMES "," GOOD_REST ",\"roles\":%s}",
			rows[i].roles);
		struct bearer b = judge(o, rsa, RS256, claims, "");
		CHECK_EQ_INT(b.grants.objects, set(rows[i].objects));
		CHECK_EQ_INT(b.grants.roles != 0, rows[i].objects[0] != '\0');
	}
	oauth_close(o);
}

TEST(the_file_assigns_roles_to_claims)
{
	static const struct {
		const char *claims, *objects;
	} rows[] = {
		{ "\"oid\":\"a\"", "r" },
		{ "\"oid\":\"A\"", "" },
		{ "\"oid\":7", "" },
		{ "\"groups\":[\"x\",\"g\"]", "raud" },
		{ "\"groups\":\"g\"", "raud" },
		{ "\"groups\":[]", "" },
		{ "\"appid\":\"p\",\"tid\":\"t\"", "r" },
		{ "\"appid\":\"p\"", "" },
		{ "\"tid\":\"t\"", "" },
		{ "\"appid\":\"elsewhere\"", "" },
	};
	write_keys("\"assignments\":[{\"oid\":\"a\",\"role\":\"Storage Table Data Reader\"},"
		   "{\"groups\":\"g\",\"role\":[\"Storage Blob Data Reader\","
		   "\"StorageTableDataContributor@acct\"]},"
		   "{\"appid\":\"p\",\"tid\":\"t\",\"role\":\"Storage Table Data Reader@acct\"},"
		   "{\"appid\":\"elsewhere\",\"role\":\"Storage Table Data Reader@other\"}],");
	struct oauth *o = open_oauth(how);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char claims[1000];
		snprintf(claims, sizeof(claims), "{" GOOD_TIMES "," GOOD_REST ",%s}",
			rows[i].claims);
		struct bearer b = judge(o, rsa, RS256, claims, "");
		CHECK_EQ_INT(b.grants.objects, set(rows[i].objects));
	}
	oauth_close(o);
}

TEST(who_the_token_is_of_is_kept_if_it_is_a_plain_name)
{
	static const struct {
		const char *claims, *object, *tenant;
	} rows[] = {
		{ "\"oid\":\"a-1\",\"sub\":\"s\",\"tid\":\"t-1\"", "a-1", "t-1" },
		{ "\"sub\":\"s\"", "s", "" },
		{ "\"oid\":\"a\\nb\",\"tid\":\"a b\"", "", "" },
		{ "\"oid\":\"0123456789012345678901234567890123456789012345678901234567890123\"",
			"0123456789012345678901234567890123456789012345678901234567890123", "" },
		{ "\"oid\":\"01234567890123456789012345678901234567890123456789012345678901234\"",
			"", "" },
	};
	struct oauth *o = open_oauth("basic");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char claims[1000];
		snprintf(claims, sizeof(claims), "{" GOOD_TIMES "," GOOD_REST ",%s}",
			rows[i].claims);
		struct bearer b = judge(o, rsa, RS256, claims, "");
		CHECK_EQ_STR(b.object, rows[i].object);
		CHECK_EQ_STR(b.tenant, rows[i].tenant);
	}
	oauth_close(o);
}

/* ---- hostile texts ---- */

TEST(texts_that_are_no_tokens_are_refused)
{
	static const char *const rows[] = { "", ".", "..", "...", "a.b", "e30.e30", "e30.e30.!",
		"e30=.e30.", "e30.e3.", "e30.W10.", "W10.e30.", "e30.e30.e30.e30", " e30.e30.",
		"e30.e30.\n", "e30.eyJhIjoxLCJhIjoxfQ.", "e30.eyJhIjoiXHUwMDAwIn0.",
		"eyJjcml0IjpbImV4cCJdfQ.e30." };
	struct jwt t;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err_detail why = { 0 };
		CHECK_ERR(jwt_read(span_of(rows[i]), &t, &why), ERR_INVALID_INPUT);
		CHECK(strncmp(why.text, "The token ", 10) == 0);
	}
	CHECK_ERR(jwt_read(SPAN_LIT("e30.e30.e30"), &t, NULL), ERR_OK);
	CHECK_EQ_INT(t.signature.len, 2);
	jwt_fini(&t);
}

/* Claims of n bytes, all told. */
static char *long_claims(size_t n)
{
	static const char head[] = "{" GOOD_TIMES "," GOOD_REST ",\"x\":\"";
	char *text = malloc(n + 1);
	BUG_ON(text == NULL);
	memset(text, 'x', n);
	memcpy(text, head, sizeof(head) - 1);
	memcpy(text + n - 2, "\"}", 3);
	return text;
}

TEST(a_token_has_at_most_16_KiB)
{
	struct oauth *o = open_oauth("basic");
	/* "e30." and the last dot: of 16,379 characters 12,284 bytes come. */
	for (size_t n = 12284; n <= 12285; n++) {
		struct buf token = BUF_INIT(1 << 20);
		struct bearer b;
		char *claims = long_claims(n);
		jwt_add_unsigned("{}", claims, &token);
		CHECK_EQ_INT(token.len <= JWT_LIMIT, n == 12284);
		(void)check_text(
			o, buf_span(&token), &table, &b, token.len <= JWT_LIMIT ? "" : "16 KiB");
		free(claims);
		buf_fini(&token);
	}
	oauth_close(o);
}

TEST(a_token_has_at_most_8_levels_and_256_roles)
{
	char deep[JWT_DEPTH + 2] = "", claims[20000];
	write_keys("");
	struct oauth *o = open_oauth(how);
	for (size_t levels = JWT_DEPTH; levels <= JWT_DEPTH + 1; levels++) {
		memset(deep, '[', levels - 1);
		snprintf(claims, sizeof(claims),
			"{" GOOD_TIMES "," GOOD_REST
			",\"quoted\":\"[[[[[[[[[[[\\\"[[\",\"x\":%s%.*s}",
			deep, (int)(levels - 1), "]]]]]]]]]]]]");
		(void)judge(o, rsa, RS256, claims, levels == JWT_DEPTH ? "" : "no JSON object");
	}
	for (size_t n = OAUTH_ROLES_MAX; n <= OAUTH_ROLES_MAX + 1; n++) {
		size_t at = (size_t)snprintf(
			claims, sizeof(claims), "{" GOOD_TIMES "," GOOD_REST ",\"roles\":[\"\"");
		for (size_t i = 1; i < n; i++)
			at += (size_t)snprintf(claims + at, sizeof(claims) - at, ",\"\"");
		snprintf(claims + at, sizeof(claims) - at, "]}");
		(void)judge(o, rsa, RS256, claims, n == OAUTH_ROLES_MAX ? "" : "256 roles");
	}
	oauth_close(o);
}

int main(void)
{
	static const struct check_test tests[] = {
		T(both_algorithms_are_checked_with_the_key_that_kid_names),
		T(the_key_decides_the_algorithm),
		T(a_token_signed_with_the_public_key_as_a_secret_is_refused),
		T(a_token_without_or_with_a_changed_signature_is_refused),
		T(basic_wants_times_issuer_and_audience),
		T(with_keys_clocks_may_differ_by_five_minutes),
		T(the_audience_is_the_service_or_all_storage), T(the_issuer_is_that_of_the_key),
		T(roles_give_letters_in_their_service_only),
		T(every_set_of_roles_of_a_service_comes_once),
		T(the_claim_roles_counts_where_it_names_this_account_or_none),
		T(the_file_assigns_roles_to_claims),
		T(who_the_token_is_of_is_kept_if_it_is_a_plain_name),
		T(texts_that_are_no_tokens_are_refused), T(a_token_has_at_most_16_KiB),
		T(a_token_has_at_most_8_levels_and_256_roles)
	};
	return run_with_keys(tests, ARRAY_LEN(tests));
}
