# SPDX-License-Identifier: MIT
"""`rowfs salvage`, and `rowfs export --skip-damaged` of a store that nobody serves: every row whose
pages are sound comes out of a damaged file, and none that was replaced or removed (BK2, BK6)."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import sqlite3
import tempfile

import pytest

import damage
import store_pages
from old_schema import without_maps
from tools import on_terminal

PAGE = damage.PAGE
MANY = 20000
# The roots of two tables.  Page 2 is a map of other pages.
ITEMS, DOCUMENTS = 3, 4


def key(row):
    return row["PartitionKey"], row["RowKey"]


def plain(line):
    row = json.loads(line)
    return {k: v for k, v in row.items() if not k.startswith("Timestamp")}


@pytest.fixture(scope="module")
def many(rowfs):
    """20,000 rows, one of them on several pages."""
    work = pathlib.Path(tempfile.mkdtemp(prefix="rowfs-test-"))
    store = work / "many.rowfs"
    rowfs("init", store)
    rowfs("account", "add", store, "abc")
    rows = [{"PartitionKey": f"p{i % 20:02}", "RowKey": f"{i:06}", "S": "x" * (i % 300)}
            for i in range(MANY - 1)]
    rows.append({"PartitionKey": "q", "RowKey": "large", "S": "y" * 30000})
    rowfs("import", store, "abc/Tab", input="".join(json.dumps(r) + "\n" for r in rows))
    yield store, {key(r): r for r in rows}
    shutil.rmtree(work, ignore_errors=True)


@pytest.fixture
def damaged(many, work):
    path = work / "damaged.rowfs"
    shutil.copy(many[0], path)
    return path


def salvaged(rowfs, store, new, *args):
    """Its rows, by both ways; what the salvage said."""
    done = rowfs("export", "--skip-damaged", store, "abc/Tab", check=False)
    exported = [plain(line) for line in done.stdout.splitlines()]
    made = rowfs("salvage", store, new, "--json", *args, check=False)
    assert made.returncode == done.returncode, made.stderr + done.stderr
    result = json.loads(made.stdout)
    assert rowfs("check", new).stdout.rstrip().endswith("clean")
    rows = []
    if result["rows"] > 0:
        rows = [plain(line) for line in rowfs("export", new, "abc/Tab").stdout.splitlines()]
    if not args:
        assert rows == exported
    assert oct(new.stat().st_mode & 0o777) == "0o600"
    return {key(r): r for r in rows}, result, made.stderr


@pytest.mark.parametrize("page, maps", [(n, True) for n in range(1, 7)] + [(n, False) for n in range(1, 6)])
def test_BK2_no_page_at_the_beginning_costs_more_than_its_rows(rowfs, many, damaged, work, page, maps):
    if not maps:
        without_maps(damaged)
    damage.patch((page - 1) * PAGE + 200, b"\xff" * 8)(damaged)
    before = damaged.read_bytes()
    rows, result, said = salvaged(rowfs, damaged, work / "new.rowfs")
    assert rows == many[1]
    assert result["lost_pages"] == 1 and result["rows"] == MANY
    assert "1 of " in said and "pages of the file are missing or damaged" in said
    assert damaged.read_bytes() == before


@pytest.mark.parametrize("share,rest", [(0.9, 0), (0.5, 1000), (0.999, 2000)])
def test_BK2_a_file_that_is_cut_short_costs_what_is_missing(rowfs, many, damaged, work, share, rest):
    size = int(damaged.stat().st_size * share) // PAGE * PAGE + rest
    damage.cut(size)(damaged)
    rows, result, said = salvaged(rowfs, damaged, work / "new.rowfs")
    assert all(many[1][k] == r for k, r in rows.items())
    assert len(rows) > MANY * (share - 0.02) and len(rows) < MANY
    missing = many[0].stat().st_size // PAGE - size // PAGE
    assert result["lost_pages"] == missing
    # By partition: each lost row is counted somewhere.
    counted = sum(int(line.split(": ")[-1].split()[0]) for line in said.splitlines()
                  if line.endswith("rows and files are lost"))
    assert counted == MANY - len(rows)


def test_a_file_that_is_cut_short_is_called_so(rowfs, damaged):
    size = damaged.stat().st_size
    damage.cut(size - 5 * PAGE + 100)(damaged)
    for command in (["account", "add", damaged, "xyz"], ["check", damaged]):
        done = rowfs(*command, check=False)
        assert done.returncode == 1
        text = done.stdout + done.stderr
        assert f"{size - 5 * PAGE + 100} of {size} bytes" in text and "cut short" in text
        assert "where a store begins" not in text


def test_BK6_everything_of_a_sound_store_is_in_the_new_one(rowfs, store, work, mount):
    """Accounts with their keys, policies, files, trash, attributes: item for item."""
    rowfs("account", "add", store, "abc")
    m = mount(store)
    part = m / "abc/Tab/p"
    part.mkdir(parents=True)
    (part / "row.json").write_text('{"A": 1}\n')
    (part / "large").write_bytes(os.urandom(70000))
    (part / "small").write_bytes(b"x" * 100)
    (part / ".d/.e").mkdir(parents=True)
    (part / ".d/.e/deep").write_text("x")
    (part / "gone.json").write_text('{"A": 1}')
    (part / "gone.json").unlink()
    os.chmod(part / "row.json", 0o600)
    m.umount()
    new = work / "new.rowfs"
    assert rowfs("salvage", store, new).stderr == ""
    for args in (["account", "keys"], ["export"]):
        assert len({rowfs(*args, s, "abc/Tab" if args == ["export"] else "abc").stdout
                    for s in (store, new)}) == 1
    for table in "item", "obj", "chunk":
        content = []
        for s in store, new:
            with contextlib.closing(sqlite3.connect(f"file:{s}?mode=ro&immutable=1", uri=True)) as db:
                content.append(sorted(map(repr, db.execute(f"SELECT * FROM {table}"))))
        assert content[0] == content[1]


def replace_and_remove(path):
    """Half of the rows are removed, the others replaced, and what stood on freed pages stays on disk,
    as it does where SQLite is built without SECURE_DELETE."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA secure_delete=OFF")
        ids = [i for i, in db.execute("SELECT id FROM item WHERE kind=4 AND key>=CAST('010000' AS BLOB)"
                                      " AND key<CAST('a' AS BLOB)")]
        db.execute("BEGIN")
        for i in ids:
            db.execute("DELETE FROM obj WHERE id=?", (i,))
        db.execute("DELETE FROM item WHERE kind=4 AND key>=CAST('010000' AS BLOB) AND"
                   " key<CAST('a' AS BLOB)")
        db.execute("UPDATE item SET size=(SELECT count(*) FROM item c WHERE c.parent=item.id)"
                   " WHERE kind=3")
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store_pages.seal(path)


@pytest.mark.parametrize("page", [ITEMS, DOCUMENTS])
def test_BK6_what_stands_on_free_pages_does_not_come_back(rowfs, many, damaged, work, page):
    replace_and_remove(damaged)
    assert b'"RowKey"' not in damaged.read_bytes()[:200]
    with open(damaged, "rb") as f:
        assert int.from_bytes(f.read(40)[36:], "big") > 100  # free pages
    wanted = {k: r for k, r in many[1].items() if k[1] < "010000" or k[1] > "a"}
    rowfs("check", damaged)
    damage.patch((page - 1) * PAGE + 200, b"\xff" * 8)(damaged)
    rows, result, _ = salvaged(rowfs, damaged, work / "new.rowfs")
    assert rows == wanted and result["doubtful"] == 0


def test_BK6_without_the_list_of_free_pages_what_may_be_old_is_left_out(rowfs, many, damaged, work):
    replace_and_remove(damaged)
    wanted = {k: r for k, r in many[1].items() if k[1] < "010000" or k[1] > "a"}
    with open(damaged, "rb") as f:
        trunk = int.from_bytes(f.read(36)[32:], "big")
    damage.patch((trunk - 1) * PAGE + 200, b"\xff" * 8)(damaged)
    # The trees are whole: what they do not lead to is over.
    rows, result, _ = salvaged(rowfs, damaged, work / "new.rowfs")
    assert rows == wanted and result["doubtful"] == 0
    # The list of the rows is damaged, too, but the documents are all known.
    damage.patch((ITEMS - 1) * PAGE + 200, b"\xff" * 8)(damaged)
    rows, result, _ = salvaged(rowfs, damaged, work / "new2.rowfs")
    assert rows == wanted and result["doubtful"] == 0
    # Now nothing tells which documents are current.
    damage.patch((DOCUMENTS - 1) * PAGE + 200, b"\xff" * 8)(damaged)
    rows, result, said = salvaged(rowfs, damaged, work / "new3.rowfs")
    assert rows == {} and result["doubtful"] >= len(wanted)
    assert "documents stand on pages that may be free" in said and "--doubtful takes them" in said
    rows, result, _ = salvaged(rowfs, damaged, work / "new4.rowfs", "--doubtful")
    assert all(rows[k] == r for k, r in wanted.items())


def test_BK6_the_log_of_a_killed_server_is_read(rowfs, damaged, work, mount, request):
    """What was acknowledged and not yet copied into the store is in its log."""
    request.node.no_store_check = True
    m = mount(damaged)
    for name in "new", "000000":
        (m / "abc/Tab/p00" / f"{name}.json").write_text('{"N": 1}')
    (m / "abc/Tab/p00/000020.json").unlink()
    m.force()
    assert pathlib.Path(f"{damaged}-wal").stat().st_size > 0
    damage.patch(100 * PAGE + 200, b"\xff" * 8)(damaged)
    rows, result, _ = salvaged(rowfs, damaged, work / "new.rowfs")
    assert result["lost_pages"] == 1
    assert rows[("p00", "new")]["N"] == 1 and rows[("p00", "000000")]["N"] == 1
    assert ("p00", "000020") not in rows
    assert len(rows) > MANY - 60


def test_AD15_salvage_shows_pages_and_then_items_with_the_time_left(rowfs, damaged, work):
    seen = on_terminal(rowfs, "salvage", damaged, work / "new.rowfs")
    for unit in "pages", "items checked":
        assert re.search(rf"%  [\d,]+ {unit}  [\d,]+ {unit}/s  \d+:\d\d left", seen), (unit, seen)


def test_salvage_makes_nothing_where_it_cannot(rowfs, damaged, work):
    other = work / "other"
    other.write_bytes(os.urandom(3 * PAGE))
    new = work / "new.rowfs"
    done = rowfs("salvage", other, new, check=False)
    assert done.returncode == 1 and "no page" in done.stderr
    done = rowfs("salvage", work / "missing", new, check=False)
    assert done.returncode == 1 and "there is no store" in done.stderr
    done = rowfs("salvage", damaged, other, check=False)
    assert done.returncode == 1 and "exists already" in done.stderr
    done = rowfs("salvage", damaged, check=False)
    assert done.returncode == 2
    done = rowfs("salvage", damaged, work / "no/new", check=False)
    assert done.returncode == 1
    assert not new.exists() and not list(work.glob("*.part-*"))


def test_salvage_of_a_store_that_is_served_says_who_has_it(rowfs, store, work, mount):
    m = mount(store)
    done = rowfs("salvage", m.store, work / "new", check=False)
    assert done.returncode == 1 and "being served by process" in done.stderr
    assert not (work / "new").exists()
