# SPDX-License-Identifier: MIT
"""Copies of whole trees: out of one store, into an empty one and out again, by the tools that
people make backups with.  What arrives is what was there, through both front ends, and a second
run transfers nothing and opens no file.

10,000 rows; the long form by hand has 100,000, with ROWFS_SCALE=1.  ROWFS_SCALE divides 100,000 (by
default 40 in a sanitizer's build).  Memory by the row in each run is for test_scale.py."""

import contextlib
import json
import os
import pathlib
import shutil
import tempfile
import time

import pytest

import tree_of_rows
from conftest import TIMEOUT, Mount, need_fuse
from tools import (
    EXCHANGE, NOREPLACE, get, long_name, need, put, raises, renameat2, rows, sanitized, sh,
    xattr)
from tree_of_rows import ACCOUNT, AWKWARD_KEYS, exported, exported_table, look

ROWS = 100_000 // int(os.environ.get("ROWFS_SCALE", "40" if sanitized() else "20"))
LONG = 1800  # seconds: no test asserts a time, but a tool that hangs must end
MIB = 1024
BORG_LATEST = (2**31 - 1 - 2 * 86400) * 10**9


class Source:
    """A tree that several tests copy; nobody changes it."""

    def __init__(self, rowfs, top, n):
        self.rowfs, self.store = rowfs, top / "source.rowfs"
        rowfs("init", self.store)
        tree_of_rows.fill_by_import(rowfs, self.store, n)
        self.mount = live(rowfs, self.store, top / "source")

    def fill(self):
        tree_of_rows.fill_by_mount(self.mount)
        self.exported = exported(self.rowfs, self.store)
        self.seen = look(self.mount.path)


def live(rowfs, store, at):
    at.mkdir()
    m = Mount(rowfs, store, at, [], at.with_suffix(".log"))
    m.timeout = 8 * TIMEOUT
    return m.start()


@contextlib.contextmanager
def made(rowfs, n):
    need_fuse()
    top = pathlib.Path(tempfile.mkdtemp(prefix="rowfs-test-"))
    source = Source(rowfs, top, n)
    try:
        source.fill()
        yield source
        source.mount.umount()
        rowfs("check", source.store, timeout=LONG)
    finally:
        source.mount._watchdog.cancel()
        source.mount.force()
    shutil.rmtree(top)


@pytest.fixture(scope="module")
def source(rowfs):
    with made(rowfs, ROWS) as source:
        yield source


@pytest.fixture
def target(rowfs, store, work):
    """An empty store, mounted, in which a tree may arrive."""
    need_fuse()
    m = live(rowfs, store, work / "target")
    try:
        yield m
        m.umount()
        rowfs("check", store, timeout=LONG)
    finally:
        m._watchdog.cancel()
        m.force()


def opened(m):
    done = json.loads(get(m / ".rowfs/stats.json"))["operations"]["mount"]
    return done.get("open", {"count": 0})["count"]


@contextlib.contextmanager
def opens(m, n):
    """So many files, and for the second look at the counters one."""
    before = opened(m)
    yield
    assert opened(m) - before - 1 == n


def opens_nothing(m):
    return opens(m, 0)


def run(script, **kw):
    return sh(f"set -o pipefail; {script}", timeout=LONG, **kw)


def arrived(source, m, kept=lambda seen: seen):
    """The store behind m holds what the source holds, seen through both front ends."""
    assert exported(source.rowfs, m.store) == source.exported
    found = look(m.path)
    assert list(found) == list(source.seen), "the order of listings"
    same(found, source.seen, kept)


def same(found, wanted, kept=lambda seen: seen):
    """Two trees; kept() leaves what a tool keeps of what there is to see of a file."""
    found = {p: kept(s) for p, s in found.items() if p != b"."}
    wanted = {p: kept(s) for p, s in wanted.items() if p != b"."}
    if found != wanted:
        differ = [p for p in found.keys() | wanted.keys() if found.get(p) != wanted.get(p)]
        said = [f"{p!r}: {found.get(p)}, not {wanted.get(p)}" for p in sorted(differ)[:20]]
        pytest.fail("\n".join([f"{len(differ)} differ:", *said]))


def grew_little(m):
    """In the long form, what is kept per row, 100,000 times, would be more than this."""
    if not sanitized():
        assert m.rss_kib() < 80 * MIB


# ---- whole trees


def rsync(a, b):
    return run(f"rsync -ai '{a}/' '{b}/'").stdout


@pytest.mark.slow
def test_J1_rsync(source, target, work):
    need("rsync")
    rsync(source.mount.path, work / "out")
    same(look(work / "out"), source.seen)
    with opens_nothing(source.mount):
        assert rsync(source.mount.path, work / "out") == ""

    rsync(work / "out", target.path)
    with opens_nothing(target):
        assert rsync(work / "out", target.path) == ""
    arrived(source, target)

    with opens_nothing(target):
        assert rsync(target.path, work / "out") == ""
    grew_little(target)
    shutil.rmtree(work / "out")
    rsync(target.path, work / "again")
    same(look(work / "again"), source.seen)


@pytest.mark.slow
def test_J2_tar(source, target, work):
    need("tar")
    pack = ("tar --format=posix --pax-option=delete=atime,delete=ctime --no-check-device"
            " --listed-incremental={} -C '{}' -cf {} .").format
    run(pack(work / "list", source.mount.path, work / "one.tar"))
    # What has a time in the future it takes for new, always.
    ahead = sum(s.mtime_ns > time.time_ns() for s in source.seen.values())
    with opens(source.mount, ahead):
        run(pack(work / "list", source.mount.path, work / "little.tar"))
    listed = run(f"tar -tf {work}/little.tar").stdout.splitlines()
    assert sum(not name.endswith("/") for name in listed) == ahead

    run(f"tar -C '{target.path}' -xpf {work}/one.tar --numeric-owner")
    with opens_nothing(target):
        run(f"tar -C '{target.path}' -xpf {work}/one.tar --numeric-owner --skip-old-files")
    arrived(source, target)
    # Names, order, bytes, times to the nanosecond, modes and owners of all of it.
    run(pack(work / "list2", target.path, work / "two.tar"))
    run(f"cmp {work}/one.tar {work}/two.tar")
    grew_little(target)


@pytest.mark.slow
def test_J3_cpio(source, target, work):
    need("cpio")
    pack = ("cd '{}' && find . -mindepth 1 -depth -print0 |"
            " cpio -0 -o -H newc --reproducible --quiet > {}").format
    run(pack(source.mount.path, work / "one.cpio"))
    unpack = f"cd '{target.path}' && cpio -idm --quiet --no-absolute-filenames < {work}/one.cpio"
    run(unpack)
    with opens_nothing(target):
        run(unpack)
    run(pack(target.path, work / "two.cpio") + f" && cmp {work}/one.cpio {work}/two.cpio")
    assert exported(source.rowfs, target.store) == source.exported
    grew_little(target)


@pytest.mark.slow
def test_J4_restic(source, target, work):
    need("restic")
    restic = f"RESTIC_PASSWORD=x restic --no-cache -r {work}/repo"
    backup = f"cd '{source.mount.path}' && {restic} backup --json . | tail -n 1"
    run(f"{restic} init")
    first = json.loads(run(backup).stdout)
    files = sum(s.mode & 0o170000 == 0o100000 for s in source.seen.values())
    assert first["files_new"] == files
    # It compares times, sizes and inode numbers, which a remount leaves as they are.
    source.mount.remount()
    with opens_nothing(source.mount):
        again = json.loads(run(backup).stdout)
    assert (again["files_new"], again["files_changed"]) == (0, 0)
    assert again["files_unmodified"] == files
    run(f"{restic} -q restore latest --target '{target.path}'")
    arrived(source, target)
    grew_little(target)


@pytest.mark.slow
def test_J5_borg(source, target, work):
    need("borg")
    borg = f"BORG_BASE_DIR={work}/b BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes borg"
    create = f"cd '{source.mount.path}' && {borg} create --list --filter=AM {work}/repo::%s . 2>&1"
    run(f"{borg} init -e none {work}/repo")
    run(create % "one")
    source.mount.remount()
    # It opens each file to see its attributes; what it reads is what it takes for changed:
    # its youngest file, always.
    assert len(run(create % "two").stdout.splitlines()) <= 1
    run(f"cd '{target.path}' && {borg} extract --numeric-ids {work}/repo::two")
    # It puts no later times on files than these.
    arrived(source, target, lambda s: s._replace(mtime_ns=min(s.mtime_ns, BORG_LATEST)))
    grew_little(target)


@pytest.mark.slow
def test_J6_rclone(source, target, work):
    need("rclone")
    sync = (f"rclone --config /dev/null --cache-dir {work}/c sync -M -v --create-empty-src-dirs"
            " --no-unicode-normalization '{}' '{}' 2>&1").format
    ways = ((source.mount.path, work / "out"), (work / "out", target.path))
    for a, b in ways:
        run(sync(a, b))
    with opens_nothing(source.mount), opens_nothing(target):
        for a, b in ways:
            assert "nothing to transfer" in run(sync(a, b)).stdout
    # It leaves directories' times and modes alone.
    arrived(source, target, lambda s: s if s.digest else s._replace(mode=0, mtime_ns=0))
    grew_little(target)


# ---- names


@pytest.fixture
def awkward(rowfs, store, mount):
    """A table with all awkward keys, and an empty one."""
    rowfs("account", "add", store, ACCOUNT)
    rowfs("import", store, f"{ACCOUNT}/Awkward", input=b"".join(tree_of_rows.awkward()))
    m = mount(store)
    (m / "acct2" / "Awkward").mkdir(parents=True)
    return m, m / ACCOUNT / "Awkward", m / "acct2" / "Awkward"


def copied(rowfs, m, table, copy):
    of_table, of_copy = (exported_table(rowfs, m.store, f"{a}/Awkward") for a in (ACCOUNT, "acct2"))
    assert of_copy == of_table
    assert list(look(copy)) == list(look(table))


# Digest names are 240 bytes in one component, and two of them in a path here.
CARRIERS = {
    "tar, gnu": "tar --format=gnu -C '{a}' -cf - . | tar -C '{b}' -xf -",
    "tar, pax": "tar --format=pax -C '{a}' -cf - . | tar -C '{b}' -xf -",
    "tar from a list": "cd '{a}' && find . -type f -print0 | tar --null -T - -cf - |"
                       " tar -C '{b}' -xf -",
    "cpio, newc": "cd '{a}' && find . -mindepth 1 -depth -print0 | cpio -0 -o --quiet -H newc |"
                  " (cd '{b}' && cpio -idm --quiet --no-absolute-filenames)",
    "cpio, odc": "cd '{a}' && find . -mindepth 1 -depth -print0 | cpio -0 -o --quiet -H odc |"
                 " (cd '{b}' && cpio -idm --quiet --no-absolute-filenames)",
    "cpio -p": "cd '{a}' && find . -mindepth 1 -depth -print0 | cpio -0 -pdm --quiet '{b}'",
    "busybox tar": "busybox tar -C '{a}' -cf - . | busybox tar -C '{b}' -xf -",
    "zip": "cd '{a}/..' && zip -qr '{w}/a.zip' Awkward && cd '{b}/..' && unzip -qo '{w}/a.zip'",
    "cp -a": "cp -a '{a}/.' '{b}/'",
    "cp -r": "cp -r '{a}/.' '{b}/'",
    "rsync -aHAX": "rsync -aHAX '{a}/' '{b}/'",
    "rsync --inplace": "rsync -a --inplace '{a}/' '{b}/'",
    "rsync --delay-updates": "rsync -a --delay-updates '{a}/' '{b}/'",
    "rsync -R": "cd '{a}' && rsync -aR ./ '{b}/'",
    "mv": "cp -a '{a}' '{w}/c' && mv '{w}/c'/* '{b}/'",
    "python": "/usr/bin/python3 -c 'import shutil;"
              " shutil.copytree(\"{a}\", \"{b}\", dirs_exist_ok=True)'",
    "a shell's loop": "cd '{a}' && for d in */ ; do mkdir -- '{b}'/\"$d\" &&"
                      " for f in \"$d\"*.json; do"
                      " cat -- \"$f\" > '{b}'/\"$f\" || exit; done; done",
    "find and xargs": "cd '{a}' &&"
                      " find . -mindepth 1 -type d -print0 | (cd '{b}' && xargs -0 mkdir --) &&"
                      " find . -type f -print0 | xargs -0 cp --parents -t '{b}' --",
}


@pytest.mark.parametrize("how", CARRIERS)
def test_J7_every_key_goes_through(rowfs, awkward, work, how):
    m, table, copy = awkward
    script = CARRIERS[how]
    need(*(t for t in ("tar", "cpio", "busybox", "zip", "unzip", "rsync") if f"{t} " in script))
    out = run(script.format(a=table, b=copy, w=work))
    assert out.stderr == ""
    copied(rowfs, m, table, copy)


def test_J7_tars_oldest_formats_say_what_they_cannot_hold(awkward, work):
    need("tar")
    _, table, _ = awkward
    for form in ("ustar", "v7"):
        out = sh(f"tar --format={form} -C '{table}' -cf {work}/a.tar .", check=False)
        assert out.returncode == 2
        assert "not dumped" in out.stderr and "%~" in out.stderr


def test_J8_names_in_scripts(awkward):
    """Dashes, quotes, blanks and pattern characters in front of the tools of every day."""
    _, table, _ = awkward
    keys = table / "keys"
    n = len(AWKWARD_KEYS) + 1
    out = sh("ls -1 -N | wc -l; printf '%s\\n' * | wc -l;"
             "for f in ./*.json; do [ -s \"$f\" ] || echo empty; done;"
             "find . -name '*.json' -print0 | xargs -0 jq -r .Small | sort | uniq -c;"
             "eval \"set -- $(printf '%q ' ./*)\"; echo $#; cat -- *.json | jq -s length;"
             "grep -lZ Small -- * | tr -cd '\\0' | wc -c; wc -c -- * | grep -c total", cwd=keys)
    assert out.stdout.split() == [
        str(x) for x in (n, n, n - 1, "-2147483648", 1, "null", n, n, n - 1, 1)]
    assert out.stderr == ""
    for key in ("-rf", "--help", "'", '"', "*", "$HOME", "`id`", "~"):
        put(keys / f"{key}.json", '{"new":1}')
    sh("rm -- -rf.json --help.json && rm ./\\*.json \\~.json \"'.json\" '\".json' '$HOME.json'"
       " '`id`.json'", cwd=keys)
    assert len(rows(keys)) == n - 8
    sh("rm -- * && cd .. && rmdir -- keys && rm -r -- *", cwd=keys)
    assert rows(table) == []


@pytest.mark.parametrize(
    "key", ["two\nlines", "tab\t", "\x7f", "back\\slash", "hash#", "what?", "a\x85"])
def test_J9_what_no_key_may_hold_is_refused_to_the_tools(rowfs, awkward, work, key):
    m, table, copy = awkward
    (work / "d" / "p").mkdir(parents=True)
    put(work / "d/p" / f"{key}.json", "{}")
    put(work / "d/p/good.json", "{}")
    for tool in (f"rsync -a {work}/d/ '{copy}/'", f"cp -r {work}/d/. '{copy}/'",
                 f"tar -C {work}/d -cf - . | tar -C '{copy}' -xf -"):
        out = sh(tool, check=False)
        assert out.returncode not in (0, None) and "Invalid argument" in out.stderr
        assert rows(copy / "p") == ["good.json"]
    with raises("EINVAL"):
        (copy / key).mkdir()


# ---- an empty file that waits for its document


@pytest.fixture
def waiting(work):
    """A tree with an empty x.json, as a backup of one has it."""
    top = work / "saved"
    top.mkdir()
    put(top / "x.json", "")
    os.chmod(top / "x.json", 0o640)
    os.utime(top / "x.json", ns=(10**18, 10**18 + 7))
    return top


RESTORES = {
    "rsync": "rsync -a '{a}/' '{b}/'",
    "rsync --inplace": "rsync -a --inplace '{a}/' '{b}/'",
    "rsync --delay-updates": "rsync -a --delay-updates '{a}/' '{b}/'",
    "tar": "tar -C '{a}' -cf - x.json | tar -C '{b}' -xf -",
    "cpio": "cd '{a}' && echo x.json | cpio -o --quiet -H newc | (cd '{b}' && cpio -imu --quiet)",
    "zip": "cd '{a}' && zip -q '{w}/a.zip' x.json && cd '{b}' && unzip -qo '{w}/a.zip'",
    "cp -a": "cp -a '{a}/x.json' '{b}/'",
    "mv": "cp -a '{a}/x.json' '{b}/tmp' && cd '{b}' && mv tmp x.json",
}


@pytest.mark.parametrize("how", RESTORES)
def test_W13_an_empty_file_is_restored(mnt, part, waiting, work, rowfs, how):
    need(*(t for t in ("rsync", "cpio", "zip", "unzip") if f"{t} " in RESTORES[how]))
    for _ in range(2):  # onto nothing, and onto an empty file
        run(RESTORES[how].format(a=waiting, b=part, w=work))
        assert rows(part) == ["x.json"]
        st = os.stat(part / "x.json")
        assert (st.st_size, st.st_mode & 0o777) == (0, 0o640)
        assert st.st_mtime_ns // 10**9 == 10**9 and get(part / "x.json") == b""
        assert exported_table(rowfs, mnt.store, "acct1/Blogs") == ""
    put(part / "x.json", '{"v":1}')
    assert get(part / "x.json") == b'{"v":1}'


def test_W13_a_row_does_not_give_way_to_an_empty_file(part):
    put(part / "x.json", '{"v":1}')
    put(part / "tmp", "")
    with raises("EBADMSG"):
        os.rename(part / "tmp", part / "x.json")
    assert get(part / "x.json") == b'{"v":1}' and rows(part) == ["tmp", "x.json"]


def test_W13_an_empty_file_comes_to_wait_by_a_rename(mnt, part):
    put(part / "tmp", "")
    os.utime(part / "tmp", ns=(5, 10**18 + 7))
    with raises("EEXIST"):
        put(part / "other.json", "")
        renameat2(part / "tmp", part / "other.json", NOREPLACE)
    with raises("EBADMSG"):
        renameat2(part / "tmp", part / "other.json", EXCHANGE)
    renameat2(part / "tmp", part / "x.json", NOREPLACE)
    assert sorted(rows(part)) == ["other.json", "x.json"]
    mnt.remount()
    assert os.stat(part / "x.json").st_mtime_ns == 10**18 + 7
    os.rename(part / "x.json", part / "tmp")  # and back
    assert get(part / "tmp") == b""


def test_W13_who_writes_on_to_what_waits_by_now_is_told(part):
    """What is written under a row's name is a document, or nothing."""
    fd = os.open(part / "tmp", os.O_WRONLY | os.O_CREAT)
    os.rename(part / "tmp", part / "x.json")
    with raises("ESTALE"):
        os.write(fd, b"no document")
    os.close(fd)
    assert get(part / "x.json") == b"" and rows(part) == ["x.json"]
    put(part / "x.json", "{}")
    assert get(part / "x.json") == b"{}"


def test_W13_under_a_digest_name_too(table):
    name, directory = long_name("k" * 400), long_name("p" * 400, "")
    (table / directory).mkdir()
    put(table / directory / "tmp", "")
    os.rename(table / directory / "tmp", table / directory / name)
    assert rows(table / directory) == [name]
    put(table / directory / name,
        json.dumps({"PartitionKey": "p" * 400, "RowKey": "k" * 400, "v": 1}))
    assert xattr(table / directory / name, "row_key") == "k" * 400
