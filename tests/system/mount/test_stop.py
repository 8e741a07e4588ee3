# SPDX-License-Identifier: MIT
"""A mount ends when it is told to, whatever is open there and however busy it is."""

import contextlib
import errno
import json
import os
import subprocess
import time

import pytest

from conftest import need_to_cut
from tools import busy, fork, put

IMPORTED = 1000


def test_S3_sigterm_with_open_files_ends_the_daemon_at_once(mnt, part):
    put(part / "r.json", "{}")
    put(part / "plain", "x")
    fds = [os.open(part / n, os.O_RDONLY) for n in ("r.json", "plain", ".")]
    half = os.open(part / "half.json", os.O_WRONLY | os.O_CREAT)
    os.write(half, b'{"never":"finished"')
    mnt.sigterm()
    for fd in fds + [half]:
        try:
            os.close(fd)
        except OSError as e:
            assert e.errno in (errno.ENOTCONN, errno.ECONNABORTED)
    mnt.start()
    kept = os.listdir(mnt / ".rowfs/rejected")
    assert [n.split("-", 3)[3] for n in kept] == ["half.json"]
    assert (mnt / ".rowfs/rejected" / kept[0]).read_bytes() == b'{"never":"finished"'


def test_S3_what_is_whole_at_the_end_is_committed_beside_its_readers(mnt, part):
    """One of them has opened what it replaces when that was an ordinary file."""
    put(part / "temp", '{"N":1}')
    fds = [os.open(part / "temp", os.O_RDONLY)]
    os.rename(part / "temp", part / "r.json")
    fds.append(os.open(part / "r.json", os.O_WRONLY | os.O_TRUNC))
    os.write(fds[1], b'{"N":2}')
    fds.append(os.open(part, os.O_RDONLY))
    mnt.sigterm()
    for fd in fds:
        try:
            os.close(fd)
        except OSError as e:
            assert e.errno in (errno.ENOTCONN, errno.ECONNABORTED)
    mnt.start()
    assert (part / "r.json").read_bytes() == b'{"N":2}'
    assert os.listdir(mnt / ".rowfs/rejected") == []


def imported(part):
    """Whether there is a row that came by the import."""
    for name in os.listdir(part):
        with contextlib.suppress(OSError, ValueError):
            if json.loads((part / name).read_bytes())["N"] == IMPORTED:
                return True
    return False


@pytest.mark.parametrize("end", ["sigterm", "kill9"])
def test_S3_a_busy_mount_ends_and_comes_back_whole(rowfs, store, mnt, part, end):
    if end == "kill9":
        need_to_cut()
    endless = "\n".join(json.dumps({"PartitionKey": part.name, "RowKey": f"k{i}", "N": IMPORTED})
                        for i in range(50))
    workers = [fork.Process(target=busy, args=(str(part), s)) for s in range(6)]
    for w in workers:
        w.start()
    source = subprocess.Popen(["yes", endless], stdout=subprocess.PIPE)
    importer = subprocess.Popen([str(rowfs.program), "import", str(store), "acct1/Blogs"],
                                stdin=source.stdout, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
    source.stdout.close()
    try:
        while not imported(part):  # all are under way
            assert importer.poll() is None and all(w.is_alive() for w in workers)
            time.sleep(0.002)
        if end == "sigterm":
            mnt.sigterm()
            assert importer.wait(60) == 1  # told that it was cancelled
        else:
            mnt.kill9()
            importer.wait(60)
        for w in workers:
            w.join(60)
            assert not w.is_alive(), "a client hangs"
    finally:
        for p in (importer, source):
            p.kill()
            p.wait(60)
        for w in workers:
            w.kill()
    mnt.start()
    for name in os.listdir(part):
        if name.endswith(".json"):
            text = (part / name).read_bytes()  # b"": made, but not written any more
            assert text == b"" or isinstance(json.loads(text), dict)


def test_S2_an_export_can_be_piped_into_an_import_of_the_same_store(rowfs, store):
    rowfs("account", "add", store, "acct1")
    lines = "".join(json.dumps({"PartitionKey": "p", "RowKey": str(i), "S": "x" * 200}) + "\n"
                    for i in range(5000))
    rowfs("import", store, "acct1/Blogs", input=lines)
    program = str(rowfs.program)
    done = subprocess.run(
        f"'{program}' export '{store}' acct1/Blogs | '{program}' import '{store}' acct1/Copy",
        shell=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first = rowfs("export", store, "acct1/Blogs").stdout
    second = rowfs("export", store, "acct1/Copy").stdout
    strip = lambda text: [{k: v for k, v in json.loads(line).items() if "Timestamp" not in k}
                          for line in text.splitlines()]
    assert len(strip(first)) == 5000 and strip(first) == strip(second)
