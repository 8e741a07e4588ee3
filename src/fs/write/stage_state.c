/* SPDX-License-Identifier: MIT */
#include "fs/write/stage_state.h"

#include "base/compiler.h"

#define DOCUMENT(event_, unread_, clean_, emptied_, writing_, failed_, lost_, refused_, aside_) \
	[STAGE_##event_] = { DOC_NO, DOC_##unread_, DOC_##clean_, DOC_##emptied_, DOC_##writing_, \
		DOC_##failed_, DOC_##lost_, DOC_##refused_, DOC_##aside_ },
#define NAME(event_, new_, bare_, item_) \
	[STAGE_##event_] = { NAME_NO, NAME_##new_, NAME_##bare_, NAME_##item_ },

static const unsigned char documents[STAGE_EVENTS_][DOC_COUNT_] = { STAGE_DOCUMENTS(DOCUMENT) };
static const unsigned char names[STAGE_EVENTS_][NAME_COUNT_] = { STAGE_NAMES(NAME) };

enum stage_document stage_document_after(enum stage_document now, enum stage_event event)
{
	return (enum stage_document)documents[event][now];
}

enum stage_name stage_name_after(enum stage_name now, enum stage_event event)
{
	return (enum stage_name)names[event][now];
}

void stage_step(struct stage_state *s, enum stage_event event)
{
	if (event <= STAGE_COMMIT) {
		s->document = stage_document_after(s->document, event);
		BUG_ON(s->document == DOC_NO);
	}
	if (event >= STAGE_COMMIT) {
		s->name = stage_name_after(s->name, event);
		BUG_ON(s->name == NAME_NO);
	}
}
