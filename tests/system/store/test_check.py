# SPDX-License-Identifier: MIT
"""`rowfs check` finds every damage of damage.py, names it, and changes nothing."""

import errno
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile

import pytest

import calls
import conftest
import damage
import store_pages
from conftest import ENV

ROWS = {"plain": {"A": 1}, "typed": {"I@odata.type": "Edm.Int64", "I": "9007199254740993",
                                     "T@odata.type": "Edm.DateTime", "T": "1999-12-31T23:59:59Z",
                                     "B": True, "S": "é"}, "k" * 300: {"A": 1}}


@pytest.fixture(scope="module")
def sound(rowfs):
    """A closed store with something of everything, and no finding."""
    conftest.need_fuse()
    work = pathlib.Path(tempfile.mkdtemp(prefix="rowfs-test-"))
    store = work / "sound.rowfs"
    rowfs("init", store)
    rowfs("account", "add", store, "abc")
    lines = "".join(json.dumps({"PartitionKey": p, "RowKey": k, **v}) + "\n"
                    for p in "pq" for k, v in ROWS.items())
    rowfs("import", store, "abc/Tab", input=lines)
    m = conftest.Mount(rowfs, store, work / "mnt", [], work / "daemon.log")
    m.path.mkdir()
    m.start()
    try:
        part = m / "abc/Tab/p"
        (part / "spaced.json").write_text('{ "A" : 1 }\n')
        (part / "large").write_bytes(random.Random(1).randbytes(70000))
        (part / "small").write_bytes(b"x" * 100)
        (part / ".d/.e").mkdir(parents=True)
        (part / ".d/.e/deep").write_text("x")
        (part / "gone.json").write_text('{"A": 1}')
        (part / "gone.json").unlink()
        with pytest.raises(OSError):
            (part / "empty.json").write_text('{"A": [1]}')
        (part / "empty.json").touch()
        m.umount()
    finally:
        m.force()
    damage.by_sql(store, damage.body("<SignedIdentifiers></SignedIdentifiers>", damage.TABLE))
    rowfs("check", store)
    yield store
    shutil.rmtree(work, ignore_errors=True)


@pytest.fixture
def copy(sound, work):
    return pathlib.Path(shutil.copy(sound, work / "store.rowfs"))


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest(), os.stat(path).st_mtime_ns


def finds(rowfs, store, pattern):
    """Exit 1, in words, and the store is as it was."""
    before = digest(store), sorted(os.listdir(store.parent))
    done = rowfs("check", store, check=False)
    assert done.returncode == 1, done.stdout
    said = done.stdout + done.stderr
    assert re.search(pattern, said), said
    # It says which store, and what to do.
    assert str(store) in done.stderr
    assert re.search(r"backup|not a rowfs store|is an empty file|schema version|unfinished", done.stderr), said
    assert (digest(store), sorted(os.listdir(store.parent))) == before
    return said


@pytest.mark.parametrize("case", damage.SQL, ids=lambda c: c[0].replace(" ", "-"))
def test_BK1_a_mistake_in_the_tables_is_found(rowfs, copy, case):
    name, sql, pattern, *what = case
    damage.by_sql(copy, sql, *what)
    finds(rowfs, copy, pattern)


@pytest.mark.parametrize("case", damage.PAGES, ids=lambda c: c[0].replace(" ", "-"))
def test_damage_of_the_file_is_found(rowfs, copy, case):
    name, do, pattern = case
    do(copy)
    finds(rowfs, copy, pattern)


def test_each_page_that_is_zeroed_or_flipped_is_found_and_named(rowfs, copy, sound):
    size = os.path.getsize(copy)
    assert size % damage.PAGE == 0 and size // damage.PAGE > 10
    rng = random.Random(7)
    whole = sound.read_bytes()
    for page in range(size // damage.PAGE):
        at = page * damage.PAGE
        every = os.environ.get("ROWFS_EVERY_CALL")
        for kind in ("zeros", "bit") if every else (("zeros", "bit")[page % 2],):
            data = bytearray(whole)
            if kind == "zeros":
                data[at:at + damage.PAGE] = bytes(damage.PAGE)
            else:
                data[at + rng.randrange(damage.PAGE)] ^= 1 << rng.randrange(8)
            copy.write_bytes(data)
            said = finds(rowfs, copy, "damaged|not a rowfs store|schema version")
            if page > 3:  # of the pages before it cannot be opened at all
                assert f"from byte {at} on" in said or "where a store begins" in said, (page, kind, said)


def test_a_page_that_is_zeroed_is_found_without_checksums_too(rowfs, copy, sound):
    """What a store of an older schema can do, where pages have none: what it cannot know is the
    content of ordinary files."""
    content = random.Random(1).randbytes(70000)
    missed = []
    for page in range(os.path.getsize(sound) // damage.PAGE):
        shutil.copy(sound, copy)
        damage.patch(page * damage.PAGE, bytes(damage.PAGE))(copy)
        store_pages.seal(copy)
        done = rowfs("check", copy, check=False)
        at = page * damage.PAGE + 1024
        if done.returncode != 1 and sound.read_bytes()[at:at + 64] not in content:
            missed.append(page)
    assert not missed


def test_a_served_store_is_checked_through_its_server(rowfs, copy, serve, request):
    request.node.no_store_check = True
    damage.by_sql(copy, damage.document('{"A":'))
    damage.by_sql(copy, f"UPDATE item SET size=99 WHERE id={damage.PARTITION}")
    server = serve(copy)
    done = rowfs("check", copy, check=False)
    assert done.returncode == 1 and "abc/Tab/p/plain: " in done.stdout
    assert "abc/Tab/p: directory counts 99 children" in done.stdout
    server.stop()


def test_findings_and_counts_are_an_object_on_wish(rowfs, sound, copy):
    told = json.loads(rowfs("check", "--json", sound).stdout)
    assert told["clean"] and told["findings"] == [] and told["found"] == 0
    assert (told["accounts"], told["tables"], told["partitions"]) == (1, 1, 2)
    assert f'{told["rows"]} rows, {told["files"]} ordinary' in rowfs("check", sound).stdout
    damage.by_sql(copy, damage.document('{"A":'))
    done = rowfs("check", "--json", copy, check=False)
    told = json.loads(done.stdout)
    assert done.returncode == 1 and not told["clean"] and told["found"] == len(told["findings"]) > 0
    assert told["findings"] == rowfs("check", copy, check=False).stdout.splitlines()[:-1]


def test_what_is_sound_beside_damage_is_verified_on(rowfs, copy):
    """A damaged partition does not hide what is wrong in the next one."""
    damage.by_sql(copy, "UPDATE obj SET body=CAST('{' AS BLOB) WHERE id IN"
                        " (SELECT id FROM item WHERE kind=4 AND key=CAST('plain' AS BLOB));"
                        "UPDATE item SET size=1, flags=NULL WHERE kind=4 AND key=CAST('plain' AS BLOB)")
    said = finds(rowfs, copy, "abc/Tab/p/plain: ")
    assert "abc/Tab/q/plain: " in said


def test_check_on_a_read_only_disk(rowfs, sound, small_disk):
    store = pathlib.Path(shutil.copy(sound, small_disk / "store.rowfs"))
    bad = pathlib.Path(shutil.copy(sound, small_disk / "bad.rowfs"))
    damage.by_sql(bad, f"DELETE FROM obj WHERE id={damage.ROW}")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    rowfs("check", store)
    finds(rowfs, bad, "it has no document row")


def test_check_changes_nothing_of_a_sound_store(rowfs, copy):
    before = digest(copy)
    rowfs("check", copy)
    assert digest(copy) == before and os.listdir(copy.parent) == [copy.name]


def test_check_after_a_kill_leaves_nothing_for_good(rowfs, store, serve):
    """Who reads a log without replaying it makes an index of it; the next opening drops that."""
    server = serve(store)
    rowfs("account", "add", store, "abc")
    server.kill9()
    rowfs("check", store)
    rowfs("account", "list", store)
    assert os.listdir(store.parent).count(f"{store.name}-shm") == 0
    assert not os.path.exists(f"{store}-wal")


def test_garbage_in_the_log_is_no_row(rowfs, store, serve, work, request):
    """A log that a power cut left half written, and worse: what SQLite's checksums of its frames
    do not vouch for is not read, and what is read is a moment that was."""
    rowfs("account", "add", store, "abc")
    server = serve(store)
    for i in range(20):
        rowfs("import", store, "abc/Tab", input=json.dumps({"PartitionKey": "p", "RowKey": f"{i:02}"}) + "\n")
    os.killpg(server.proc.pid, signal.SIGKILL)
    server.proc.wait()
    log = pathlib.Path(f"{store}-wal")
    whole, data = store.read_bytes(), log.read_bytes()
    rng = random.Random(3)
    for i in range(20):
        bad = bytearray(data)
        at = rng.randrange(len(bad))
        bad[at:at + 64] = rng.randbytes(len(bad[at:at + 64]))
        store.write_bytes(whole)
        log.write_bytes(bad[:rng.randrange(at, len(bad) + 1)])
        done = rowfs("check", store, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        done = rowfs("export", store, "abc/Tab", check=False)
        found = [json.loads(line)["RowKey"] for line in done.stdout.splitlines()]
        assert found == [f"{i:02}" for i in range(len(found))]
    store.write_bytes(whole)
    log.write_bytes(data)
    assert len(rowfs("export", store, "abc/Tab").stdout.splitlines()) == 20


# ---- what can be read is not lost


def test_BK2_rows_beside_damaged_ones_can_be_written_out(rowfs, copy):
    good = rowfs("export", copy, "abc/Tab").stdout.splitlines()
    assert rowfs("export", copy, "abc/Tab", "--skip-damaged").stdout.splitlines() == good
    damage.by_sql(copy, damage.document('{"A":'))
    assert rowfs("export", copy, "abc/Tab", check=False).returncode == 1
    done = rowfs("export", copy, "abc/Tab", "--skip-damaged", check=False)
    assert done.returncode == 1
    assert "PartitionKey 'p', RowKey 'plain': " in done.stderr
    assert f"{len(good) - 1} rows were written; what is told above was left out" in done.stderr
    left = [line for line in good if not ('"p"' in line and '"plain"' in line)]
    assert done.stdout.splitlines() == left


def test_rows_on_sound_pages_can_be_written_out(rowfs, store, work):
    """A page of a disk is gone: its rows are told, all others come out."""
    rowfs("account", "add", store, "abc")
    rows = [{"PartitionKey": f"p{i // 100}", "RowKey": f"{i:04}", "S": "x" * 200} for i in range(2000)]
    rowfs("import", store, "abc/Tab", input="".join(json.dumps(r) + "\n" for r in rows))
    data = bytearray(store.read_bytes())
    at = data.index(b'"' + b"x" * 200 + b'"') // damage.PAGE * damage.PAGE
    data[at + 100] ^= 1
    store.write_bytes(data)
    done = rowfs("export", store, "abc/Tab", "--skip-damaged", check=False)
    assert done.returncode == 1
    out = {(r["PartitionKey"], r["RowKey"]) for r in map(json.loads, done.stdout.splitlines())}
    lost = {m for m in re.findall(r"PartitionKey '(\w+)', RowKey '(\w+)': it cannot be read", done.stderr)}
    assert 1 <= len(lost) < 60 and not out & lost
    assert out | lost == {(r["PartitionKey"], r["RowKey"]) for r in rows}


def test_a_read_that_fails_once_costs_no_row(rowfs, store, work):
    """As a bad disk does: the read of one page fails.  It is read again; the check says so."""
    rowfs("account", "add", store, "abc")
    rows = [{"PartitionKey": "p", "RowKey": f"{i:04}", "S": "x" * 900} for i in range(400)]
    rowfs("import", store, "abc/Tab", input="".join(json.dumps(r) + "\n" for r in rows))
    build = rowfs.program.parents[2]
    with calls.Control(work / "control") as control:
        for n in range(6, 100, 7):
            control.strike("fail", calls.READ, n)
            done = subprocess.run(
                [rowfs.program, "export", store, "abc/Tab", "--skip-damaged"],
                env=control.env(build, store, base=ENV), capture_output=True, text=True)
            assert control.struck and control.call.startswith("pread")
            out = [json.loads(line)["RowKey"] for line in done.stdout.splitlines()]
            assert out == [r["RowKey"] for r in rows]
        control.strike("fail", calls.READ, 50)
        done = subprocess.run([rowfs.program, "check", store],
                              env=control.env(build, store, base=ENV), capture_output=True, text=True)
        assert done.returncode == 1 and "1 finding" in done.stdout


def test_E10_a_damaged_row_is_told_with_its_name(rowfs, store, work, mount, request):
    request.node.no_store_check = True
    rowfs("account", "add", store, "abc")
    rows = [{"PartitionKey": "p", "RowKey": f"{i:04}", "S": "x" * 900, "N": i} for i in range(100)]
    rowfs("import", store, "abc/Tab", input="".join(json.dumps(r) + "\n" for r in rows))
    damage.patch(store.read_bytes().index(b'"N":50}'), b"?")(store)
    m = mount(store)
    row = m / "abc/Tab/p/0050.json"
    for call, act in (("open", row.read_bytes), ("unlink", row.unlink),
                      ("rename", lambda: row.rename(row.with_name("x.json")))):
        with pytest.raises(OSError) as caught:
            act()
        assert caught.value.errno == errno.EIO
        last = json.loads((m / ".rowfs/errors").read_text().splitlines()[-1])
        assert (last["call"], last["path"], last["errno"]) == (call, "abc/Tab/p/0050.json", errno.EIO)
        assert "damaged" in last["message"]
        for path in row, row.parent:
            assert b"damaged" in os.getxattr(path, "user.rowfs.error")
    assert os.getxattr(row, "user.rowfs.row_key") == b"0050"
    assert m.log().count('"path":"abc/Tab/p/0050.json"') == 3


@pytest.mark.parametrize("args", [["p"], ["--format=csv"], ["-o", "x"]])
def test_skip_damaged_is_of_a_whole_table_as_ndjson(rowfs, store, work, args):
    done = rowfs("export", store, "abc/Tab", "--skip-damaged", *args, check=False, cwd=work)
    assert done.returncode == 2 and "NDJSON" in done.stderr
