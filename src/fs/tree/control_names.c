/* SPDX-License-Identifier: MIT */
#include "fs/tree/control_names.h"

#include "base/text.h"

#include <sys/stat.h>

#define KIND(k_) (1u << (k_))
#define EVERYWHERE (KIND(ITEM_TABLE) | KIND(ITEM_PARTITION))

/* Keep alphabetized. */
static const struct control_name {
	const char *name;
	enum dir_control which;
	unsigned kinds; /* of directories that have it */
	mode_t mode;
	enum item_class holds; /* listed while the directory has children of it; else on wish */
} names[] = {
	{ ".batch", DIR_CONTROL_BATCH, EVERYWHERE, S_IFREG | 0666 },
	{ ".batch-check", DIR_CONTROL_BATCH_CHECK, EVERYWHERE, S_IFREG | 0666 },
	{ ".blob", DIR_CONTROL_BLOBS, KIND(ITEM_ACCOUNT), S_IFDIR | 0777, CLASS_BLOB },
	{ ".changes", DIR_CONTROL_CHANGES, EVERYWHERE, S_IFREG | 0666 },
	{ ".query", DIR_CONTROL_QUERY, KIND(ITEM_TABLE), S_IFDIR | 0777 },
	{ ".queue", DIR_CONTROL_QUEUES, KIND(ITEM_ACCOUNT), S_IFDIR | 0777, CLASS_QUEUE },
	{ ".rows.csv", DIR_CONTROL_ROWS_CSV, EVERYWHERE, S_IFREG | 0666 },
	{ ".rows.ndjson", DIR_CONTROL_ROWS_NDJSON, EVERYWHERE, S_IFREG | 0666 },
};

uint64_t dir_control_find(const struct item *dir, struct span name)
{
	if (name.n == 0 || name.p[0] != '.')
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if ((names[i].kinds & KIND(dir->kind)) != 0 && span_is(name, names[i].name))
			return nid_of_dir_control(names[i].which, dir->id);
	return 0;
}

bool dir_control_entry(enum item_kind kind, size_t index, const char **ret_name,
	enum dir_control *ret_which, enum item_class *ret_holds)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if ((names[i].kinds & KIND(kind)) != 0 && index-- == 0) {
			*ret_name = names[i].name;
			*ret_which = names[i].which;
			*ret_holds = names[i].holds;
			return true;
		}
	return false;
}

static const struct control_name *find(uint64_t nid)
{
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].which == nid_dir_control(nid))
			return &names[i];
	return NULL;
}

struct span dir_control_name(uint64_t nid)
{
	const struct control_name *c = find(nid);
	return c != NULL ? span_of(c->name) : SPAN_LIT("");
}

mode_t dir_control_mode(uint64_t nid)
{
	const struct control_name *c = find(nid);
	return c != NULL ? c->mode : 0;
}
