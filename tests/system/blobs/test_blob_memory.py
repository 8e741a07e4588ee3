# SPDX-License-Identifier: MIT
"""A large blob takes the same memory of the daemon as a small one, in both directions, over REST and
in the mount.  ROWFS_BLOB_MIB is its size; 8192 is the long form, which takes 30 GB of the disk."""

import base64
import hashlib
import os

from blob_mount import rest  # noqa: F401 - a fixture
from streams import high_water_kib
from tools import sanitized

MIB = 1 << 20
SIZE = int(os.environ.get("ROWFS_BLOB_MIB", "64" if sanitized() else "128"))
BLOCK = 64  # MiB of a block
BOUND_KIB = 64 << 10


class Content:
    """MiBs that differ from each other, and the sum of those that were taken."""

    def __init__(self):
        self.noise, self.sum = os.urandom(MIB - 8), hashlib.md5()

    def parts(self, first, end):
        for i in range(first, end):
            part = i.to_bytes(8, "little") + self.noise
            self.sum.update(part)
            yield part


def put_blocks(rest, path, content):  # noqa: F811
    names = []
    for first in range(0, SIZE, BLOCK):
        end = min(first + BLOCK, SIZE)
        names.append(base64.b64encode(b"%08d" % first).decode())
        staged = rest.ask("PUT", path, {"comp": "block", "blockid": names[-1]},
                          content.parts(first, end), length=(end - first) * MIB)
        assert staged.status == 201
    body = "".join(f"<Latest>{n}</Latest>" for n in names)
    made = rest.ask("PUT", path, {"comp": "blocklist"}, f"<BlockList>{body}</BlockList>".encode())
    assert made.status == 201


def sum_over_rest(rest, path):  # noqa: F811
    found = hashlib.md5()
    assert rest.ask("GET", path, sink=found.update).status == 200
    return found.digest()


def sum_of_file(path):
    with open(path, "rb", buffering=0) as f:
        return hashlib.file_digest(f, "md5").digest()


def write_file(path, content):
    with open(path, "wb", buffering=0) as f:
        for part in content.parts(0, SIZE):
            assert f.write(part) == MIB


def test_BL63_a_large_blob_takes_constant_memory(rest):  # noqa: F811
    rest.put("/photos/small", b"x" * 3 * MIB)
    sum_of_file(rest.dir / "small")
    before, measured = high_water_kib(rest.mnt), {}

    def measure(what):
        measured[what] = (high_water_kib(rest.mnt) - before) >> 10

    up = Content()
    put_blocks(rest, "/photos/big", up)
    measure("put over REST")
    assert sum_over_rest(rest, "/photos/big") == up.sum.digest()
    measure("got over REST")
    assert sum_of_file(rest.dir / "big") == up.sum.digest()
    measure("read in the mount")
    os.unlink(rest.dir / "big")
    down = Content()
    write_file(rest.dir / "big", down)
    measure("written in the mount")
    assert sum_over_rest(rest, "/photos/big") == down.sum.digest()
    print(f"{SIZE} MiB; MiB of memory more than before: {measured}")
    # A sanitizer keeps freed memory for a while.
    assert sanitized() or high_water_kib(rest.mnt) - before < BOUND_KIB, measured
