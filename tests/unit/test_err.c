/* SPDX-License-Identifier: MIT
 * base/err.h. */
#include "base/err.h"
#include "check.h"

#include <errno.h>

TEST(a_row_has_all_its_columns)
{
	CHECK_EQ_INT(err_errno(ERR_OK), 0);
	CHECK_EQ_INT(err_errno(ERR_TABLE_NOT_FOUND), ENOENT);
	CHECK_EQ_INT(err_http(ERR_TABLE_NOT_FOUND), 404);
	CHECK_EQ_STR(err_code(ERR_TABLE_NOT_FOUND), "TableNotFound");
	CHECK_EQ_STR(err_text(ERR_TABLE_NOT_FOUND), "The table specified does not exist.");
	CHECK_EQ_STR(err_symbol(ERR_TABLE_NOT_FOUND), "TABLE_NOT_FOUND");
}

TEST(every_error_but_ok_has_an_errno_and_a_status)
{
	for (int i = 1; i < ERR_COUNT_; i++) {
		CHECK(err_errno((enum err)i) > 0);
		CHECK(err_http((enum err)i) >= (i == ERR_NOT_MODIFIED ? 304 : 400) &&
			err_http((enum err)i) <= 599);
		CHECK(err_text((enum err)i)[0] != '\0');
	}
}

TEST(an_errno_keeps_its_meaning)
{
	static const int codes[] = { ENOENT, EEXIST, ENOTEMPTY, ENOTDIR, EISDIR, EINVAL, ENOSPC,
		EROFS, EACCES, EPERM, ENOMEM, EBUSY, ENAMETOOLONG, EFBIG, EIO, EXDEV, ENODATA,
		ERANGE, EAGAIN, EINTR, EOPNOTSUPP, ESTALE, EILSEQ };

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		CHECK_EQ_INT(err_errno(err_from_errno(codes[i])), codes[i]);
	CHECK_ERR(err_from_errno(0), ERR_OK);
	CHECK_ERR(err_from_errno(EUCLEAN), ERR_IO);
}

TEST(the_place_is_counted_in_lines_and_bytes)
{
	struct err_detail d;
	const char *text = "ab\n\xc3\xa9x\ny";

	CHECK_ERR(err_set_at(&d, ERR_IO, text, 0, "x"), ERR_IO);
	CHECK_EQ_INT(d.line, 1);
	CHECK_EQ_INT(d.column, 1);
	(void)err_set_at(&d, ERR_IO, text, 5, "at %d", 5);
	CHECK(d.has_offset);
	CHECK_EQ_INT(d.offset, 5);
	CHECK_EQ_INT(d.line, 2);
	CHECK_EQ_INT(d.column, 3);
	CHECK_EQ_STR(d.text, "at 5");
	(void)err_set_at(&d, ERR_IO, text, 7, "x");
	CHECK_EQ_INT(d.line, 3);
	CHECK_EQ_INT(d.column, 1);
	(void)err_set(&d, ERR_IO, "x");
	CHECK(!d.has_offset);
	CHECK_EQ_INT(d.line, 0);
}

TEST(the_text_is_one_line_of_valid_utf8)
{
	struct err_detail d;
	char lots[400];

	(void)err_set(&d, ERR_IO, "%s", "a\nb\tc\x1b[0m");
	CHECK_EQ_STR(d.text, "a b c [0m");
	(void)err_set(&d, ERR_IO, "%s",
		"a\xff"
		"b");
	CHECK_EQ_STR(d.text, "ab");
	for (size_t i = 0; i < sizeof(lots); i += 2)
		memcpy(lots + i, "\xc3\xa9", 2);
	lots[sizeof(lots) - 1] = '\0';
	(void)err_set(&d, ERR_IO, "x%s", lots);
	CHECK_EQ_INT(strlen(d.text), 255);
	(void)err_set(&d, ERR_IO, "%s", lots);
	CHECK_EQ_INT(strlen(d.text), 254); /* not half a character */
}

TEST(without_a_detail_the_lists_text_speaks)
{
	struct err_detail d = { 0 };

	CHECK_ERR(err_set(NULL, ERR_IO, "x"), ERR_IO);
	CHECK_ERR(err_set_at(NULL, ERR_IO, "x", 0, "x"), ERR_IO);
	CHECK_EQ_STR(err_message(ERR_EMPTY, NULL), err_text(ERR_EMPTY));
	CHECK_EQ_STR(err_message(ERR_EMPTY, &d), err_text(ERR_EMPTY));
	(void)err_set(&d, ERR_EMPTY, "why");
	CHECK_EQ_STR(err_message(ERR_EMPTY, &d), "why");
}

RUN_TESTS(T(a_row_has_all_its_columns), T(every_error_but_ok_has_an_errno_and_a_status),
	T(an_errno_keeps_its_meaning), T(the_place_is_counted_in_lines_and_bytes),
	T(the_text_is_one_line_of_valid_utf8), T(without_a_detail_the_lists_text_speaks))
