/* SPDX-License-Identifier: MIT
 * Where the process serves the storage services, for URLs that the page shows.  Set before a socket
 * serves the page, and constant then. */
#include "base/compiler.h"
#include "base/span.h"
#include "rest/page/page_data.h"
#include "rest/rest.h"

#include <stdbool.h>
#include <string.h>

static const char *sockets[2 * REST_ENDPOINTS_MAX];
static size_t nsockets;

void page_set_sockets(const char *const *texts, size_t n)
{
	nsockets = n < ARRAY_LEN(sockets) ? n : ARRAY_LEN(sockets);
	memcpy(sockets, texts, nsockets * sizeof(*texts));
}

const char *page_socket_of(const char *service)
{
	/* The tables have no prefix. */
	size_t n = strcmp(service, "table") == 0 ? 0 : strlen(service) + 1;
	for (size_t i = 0; i < nsockets; i++) {
		const char *text = sockets[i];
		bool is_it = n == 0 || (strncmp(text, service, n - 1) == 0 && text[n - 1] == '=');
		if (is_it && span_starts(span_of(text + n), SPAN_LIT("http")))
			return text + n;
	}
	return NULL;
}
