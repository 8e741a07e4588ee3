/* SPDX-License-Identifier: MIT
 * The parsers of src/cloud: connection strings, and answers of a service, which may hold anything. */
#include "cloud/credentials.h"
#include "cloud/group_response.h"
#include "cloud/rows.h"
#include "cloud/service_error.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct span text = span_make(data, n);
	struct endpoint e;
	struct err_detail why = { 0 };
	struct rows_page page;
	struct cloud_row row = { 0 };
	if (endpoint_parse(text, &e, &why) == ERR_OK)
		MUST(e.account[0] != 0 && e.path < sizeof(e.url));
	(void)credentials_choose(text, NULL, &e, &why);
	(void)service_error_of(400, text, &why);
	(void)group_response(text, &why);
	char etags[2][CLOUD_ETAG_MAX];
	group_response_etags(text, etags, 2);
	MUST(strlen(etags[0]) < CLOUD_ETAG_MAX && strlen(etags[1]) < CLOUD_ETAG_MAX);
	enum err r = rows_page_begin(text, &page, &why);
	while (r == ERR_OK)
		r = rows_page_next(&page, &row, &why);
	cloud_row_fini(&row);
	return 0;
}
