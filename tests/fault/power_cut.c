/* SPDX-License-Identifier: MIT
 * Cuts the power at every call of a recorded run: from the record the contents are computed that
 * the disk may have then (power_cut_disk.h), the store is opened from each as a server opens it,
 * and what was acknowledged as durable by then has to be there, each change set whole or not at
 * all, none without those that were acknowledged before it was asked for, and the store clean. */
#include "power_cut_disk.h"
#include "power_cut_plan.h"

#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
	"usage: power_cut [OPTION...]\n"
	"  --seed N       of the writers' work and of the choice of images (1)\n"
	"  --images N     how many different ones, of all kinds of work together (1500)\n"
	"  --long         kinds of work with longer records, too\n"
	"  --work NAME    this kind alone\n"
	"  --replay FILE  instead: the record of another process (power_cut_daemon)\n"
	"  --store NAME   the name of its store's file (store)\n"
	"  --keep FOLDER  where the first image that fails is left\n"
	"  --folder DIR   where to work; memory is fast (/dev/shm)\n"
	"  --progress     a line a second\n"
	"Exit status: 0 all is well, 1 something was lost, 2 it could not be tried.\n";

static struct options {
	uint64_t seed;
	size_t images;
	bool long_form, progress;
	const char *work, *replay, *store, *keep, *folder;
} options = { .seed = 1, .images = 1500, .store = "store", .folder = "/dev/shm" };

#define COPIES 4

/* What the stores of one content show. */
struct seen {
	uint64_t hash;
	struct truth truth, copies[COPIES];
};

/* A copy of the store that is made: whole or not there, and not without what was acknowledged
 * before it was begun. */
struct copy {
	char name[60];
	bool done;
	uint32_t acked[WRITERS];
};

struct run {
	struct record record;
	struct plan plans[WRITERS];
	struct disk *disk;
	bool made;
	uint32_t asked[WRITERS], acked[WRITERS], durable[WRITERS];
	uint32_t at_sync[WRITERS][WRITERS];   /* acknowledged when a writer's sync began */
	uint32_t (*before[WRITERS])[WRITERS]; /* acknowledged before a set was asked for */
	struct copy copies[COPIES];
	size_t ncopies;
	struct seen *seen; /* open addressing */
	size_t room, images, distinct, images_wanted, moments, left, failures;
	double share; /* of this moment */
	char folder[120];
	uint64_t rolls;
};

static uint64_t roll(struct run *r)
{
	return mix(r->rolls++ + mix(options.seed));
}

/* ---- marks ---- */

static bool writer_is_known(const struct run *r, unsigned w, unsigned set)
{
	if (w < WRITERS && r->plans[w].kind != NOBODY && set <= r->plans[w].sets)
		return true;
	errx(2, "a mark of a writer that was not announced: %u %u", w, set);
}

static void announce(struct run *r, const char *text)
{
	unsigned w, sets;
	unsigned long long seed;
	char kind;
	if (sscanf(text, "writer %u %c %llu %u", &w, &kind, &seed, &sets) != 4)
		errx(2, "what is \"%s\"?", text);
	plan_make(&r->plans[w], (enum writer_kind)kind, w, seed, sets);
	r->before[w] = calloc(sets + 1, sizeof(*r->before[w]));
	if (r->before[w] == NULL)
		errx(2, "out of memory");
}

static void begin_copy(struct run *r, const char *name)
{
	if (r->ncopies == COPIES)
		errx(2, "more than %d copies", COPIES);
	struct copy *c = &r->copies[r->ncopies++];
	(void)snprintf(c->name, sizeof(c->name), "%s", name);
	memcpy(c->acked, r->acked, sizeof(c->acked));
}

/* True: something was promised. */
static bool heed(struct run *r, const char *text)
{
	char what[16];
	unsigned w = 0, set = 0;
	if (strncmp(text, "writer", 6) == 0) {
		announce(r, text);
		return false;
	}
	if (strcmp(text, "made") == 0)
		return r->made = true;
	if (strncmp(text, "copy ", 5) == 0) {
		begin_copy(r, text + 5);
		return false;
	}
	if (strcmp(text, "copied") == 0 && r->ncopies > 0)
		return r->copies[r->ncopies - 1].done = true;
	if (sscanf(text, "%15s %u %u", what, &w, &set) < 2 || !writer_is_known(r, w, set))
		errx(2, "what is \"%s\"?", text);
	if (strcmp(what, "ask") == 0) {
		r->asked[w] = set;
		memcpy(r->before[w][set], r->acked, sizeof(r->acked));
	} else if (strcmp(what, "seen") == 0) {
		r->acked[w] = set;
	} else if (strcmp(what, "durable") == 0) {
		r->acked[w] = r->durable[w] = set;
		return true;
	} else if (strcmp(what, "sync") == 0) {
		memcpy(r->at_sync[w], r->acked, sizeof(r->acked));
	} else if (strcmp(what, "synced") == 0) {
		for (unsigned i = 0; i < WRITERS; i++) {
			if (r->at_sync[w][i] > r->durable[i])
				r->durable[i] = r->at_sync[w][i];
		}
		return true;
	}
	return false;
}

/* ---- judging ---- */

/* NULL: as it has to be. */
static const char *judge_copy(const struct run *r, const struct copy *c, const struct truth *t)
{
	static char text[500];
	const char *why = t->absent ? (c->done ? "it is not there" : NULL) : t->wrong;
	for (unsigned w = 0; !t->absent && t->wrong[0] == '\0' && w < WRITERS; w++) {
		if (t->sets[w] < c->acked[w])
			why = "it lacks what was there before";
		else if (t->sets[w] > r->asked[w])
			why = "nobody has asked for what is in it";
	}
	if (why == NULL || why[0] == '\0')
		return NULL;
	(void)snprintf(text, sizeof(text), "%s: %s", c->name, why);
	return text;
}

static const char *judge(const struct run *r, const struct truth *t)
{
	static char text[200];
	if (t->absent)
		return r->made ? "there is no store" : NULL;
	if (t->wrong[0] != '\0')
		return t->wrong;
	for (unsigned w = 0; w < WRITERS; w++) {
		uint32_t set = t->sets[w];
		const char *why = set < r->durable[w] ? "lost, acknowledged as durable"
			: set > r->asked[w]           ? "nobody has asked for it"
						      : NULL;
		for (unsigned other = 0; set > 0 && why == NULL && other < WRITERS; other++) {
			if (t->sets[other] < r->before[w][set][other])
				why = "is there, an earlier one of another writer is not";
		}
		if (why != NULL) {
			(void)snprintf(text, sizeof(text),
				"writer %u: %s (is at set %u, durable %u, asked %u)", w, why, set,
				r->durable[w], r->asked[w]);
			return text;
		}
	}
	return NULL;
}

static const char *judge_all(const struct run *r, const struct seen *s)
{
	const char *why = judge(r, &s->truth);
	for (size_t i = 0; why == NULL && i < r->ncopies; i++)
		why = judge_copy(r, &r->copies[i], &s->copies[i]);
	return why;
}

static void fail(struct run *r, const char *why, const struct image *im, const unsigned char *fates)
{
	static const char letters[] = "-+tsj";
	r->failures++;
	if (r->failures > 5)
		return;
	printf("FAILED at operation %zu of %zu: %s\n  fates of what was not synced: ",
		disk_at(r->disk), r->record.n, why);
	for (size_t i = 0; i < disk_pending(r->disk) && i < 200; i++)
		(void)putchar(letters[fates[i]]);
	(void)putchar('\n');
	if (options.keep != NULL && r->failures == 1) {
		(void)mkdir(options.keep, 0700);
		image_write(im, options.keep);
		printf("  left in %s\n", options.keep);
	}
}

/* Copies that have not been begun are not there. */
static void look(struct run *r, const struct image *im, struct seen *s)
{
	char path[200];
	image_write(im, r->folder);
	(void)snprintf(path, sizeof(path), "%s/%s", r->folder, options.store);
	truth_of(path, r->plans, r->distinct % 16 == 0, &s->truth);
	for (size_t i = 0; i < COPIES; i++) {
		s->copies[i].absent = true;
		(void)snprintf(path, sizeof(path), "%s/%s", r->folder, r->copies[i].name);
		if (i < r->ncopies)
			truth_of(path, r->plans, false, &s->copies[i]);
	}
}

static struct seen *slot_for(struct run *r, uint64_t hash)
{
	size_t i = hash % r->room;
	while (r->seen[i].hash != 0 && r->seen[i].hash != hash)
		i = (i + 1) % r->room;
	return &r->seen[i];
}

static void try_image(struct run *r, const unsigned char *fates)
{
	struct image im;
	disk_image(r->disk, fates, roll(r), &im);
	r->images++;
	struct seen *s = slot_for(r, im.hash);
	if (s->hash == 0) {
		s->hash = im.hash;
		look(r, &im, s);
		r->distinct++;
	}
	const char *why = judge_all(r, s);
	if (why != NULL)
		fail(r, why, &im, fates);
	image_free(&im);
}

/* ---- which images ---- */

static void choose(struct run *r, unsigned char *fates, size_t n)
{
	static const unsigned char how[] = { TORN, TORN, TORN, SIZE_ONLY, JUNK, LOST };
	unsigned kind = (unsigned)(roll(r) % 6);
	size_t one = roll(r) % n, late = n - 1 - roll(r) % (n < 4 ? n : 4);
	if (kind == 0 || kind == 2)
		memset(fates, DONE, n);
	else
		memset(fates, LOST, n);
	if (kind == 0) { /* one of them is lost */
		fates[one] = LOST;
	} else if (kind == 1) { /* one alone */
		fates[one] = DONE;
	} else if (kind == 2) { /* one of the last is torn */
		fates[late] = how[roll(r) % sizeof(how)];
	} else {
		uint64_t share = 1 + roll(r) % 7; /* of eight */
		for (size_t i = 0; i < n; i++) {
			bool done = roll(r) % 8 < share;
			fates[i] = done ? DONE : kind == 3 ? LOST : how[roll(r) % sizeof(how)];
		}
	}
}

static void try_all_alike(struct run *r, unsigned char *fates, enum fate fate)
{
	memset(fates, fate, disk_pending(r->disk));
	try_image(r, fates);
}

/* Every moment has a share of the images; what one does not use is the next one's.  When something
 * was promised the worst that may have become of it is always looked at. */
static void try_moment(struct run *r, bool promised)
{
	size_t n = disk_pending(r->disk), before = r->distinct;
	r->share += ((double)r->images_wanted - (double)r->distinct) / (double)r->left;
	if (!promised && r->share < 1)
		return;
	unsigned char *fates = malloc(n + 1);
	if (fates == NULL)
		errx(2, "out of memory");
	try_all_alike(r, fates, LOST);
	if (r->share >= 1)
		try_all_alike(r, fates, DONE);
	for (double tries = 0;
		n > 0 && tries < 3 * r->share && (double)(r->distinct - before) < r->share;
		tries++) {
		choose(r, fates, n);
		try_image(r, fates);
	}
	r->moments++;
	r->share = 0;
	free(fates);
}

/* ---- a run ---- */

static void tell_progress(const struct run *r)
{
	static time_t last;
	time_t now = time(NULL);
	if (options.progress && now != last)
		fprintf(stderr, "operation %zu of %zu: %zu images, %zu different, %zu failed\n",
			disk_at(r->disk), r->record.n, r->images, r->distinct, r->failures);
	last = now;
}

static bool replay(const char *name, const char *record, size_t images)
{
	struct run *r = calloc(1, sizeof(*r));
	if (r == NULL)
		errx(2, "out of memory");
	record_read(&r->record, record);
	r->disk = disk_new(&r->record);
	r->images_wanted = images;
	r->left = r->record.n;
	/* A promise has an image even if there are not so many. */
	r->room = 2 * (images + 3 * r->record.n) + 64;
	r->seen = calloc(r->room, sizeof(*r->seen));
	(void)snprintf(r->folder, sizeof(r->folder), "%s.image", record);
	if (r->seen == NULL || mkdir(r->folder, 0700) != 0)
		err(2, "%s", r->folder);
	while (disk_step(r->disk)) {
		const struct op *op = &r->record.ops[disk_at(r->disk) - 1];
		bool promised = op->kind == OP_MARK && heed(r, (const char *)op->data);
		try_moment(r, promised);
		r->left -= r->left > 1;
		tell_progress(r);
	}
	printf("%s: %zu calls, %zu syncs; at %zu of %zu moments %zu images, %zu different, "
	       "%zu failed\n",
		name, r->record.calls, r->record.syncs, r->moments, r->record.n, r->images,
		r->distinct, r->failures);
	bool good = r->failures == 0 && r->made;
	if (!r->made)
		printf("FAILED: the record does not say that a store was made\n");
	struct image nothing = { 0 };
	image_write(&nothing, r->folder);
	(void)rmdir(r->folder);
	for (unsigned i = 0; i < WRITERS; i++) {
		plan_free(&r->plans[i]);
		free(r->before[i]);
	}
	disk_free(r->disk);
	record_free(&r->record);
	free(r->seen);
	free(r);
	return good;
}

static bool run_work(const struct work *w, const char *folder, size_t images)
{
	char own[160];
	(void)snprintf(own, sizeof(own), "%s/%d", folder, (int)(w - works));
	if (mkdir(own, 0700) != 0)
		err(2, "%s", own);
	char *record = work_record(w, own, options.seed);
	bool good = replay(w->name, record, images);
	struct image nothing = { 0 };
	image_write(&nothing, own);
	(void)rmdir(own);
	(void)unlink(record);
	free(record);
	return good;
}

static bool is_wanted(const struct work *w)
{
	return options.work ? strcmp(options.work, w->name) == 0 : w->brief || options.long_form;
}

static bool run_all(void)
{
	char folder[100];
	bool good = true;
	size_t n = 0;
	if (access(options.folder, W_OK) != 0)
		options.folder = "/tmp";
	(void)snprintf(folder, sizeof(folder), "%s/power_cut.XXXXXX", options.folder);
	if (mkdtemp(folder) == NULL)
		err(2, "%s", folder);
	if (options.replay != NULL) {
		char link_name[140];
		(void)snprintf(link_name, sizeof(link_name), "%s/record", folder);
		char *full = realpath(options.replay, NULL);
		if (full == NULL || symlink(full, link_name) != 0)
			err(2, "%s", options.replay);
		good = replay(options.replay, link_name, options.images);
		(void)unlink(link_name);
		free(full);
	}
	for (const struct work *w = works; w->name != NULL; w++)
		n += is_wanted(w);
	for (const struct work *w = works; w->name != NULL && options.replay == NULL; w++) {
		if (is_wanted(w))
			good = run_work(w, folder, options.images / n) && good;
	}
	(void)rmdir(folder);
	return good && (n > 0 || options.replay);
}

int main(int argc, char **argv)
{
	static const struct option names[] = { { "seed", 1, NULL, 's' }, { "images", 1, NULL, 'n' },
		{ "long", 0, NULL, 'l' }, { "work", 1, NULL, 'w' }, { "replay", 1, NULL, 'r' },
		{ "store", 1, NULL, 'S' }, { "keep", 1, NULL, 'k' }, { "folder", 1, NULL, 'f' },
		{ "progress", 0, NULL, 'p' }, { "help", 0, NULL, 'h' }, { NULL, 0, NULL, 0 } };
	struct timespec a, b;
	for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
		switch (c) {
		case 's':
			options.seed = strtoull(optarg, NULL, 10);
			break;
		case 'n':
			options.images = strtoul(optarg, NULL, 10);
			break;
		case 'l':
			options.long_form = true;
			break;
		case 'w':
			options.work = optarg;
			break;
		case 'r':
			options.replay = optarg;
			break;
		case 'S':
			options.store = optarg;
			break;
		case 'k':
			options.keep = optarg;
			break;
		case 'f':
			options.folder = optarg;
			break;
		case 'p':
			options.progress = true;
			break;
		case 'h':
			(void)fputs(usage, stdout);
			return 0;
		default:
			(void)fputs(usage, stderr);
			return 2;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	(void)clock_gettime(CLOCK_MONOTONIC, &a);
	bool good = run_all();
	(void)clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%s: seed %llu, %.0f s\n", good ? "nothing lost" : "FAILED",
		(unsigned long long)options.seed, difftime(b.tv_sec, a.tv_sec));
	return good ? 0 : 1;
}
