# SPDX-License-Identifier: MIT
"""stress-ng's file system stressors, all at once, in a folder beside the rows, and what they
found."""

import os
import stat

import pytest

from tools import get, need, put, raises, rows, sh

# What verifies what it did.  Not here, since they want what is not there: link, symlink (D4),
# xattr (A9).
STRESSORS = {
    "access": 20, "chmod": 20, "chown": 20, "dentry": 200, "dir": 100,
    "dirdeep": 50, "dirmany": 50, "dup": 20, "fcntl": 100, "filename": 10, "flock": 200,
    "fsize": 2, "getdent": 200, "hdd": 50, "io": 5, "lease": 20, "lockf": 100, "lockofd": 20,
    "locka": 50, "open": 50, "rename": 300, "seek": 50, "sendfile": 50, "touch": 200,
    "utime": 300,
}


def test_stress_ng_in_a_folder(part):
    need("stress-ng")
    row = '{"Author":"Ann"}\n'
    put(part / "r.json", row)
    (part / ".s").mkdir()
    jobs = " ".join(f"--{s} 1 --{s}-ops {n}" for s, n in STRESSORS.items())
    sh(f"stress-ng --temp-path .s {jobs} --hdd-bytes 1M --seek-size 1M"
       " --timeout 60 --verify -q", cwd=part)
    assert os.listdir(part / ".s") == [] and rows(part) == [".s", "r.json"]
    assert get(part / "r.json").decode() == row


@pytest.mark.parametrize("name", ["r.json", "file"])
def test_A7_access_tells_what_exec_would(part, name):
    put(part / name, "{}")
    for mode in (0o644, 0o600, 0o755, 0o100, 0o010, 0o001, 0o640):
        os.chmod(part / name, mode)
        assert os.access(part / name, os.X_OK) == bool(mode & 0o111) or os.geteuid() != 0
        found = sh("find . -type f -executable", cwd=part).stdout.split()
        assert found == ([f"./{name}"] if mode & 0o111 else [])
    assert os.access(part, os.X_OK) and os.access(part / name, os.F_OK)
    with raises("EACCES"):
        os.execv(part / name, ["it"])
    assert stat.S_IMODE(os.stat(part / name).st_mode) == 0o640


def test_A7_access_of_what_is_being_written_and_of_the_mounts_own(mnt, part):
    put(part / "r.json", "{}")
    with open(part / "r.json", "w", encoding="ascii") as f:
        f.write("{")
        f.flush()
        assert not os.access(part / "r.json", os.X_OK)
        assert not os.access(f"/proc/self/fd/{f.fileno()}", os.X_OK)
        f.write("}")
    for name in (".batch", ".rows.ndjson", ".rows.csv"):
        assert not os.access(part / name, os.X_OK) and os.access(part / name, os.R_OK)
    for name in ("version", "stats.json", "errors", "metrics"):
        assert not os.access(mnt / ".rowfs" / name, os.X_OK), name
    for name in ("", "trash", "rejected", "snapshots"):
        assert os.access(mnt / ".rowfs" / name, os.X_OK | os.R_OK), name
    (mnt / ".rowfs/snapshots/s").mkdir()
    row = mnt / ".rowfs/snapshots/s" / part.relative_to(mnt.path) / "r.json"
    assert os.access(row, os.R_OK) and not os.access(row, os.X_OK)
