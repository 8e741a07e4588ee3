/* SPDX-License-Identifier: MIT
 * What document_check() says of the form of a document. */
#include "check.h"
#include "service/change/entities.h"

TEST(a_document_in_the_form_of_the_encoder_is_canonical)
{
	static const char *const canonical[] = { "{}\n", "{\"N\":1}\n", "{\"S\":\"\u00e4\"}\n",
		"{\"D\":1.5,\"B\":true}\n", "{\"L@odata.type\":\"Edm.Int64\",\"L\":\"5\"}\n" };
	static const char *const others[] = { "{}", "{ }\n", "{}\n\n", " {}\n", "{\"N\": 1}\n",
		"{\"N\":1}\r\n", "{\"N\":1 }\n", "{\"D\":1.50}\n", "{\"N\":null}\n",
		"{\"S\":\"\\u00e4\"}\n", "{\"L\":\"5\",\"L@odata.type\":\"Edm.Int64\"}\n",
		"{\"Timestamp\":\"2020-01-01T00:00:00Z\"}\n" };
	struct span p = SPAN_LIT("p"), r = SPAN_LIT("r");
	unsigned flags;
	for (size_t i = 0; i < ARRAY_LEN(canonical); i++) {
		CHECK_ERR(document_check(span_of(canonical[i]), p, r, NULL, &flags, NULL), ERR_OK);
		CHECK_EQ_INT(flags, ITEM_CANONICAL);
	}
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		CHECK_ERR(document_check(span_of(others[i]), p, r, NULL, &flags, NULL), ERR_OK);
		CHECK_EQ_INT(flags, 0);
	}
}

RUN_TESTS(T(a_document_in_the_form_of_the_encoder_is_canonical))
