# SPDX-License-Identifier: MIT
"""The checksums of a store's pages, for tests that change the file behind rowfs's back: with them a
change looks like a mistake of rowfs, without them like damage of the disk."""
import struct

PAGE = 4096
M64 = (1 << 64) - 1
PRIME = 0x9E3779B97F4A7C15


def page_sum(page: bytes, number: int) -> int:
    """As src/store/sqlite/page_sum.c: eight lanes."""
    words = struct.unpack("<511Q", page[:PAGE - 8]) + (number,)
    ret = 0
    for lane in range(8):
        x = lane + 1
        for word in words[lane::8]:
            x = ((x ^ word) * PRIME) & M64
            x ^= x >> 32
        ret = ((ret ^ x) * PRIME) & M64
        ret ^= ret >> 29
    return ret


def seal(path) -> int:
    """Makes every checksum of a closed store right; how many were not."""
    mended = 0
    with open(path, "r+b") as f:
        if f.read(21)[20:] != b"\x08":
            return 0
        f.seek(0)
        number = 1
        while len(page := f.read(PAGE)) == PAGE:
            want = struct.pack("<Q", page_sum(page, number))
            if page[-8:] != want:
                f.seek(number * PAGE - 8)
                f.write(want)
                f.seek(number * PAGE)
                mended += 1
            number += 1
    return mended
