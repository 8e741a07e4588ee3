# SPDX-License-Identifier: MIT
"""The second part of page-ranges: writes pages and lists their ranges by segments, with azure-storage-blob, and
lists the data of the mounted file."""

import os
import random
import sys

from azure.storage.blob import BlobClient

GB = 1024 ** 3
disk = BlobClient.from_connection_string(os.environ["AZURE_STORAGE_CONNECTION_STRING"], "disks", "d.vhd")


def write():
    """4 KiB in each of 399 places that do not touch, and 4 MiB over the first border of 50 GB."""
    disk.create_page_blob(500 * GB)
    chosen = random.Random(19)
    for n in range(399):
        offset = (n * 1200 + chosen.randrange(1000)) * 1024 ** 2
        disk.upload_page(bytes([1]) * 4096, offset, 4096)
    disk.upload_page(bytes([2]) * 4 * 1024 ** 2, 50 * GB - 1024 ** 2, 4 * 1024 ** 2)


def segments(size):
    """Each range of the blob, cut at the segments' borders."""
    seen = {}
    start, end = 0, 1
    while start < end:
        found, _ = disk.get_page_ranges(
            offset=start, length=size,
            raw_response_hook=lambda answer: seen.update(answer.http_response.headers))
        yield from ((r["start"], r["end"]) for r in found)
        start, end = start + size, int(seen["x-ms-blob-content-length"])


def joined(ranges):
    last = None
    for start, end in ranges:
        if last and last[1] + 1 == start:
            start = last[0]
        elif last:
            yield last
        last = start, end
    if last:
        yield last


def data(path):
    """Each range of the mounted file, as the kernel tells it."""
    with open(path, "rb", buffering=0) as f:
        end = 0
        while True:
            try:
                start = f.seek(end, os.SEEK_DATA)
            except OSError:  # there is no more
                return
            end = f.seek(start, os.SEEK_HOLE)
            yield start, end - 1


if sys.argv[1] == "write":
    write()
else:
    for start, end in data(sys.argv[2]) if sys.argv[1] == "data" else joined(segments(int(sys.argv[2]))):
        print(start, end)
