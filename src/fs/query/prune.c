/* SPDX-License-Identifier: MIT */
#include "fs/query/prune.h"

#include "base/workers.h"
#include "fs/cache/notify.h"
#include "fs/core/nid.h"
#include "fs/query/nodes.h"
#include "fs/tree/names.h"

#include <stdlib.h>

/* So much of the bound is left by a pruning: it is not needed again at once. */
#define LEFT_BYTES (QUERY_NODES_BYTES / 4 * 3)

struct pruning {
	struct job job; /* first */
	struct fs *fs;
};

static void ask_to_forget(struct notifier *notifier, const struct query_node *n)
{
	char name[COMPONENT_MAX];
	struct span text = n->text;
	uint64_t dir = nid_of_dir_control(DIR_CONTROL_QUERY, n->table_id);
	if (n->kind != QUERY_OPTIONS) {
		text = span_make(name, item_component(&n->item, name));
		dir = n->parent->nid;
	}
	notify_name_now(notifier, dir, text);
}

static void prune(struct job *job)
{
	struct pruning *p = (struct pruning *)job;
	struct fs *fs = p->fs;
	struct query_node *n;
	while (!atomic_load(&fs->stopping) &&
		(n = query_nodes_oldest(fs->query_nodes, LEFT_BYTES)) != NULL) {
		ask_to_forget(fs->notifier, n);
		query_node_unref(fs->query_nodes, n);
	}
	query_nodes_pruned(fs->query_nodes);
	free(p);
}

void query_prune(struct fs *fs)
{
	if (!query_nodes_wants_pruning(fs->query_nodes, QUERY_NODES_BYTES))
		return;
	struct pruning *p = calloc(1, sizeof(*p));
	if (p != NULL) {
		*p = (struct pruning){ .job = { .run = prune }, .fs = fs };
		if (workers_submit(fs->pools[VPOOL_CHANGE], &p->job))
			return;
	}
	free(p);
	query_nodes_pruned(fs->query_nodes);
}
