# SPDX-License-Identifier: MIT
"""docs/semantics.md: the trash (Y)."""

import base64
import errno
import hashlib
import json
import os
import re
import stat
import threading
import time

import pytest

import calls
from conftest import need_fuse
from rest_client import ACCOUNT, Client, ok
from tools import EXCHANGE, get, need, put, raises, renameat2, rows, sh, xattr


def trash(mnt):
    return mnt / ".rowfs/trash"


def kept(mnt):
    """What is in the trash, oldest first."""
    return [trash(mnt) / name for name in rows(trash(mnt))]


# ---- Y1: what rm removes is kept, and mv brings it back


def test_Y1_a_removed_row_is_in_the_trash(mnt, part):
    put(part / "r.json", '{"a": 1,\n "b": [1.50] }'.replace("[1.50]", "1.50"))
    os.utime(part / "r.json", ns=(1, 1_500_000_000_123_456_700))
    os.chmod(part / "r.json", 0o640)
    os.chown(part / "r.json", 12, 34)
    before = os.stat(part / "r.json")
    bytes_ = get(part / "r.json")
    os.unlink(part / "r.json")
    [name] = rows(trash(mnt))
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z-Blogs-Channel_19-r\.json", name)
    [file] = kept(mnt)
    st = os.stat(file)
    assert get(file) == bytes_ and st.st_size == len(bytes_)
    assert stat.S_ISREG(st.st_mode) and stat.S_IMODE(st.st_mode) == 0o640
    assert (st.st_uid, st.st_gid, st.st_mtime_ns) == (12, 34, before.st_mtime_ns)
    assert st.st_ino != before.st_ino and st.st_ctime_ns > before.st_ctime_ns


def test_Y1_mv_restores_it_whole(mnt, part):
    text = '{"t@odata.type": "Edm.DateTime", "t": "2020-01-01T00:00:00Z",   "n": 1e0}'
    put(part / "r.json", text)
    stamp, etag = os.stat(part / "r.json").st_mtime_ns, xattr(part / "r.json", "etag")
    os.unlink(part / "r.json")
    [file] = kept(mnt)
    assert os.stat(file).st_mtime_ns == stamp
    sh(f"mv '{file}' '{part}/r.json'")
    assert rows(trash(mnt)) == [] and rows(part) == ["r.json"]
    assert get(part / "r.json") == text.encode()
    assert os.stat(part / "r.json").st_mtime_ns == stamp
    assert xattr(part / "r.json", "etag") != etag
    mnt.remount()
    assert get(part / "r.json") == text.encode()
    assert os.stat(part / "r.json").st_mtime_ns == stamp
    assert rows(trash(mnt)) == []


def test_Y1_it_can_go_to_any_row_and_to_an_ordinary_name(mnt, part, table):
    put(part / "r.json", '{"v":1}')
    os.unlink(part / "r.json")
    (table / "Other").mkdir()
    put(table / "Other/taken.json", '{"v":0}')
    os.rename(kept(mnt)[0], table / "Other/taken.json")
    assert get(table / "Other/taken.json") == b'{"v":1}'
    os.unlink(table / "Other/taken.json")
    [file] = kept(mnt)
    os.rename(file, part / "plain.txt")
    assert get(part / "plain.txt") == b'{"v":1}' and rows(trash(mnt)) == []
    put(part / "plain.txt", "now it can be written")


def test_Y1_a_row_of_the_other_front_end_is_restored_as_it_was(rest_store, rest_mount):
    m = rest_mount(rest_store)
    row = {"Big@odata.type": "Edm.Int64", "Big": str(2**40), "Text": "\U0001f600 'x'"}
    with Client(m.port) as c:
        ok(c.create_table("Tab"), 201)
        ok(c.insert("Tab", {"PartitionKey": "p", "RowKey": "r", **row}), 201)
        path = m / ACCOUNT / "Tab/p/r.json"
        data, old = get(path), c.get("Tab", "p", "r")
        os.unlink(path)
        assert c.get("Tab", "p", "r").status == 404
        os.rename(kept(m)[0], path)
        now = c.get("Tab", "p", "r")
    assert get(path) == data
    assert now.json["Big"] == row["Big"] and now.json["Text"] == row["Text"]
    assert now.etag != old.etag


def test_Y1_long_and_empty_keys(mnt, table):
    long = "k" * 500
    (table / "%_").mkdir()
    put(table / "%_/%_.json", '{"v":1}')
    os.unlink(table / "%_/%_.json")
    assert rows(trash(mnt))[0].endswith("Z-Blogs-%_-%_.json")
    os.rename(kept(mnt)[0], table / "%_/%_.json")
    put(table / "%_/tmp", json.dumps({"RowKey": long, "PartitionKey": "", "v": 2}))
    digest = base64.b32encode(hashlib.sha256(long.encode()).digest()).decode().rstrip("=")
    name = f"{long[:240 - 5 - 2 - 52]}%~{digest}.json"
    os.rename(table / "%_/tmp", table / "%_" / name)
    data = get(table / "%_" / name)
    os.unlink(table / "%_" / name)
    [file] = kept(mnt)
    assert len(os.fsencode(file.name)) == 255 and file.name.endswith(".json")
    os.rename(file, table / "%_" / name)
    assert get(table / "%_" / name) == data


def test_Y1_a_name_is_cut_between_characters(mnt, table):
    part = table / ("\U0001f600" * 55)
    part.mkdir()
    put(part / ("\U0001f601" * 55 + ".json"), '{"v":1}')
    os.unlink(part / ("\U0001f601" * 55 + ".json"))
    [name] = os.listdir(os.fsencode(trash(mnt)))
    assert len(name) in range(252, 256) and name.decode().endswith(".json")


def test_Y1_the_names_are_in_the_order_of_removal_and_never_meet(mnt, part):
    for i in range(50):
        put(part / "r.json", json.dumps({"i": i}))
        os.unlink(part / "r.json")
    assert [json.loads(get(f))["i"] for f in kept(mnt)] == list(range(50))


def test_Y1_it_appears_at_once_where_somebody_looked_before(mnt, part):
    assert rows(trash(mnt)) == []
    seen = os.stat(trash(mnt)).st_mtime_ns
    put(part / "r.json", "{}")
    os.unlink(part / "r.json")
    assert len(rows(trash(mnt))) == 1
    assert os.stat(trash(mnt)).st_mtime_ns > seen
    sh(f"cat '{trash(mnt)}'/*r.json")


# ---- Y2: what does not go there


def test_Y2_only_rows_that_were_removed_through_the_mount(rest_store, rest_mount):
    m = rest_mount(rest_store)
    with Client(m.port) as c:
        ok(c.create_table("Tab"), 201)
        ok(c.insert("Tab", {"PartitionKey": "p", "RowKey": "r"}), 201)
        part = m / ACCOUNT / "Tab/p"
        put(part / "a.json", '{"v":1}')
        put(part / "a.json", '{"v":2}')
        put(part / "b.json", '{"v":3}')
        put(part / "plain", "text")
        os.rename(part / "b.json", part / "a.json")
        os.rename(part / "plain", part / "plain2")
        os.unlink(part / "plain2")
        os.rename(part / "a.json", part / "plain3")
        os.unlink(part / "plain3")
        (part / "empty.json").touch()
        os.unlink(part / "empty.json")
        ok(c.delete("Tab", "p", "r"), 204)
    assert rows(trash(m)) == []


def test_Y2_a_refused_removal_keeps_nothing(mnt, part):
    put(part / "r.json", '{"v":1}')
    with raises("ENOENT"):
        os.unlink(part / "none.json")
    assert get(part / "r.json") == b'{"v":1}' and rows(trash(mnt)) == []


# ---- Y3: what can be done in it


def test_Y3_nothing_is_made_written_or_renamed_in_it(mnt, part):
    put(part / "r.json", '{"v":1}')
    put(part / "other.json", '{"v":2}')
    put(part / "plain", "x")
    os.unlink(part / "r.json")
    [file] = kept(mnt)
    for change in (lambda: put(trash(mnt) / "new", "x"),
                   lambda: put(trash(mnt) / "new.json", "{}"),
                   lambda: (trash(mnt) / "dir").mkdir(),
                   lambda: (trash(mnt) / ".dir").mkdir(),
                   lambda: put(file, "{}"),
                   lambda: os.close(os.open(file, os.O_RDWR)),
                   lambda: os.close(os.open(file, os.O_WRONLY | os.O_APPEND)),
                   lambda: os.truncate(file, 0),
                   lambda: os.truncate(file, 100),
                   lambda: os.rename(file, trash(mnt) / "renamed"),
                   lambda: os.rename(part / "other.json", file),
                   lambda: os.rename(part / "plain", trash(mnt) / "plain"),
                   lambda: os.link(part / "plain", trash(mnt) / "plain"),
                   lambda: os.symlink("x", trash(mnt) / "link"),
                   lambda: renameat2(part / "plain", file, EXCHANGE),
                   lambda: renameat2(file, part / "plain", EXCHANGE),
                   lambda: renameat2(file, part / "other.json", EXCHANGE),
                   lambda: os.rename(trash(mnt), mnt / ".rowfs/bin"),
                   lambda: os.rmdir(trash(mnt))):
        with raises("EPERM"):
            change()
    assert get(file) == b'{"v":1}' and [file] == kept(mnt)
    assert get(part / "plain") == b"x" and get(part / "other.json") == b'{"v":2}'


def test_Y3_its_files_can_be_read_removed_and_taken_elsewhere(mnt, part, work):
    for i in range(3):
        put(part / f"{i}.json", json.dumps({"i": i}))
        os.unlink(part / f"{i}.json")
    sh(f"cp -a '{trash(mnt)}' '{work}/copy'; diff -r '{trash(mnt)}' '{work}/copy'")
    sh(f"mv '{kept(mnt)[0]}' '{work}/out'; rm '{kept(mnt)[1]}'")
    assert get(work / "out") == b'{"i": 0}' and len(kept(mnt)) == 1
    sh(f"rm -rf '{trash(mnt)}'/*")
    assert kept(mnt) == []


def test_Y3_an_open_file_of_it_is_read_to_its_end_after_its_removal(mnt, part):
    put(part / "r.json", '{"v":1}')
    os.unlink(part / "r.json")
    with open(kept(mnt)[0], "rb") as f:
        os.unlink(f.name)
        assert f.read() == b'{"v":1}'
    assert kept(mnt) == []


def test_Y3_what_is_no_row_stays_where_it_is(mnt, part, account):
    put(part / "r.json", '{"RowKey": "r", "v": 1}')
    os.unlink(part / "r.json")
    with raises("EBADMSG"):
        os.rename(kept(mnt)[0], part / "other.json")
    for to in (account / "file", account / "Blogs/file.json", mnt / "x"):
        with raises("EPERM", "EINVAL"):
            os.rename(kept(mnt)[0], to)
    os.rename(kept(mnt)[0], part / "r.json")
    assert get(part / "r.json") == b'{"RowKey": "r", "v": 1}'


# ---- Y4: bounds


def fill(part, count, size):
    for i in range(count):
        text = json.dumps({"i": i})
        put(part / "r.json", text[:-1] + " " * (size - len(text)) + "}")
        os.unlink(part / "r.json")


def held(mnt):
    return [json.loads(get(f))["i"] for f in kept(mnt)]


def account_of(m):
    part = m / "acct1/Tab/p"
    part.mkdir(parents=True, exist_ok=True)
    return part


def test_Y4_the_bound_on_bytes_from_both_sides(mount, store):
    m = mount(store, "trash=1000")
    part = account_of(m)
    fill(part, 10, 100)
    assert held(m) == list(range(10))
    m.umount()  # what is open stays, and a close is told of a moment later
    m.start()
    fill(part, 1, 100)
    assert sum(os.stat(f).st_size for f in kept(m)) <= 1000
    assert held(m)[-1] == 0 and held(m)[0] in (1, 2)


def test_Y4_a_row_over_the_bound_is_removed_without_a_copy(mount, store):
    m = mount(store, "trash=1000")
    part = account_of(m)
    fill(part, 1, 1000)
    assert len(kept(m)) == 1
    fill(part, 1, 1001)
    assert [os.stat(f).st_size for f in kept(m)] == [1000] and rows(part) == []


def test_Y4_what_leaves_by_hand_makes_room(mount, store):
    m = mount(store, "trash=1000")
    part = account_of(m)
    fill(part, 10, 100)
    os.unlink(kept(m)[0])
    os.rename(kept(m)[0], part / "back.json")
    os.rename(kept(m)[0], part / "plain")
    fill(part, 3, 100)
    assert held(m) == [3, 4, 5, 6, 7, 8, 9, 0, 1, 2]


def test_Y4_the_bound_on_files(mount, rowfs, store, work):
    """10,000 stay; the next one makes the oldest go."""
    lines = "".join(json.dumps({"PartitionKey": "p", "RowKey": f"{i:05}", "i": i}) + "\n"
                    for i in range(10001))
    rowfs("account", "add", store, "acct1")
    m = mount(store)
    (m / "acct1/Tab").mkdir()
    rowfs("import", store, "acct1/Tab", input=lines)
    part = m / "acct1/Tab/p"
    for i in range(10000):
        os.unlink(part / f"{i:05}.json")
    assert len(kept(m)) == 10000
    os.unlink(part / "10000.json")
    now = held(m)
    assert now[-1] == 10000 and 9800 < len(now) <= 10000 and now[0] == 10001 - len(now)


def test_Y4_the_age(mount, store):
    m = mount(store, "trash-age=1")
    part = account_of(m)
    fill(part, 3, 20)
    end = time.monotonic() + 60
    while kept(m):
        assert time.monotonic() < end
        time.sleep(0.02)
    fill(part, 1, 20)
    assert len(kept(m)) == 1
    m.umount()
    m.options = ["trash-age=0"]
    m.start()
    assert kept(m) == []
    m.umount()
    m.options = []
    m.start()
    fill(part, 2, 20)
    assert len(kept(m)) == 2


def test_Y4_what_is_being_read_stays_until_it_was_read(mount, store):
    m = mount(store, "trash=500K")
    part = account_of(m)
    text = json.dumps({f"p{i}": "x" * 30000 for i in range(14)})
    put(part / "a.json", text)
    os.unlink(part / "a.json")
    with open(kept(m)[0], "rb", buffering=0) as f:
        head = f.read(4096)
        for _ in range(3):
            put(part / "b.json", text)
            os.unlink(part / "b.json")
        assert head + f.read() == text.encode()
    put(part / "c.json", "{}")
    os.unlink(part / "c.json")
    assert sum(os.stat(f).st_size for f in kept(m)) <= 500 << 10


def test_Y4_what_could_be_opened_while_it_went_can_be_read(struck):
    m, control = struck("trash-age=2")
    part = m / "acct1/Blogs/p"
    part.mkdir(parents=True)
    names = []
    while not names:  # it is too old at once where the machine is slow
        put(part / "r.json", '{"N":1}')
        os.unlink(part / "r.json")
        names = rows(trash(m))
    time.sleep(2.1)  # the age, in whole seconds, at which it goes
    control.strike("stall", calls.WRITE, 1)
    trimming = threading.Thread(target=rows, args=(trash(m),))
    trimming.start()
    end = time.monotonic() + 60
    while not control.struck:  # it is about to go
        assert time.monotonic() < end, "what is too old is not taken away"
        time.sleep(0.002)
    opened, seen = threading.Event(), []
    reading = threading.Thread(
        target=read_slowly, args=(trash(m) / names[0], opened, seen))
    reading.start()
    opened.wait(0.5)  # it may have to wait until it is known whether it goes
    control.stop()
    reading.join(60)
    trimming.join(60)
    assert seen in (["ENOENT"], ["ESTALE"], [b'{"N":1}'])


def read_slowly(path, opened, seen):
    try:
        fd = os.open(path, os.O_RDONLY)
    except OSError as e:
        seen.append(errno.errorcode[e.errno])
        return
    opened.set()
    end = time.monotonic() + 60
    while rows(path.parent) and time.monotonic() < end:  # it goes, or it stays
        time.sleep(0.01)
    try:
        seen.append(os.read(fd, 100))
    except OSError as e:
        seen.append(f"open, but {errno.errorcode[e.errno]}")
    finally:
        os.close(fd)


def test_Y4_a_smaller_bound_holds_from_the_mount_on(mount, store):
    m = mount(store)
    fill(account_of(m), 20, 100)
    m.umount()
    m.options = ["trash=1K"]
    m.start()
    assert held(m) == list(range(10, 20))
    m.umount()
    m.options = ["ro", "trash=100"]
    m.start()
    assert held(m) == list(range(10, 20))


def test_Y4_zero_keeps_no_more_and_drops_nothing(mount, store):
    m = mount(store)
    part = account_of(m)
    fill(part, 2, 100)
    m.umount()
    m.options = ["trash=0"]
    m.start()
    fill(part, 3, 20)
    assert rows(part) == [] and held(m) == [0, 1]


@pytest.mark.parametrize("option, ok", [
    ("trash=0", True), ("trash=64M", True), ("trash=1K", True), ("trash=1T", True),
    ("trash=", False), ("trash=K", False), ("trash=-1", False), ("trash=1X", False),
    ("trash=99999999999999999999", False), ("trash=9999999T", False), ("trash=1 K", False),
    ("trash-age=0", True), ("trash-age=4294967295", True), ("trash-age=4294967296", False),
    ("trash-age=", False), ("trash-age=1d", False), ("trash", False)])
def test_Y4_options(rowfs, mount, store, work, option, ok):
    if ok:
        assert rows(trash(mount(store, option))) == []
        return
    need_fuse()
    (work / "m").mkdir()
    done = rowfs("mount", store, work / "m", "-o", option, check=False)
    assert done.returncode == 2 and option.split("=")[0] in done.stderr


def test_Y4_a_full_disk_lets_rows_go(rowfs, mount, work):
    need_fuse()
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a tmpfs")
    small = work / "small"
    small.mkdir()
    sh(f"mount -t tmpfs -o size=4m tmpfs '{small}'")
    try:
        rowfs("init", small / "s.rowfs")
        m = mount(small / "s.rowfs")
        m.allow("ENOSPC|No space|NO_SPACE|full")
        part = account_of(m)
        with raises("ENOSPC"):
            for i in range(2000):
                put(part / f"{i}.json", json.dumps({"pad": "x" * 6000}))
        names = rows(part)
        for name in names:
            os.unlink(part / name)
        assert rows(part) == []
        for i in range(20):
            put(part / f"{i}.json", json.dumps({"i": i, "pad": "y" * 1000}))
            os.unlink(part / f"{i}.json")
        assert rows(part) == []
        m.umount()
        rowfs("check", small / "s.rowfs")
    finally:
        sh(f"umount -l '{small}'", check=False)


# ---- Y5: never lost, never double


def test_Y5_a_kill_leaves_a_row_in_one_place(rowfs, mount, store):
    m = mount(store)
    part = account_of(m)
    for i in range(300):
        put(part / f"{i:03}.json", json.dumps({"i": i}))
    started = threading.Event()

    def remove():
        for i in range(300):
            try:
                os.unlink(part / f"{i:03}.json")
            except OSError:
                return
            if i == 100:
                started.set()

    t = threading.Thread(target=remove)
    t.start()
    assert started.wait(60)
    m.kill9()
    t.join()
    m.start()
    alive = [json.loads(get(part / name))["i"] for name in rows(part)]
    assert sorted(alive + held(m)) == list(range(300))
    assert 0 < len(alive) < 300


def test_Y5_removals_beside_writers(mnt, part):
    """What is removed while it is replaced is one version or the other, whole."""
    stop = threading.Event()

    def write(k):
        n = 0
        while not stop.is_set():
            n += 1
            try:
                put(part / f".tmp{k}", json.dumps({"k": k, "n": n, "pad": "x" * n}))
                os.rename(part / f".tmp{k}", part / "r.json")
            except OSError as e:
                assert e.errno in (errno.ESTALE, errno.ENOENT)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
    removed = 0
    while removed < 150 and any(t.is_alive() for t in threads):
        try:
            os.unlink(part / "r.json")
            removed += 1
        except FileNotFoundError:
            pass
    stop.set()
    for t in threads:
        t.join()
    found = [json.loads(get(f)) for f in kept(mnt)]
    assert len(found) == removed == 150 == len({(d["k"], d["n"]) for d in found})
    assert all(len(d["pad"]) == d["n"] for d in found)


def test_Y5_what_is_restored_while_the_oldest_go_stays_restored(mount, store):
    m = mount(store, "trash=300")
    part = account_of(m)
    back = m / "acct1/Tab/back"
    back.mkdir()
    restored, stop = [], threading.Event()

    def remove(k):
        while not stop.is_set():
            put(part / f"{k}.json", '{"v": 1}')
            os.unlink(part / f"{k}.json")

    threads = [threading.Thread(target=remove, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
    while len(restored) < 3000 and all(t.is_alive() for t in threads):
        for file in kept(m)[:12]:
            name = f"{len(restored)}.json"
            try:
                os.rename(file, back / name)
            except FileNotFoundError:
                continue
            restored.append(name)
    stop.set()
    for t in threads:
        t.join()
    assert len(restored) >= 3000 and rows(back) == sorted(restored)
    assert sum(os.stat(f).st_size for f in kept(m)) <= 300


def test_Y5_open_readers_keep_the_row(mnt, part):
    put(part / "r.json", '{"v":1}')
    with open(part / "r.json", "rb") as f:
        os.unlink(part / "r.json")
        put(part / "r.json", '{"other":"row"}')
        assert os.fstat(f.fileno()).st_nlink == 0
        assert f.read() == b'{"v":1}'
    os.rename(kept(mnt)[0], part / "old.json")
    assert get(part / "old.json") == b'{"v":1}' and get(part / "r.json") == b'{"other":"row"}'


def test_Y5_a_writer_of_a_removed_row_is_told(mnt, part):
    put(part / "r.json", '{"v":1}')
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_TRUNC)
    os.write(fd, b'{"v":2}')
    os.unlink(part / "r.json")
    with raises("ESTALE"):
        os.close(fd)
    assert [get(f) for f in kept(mnt)] == [b'{"v":1}'] and rows(part) == []


# ---- Y6: tools that remove before they make


@pytest.mark.parametrize("command", [
    "cp --remove-destination new r.json", "install -m 644 new r.json",
    "tar -C in -cf t.tar r.json && tar -C P --unlink-first -xf ../t.tar",
    "rm r.json && cp new r.json", "ln -f new r.json || (rm -f r.json; cp new r.json)"])
def test_Y6_the_row_before_is_in_the_trash(mnt, part, work, command):
    put(part / "r.json", '{"v":"old"}')
    (work / "in").mkdir()
    put(work / "in/r.json", '{"v":"new"}')
    command = (command.replace(" new", f" '{work}/in/r.json'").replace("-C in", f"-C '{work}/in'")
               .replace("-C P", f"-C '{part}'").replace("../t.tar", f"'{work}/t.tar'")
               .replace("-cf t.tar", f"-cf '{work}/t.tar'"))
    sh(command, cwd=part)
    assert json.loads(get(part / "r.json")) == {"v": "new"}
    assert [get(f) for f in kept(mnt)] == [b'{"v":"old"}']


def test_Y6_rm_r_of_a_partition_and_back(mnt, part, table):
    need("rsync")
    want = {}
    for i in range(200):
        put(part / f"{i}.json", json.dumps({"i": i}))
        want[f"{i}.json"] = get(part / f"{i}.json")
    sh(f"rm -r '{part}'")
    assert not part.exists()
    part.mkdir()
    sh(f"""cd '{trash(mnt)}' && for f in *-Blogs-Channel_19-*.json; do
           mv "$f" '{part}'/"${{f##*-}}"; done""")
    assert {name: get(part / name) for name in rows(part)} == want
    assert rows(trash(mnt)) == []
