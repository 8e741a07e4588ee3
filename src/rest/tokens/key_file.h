/* SPDX-License-Identifier: MIT
 * The file of keys, which is read again when it has changed. */
#ifndef REST_TOKENS_KEY_FILE_H
#define REST_TOKENS_KEY_FILE_H

#include "base/err.h"
#include "base/lock.h"
#include "codec/jwk_set.h"

#include <sys/stat.h>

/* Two versions of a file differ in one of these. */
struct file_version {
	struct timespec changed;
	ino_t inode;
	off_t size;
};

struct key_file {
	const char *path; /* owned by the caller */
	struct rwlock lock;
	struct jwk_set *keys;
	struct file_version version; /* that was looked at last, good or not */
};

/* Reads the file.  On an error there is nothing to close, and detail names the file and the
 * problem. */
enum err key_file_open(struct key_file *f, const char *path, struct err_detail *detail);
void key_file_close(struct key_file *f);
/* Returns the keys that the file has now, and keeps them from being replaced until
 * key_file_release().  Reads the file again before if it has changed. */
const struct jwk_set *key_file_take(struct key_file *f);
void key_file_release(struct key_file *f);

#endif
