# SPDX-License-Identifier: MIT
"""docs/semantics.md: queries as directories (QD)."""

import concurrent.futures
import ctypes
import json
import os
import re
import signal
import stat
import subprocess
import threading
import time

import pytest

from rest_client import ACCOUNT, Client, ok
from tools import errors, get, need, put, raises, reason, rows, sanitized, sh, xattr


def lines(items):
    return "".join(json.dumps(row) + "\n" for row in items)


def row(pk, rk, **properties):
    return {"PartitionKey": pk, "RowKey": rk, **properties}


SAMPLE = [row(f"p{p}", f"r{i:02}", Rating=i % 10, Text=f"t {i}", Odd=bool(i & 1))
          for p in range(4) for i in range(20)]


@pytest.fixture
def blogs(rowfs, mount, store):
    """A table with SAMPLE in it, through one mount; .path of the mount is two above."""
    rowfs("account", "add", store, "acct1")
    m = mount(store)
    table = m / "acct1/Blogs"
    table.mkdir()
    rowfs("import", store, "acct1/Blogs", input=lines(SAMPLE))
    return table


def query(table, options):
    return table / ".query" / options


def tree(path):
    """{(partition's name, row's name): bytes} of all that find finds."""
    found = {}
    for part in os.listdir(path):
        assert os.path.isdir(path / part)
        for name in os.listdir(path / part):
            assert (part, name) not in found
            found[part, name] = get(path / part / name)
        assert os.listdir(path / part)
    return found


def live(table, wanted):
    """The same of the rows in SAMPLE that are wanted, from the mount itself."""
    return {(r["PartitionKey"], r["RowKey"] + ".json"):
            get(table / r["PartitionKey"] / (r["RowKey"] + ".json"))
            for r in SAMPLE if wanted(r)}


# ---- QD1: the matching rows, as they are


@pytest.mark.parametrize("options, wanted", [
    ("Rating ge 4", lambda r: r["Rating"] >= 4),
    ("$filter=Rating ge 4", lambda r: r["Rating"] >= 4),
    ("filter=Rating eq 7 and Odd", lambda r: r["Rating"] == 7),
    ("Rating eq 7 and not Odd", lambda r: False),
    ("PartitionKey eq 'p1'", lambda r: r["PartitionKey"] == "p1"),
    ("PartitionKey gt 'p1' and RowKey lt 'r03'",
     lambda r: r["PartitionKey"] > "p1" and r["RowKey"] < "r03"),
    ("RowKey eq 'r05'", lambda r: r["RowKey"] == "r05"),
    ("PartitionKey eq 'p2' and RowKey eq 'r05'",
     lambda r: (r["PartitionKey"], r["RowKey"]) == ("p2", "r05")),
    ("PartitionKey eq 'p0' or PartitionKey eq 'p3' and Rating lt 2",
     lambda r: r["PartitionKey"] == "p0" or r["PartitionKey"] == "p3" and r["Rating"] < 2),
    ("Text eq 't 11'", lambda r: r["Text"] == "t 11"),
    ("None eq 1", lambda r: False),
    ("top=1000", lambda r: True),
])
def test_QD1_the_tree_is_the_matching_rows(blogs, options, wanted):
    assert tree(query(blogs, options)) == live(blogs, wanted)
    for r in SAMPLE[::7]:
        path = query(blogs, options) / r["PartitionKey"] / (r["RowKey"] + ".json")
        assert path.exists() == wanted(r)


def test_QD1_it_lists_in_key_order_and_itself_not_at_all(blogs):
    assert os.listdir(blogs / ".query") == []
    path = query(blogs, "Rating lt 5")
    assert os.listdir(path) == ["p0", "p1", "p2", "p3"]
    want = [r["RowKey"] + ".json" for r in SAMPLE[:20] if r["Rating"] < 5]
    assert os.listdir(path / "p1") == want
    assert ".query" not in os.listdir(blogs)
    assert not (blogs / "p0/.query").exists() and not (blogs.parent / ".query").exists()


def test_QD1_what_does_not_match_is_not_there(blogs):
    path = query(blogs, "PartitionKey eq 'p1' and Rating eq 3")
    for name in ("p0", "p9", "p1/r04.json", "p1/r03", "p1/R03.json", "p1/r03.json.json",
                 "p1/none.json", "p1/.batch", ".rows.ndjson", "p1/plain", "%70%31", "p1/%72"):
        with raises("ENOENT"):
            os.stat(path / name)
    with raises("ENOTDIR"):
        os.listdir(path / "p1/r03.json")
    put(blogs / "p1/plain", "an ordinary file")
    with raises("ENOENT"):
        os.stat(path / "p1/plain")


def test_QD1_attributes_are_the_rows_own(blogs):
    at = blogs / "p2/r07.json"
    os.utime(at, ns=(1, 1_400_000_000_987_654_321))
    os.chmod(at, 0o640)
    os.chown(at, 77, 88)
    a, b = os.stat(at), os.stat(query(blogs, "Rating eq 7") / "p2/r07.json")
    for field in ("st_size", "st_mode", "st_uid", "st_gid", "st_mtime_ns", "st_nlink",
                  "st_blocks", "st_ctime_ns"):
        assert getattr(a, field) == getattr(b, field), field
    for name in ("etag", "timestamp", "partition_key", "row_key"):
        assert xattr(at, name) == xattr(query(blogs, "Rating eq 7") / "p2/r07.json", name)
    assert xattr(query(blogs, "Rating eq 7") / "p2", "partition_key") == "p2"
    assert os.listxattr(query(blogs, "Rating eq 7") / "p2/r07.json") == []
    st = os.stat(query(blogs, "Rating eq 7") / "p2")
    assert stat.S_ISDIR(st.st_mode) and st.st_nlink == 1


AWKWARD = ["", "it's", 'a "quoted" one', "a&b=c", "100%", ".dot", "\U0001f600 \uffee", "a b ",
           "k" * 300, "\u00e9" * 200, "%41", "x.json", "~", "+", "$top=1", "a;b|c>d"]


def test_QD1_awkward_keys(rest_store, rest_mount):
    m = rest_mount(rest_store)
    with Client(m.port) as c:
        ok(c.create_table("Tab"), 201)
        for pk in AWKWARD[::3]:
            for rk in AWKWARD:
                ok(c.insert("Tab", row(pk, rk, v=1)), 201)
    table = m / ACCOUNT / "Tab"
    want = {(p, n): get(table / p / n) for p in os.listdir(table) for n in os.listdir(table / p)}
    assert len(want) == len(AWKWARD[::3]) * len(AWKWARD)
    assert tree(query(table, "v eq 1")) == want
    assert [p for p, _ in want] == [p for p, _ in tree(query(table, "v eq 1"))]
    assert list(want) == list(tree(query(table, "v eq 1")))
    # The key may stand in the options, too.
    for key in AWKWARD:
        text = key.replace("'", "''").replace("%", "%25").replace("/", "%2F")
        found = tree(query(table, f"RowKey eq '{text}'"))
        assert {n for _, n in found} == {n for (p, n) in want
                                         if xattr(table / p / n, "row_key") == key}
        assert len(found) == len(AWKWARD[::3]), key


def test_QD1_both_front_ends_say_the_same(rest_store, rest_mount):
    m = rest_mount(rest_store)
    with Client(m.port) as c:
        ok(c.create_table("Tab"), 201)
        for r in SAMPLE:
            ok(c.insert("Tab", r), 201)
        for text in ("Rating gt 3 and Rating le 6", "not (Rating lt 8)", "Odd eq true",
                     "Text ge 't 15' or PartitionKey eq 'p3'", "RowKey ge 'r10' and Rating ne 3",
                     "Timestamp gt datetime'2020-01-01T00:00:00Z'", "Rating eq 5L",
                     "PartitionKey ge 'p1' and PartitionKey lt 'p3' and Rating gt 7.5"):
            want = {(r["PartitionKey"], r["RowKey"] + ".json") for r in c.all("Tab", filter=text)}
            assert set(tree(query(m / ACCOUNT / "Tab", text))) == want, text


# ---- QD2: select and top


def test_QD2_select_shows_a_part_of_the_exact_size(blogs):
    path = query(blogs, "Rating eq 4&select=Text, Rating,Missing") / "p1/r14.json"
    assert get(path) == b'{"Text":"t 14","Rating":4}\n'
    assert os.stat(path).st_size == len(get(path))
    path = query(blogs, "$select=RowKey,PartitionKey,Odd") / "p1/r14.json"
    assert json.loads(get(path)) == {"PartitionKey": "p1", "RowKey": "r14", "Odd": False}
    path = query(blogs, "select=Timestamp") / "p1/r14.json"
    assert json.loads(get(path))["Timestamp"] == xattr(blogs / "p1/r14.json", "timestamp")
    assert get(query(blogs, "select=Missing") / "p1/r14.json") == b"{}\n"
    assert get(query(blogs, "select=*") / "p1/r14.json") == get(blogs / "p1/r14.json")
    assert tree(query(blogs, "select=Text")).keys() == live(blogs, lambda r: True).keys()


def test_QD2_select_keeps_the_keys_of_long_names(rest_store, rest_mount):
    m = rest_mount(rest_store)
    with Client(m.port) as c:
        ok(c.create_table("Tab"), 201)
        ok(c.insert("Tab", row("p", "k" * 400, a=1, b=2)), 201)
    [(at, text)] = tree(query(m / ACCOUNT / "Tab", "select=b")).items()
    assert json.loads(text) == {"PartitionKey": "p", "RowKey": "k" * 400, "b": 2}


@pytest.mark.parametrize("top", [1, 2, 3, 7, 8, 9, 15, 16, 17, 10**9])
def test_QD2_top_is_the_first_so_many_for_every_way_to_look(blogs, top):
    path = query(blogs, f"Rating ge 8&top={top}")
    want = live(blogs, lambda r: r["Rating"] >= 8)
    want = dict(list(want.items())[:top])
    assert tree(path) == want
    found = sh(f"find '{path}' -type f -printf '%P\\n'").stdout.splitlines()
    assert found == ["/".join(k) for k in want]
    for r in SAMPLE:
        at = (r["PartitionKey"], r["RowKey"] + ".json")
        assert (path / at[0] / at[1]).exists() == (at in want)
    assert get(query(blogs, f"Rating ge 8&top={top}.count")).strip() == b"%d" % len(want)


def test_QD2_top_follows_the_changes(rest_store, rest_mount):
    m = rest_mount(rest_store)
    table = m / ACCOUNT / "Tab"
    with Client(m.port) as c:
        ok(c.create_table("Tab"), 201)
        for i in range(10):
            ok(c.insert("Tab", row("p", f"{i}", v=i)), 201)
        path = query(table, "v ge 2&top=3")
        assert os.listdir(path / "p") == ["2.json", "3.json", "4.json"]
        ok(c.delete("Tab", "p", "3"), 204)
        assert os.listdir(path / "p") == ["2.json", "4.json", "5.json"]
        put(table / "p/1.json", '{"v": 50}')
        assert os.listdir(path / "p") == ["1.json", "2.json", "4.json"]
        assert not (path / "p/5.json").exists()
        os.rename(table / "p/1.json", table / "p/99.json")
        assert (path / "p/5.json").exists() and not (path / "p/99.json").exists()
        ok(c.insert("Tab", row("a", "first", v=2)), 201)
        assert sorted(tree(path)) == [("a", "first.json"), ("p", "2.json"), ("p", "4.json")]


# ---- QD3: names


@pytest.mark.parametrize("options, said", [
    ("Rating gee 4", "position 10"), ("filter=Rating ge", "position"), ("(Rating ge 4", "position"),
    ("filter='", "position"), ("Rating ge 4&tpo=1", "tpo"), ("top=0", "top"), ("top=x", "top"),
    ("top=1&top=2", "top"), ("$top=1&top=2", "top"), ("Rating ge 4&filter=Odd", "filter"),
    ("select=a b", ""), ("select=,", ""), ("Rating ge %zz", "%"), ("Rating ge 4%", "%"),
    ("Rating gee 4.ndjson", "position 10"), ("top=0.count", "top")])
def test_QD3_bad_options_say_where(blogs, options, said):
    with raises("EINVAL"):
        os.stat(query(blogs, options))
    assert said in reason(blogs / ".query"), reason(blogs / ".query")
    last = errors(blogs.parent.parent)[-1]
    assert last["path"].startswith("acct1/Blogs/.query") and last["errno"] == 22
    assert said in last["message"]
    assert sh(f'ls "{query(blogs, options)}"', check=False).stderr.count("Invalid argument") == 1


def test_QD3_a_filter_that_is_not_utf8(blogs):
    with raises("EINVAL", "EILSEQ"):
        os.stat(os.fsencode(blogs / ".query") + b"/Text eq '\xff'")


def test_QD3_long_options(blogs):
    """Up to what the kernel takes for one path."""
    fd = os.open(blogs / ".query", os.O_RDONLY)
    try:
        for length in (255, 256, 1000, 4000):
            text = "Text eq 't 3'" + " or Text eq 't 4'" * 400
            text = text[:length].rsplit(" or ", 1)[0]
            text += " " * (length - len(text))
            d = os.open(text, os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
            assert os.listdir(d) == ["p0", "p1", "p2", "p3"]
            os.close(d)
        with raises("ENAMETOOLONG"):
            os.stat("Text eq '" + "x" * 4090 + "'", dir_fd=fd)
    finally:
        os.close(fd)
    assert os.statvfs(blogs).f_namemax == 255


def test_QD3_shell_spellings(blogs):
    put(blogs / "p0/it.json", json.dumps({"Text": "it's & \"that\" = \U0001f600 <>|;$(x)", "n": 1}))
    text = "Text eq 'it''s & \"that\" = \U0001f600 <>|;$(x)'"
    assert list(tree(query(blogs, text))) == [("p0", "it.json")]
    done = sh("cat ./*/it.json", cwd=query(blogs, text))
    assert json.loads(done.stdout)["n"] == 1
    assert os.listdir(query(blogs, "Text eq 'a%2Fb'")) == []
    put(blogs / "p0/slash.json", '{"Text": "a/b"}')
    assert list(tree(query(blogs, "Text eq 'a%2Fb'"))) == [("p0", "slash.json")]


def test_QD3_a_suffix_makes_a_file_of_it(blogs):
    for suffix in ("ndjson", "json", "csv", "count", "explain"):
        path = query(blogs, f"Rating eq 4.{suffix}")
        assert stat.S_ISREG(os.stat(path).st_mode) and os.stat(path).st_size == len(get(path))
        with raises("ENOTDIR"):
            os.listdir(path)
        with raises("ENOTDIR"):
            os.stat(path / "p1")
        with raises("EROFS"):
            put(path, "x")
    text = get(query(blogs, "Rating eq 4.ndjson"))
    names = [r["RowKey"] for r in map(json.loads, text.splitlines())]
    assert names == ["r04", "r14"] * 4


# ---- QD4: nothing can be changed there


def test_QD4_every_change_is_refused(blogs):
    path = query(blogs, "Rating eq 4")
    file, before = path / "p1/r04.json", get(blogs / "p1/r04.json")
    put(blogs / "p1/plain", "x")
    for change in (lambda: put(file, "{}"),
                   lambda: os.close(os.open(file, os.O_RDWR)),
                   lambda: os.close(os.open(file, os.O_WRONLY | os.O_APPEND)),
                   lambda: os.truncate(file, 0),
                   lambda: put(path / "p1/new.json", "{}"),
                   lambda: put(path / "p1/plain", "x"),
                   lambda: os.unlink(file),
                   lambda: os.rmdir(path / "p1"),
                   lambda: os.rmdir(path),
                   lambda: os.mkdir(path / "new"),
                   lambda: os.mkdir(blogs / ".query/top=0"),
                   lambda: put(blogs / ".query/top=0", "x"),
                   lambda: os.chmod(file, 0o600),
                   lambda: os.chown(file, 1, 1),
                   lambda: os.utime(file),
                   lambda: os.utime(path / "p1"),
                   lambda: os.setxattr(file, "user.rowfs.if_match", b"*"),
                   lambda: os.link(file, path / "p1/link.json"),
                   lambda: os.symlink("x", path / "p1/link"),
                   lambda: os.rename(file, path / "p1/other.json"),
                   lambda: os.rename(file, blogs / "p1/other.json"),
                   lambda: os.rename(blogs / "p1/r05.json", file),
                   lambda: os.rename(blogs / "p1/plain", path / "p1/new.json"),
                   lambda: os.rename(path / "p1", blogs / "p9"),
                   lambda: os.rename(path, blogs / "p9"),
                   lambda: os.rename(blogs / "p1", path / "p9")):
        with raises("EROFS", "EPERM", "EINVAL"):
            change()
    assert get(blogs / "p1/r04.json") == before and get(file) == before
    assert set(rows(blogs)) == {"p0", "p1", "p2", "p3"}
    for change in (lambda: put(file, "{}"), lambda: os.unlink(file),
                   lambda: os.rename(file, blogs / "p1/other.json"),
                   lambda: os.rename(blogs / "p1/r05.json", file),
                   lambda: os.chmod(file, 0o600), lambda: os.rmdir(path / "p1"),
                   lambda: put(path / "p1/new.json", "{}"), lambda: os.mkdir(path / "new")):
        with raises("EROFS"):
            change()


def test_QD4_rm_r_says_so_for_each_row_and_the_rows_stay(blogs):
    done = sh(f"rm -r '{query(blogs, 'Rating eq 4')}'", check=False)
    assert done.returncode == 1
    assert done.stderr.count("Read-only file system") >= 8
    assert len(tree(query(blogs, "Rating eq 4"))) == 8


# ---- QD5: a row in a query is another file than the row


def test_QD5_inode_numbers_are_their_own_and_stay(blogs):
    a, b = query(blogs, "Rating eq 4"), query(blogs, "Rating ge 4")

    def numbers():
        found = {}
        for top in (a, b, blogs):
            for d, _, names in os.walk(top):
                for n in [*names, "."]:
                    found[os.path.join(d, n)] = os.stat(os.path.join(d, n)).st_ino
        return found

    first = numbers()
    assert len(set(first.values())) == len(first)
    with os.scandir(a / "p1") as it:
        assert {e.name: e.inode() for e in it} == {
            n: os.stat(a / "p1" / n).st_ino for n in os.listdir(a / "p1")}
    put(blogs / "p1/r04.json", '{"Rating": 4, "new": true}')
    assert numbers() == first


def test_QD5_they_stay_over_a_remount(rowfs, mount, store):
    rowfs("account", "add", store, "acct1")
    m = mount(store)
    (m / "acct1/Blogs").mkdir()
    rowfs("import", store, "acct1/Blogs", input=lines(SAMPLE))
    path = query(m / "acct1/Blogs", "Rating eq 4")
    before = [os.stat(path / at).st_ino for at in (".", "p1", "p1/r04.json", "p2/r14.json")]
    m.remount()
    assert before == [os.stat(path / at).st_ino for at in (".", "p1", "p1/r04.json",
                                                           "p2/r14.json")]


def test_QD5_tools_take_them_for_two_files(blogs, work):
    path = query(blogs, "Rating eq 4")
    listing = sh(f"tar cf - '{blogs}/p1' '{path}' 2>/dev/null | tar tvf -").stdout
    assert not re.search(r"^h|link to", listing, re.M)
    sh(f"cp '{path}/p1/r04.json' '{work}/was'")
    put(blogs / "p1/r04.json", '{"Rating": 5}')
    assert sh(f"cmp '{work}/was' '{blogs}/p1/r04.json'", check=False).returncode == 1
    sh(f"cp '{path}/p1/r14.json' '{blogs}/p1/r14.json'")


# ---- QD6: it is live


def test_QD6_the_next_look_sees_every_change(rest_store, rest_mount):
    m = rest_mount(rest_store)
    table = m / ACCOUNT / "Tab"
    path = query(table, "v ge 5")
    with Client(m.port) as c:
        ok(c.create_table("Tab"), 201)
        assert os.listdir(path) == [] and not (path / "p").exists()
        ok(c.insert("Tab", row("p", "r", v=7)), 201)
        for i in range(30):
            assert os.listdir(path) == ["p"] and os.listdir(path / "p") == ["r.json"]
            assert json.loads(get(path / "p/r.json"))["v"] == 7 + i
            assert os.stat(path / "p/r.json").st_size == os.stat(table / "p/r.json").st_size
            if i % 2:
                put(table / "p/r.json", json.dumps({"v": 8 + i, "pad": "x" * i}))
            else:
                ok(c.replace("Tab", "p", "r", {"v": 8 + i, "pad": "x" * i}), 204)
        ok(c.merge("Tab", "p", "r", {"v": 4}), 204)
        assert os.listdir(path) == []
        for at in ("p", "p/r.json"):
            with raises("ENOENT"):
                os.stat(path / at)
        ok(c.merge("Tab", "p", "r", {"v": 5}), 204)
        assert (path / "p/r.json").exists()
        os.unlink(table / "p/r.json")
        assert not (path / "p/r.json").exists()
        os.rename(table, m / ACCOUNT / "Other")
        with raises("ENOENT"):
            os.stat(path)


def test_QD6_a_row_that_is_renamed_back_is_of_its_new_version(blogs):
    """The bytes are the same, so is the name: what was known of the version before is not."""
    at, seen = blogs / "p1/r14.json", query(blogs, "Rating eq 4") / "p1/r14.json"
    with open(seen, "rb"):
        was = xattr(seen, "etag")
        os.rename(at, blogs / "p1/away.json")
        os.rename(blogs / "p1/away.json", at)
        for name in ("etag", "timestamp"):
            assert xattr(seen, name) == xattr(at, name)
        assert xattr(seen, "etag") != was


def test_QD6_a_selected_timestamp_is_that_of_the_rename(blogs):
    """The bytes of the row were read before it."""
    at, to, options = blogs / "p1/r14.json", blogs / "p1/to.json", "select=Timestamp"
    assert json.loads(get(query(blogs, options) / "p1/r14.json"))["Timestamp"] == xattr(
        at, "timestamp")
    for _ in range(3):  # zeros at the end are left out: not every version is of another size
        os.rename(at, to)
        path = query(blogs, options) / "p1" / to.name
        assert os.stat(path).st_size == len(get(path))
        assert json.loads(get(path))["Timestamp"] == xattr(to, "timestamp")
        at, to = to, at


def test_QD6_an_open_file_keeps_what_it_was(blogs):
    path = query(blogs, "Rating eq 4") / "p1/r04.json"
    before = get(path)
    with open(path, "rb") as f, open(path, "rb") as g:
        put(blogs / "p1/r04.json", json.dumps({"Rating": 4, "pad": "x" * 5000}))
        assert os.fstat(f.fileno()).st_size == len(before) and f.read() == before
        assert os.stat(path).st_size > 5000 and len(get(path)) > 5000
        os.unlink(blogs / "p1/r04.json")
        assert os.fstat(g.fileno()).st_size == len(before) and g.read() == before
        assert os.fstat(g.fileno()).st_nlink == 0
    assert not path.exists()


def test_QD6_readers_beside_writers_see_whole_rows(blogs):
    path = query(blogs, "Rating eq 4 and RowKey eq 'r04'") / "p1/r04.json"
    stop, wrong, reads = threading.Event(), [], [0]

    def write():
        n = 0
        while not stop.is_set():
            n += 1
            put(blogs / "p1/r04.json", json.dumps({"Rating": 4, "n": n, "pad": "x" * (n % 977)}))

    def read():
        while not stop.is_set():
            try:
                with open(path, "rb") as f:
                    size = os.fstat(f.fileno()).st_size
                    data = f.read()
                doc = json.loads(data)
                if len(data) != size or ("n" in doc and len(doc["pad"]) != doc["n"] % 977):
                    wrong.append(data)
                reads[0] += 1
            except OSError as e:
                wrong.append(e)

    threads = [threading.Thread(target=f) for f in (write, read, read)]
    for t in threads:
        t.start()
    end = time.monotonic() + 60
    while reads[0] < 2000 and not wrong and time.monotonic() < end:
        time.sleep(0.01)
    stop.set()
    for t in threads:
        t.join()
    assert not wrong, wrong[:3]


def test_QD6_a_table_that_goes_and_comes_back(blogs):
    fd = os.open(query(blogs, "Rating eq 4"), os.O_RDONLY)
    try:
        sh(f"rm -r '{blogs}'")
        with raises("ESTALE"):
            os.listdir(fd)
        with raises("ENOENT", "ESTALE"):
            os.stat("p1", dir_fd=fd)
    finally:
        os.close(fd)
    blogs.mkdir()
    assert os.listdir(query(blogs, "Rating eq 4")) == []


# ---- QD7: tools


def test_QD7_tools_work_on_it(blogs, work):
    need("rsync")
    path = query(blogs, "Rating ge 8")
    want = live(blogs, lambda r: r["Rating"] >= 8)
    for i, command in enumerate((
            "cp -r '{0}' '{1}'", "cp -a '{0}' '{1}'", "rsync -a '{0}/' '{1}'",
            "mkdir '{1}'; tar -C '{0}' -cf - . | tar -C '{1}' -xf -",
            "mkdir '{1}'; cd '{0}'; find . -type f | cpio -pdm --quiet '{1}'")):
        if "cpio" in command:
            need("cpio")
        to = work / f"copy{i}"
        sh(command.format(path, to))
        got = {(p, n): get(to / p / n) for p in os.listdir(to) for n in os.listdir(to / p)}
        assert got == want, command
        sh(f"diff -r '{path}' '{to}'")
    assert sh(f"rsync -ani '{path}/' '{work}/copy2'").stdout.strip() == ""
    assert sh(f"grep -rl 't 18' '{path}' | wc -l").stdout.strip() == "4"
    assert sh(f"ls -lR '{path}' | grep -c json").stdout.strip() == str(len(want))
    assert sh(f"cat '{path}'/*/*.json | wc -l").stdout.strip() == str(len(want))
    assert sh(f"du -a '{path}' | wc -l").stdout.strip() == str(len(want) + 5)


def test_QD7_a_query_is_copied_into_the_table_itself(blogs):
    (blogs / "best").mkdir()
    sh(f"cp '{query(blogs, 'Rating eq 9')}'/p1/*.json '{blogs}/best/'")
    assert rows(blogs / "best") == ["r09.json", "r19.json"]


def test_QD7_walks_of_the_mount_never_meet_it(blogs):
    assert sh(f"find '{blogs}' -name '.query*'").stdout == ""
    assert ".query" not in sh(f"ls -a '{blogs}'").stdout


# ---- QD8: of any size


LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def big(rowfs, mount, store):
    rowfs("account", "add", store, "acct1")
    m = mount(store)
    table = m / "acct1/Big"
    table.mkdir()
    rowfs("import", store, "acct1/Big", input=lines(
        row(f"p{i % 10:02}", f"r{i:05}", n=i, pad="x" * 100) for i in range(30000)))
    return m, table


def test_QD8_positions_and_removals_while_it_is_listed(big):
    m, table = big
    path = query(table, "n lt 10000")
    want = [f"r{i:05}.json" for i in range(0, 10000, 10)]
    seen = []
    with os.scandir(path / "p00") as it:
        for n, e in enumerate(it):
            seen.append(e.name)
            os.unlink(table / "p00" / e.name)
    assert seen == want
    assert os.listdir(path) == [f"p{i:02}" for i in range(1, 10)]
    seen = []
    with os.scandir(path / "p01") as it:
        for e in it:
            if not seen:
                for i in range(5001, 10001, 10):
                    os.unlink(table / "p01" / f"r{i:05}.json")
            seen.append(e.name)
    assert seen[:500] == [f"r{i:05}.json" for i in range(1, 5001, 10)]
    assert len(seen) == len(set(seen))


def test_QD8_seekdir_goes_where_telldir_was(big):
    m, table = big
    for f in ("readdir", "telldir", "rewinddir", "closedir"):
        getattr(LIBC, f).argtypes = [ctypes.c_void_p]
    LIBC.opendir.restype = LIBC.readdir.restype = ctypes.c_void_p
    LIBC.telldir.restype = ctypes.c_long
    LIBC.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
    d = LIBC.opendir(os.fsencode(query(table, "n lt 20000") / "p03"))

    def name():
        e = LIBC.readdir(d)
        return ctypes.string_at(e + 19).decode() if e else None

    at, names = [], []
    while True:
        at.append(LIBC.telldir(d))
        n = name()
        names.append(n)
        if n is None:
            break
    assert len(names) == 2003
    for i in (1500, 2, 1999, 0, 700, 2001, 3):
        LIBC.seekdir(d, at[i])
        assert name() == names[i]
    LIBC.rewinddir(d)
    assert name() == "." and name() == ".." and name() == "r00003.json"
    LIBC.closedir(d)


def busy(m):
    with open(f"/proc/{m.proc.pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def test_QD8_who_gives_up_stops_the_work(rowfs, big):
    """Ctrl-C of a listing in which nothing matches: the daemon comes to rest."""
    m, table = big
    more = lines(row(f"q{j:02}", f"r{i:06}", n=i, pad="y" * 200) for j in range(4)
                 for i in range(25000))
    rowfs("import", m.store, "acct1/Big", input=more)
    command = ["ls", "-f", str(query(table, " and ".join(["pad ne 'z'"] * 60) + " and n lt 0"))]
    p = subprocess.Popen(command, stdout=subprocess.PIPE)
    start = busy(m)
    end = time.monotonic() + 60
    while busy(m) < start + 10 and p.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    p.send_signal(signal.SIGINT)
    out, _ = p.communicate(timeout=60)
    assert p.returncode in (-signal.SIGINT, 0, 2)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        before = busy(m)
        time.sleep(0.15)  # over which the use of the processor is measured
        if busy(m) - before <= 2:
            break
    else:
        pytest.fail("the daemon goes on after its caller gave up")
    assert get(m / ".rowfs/version")


def peak(m):
    with open(f"/proc/{m.proc.pid}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read())[1])


def test_QD8_memory_does_not_grow_with_the_listing(big):
    m, table = big
    before = peak(m)
    assert len(os.listdir(query(table, "n ge 0") / "p00")) == 3000
    done = sh(f"find '{query(table, 'n ge 0')}' -type f | wc -l")
    assert done.stdout.strip() == "30000"
    assert peak(m) - before < 16 * 1024 or sanitized()


def test_QD8_memory_does_not_grow_with_the_names(big):
    """The kernel remembers more names than we want to know the nodes of."""
    m, table = big

    def look(options, first):
        for i in range(first, first + 1500):
            assert os.path.isdir(query(table, f"n eq {i}" + f" or n eq {i}" * 60))
        for name in os.listdir(query(table, options) / "p00"):
            assert os.stat(query(table, options) / "p00" / name).st_size > 100

    # Every thread of the daemon has a connection to the store, with a cache of its own.
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda n: look(f"n ge -{n}", 0), range(16)))
    look("n ge -20", 1500)
    grown = []
    for n in range(2, 3 if sanitized() else 6):
        before = peak(m)
        look(f"n ge -{20 + n}", 1500 * n)
        grown.append(peak(m) - before)
    # The names of a round take 26 MiB.  Threads that come late take a cache of their own.
    assert min(grown) < 4096 or sanitized(), grown
    assert len(os.listdir(query(table, "n ge 0") / "p00")) == 3000


def test_QD8_partitions_cost_a_seek(rowfs, mount, store):
    """Two partitions of very many rows: the second one is there at once."""
    rowfs("account", "add", store, "acct1")
    m = mount(store)
    table = m / "acct1/Big"
    table.mkdir()
    rowfs("import", store, "acct1/Big", input=lines(
        row(p, f"r{i:05}", n=i) for p in ("a", "b") for i in range(20000)))
    begin = busy(m)
    for i in range(20):
        assert os.listdir(query(table, f"n ge {i}")) == ["a", "b"]
    seeks = busy(m) - begin
    begin = busy(m)
    assert len(get(query(table, "n ge 0.ndjson")).splitlines()) == 40000
    assert seeks < 20 * (busy(m) - begin) / 2


def test_QD8_a_match_far_into_a_partition_is_found(rowfs, mount, store):
    """Behind more rows than are looked at in one go: the listing gets there, and ends."""
    rowfs("account", "add", store, "acct1")
    m = mount(store)
    table = m / "acct1/Big"
    table.mkdir()
    rowfs("import", store, "acct1/Big", input=lines(
        row(p, f"r{i:05}", n=i) for p in ("a", "b") for i in range(40000)))
    slow = " and ".join(["n ne -1"] * 250)
    assert sh(f"ls '{query(table, slow + ' and n ge 39998')}'").stdout.split() == ["a", "b"]
    assert sh(f"ls '{query(table, slow + ' and n eq 39999')}/b'").stdout == "r39999.json\n"
    assert sh(f"ls '{query(table, slow + ' and n ge 40000')}'").stdout == ""
    found = sh(f"find '{query(table, slow + ' and n eq 39999&top=2')}' -type f | wc -l").stdout
    assert found.strip() == "2"


def test_QD8_many_at_a_time(blogs):
    """More listings and lookups than there are threads; none waits for ever."""
    found = []

    def look(k):
        for i in range(10):
            found.append(len(tree(query(blogs, f"Rating eq {(k + i) % 10}&top={k + 1}"))))

    threads = [threading.Thread(target=look, args=(k,)) for k in range(24)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 240
    assert sorted(found) == sorted(min(k + 1, 8) for k in range(24) for _ in range(10))
