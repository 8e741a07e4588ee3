/* SPDX-License-Identifier: MIT
 * service/sas/sas.h, against signatures that the SDKs and openssl made (protocol section 4.3). */
#include "base/clock.h"
#include "base/compiler.h"
#include "base/crypto.h"
#include "check.h"
#include "service/sas/sas.h"

#include <sys/socket.h>

#define KEY \
	"Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
#define ACCOUNT SPAN_LIT("devstoreaccount1")

/* ---- what is signed ---- */

struct vector {
	struct sas sas;
	const char *string, *signature;
};

static const struct vector vectors[] = {
	{ { .of = &sas_tables,
		  .sv = SPAN_LIT("2019-02-02"),
		  .tn = SPAN_LIT("mytable"),
		  .sp = SPAN_LIT("ra"),
		  .st = SPAN_LIT("2020-01-01T00:00:00Z"),
		  .se = SPAN_LIT("2035-01-01T00:00:00Z"),
		  .spk = SPAN_LIT("a"),
		  .srk = SPAN_LIT("0"),
		  .epk = SPAN_LIT("b"),
		  .erk = SPAN_LIT("9") },
		"ra\n2020-01-01T00:00:00Z\n2035-01-01T00:00:00Z\n"
		"/table/devstoreaccount1/mytable\n\n\n\n2019-02-02\na\n0\nb\n9",
		"q3W7mdON500Ta88sRSpGAd7aQjq8KMIJMIjj+3HBXj0=" },
	{ { .of = &sas_tables,
		  .sv = SPAN_LIT("2019-02-02"),
		  .tn = SPAN_LIT("MyTable"),
		  .si = SPAN_LIT("policy1") },
		"\n\n\n/table/devstoreaccount1/mytable\npolicy1\n\n\n2019-02-02\n\n\n\n",
		"7fk7F8vYktbK9ITerPezirtr6NZNSL8zDLE5ET8adv8=" },
	{ { .of = &sas_tables,
		  .sv = SPAN_LIT("2014-02-14"),
		  .tn = SPAN_LIT("mytable"),
		  .sp = SPAN_LIT("r"),
		  .se = SPAN_LIT("2035-01-01T00:00:00Z") },
		"r\n\n2035-01-01T00:00:00Z\n/devstoreaccount1/mytable\n\n2014-02-14\n\n\n\n",
		"/DVF7Sm+HOwCH6LRmW8Ye5dtV7dCz2OkdfNH1/hZ1gQ=" },
	{ { .of = &sas_tables,
		  .sv = SPAN_LIT("2019-02-02"),
		  .ss = SPAN_LIT("t"),
		  .srt = SPAN_LIT("sco"),
		  .sp = SPAN_LIT("rwdlau"),
		  .se = SPAN_LIT("2035-01-01T00:00:00Z") },
		"devstoreaccount1\nrwdlau\nt\nsco\n\n2035-01-01T00:00:00Z\n\n\n2019-02-02\n",
		"/dxzvmrSc05VvNKT3SRd+PdMksOe6MIR3stqSrkQrS4=" },
	{ { .of = &sas_tables,
		  .sv = SPAN_LIT("2020-12-06"),
		  .ss = SPAN_LIT("t"),
		  .srt = SPAN_LIT("sco"),
		  .sp = SPAN_LIT("rwdlau"),
		  .se = SPAN_LIT("2035-01-01T00:00:00Z") },
		"devstoreaccount1\nrwdlau\nt\nsco\n\n2035-01-01T00:00:00Z\n\n\n2020-12-06\n\n",
		"fGoblXs8+dE0jVgHJoA88LvtF3HpPJkZRBoU6mnLoAw=" },
};

TEST(the_string_to_sign_is_the_published_one)
{
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		struct buf b = BUF_INIT(1000);
		CHECK_ERR(sas_string_to_sign(&vectors[i].sas, ACCOUNT, &b), ERR_OK);
		CHECK_EQ_STR(b.data, vectors[i].string);
		buf_fini(&b);
	}
}

TEST(the_signature_is_the_published_one)
{
	struct buf key = BUF_INIT(100);

	REQUIRE(base64_decode(SPAN_LIT(KEY), &key));
	for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
		struct buf b = BUF_INIT(1000);
		CHECK_ERR(sas_sign(&vectors[i].sas, ACCOUNT, buf_span(&key), &b), ERR_OK);
		CHECK_EQ_STR(b.data, vectors[i].signature);
		buf_fini(&b);
	}
	buf_fini(&key);
}

static void check_string(const struct sas *s, const char *want)
{
	struct buf b = BUF_INIT(1000);

	CHECK_ERR(sas_string_to_sign(s, SPAN_LIT("acct"), &b), ERR_OK);
	CHECK_EQ_STR(b.data, want);
	buf_fini(&b);
}

TEST(every_version_of_a_table_token_has_its_lines)
{
	struct sas s = { .of = &sas_tables,
		.sp = SPAN_LIT("SP"),
		.st = SPAN_LIT("ST"),
		.se = SPAN_LIT("SE"),
		.tn = SPAN_LIT("TN"),
		.si = SPAN_LIT("SI"),
		.sip = SPAN_LIT("IP"),
		.spr = SPAN_LIT("PR"),
		.spk = SPAN_LIT("1"),
		.srk = SPAN_LIT("2"),
		.epk = SPAN_LIT("3"),
		.erk = SPAN_LIT("4") };

	s.sv = SPAN_LIT("2012-02-12");
	check_string(&s, "SP\nST\nSE\n/acct/tn\nSI\n2012-02-12\n1\n2\n3\n4");
	s.sv = SPAN_LIT("2013-08-15");
	check_string(&s, "SP\nST\nSE\n/acct/tn\nSI\n2013-08-15\n1\n2\n3\n4");
	s.sv = SPAN_LIT("2015-02-20");
	check_string(&s, "SP\nST\nSE\n/acct/tn\nSI\n2015-02-20\n1\n2\n3\n4");
	s.sv = SPAN_LIT("2015-02-21");
	check_string(&s, "SP\nST\nSE\n/table/acct/tn\nSI\n2015-02-21\n1\n2\n3\n4");
	s.sv = SPAN_LIT("2015-04-05");
	check_string(&s, "SP\nST\nSE\n/table/acct/tn\nSI\nIP\nPR\n2015-04-05\n1\n2\n3\n4");
	s.sv = SPAN_LIT("2026-06-06");
	check_string(&s, "SP\nST\nSE\n/table/acct/tn\nSI\nIP\nPR\n2026-06-06\n1\n2\n3\n4");
}

TEST(every_version_of_an_account_token_has_its_lines)
{
	struct sas s = { .of = &sas_tables,
		.sp = SPAN_LIT("SP"),
		.st = SPAN_LIT("ST"),
		.se = SPAN_LIT("SE"),
		.sip = SPAN_LIT("IP"),
		.spr = SPAN_LIT("PR"),
		.ss = SPAN_LIT("SS"),
		.srt = SPAN_LIT("RT"),
		.ses = SPAN_LIT("ES") };

	s.sv = SPAN_LIT("2015-04-05");
	check_string(&s, "acct\nSP\nSS\nRT\nST\nSE\nIP\nPR\n2015-04-05\n");
	s.sv = SPAN_LIT("2020-12-05");
	check_string(&s, "acct\nSP\nSS\nRT\nST\nSE\nIP\nPR\n2020-12-05\n");
	s.sv = SPAN_LIT("2020-12-06");
	check_string(&s, "acct\nSP\nSS\nRT\nST\nSE\nIP\nPR\n2020-12-06\nES\n");
}

TEST(versions_that_sign_no_such_token_are_refused)
{
	static const struct sas bad[] = {
		{ .of = &sas_tables, .sv = SPAN_LIT("2011-08-18"), .tn = SPAN_LIT("t") },
		{ .of = &sas_tables, .sv = SPAN_LIT("2012-02-11"), .tn = SPAN_LIT("t") },
		{ .of = &sas_tables, .sv = SPAN_LIT("2015-04-04"), .ss = SPAN_LIT("t") },
		{ .of = &sas_tables, .sv = SPAN_LIT("2012-02-12"), .srt = SPAN_LIT("o") },
		{ .of = &sas_tables, .sv = SPAN_LIT("newest"), .tn = SPAN_LIT("t") },
		{ .of = &sas_tables, .tn = SPAN_LIT("t") },
		{ .of = &sas_tables, .ss = SPAN_LIT("t") },
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct buf b = BUF_INIT(1000);
		CHECK_ERR(sas_string_to_sign(&bad[i], ACCOUNT, &b), ERR_INVALID_INPUT);
		CHECK_EQ_INT(b.len, 0);
		CHECK_ERR(sas_sign(&bad[i], ACCOUNT, SPAN_LIT("key"), &b), ERR_INVALID_INPUT);
		CHECK_EQ_INT(b.len, 0);
		buf_fini(&b);
	}
}

TEST(a_line_break_in_any_field_is_refused)
{
	static const char *const names[] = { "sv", "sp", "st", "se", "sip", "spr", "tn", "si",
		"spk", "srk", "epk", "erk", "sig" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct sas s = vectors[0].sas;
		struct span *field = sas_field(&s, span_of(names[i]));
		struct buf b = BUF_INIT(1000);
		REQUIRE(field != NULL);
		*field = SPAN_LIT("a\nb");
		CHECK_ERR(sas_string_to_sign(&s, ACCOUNT, &b), ERR_INVALID_INPUT);
		buf_fini(&b);
	}
}

TEST(the_buffers_limit_is_told)
{
	struct buf b = BUF_INIT(20);

	CHECK_ERR(sas_string_to_sign(&vectors[0].sas, ACCOUNT, &b), ERR_NO_MEMORY);
	buf_fini(&b);
}

/* ---- fields ---- */

TEST(ss_or_srt_makes_an_account_token)
{
	CHECK(sas_is_account(&(struct sas){ .ss = SPAN_LIT("") }));
	CHECK(sas_is_account(&(struct sas){ .srt = SPAN_LIT("o"), .tn = SPAN_LIT("t") }));
	CHECK(!sas_is_account(&(struct sas){ .tn = SPAN_LIT("t") }));
	CHECK(!sas_is_account(&(struct sas){ 0 }));
}

TEST(fields_have_exact_names)
{
	struct sas s = { 0 };

	CHECK(sas_field(&s, SPAN_LIT("sv")) == &s.sv);
	CHECK(sas_field(&s, SPAN_LIT("erk")) == &s.erk);
	CHECK(sas_field(&s, SPAN_LIT("ses")) == &s.ses);
	CHECK(sas_field(&s, SPAN_LIT("SV")) == NULL);
	CHECK(sas_field(&s, SPAN_LIT("s")) == NULL);
	CHECK(sas_field(&s, SPAN_LIT("sb")) == NULL);
	CHECK(sas_field(&s, SPAN_LIT("")) == NULL);
}

TEST(a_query_string_holds_what_is_there)
{
	struct sas s = { .of = &sas_tables,
		.sv = SPAN_LIT("2019-02-02"),
		.tn = SPAN_LIT("T"),
		.se = SPAN_LIT("2035-01-01T00:00:00+01:00"),
		.spk = SPAN_LIT(""),
		.srk = SPAN_LIT("a&b=\xc3\xbc"),
		.sig = SPAN_LIT("a+/=") };
	struct buf b = BUF_INIT(1000);

	sas_to_query(&s, &b);
	CHECK_EQ_STR(b.data,
		"sv=2019-02-02&tn=T&se=2035-01-01T00%3A00%3A00%2B01%3A00&spk=&"
		"srk=a%26b%3D%C3%BC&sig=a%2B%2F%3D");
	buf_fini(&b);
}

TEST(what_the_version_does_not_sign_is_found)
{
	struct sas s = vectors[0].sas;

	CHECK_EQ_STR(sas_unsigned_field(&s) == NULL ? "none" : "some", "none");
	s.sip = SPAN_LIT("1.2.3.4");
	s.spr = SPAN_LIT("https");
	CHECK(sas_unsigned_field(&s) == NULL);
	s.sv = SPAN_LIT("2015-02-21");
	CHECK_EQ_STR(sas_unsigned_field(&s), "sip");
	s.sip.p = NULL;
	CHECK_EQ_STR(sas_unsigned_field(&s), "spr");
	s.spr.p = NULL;
	CHECK(sas_unsigned_field(&s) == NULL);
	s.sv = SPAN_LIT("2020-12-06");
	s.ses = SPAN_LIT("scope");
	CHECK_EQ_STR(sas_unsigned_field(&s), "ses");

	s = vectors[4].sas;
	s.ses = SPAN_LIT("scope");
	CHECK(sas_unsigned_field(&s) == NULL);
	s.sv = SPAN_LIT("2019-02-02");
	CHECK_EQ_STR(sas_unsigned_field(&s), "ses");
	s.ses.p = NULL;
	s.si = SPAN_LIT("policy1");
	CHECK_EQ_STR(sas_unsigned_field(&s), "si");
}

/* ---- times ---- */

#define SECONDS(n_) ((n_)*TICKS_PER_SECOND)
#define AT_2026_11_20 (TICKS_UNIX_EPOCH + SECONDS(INT64_C(1795132800)))

TEST(times_of_every_form_are_read)
{
	static const struct {
		const char *text;
		int64_t after; /* 2026-11-20T00:00Z, in ticks */
	} rows[] = {
		{ "2026-11-20", 0 },
		{ "2026-11-20T00:00Z", 0 },
		{ "2026-11-20T12:29Z", SECONDS(44940) },
		{ "2026-11-20T12:29:19Z", SECONDS(44959) },
		{ "2026-11-20T23:59:59Z", SECONDS(86399) },
		{ "2026-11-20T00:00:00.1Z", 1000000 },
		{ "2026-11-20T00:00:00.0000001Z", 1 },
		{ "2026-11-20T00:00:00.1234567Z", 1234567 },
		{ "2026-11-20T00:00:00.9999999Z", 9999999 },
		{ "2026-11-20T01:00+01:00", 0 },
		{ "2026-11-20T01:00:00.5+01:00", 5000000 },
		{ "2026-11-19T22:30-01:30", 0 },
		{ "2026-11-20T00:00+00:00", 0 },
		{ "2026-11-20T23:59:00+23:59", 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t t = -1;
		if (!policy_time_parse(span_of(rows[i].text), &t))
			check_fail(__FILE__, __LINE__, rows[i].text);
		CHECK_EQ_INT(t - AT_2026_11_20, rows[i].after);
	}
}

TEST(other_times_are_refused)
{
	static const char *const bad[] = { "", "2026", "2026-11", "2026-11-20T", "2026-11-20Z",
		"2026-11-20T12Z", "2026-11-20T12:29", "2026-11-20T12:29:19", "2026-11-20 12:29Z",
		"2026-11-20t12:29Z", "2026-11-20T12:29z", "2026-11-20T24:00Z", "2026-11-20T12:60Z",
		"2026-11-20T12:29:60Z", "2026-11-20T12:29.5Z", "2026-11-20T12:29:19.Z",
		"2026-11-20T12:29:19.12345678Z", "2026-11-20T12:29:19,5Z", "2026-11-20T1:29Z",
		"2026-11-31", "2026-02-29", "2026-00-10", "2026-11-20T12:29+1:00",
		"2026-11-20T12:29+01", "2026-11-20T12:29+0100", "2026-11-20T12:29+24:00",
		"2026-11-20T12:29+00:60", "2026-11-20T12:29 01:00", "2026-11-20T12:29Z ",
		"2026-11-20T12:29ZZ", " 2026-11-20", "+026-11-20", "26-11-20", "now",
		"2026-11-20T12:29:Z", "2026-11-20T12:29:19.Z5" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		int64_t t;
		if (policy_time_parse(span_of(bad[i]), &t))
			check_fail(__FILE__, __LINE__, bad[i]);
	}
	CHECK(!policy_time_parse(span_make(NULL, 0), &(int64_t){ 0 }));
}

TEST(the_ends_of_time_are_read)
{
	int64_t t;

	CHECK(policy_time_parse(SPAN_LIT("0001-01-01T00:00:00+23:59"), &t) && t < 0);
	CHECK(policy_time_parse(SPAN_LIT("9999-12-31T23:59:59.9999999Z"), &t) && t == TICKS_MAX);
	CHECK(policy_time_parse(SPAN_LIT("9999-12-31T23:59:59-23:59"), &t) && t > TICKS_MAX);
}

/* ---- letters, addresses ---- */

TEST(letters_become_bits)
{
	uint32_t bits;

	CHECK(sas_letters(SPAN_LIT("raud"), "raud", &bits));
	CHECK_EQ_INT(bits, 1 << ('r' - 'a') | 1 << 0 | 1 << ('u' - 'a') | 1 << ('d' - 'a'));
	CHECK(sas_letters(SPAN_LIT("rr"), "raud", &bits) && bits == 1u << 17);
	CHECK(sas_letters(SPAN_LIT(""), "raud", &bits) && bits == 0);
	CHECK(!sas_letters(SPAN_LIT("rx"), "raud", &bits));
	CHECK(!sas_letters(SPAN_LIT("R"), "raud", &bits));
	CHECK(!sas_letters(SPAN_LIT("r,a"), "raud", &bits));
	CHECK(!sas_letters(span_make("r\0", 2), "raud", &bits));
}

TEST(addresses_are_single_or_ranges)
{
	static const struct {
		const char *range, *ip;
		bool in;
	} rows[] = {
		{ "1.2.3.4", "1.2.3.4", true },
		{ "1.2.3.4", "1.2.3.5", false },
		{ "1.2.3.4", "::ffff:1.2.3.4", true },
		{ "1.2.3.4", "::1.2.3.4", false },
		{ "1.2.3.4", "::1", false },
		{ "1.2.3.4", "", false },
		{ "1.2.3.4", "unix", false },
		{ "10.0.0.250-10.0.1.5", "10.0.0.249", false },
		{ "10.0.0.250-10.0.1.5", "10.0.0.250", true },
		{ "10.0.0.250-10.0.1.5", "10.0.1.0", true },
		{ "10.0.0.250-10.0.1.5", "10.0.1.5", true },
		{ "10.0.0.250-10.0.1.5", "10.0.1.6", false },
		{ "0.0.0.0-255.255.255.255", "200.1.1.1", true },
		{ "0.0.0.0-255.255.255.255", "fe80::1", false },
		{ "9.0.0.0-10.0.0.0", "10.0.0.0", true },
		{ "10.0.0.2-10.0.0.1", "10.0.0.1", false },
		{ "10.0.0.2-10.0.0.1", "10.0.0.2", false },
		{ "2001:db8::1", "2001:db8:0::1", true },
		{ "fe80::1-fe80::ff", "fe80::10%eth0", true },
		{ "fe80::1-fe80::ff", "fe80::100", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sas_ip r;
		REQUIRE(sas_ip_parse(span_of(rows[i].range), &r));
		if (sas_ip_holds(&r, rows[i].ip) != rows[i].in) {
			printf("# %s in %s\n", rows[i].ip, rows[i].range);
			check_fail(__FILE__, __LINE__, "wrong");
		}
	}
}

TEST(other_addresses_are_refused)
{
	static const char *const bad[] = { "", "-", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.4-",
		"-1.2.3.4", "1.2.3.4-1.2.3", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4-1.2.3.5-1.2.3.6",
		"1.2.3.4,1.2.3.5", "1.2.3.0/24", "localhost", "1.2.3.4-::1", "0x1.2.3.4",
		"1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct sas_ip r;
		if (sas_ip_parse(span_of(bad[i]), &r))
			check_fail(__FILE__, __LINE__, bad[i]);
	}
	CHECK(!sas_ip_parse(span_make("1.2.3.4\0", 8), &(struct sas_ip){ 0 }));
}

TEST(what_is_signed_needs_room)
{
	const struct sas s = { .of = &sas_tables,
		.sv = SPAN_LIT("2019-02-02"),
		.tn = SPAN_LIT("Table1"),
		.sp = SPAN_LIT("r"),
		.se = SPAN_LIT("2035-01-01") };
	struct buf out = BUF_INIT(10), text = BUF_INIT(1000);

	CHECK_ERR(sas_sign(&s, SPAN_LIT("acct"), SPAN_LIT("key"), &out), ERR_NO_MEMORY);
	CHECK_ERR(sas_string_to_sign(&s, SPAN_LIT("acct"), &text), ERR_OK);
	CHECK(strstr(text.data, "/table/acct/table1\n") != NULL);
	buf_fini(&out);
	buf_fini(&text);
}

TEST(letters_are_small_latin_ones)
{
	uint32_t bits;

	CHECK(!sas_letters(SPAN_LIT("r{"), "raud", &bits));
	CHECK(!sas_letters(SPAN_LIT("R"), "raud", &bits));
	CHECK(!sas_letters(SPAN_LIT("\x7f"), "raud", &bits));
	CHECK(sas_letters(SPAN_LIT("rd"), "raud", &bits));
}

TEST(zones_are_whole)
{
	int64_t ticks;

	CHECK(!policy_time_parse(SPAN_LIT("2035-01-01T00:00:00+05:"), &ticks));
	CHECK(!policy_time_parse(SPAN_LIT("2035-01-01T00:00:00+0:00"), &ticks));
	CHECK(!policy_time_parse(SPAN_LIT("2035-01-01T00:00:00+05:0"), &ticks));
	CHECK(!policy_time_parse(SPAN_LIT("2035-01-01T00:00:00+05-00"), &ticks));
	CHECK(policy_time_parse(SPAN_LIT("2035-01-01T00:00:00+05:00"), &ticks));
}

RUN_TESTS(T(the_string_to_sign_is_the_published_one), T(the_signature_is_the_published_one),
	T(every_version_of_a_table_token_has_its_lines),
	T(every_version_of_an_account_token_has_its_lines),
	T(versions_that_sign_no_such_token_are_refused), T(a_line_break_in_any_field_is_refused),
	T(the_buffers_limit_is_told), T(ss_or_srt_makes_an_account_token),
	T(fields_have_exact_names), T(a_query_string_holds_what_is_there),
	T(what_the_version_does_not_sign_is_found), T(times_of_every_form_are_read),
	T(other_times_are_refused), T(the_ends_of_time_are_read), T(letters_become_bits),
	T(addresses_are_single_or_ranges), T(other_addresses_are_refused),
	T(what_is_signed_needs_room), T(letters_are_small_latin_ones), T(zones_are_whole))
