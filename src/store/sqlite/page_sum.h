/* SPDX-License-Identifier: MIT
 * The checksum of a page of the store's file: of its content and of its number, so that a page that
 * stands in another's place is wrong, too.  It finds damage, not deceit. */
#ifndef STORE_SQLITE_PAGE_SUM_H
#define STORE_SQLITE_PAGE_SUM_H

#include <stdbool.h>
#include <stdint.h>

#define PAGE_BYTES 4096
/* Kept at the end of the page, least significant byte first.  SQLite leaves these bytes alone where
 * the header of the file says so. */
#define PAGE_SUM_BYTES 8

/* Puts the sum into the page.  The first page of a file has number 1. */
void page_seal(unsigned char page[PAGE_BYTES], uint32_t number);
/* Whether the sum in it is right. */
bool page_is_whole(const unsigned char page[PAGE_BYTES], uint32_t number);

#endif
