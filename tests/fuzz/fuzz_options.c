/* SPDX-License-Identifier: MIT
 * The text behind -o: whatever it is, it is understood or refused with a line that says why. */
#include "daemon/settings/mount_options.h"
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct option_spec spec = { .name = "options" };
	static struct mount_options got, again;
	char *text = malloc(size + 1), *said = NULL;
	size_t n = 0;
	FILE *err = open_memstream(&said, &n);
	MUST(text != NULL && err != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	struct given_option given = { &spec, text };
	const struct args args = { .given = &given, .ngiven = 1 };
	bool ok = mount_options_parse(&args, &got, err);
	MUST(fflush(err) == 0 && ok == (n == 0));
	if (ok) {
		MUST(memchr(got.generic, 0, sizeof(got.generic)) != NULL);
		MUST(mount_options_parse(&args, &again, err));
		(void)mount_options_unchanged(&got, &args, err);
	}
	(void)fclose(err);
	free(said);
	free(text);
	return 0;
}
