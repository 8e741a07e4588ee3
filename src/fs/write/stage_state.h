/* SPDX-License-Identifier: MIT
 * The states of a staged write, and the one function that changes them.
 *
 * A stage has two states that move apart from each other: the state of its document, and what holds
 * its name in the store.  An event that a table does not allow is a bug of rowfs, never a user's
 * mistake: it stops the program.  tests/unit/test_stage_states.c walks both tables.  The idea is
 * that of dqlite's state machines. */
#ifndef FS_WRITE_STAGE_STATE_H
#define FS_WRITE_STAGE_STATE_H

#include <stdatomic.h>
#include <stdbool.h>

enum stage_document {
	DOC_NO, /* in the tables: a bug */
	/* Nothing to commit. */
	DOC_UNREAD,  /* the row's document has not been read yet */
	DOC_CLEAN,   /* as loaded or committed, or empty since O_TRUNC: a close succeeds */
	DOC_EMPTIED, /* empty since ftruncate(2): a close is refused */
	/* To be committed. */
	DOC_WRITING, /* a close commits */
	DOC_FAILED,  /* a commit failed: the next close tries again, the last one does not */
	/* Every close fails as before, until ftruncate(2) or O_TRUNC cuts the document. */
	DOC_LOST,    /* the row is another or gone; write(2) and a new if_match end this, too */
	DOC_REFUSED, /* write(2) was refused; the document has the bytes */
	DOC_ASIDE, /* write(2) was refused; the bytes are in rejected/ and the document lacks them */
	DOC_COUNT_
};

enum stage_name {
	NAME_NO,
	NAME_NEW,  /* nothing, and nobody else knows of it */
	NAME_BARE, /* nothing, although others may know of it */
	NAME_ITEM, /* the row, perhaps without a document; or an empty file, until its key is known */
	NAME_COUNT_
};

/* clang-format off */
#define STAGE_DOCUMENTS(EVENT) \
	/*    after         UNREAD   CLEAN    EMPTIED  WRITING  FAILED   LOST     REFUSED  ASIDE */ \
	EVENT(READ,         CLEAN,   NO,      NO,      NO,      NO,      NO,      NO,      NO) \
	EVENT(OPEN_EMPTY,   CLEAN,   CLEAN,   CLEAN,   CLEAN,   CLEAN,   CLEAN,   CLEAN,   CLEAN) \
	EVENT(WRITE,        NO,      WRITING, WRITING, WRITING, WRITING, WRITING, REFUSED, NO) \
	EVENT(REFUSE,       NO,      REFUSED, REFUSED, REFUSED, REFUSED, REFUSED, NO,      NO) \
	EVENT(SET_ASIDE,    NO,      ASIDE,   ASIDE,   ASIDE,   ASIDE,   ASIDE,   ASIDE,   NO) \
	EVENT(EMPTY,        NO,      EMPTIED, EMPTIED, EMPTIED, EMPTIED, EMPTIED, EMPTIED, EMPTIED) \
	EVENT(RESIZE,       NO,      WRITING, WRITING, WRITING, WRITING, WRITING, WRITING, WRITING) \
	EVENT(FAIL,         NO,      NO,      NO,      FAILED,  FAILED,  NO,      NO,      NO) \
	EVENT(LOSE,         NO,      NO,      NO,      LOST,    LOST,    NO,      NO,      NO) \
	EVENT(MATCH,        UNREAD,  CLEAN,   EMPTIED, WRITING, WRITING, WRITING, REFUSED, ASIDE) \
	EVENT(COMMIT,       NO,      NO,      NO,      CLEAN,   CLEAN,   NO,      NO,      NO)

#define STAGE_NAMES(EVENT) \
	/*    after         NEW      BARE     ITEM */ \
	EVENT(COMMIT,       ITEM,    ITEM,    ITEM) \
	EVENT(SHOW,         ITEM,    ITEM,    NO) \
	EVENT(SHOW_NOTHING, BARE,    BARE,    NO)
/* clang-format on */

enum stage_event {
	/* To the document. */
	STAGE_READ,       /* the row's document was read */
	STAGE_OPEN_EMPTY, /* open(2) with O_TRUNC */
	STAGE_WRITE,      /* write(2): the document has the bytes */
	STAGE_REFUSE,     /* the same, and write(2) fails */
	STAGE_SET_ASIDE,  /* write(2) fails, and the document lacks the bytes */
	STAGE_EMPTY,      /* ftruncate(2) to no bytes */
	STAGE_RESIZE,     /* ftruncate(2) to another size */
	STAGE_FAIL,       /* a commit failed, for the document or for the store */
	STAGE_LOSE,       /* a commit failed: the row is not there, or not as it must be */
	STAGE_MATCH,      /* user.rowfs.if_match was set */
	/* To both. */
	STAGE_COMMIT, /* the row is in the store */
	/* To the name. */
	STAGE_SHOW,         /* the name was made, since others may see it */
	STAGE_SHOW_NOTHING, /* it could not be made */
	STAGE_EVENTS_
};

struct stage_state {
	enum stage_document document;
	_Atomic enum stage_name name; /* may be read without the stage's lock */
};

/* Returns DOC_NO or NAME_NO where the event must not come. */
enum stage_document stage_document_after(enum stage_document now, enum stage_event event);
enum stage_name stage_name_after(enum stage_name now, enum stage_event event);
/* Moves the states that the event is about.  Stops the program where it must not come. */
void stage_step(struct stage_state *s, enum stage_event event);

/* Whether the document has changes that are not committed. */
static inline bool stage_is_edited(const struct stage_state *s)
{
	return s->document >= DOC_WRITING;
}

/* Whether every close is refused as the one before. */
static inline bool stage_is_final(const struct stage_state *s)
{
	return s->document >= DOC_LOST;
}

/* Whether a write(2) was refused. */
static inline bool stage_is_refused(const struct stage_state *s)
{
	return s->document >= DOC_REFUSED;
}

#endif
