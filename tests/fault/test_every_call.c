/* SPDX-License-Identifier: MIT
 * Every operation of the store and of the service, and every codec, with each of its calls of the
 * system and each of its allocations failing in turn (sweep.h).  Without options what a build's
 * tests have time for; --all is the long form. */
#include "sweep.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char usage[] =
	"usage: test_every_call [--all] [--most N] [--seed N] [--part K/N]\n"
	"                       [--only TEXT] [--folder DIR] [--loud]\n"
	"  --all          every call of every operation (of the largest: N of them)\n"
	"  --most N       of one operation and one fault fail so many calls, the first N/2 and\n"
	"                 samples of the others (default 16; with --all 2000)\n"
	"  --seed N       of the samples\n"
	"  --part K/N     of N parts of the operations the K-th, from 1 on\n"
	"  --only TEXT    operations whose name holds it\n"
	"  --folder DIR   where the stores are made (default /dev/shm, else /tmp)\n"
	"  --loud         tells each point, and what differs\n";

static void run(const struct sweep_options *options, struct sweep_counts *counts)
{
	static const struct sweep_case *const all[] = { sweep_opens, sweep_reads, sweep_changes,
		sweep_service, sweep_queues, sweep_blobs, sweep_texts };
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		sweep_run(all[i], options, counts);
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {
		{ "all", no_argument, NULL, 'a' },
		{ "most", required_argument, NULL, 'm' },
		{ "seed", required_argument, NULL, 's' },
		{ "part", required_argument, NULL, 'p' },
		{ "only", required_argument, NULL, 'o' },
		{ "folder", required_argument, NULL, 'f' },
		{ "loud", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct sweep_options options = { .seed = 1, .part = 1, .parts = 1 };
	struct sweep_counts counts = { 0 };
	struct stat st;
	const char *folder = stat("/dev/shm", &st) == 0 ? "/dev/shm" : "/tmp";
	int c;
	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (c) {
		case 'a':
			options.all = true;
			break;
		case 'm':
			options.most = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 's':
			options.seed = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'p':
			if (sscanf(optarg, "%u/%u", &options.part, &options.parts) != 2 ||
				options.part < 1 || options.part > options.parts)
				options.parts = 0;
			break;
		case 'o':
			options.only = optarg;
			break;
		case 'f':
			folder = optarg;
			break;
		case 'l':
			options.loud = true;
			break;
		default:
			(void)fputs(usage, c == 'h' ? stdout : stderr);
			return c == 'h' ? 0 : 2;
		}
	}
	if (options.parts == 0) {
		(void)fputs(usage, stderr);
		return 2;
	}
	if (options.most == 0)
		options.most = options.all ? 2000 : 16;
	sweep_begin(folder);
	run(&options, &counts);
	sweep_end();
	printf("1..%" PRIu64 "\n# %" PRIu64 " points, %" PRIu64 " failures, seed %u\n",
		counts.cases, counts.points, counts.failures, options.seed);
	return counts.failures == 0 && counts.cases > 0 ? 0 : 1;
}
