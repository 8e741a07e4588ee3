/* SPDX-License-Identifier: MIT
 * Runs a fuzz target over files, or over every file of the directories given: the corpus
 * as a regression test, without libFuzzer. */
#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static bool run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	size_t size = 0, cap = 8u << 20;
	uint8_t *data;

	if (f == NULL)
		return false;
	data = malloc(cap);
	if (data != NULL) {
		size = fread(data, 1, cap, f);
		/* Exactly as large as the input, so that a sanitizer sees what is read behind it. */
		uint8_t *exact = malloc(size + (size == 0));
		if (exact != NULL) {
			for (size_t i = 0; i < size; i++)
				exact[i] = data[i];
			(void)LLVMFuzzerTestOneInput(exact, size);
		}
		free(exact);
	}
	free(data);
	(void)fclose(f);
	return data != NULL;
}

static unsigned run_directory(const char *path, DIR *dir)
{
	unsigned done = 0;
	struct dirent *entry;

	while ((entry = readdir(dir)) != NULL) {
		char file[4096];
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		done += run_file(file);
	}
	return done;
}

int main(int argc, char **argv)
{
	unsigned done = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		done += dir == NULL ? run_file(argv[i]) : run_directory(argv[i], dir);
		if (dir != NULL)
			(void)closedir(dir);
	}
	printf("%u inputs\n", done);
	return done > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
