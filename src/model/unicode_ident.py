#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes unicode_ident.h: the ranges of code points above ASCII that an identifier may
begin with, and those that it may only go on with.

    python3 unicode_ident.py > unicode_ident.h

Run by hand when a newer Unicode is wanted; the build does not need Python for it."""
import unicodedata

START = {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl"}
PART = {"Mn", "Mc", "Nd", "Pc", "Cf"}


def ranges(categories):
    first = None
    for cp in range(0x80, 0x110001):
        inside = cp < 0x110000 and unicodedata.category(chr(cp)) in categories
        if inside and first is None:
            first = cp
        elif not inside and first is not None:
            yield first, cp - 1
            first = None


def table(name, categories):
    cells = [f"{{ 0x{a:04x}, 0x{b:04x} }}," for a, b in ranges(categories)]
    print(f"static const struct cp_range {name}[] = {{")
    for i in range(0, len(cells), 4):
        print("\t" + " ".join(cells[i:i + 4]))
    print("};")


print(f"""/* SPDX-License-Identifier: MIT
 * Made by unicode_ident.py from Unicode {unicodedata.unidata_version}; do not edit.  The code points above ASCII
 * that an identifier may begin with (L*, Nl), and those that it may only go on with
 * (Mn, Mc, Nd, Pc, Cf).  Sorted ranges, both ends included. */
#ifndef MODEL_UNICODE_IDENT_H
#define MODEL_UNICODE_IDENT_H

#include <stdint.h>

struct cp_range {{
	uint32_t first, last;
}};

/* clang-format off */""")
table("ident_start", START)
print()
table("ident_part", PART)
print("/* clang-format on */\n\n#endif")
