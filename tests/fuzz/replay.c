/* SPDX-License-Identifier: MIT
 * Runs a fuzz target over files, or over every file of the directories given: the corpus
 * as a regression test, without libFuzzer.  Or over bytes by chance, the same for the same seed:
 * --random SEED COUNT LENGTH. */
#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
		/* As large as the input, so that a sanitizer sees what is read behind it. */
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

/* A splitmix64. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9E3779B97F4A7C15);
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
	return z ^ (z >> 31);
}

static unsigned run_random(uint64_t seed, unsigned count, size_t length)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t state = seed + i;
		size_t n = (size_t)(next_random(&state) % (length + 1));
		uint8_t *data = malloc(n + 1);
		if (data == NULL)
			return 0;
		for (size_t k = 0; k < n; k++)
			data[k] = (uint8_t)next_random(&state);
		(void)LLVMFuzzerTestOneInput(data, n);
		free(data);
	}
	return count;
}

int main(int argc, char **argv)
{
	unsigned done = 0;

	if (argc == 5 && strcmp(argv[1], "--random") == 0) {
		done = run_random(strtoull(argv[2], NULL, 10), (unsigned)strtoul(argv[3], NULL, 10),
			strtoul(argv[4], NULL, 10));
		argc = 1;
	}
	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		done += dir == NULL ? run_file(argv[i]) : run_directory(argv[i], dir);
		if (dir != NULL)
			(void)closedir(dir);
	}
	printf("%u inputs\n", done);
	return done > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
