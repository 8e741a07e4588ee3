# SPDX-License-Identifier: MIT
"""docs/semantics.md: the tree (T) and names and keys (N)."""

import json
import os
import subprocess

import pytest

from tools import get, long_name, put, raises, rows, sh


# ---- T: the tree


def test_T1_control_names_answer_but_are_not_listed(mnt, part):
    put(part / "a.json", "{}")
    assert rows(mnt.path) == ["acct1"]
    assert (mnt / ".rowfs").is_dir()
    assert get(mnt / ".rowfs/version")
    found = sh("find . -mindepth 1 | sort", cwd=mnt.path).stdout.split()
    assert found == ["./acct1", "./acct1/Blogs", "./acct1/Blogs/Channel_19",
                     "./acct1/Blogs/Channel_19/a.json"]


def test_T1_the_same_name_elsewhere_is_the_users(part):
    (part / ".rowfs").mkdir()
    put(part / ".rowfs/version", "mine")
    assert get(part / ".rowfs/version") == b"mine"
    assert ".rowfs" in os.listdir(part)


def test_T2_order_is_by_utf16_unit(table):
    # By bytes of UTF-8, U+FFFD stands before U+1F600; by UTF-16 unit behind it.
    keys = ["A", "Z", "a", "é", "一", "\U0001f600", "\ufffd"]
    for k in reversed(keys):
        (table / k).mkdir()
        put(table / k / "r.json", "{}")
    assert os.listdir(table) == keys
    for k in keys[::-1]:
        put(table / "A" / f"{k}.json", "{}")
    put(table / "A" / "0file", "x")
    names = os.listdir(table / "A")
    # r.json was there already; ordinary files come after the rows.
    assert names == ["A.json", "Z.json", "a.json", "r.json", "é.json", "一.json",
                     "\U0001f600.json", "\ufffd.json", "0file"]


def test_T2_the_empty_key_comes_first_and_shorter_before_longer(part):
    for k in ("ab", "a", "%_", "a!"):
        put(part / f"{k}.json", "{}")
    assert os.listdir(part) == ["%_.json", "a.json", "a!.json", "ab.json"]


def test_T3_entries_that_stay_are_listed_exactly_once(part):
    for i in range(3000):
        put(part / f"{i:04}.json", "{}")
    seen = []
    with os.scandir(part) as entries:
        for n, entry in enumerate(entries):
            seen.append(entry.name)
            if n % 2 == 0:
                os.unlink(part / entry.name)  # behind the listing
            if n % 10 == 5:
                put(part / f"{(n + 1500) % 3000:04}x.json", "{}")
            if n > 20000:
                pytest.fail("the listing does not end")
    stayed = [n for n in seen if "x" not in n]
    assert sorted(stayed) == [f"{i:04}.json" for i in range(3000)]
    assert len(seen) == len(set(seen))


def test_T3_two_listings_at_once_do_not_disturb_each_other(part):
    for i in range(500):
        put(part / f"{i:03}.json", "{}")
    with os.scandir(part) as a, os.scandir(part) as b:
        left = [next(a).name for _ in range(100)]
        right = [e.name for e in b]
        left += [e.name for e in a]
    assert left == right and len(left) == 500


def test_T3_seek_and_rewind_in_a_listing(part):
    program = r"""
import ctypes, os, sys, random
libc = ctypes.CDLL(None, use_errno=True)
libc.opendir.restype = ctypes.c_void_p
libc.readdir.restype = ctypes.c_void_p
for f in ('readdir', 'telldir', 'rewinddir', 'closedir'):
    getattr(libc, f).argtypes = [ctypes.c_void_p]
libc.telldir.restype = ctypes.c_long
libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
def name(p): return ctypes.string_at(p + 19)
d = libc.opendir(os.fsencode(sys.argv[1]))
marks = []
while True:
    at = libc.telldir(d)
    e = libc.readdir(d)
    if not e: break
    marks.append((at, name(e)))
for at, want in random.sample(marks, 200):
    libc.seekdir(d, at)
    assert name(libc.readdir(d)) == want, (at, want)
libc.rewinddir(d)
again = []
while True:
    e = libc.readdir(d)
    if not e: break
    again.append(name(e))
assert again == [n for _, n in marks]
print(len(again))
"""
    for i in range(1500):
        put(part / f"{i:04}.json", "{}")
    out = subprocess.run(["/usr/bin/python3", "-c", program, part], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    assert int(out.stdout) == 1502


def test_T4_link_counts_are_one(mnt, account, table, part):
    put(part / "a.json", "{}")
    for p in (mnt.path, account, table, part, part / "a.json"):
        assert os.stat(p).st_nlink == 1


def test_T6_control_names_are_listed_on_wish(mount, store):
    m = mount(store, "control=list")
    assert ".rowfs" in os.listdir(m.path)
    part = m.path / "acct" / "Listed" / "p"
    part.mkdir(parents=True)
    put(part / "a.json", "{}")
    of_both = [".batch", ".batch-check", ".changes", ".rows.csv", ".rows.ndjson"]
    assert sorted(os.listdir(part)) == of_both + ["a.json"]
    assert sorted(os.listdir(part.parent)) == sorted([*of_both, ".query", "p"])
    assert os.listdir(part.parent.parent) == [".blob", ".queue", "Listed"]
    # A listing goes on where it was, also between these names.
    for d in (part, part.parent):
        with os.scandir(d) as entries:
            assert sorted(e.name for e in entries) == sorted(os.listdir(d))


def test_T1_control_names_are_those_of_their_directories_only(mnt, part):
    for name in (".batch", ".batch-check", ".changes", ".rows.csv", ".rows.ndjson"):
        assert os.path.exists(part / name) and os.path.exists(part.parent / name)
        assert not os.path.exists(part.parent.parent / name)
        assert name not in os.listdir(part)
        with raises("EPERM"):
            os.unlink(part / name)
        with raises("EPERM"):
            os.rename(part / name, part / "mine")
        put(part / "mine", "x")
        with raises("EBADMSG" if ".rows" in name else "EPERM"):  # I12: it would be imported
            os.rename(part / "mine", part / name)
        with raises("EEXIST", "EPERM"):
            os.mkdir(part / name)
    assert os.path.isdir(part.parent / ".query")
    put(part / ".query", "an ordinary file of that name")
    assert (part / ".query").read_text() == "an ordinary file of that name"
    folder = part / ".folder"
    folder.mkdir()
    put(folder / ".batch", "mine")
    assert (folder / ".batch").read_text() == "mine"


# ---- N: names and keys


def test_N1_percent_and_leading_dot_are_escaped(part):
    put(part / "100%25.json", "{}")
    put(part / "%2Ehidden.json", "{}")
    assert rows(part) == ["%2Ehidden.json", "100%25.json"]
    assert os.getxattr(part / "100%25.json", "user.rowfs.row_key") == b"100%"
    assert os.getxattr(part / "%2Ehidden.json", "user.rowfs.row_key") == b".hidden"
    assert os.getxattr(part / "%2Ehidden.json", "user.rowfs.partition_key") == b"Channel_19"
    put(part / ".dot.json", "{}")  # an ordinary file
    with raises("ENODATA"):
        os.getxattr(part / ".dot.json", "user.rowfs.row_key")


def test_N2_exactly_one_json_is_taken_off(part):
    put(part / "a.json.json", "{}")
    put(part / "a.json", '{"x":1}')
    assert os.getxattr(part / "a.json.json", "user.rowfs.row_key") == b"a.json"
    assert get(part / "a.json") == b'{"x":1}'
    put(part / "a.JSON", "no row")
    assert get(part / "a.JSON") == b"no row"


def test_N3_the_empty_key(table):
    (table / "%_").mkdir()
    put(table / "%_" / "%_.json", "{}")
    p = table / "%_" / "%_.json"
    assert os.getxattr(p, "user.rowfs.row_key") == b""
    assert os.getxattr(p, "user.rowfs.partition_key") == b""
    put(table / "%_" / ".json", "an ordinary file")
    assert get(table / "%_" / ".json") == b"an ordinary file"


@pytest.mark.parametrize("name", ["%61.json", "%2e.json", "a%.json", "a%4.json", "a%zz.json",
                                  "%2E%2E%25%.json", "a%2Eb.json", "%_a.json", "a%_.json"])
def test_N4_another_spelling_names_nothing(part, table, name):
    with raises("ENOENT"):
        os.stat(part / name)
    with raises("EINVAL"):
        put(part / name, "{}")
    directory = table / name[: -len(".json")]
    with raises("ENOENT"):
        os.stat(directory)
    with raises("EINVAL"):
        directory.mkdir()
    put(part / "tmp", "{}")
    with raises("EINVAL"):
        os.rename(part / "tmp", part / name)
    assert rows(part) == ["tmp"]


@pytest.mark.parametrize("name", [b"\xff.json", b"a\xc3.json", b"\xed\xa0\x80.json",
                                  b"\xc0\xae.json", b"\xf5\x80\x80\x80.json"])
def test_N5_names_that_are_not_utf8(part, table, name):
    where = os.fsencode(part) + b"/" + name
    with raises("EILSEQ", "ENOENT"):
        os.stat(where)
    with raises("EILSEQ"):
        put(where, "{}")
    with raises("EILSEQ"):
        os.mkdir(os.fsencode(table) + b"/" + name)
    assert rows(part) == []


def test_N5_an_ordinary_file_may_have_any_name(part):
    where = os.fsencode(part) + b"/\xff\xfe.tmp"
    put(where, "x")
    assert get(where) == b"x"
    assert os.listdir(os.fsencode(part)) == [b"\xff\xfe.tmp"]


@pytest.mark.parametrize("key", ["k" * 236, "k" * 512, "é" * 512, "一" * 512,
                                 "\U0001f600" * 256, "k" * 300 + "é" * 100],
                         ids=["236", "512", "2 bytes", "3 bytes", "4 bytes", "mixed"])
def test_N6_long_keys(rowfs, store, mount, work, key):
    source = work / "in.ndjson"
    source.write_text(json.dumps({"PartitionKey": "p", "RowKey": key, "x": 1}) + "\n")
    rowfs("account", "add", store, "acct1")
    rowfs("import", store, "acct1/Tab", source)
    m = mount(store)
    (name,) = os.listdir(m / "acct1/Tab/p")
    assert len(name.encode()) <= 240 and name.endswith(".json") and "%~" in name
    assert name.lower() == long_name(key).lower()
    row = m / "acct1/Tab/p" / name
    assert os.getxattr(row, "user.rowfs.row_key").decode() == key
    document = json.loads(get(row))
    assert document["RowKey"] == key and document["x"] == 1
    # A backup of it restores by plain copy, into another table too.
    os.mkdir(m / "acct1/Other")
    os.mkdir(m / "acct1/Other/p")
    sh(f"cp -a '{row}' '{work}/copy' && cp '{work}/copy' '{m.path}/acct1/Other/p/{name}'")
    assert os.getxattr(m / "acct1/Other/p" / name, "user.rowfs.row_key").decode() == key
    # The digest is checked.
    with raises("EINVAL"):
        put(m / "acct1/Other/p" / name, json.dumps({"RowKey": key + "x", "x": 1}))
    another = {"k": "j", "é": "è", "一": "丁", "\U0001f600": "\U0001f601"}[name[0]]
    other = m / "acct1/Other/p" / (another + name[1:])
    with raises("EINVAL"):
        put(other, json.dumps({"RowKey": key, "x": 1}))
    assert get(other) == b""  # no row came of it


def test_N6_the_boundary_of_240_bytes(part):
    put(part / ("k" * 235 + ".json"), "{}")
    with raises("EINVAL", "ENAMETOOLONG"):
        put(part / ("k" * 236 + ".json"), "{}")
    with raises("ENOENT", "ENAMETOOLONG"):
        os.stat(part / ("k" * 236 + ".json"))
    put(part / ("k" * 255), "ordinary")
    with raises("ENAMETOOLONG"):
        put(part / ("k" * 256), "ordinary")
    assert len(os.listdir(part)) == 2


@pytest.mark.parametrize("name", ["a\\b", "a#b", "a?b", "a\x01b", "a\x1fb", "a\x7fb", "a\x80b",
                                  "a\x9fb", "a%2Fb", "a%09b", "a\nb"])
def test_N7_characters_that_keys_may_not_hold(part, table, name):
    with raises("EINVAL"):
        put(part / f"{name}.json", "{}")
    with raises("EINVAL"):
        (table / name).mkdir()
    with raises("ENOENT"):
        os.stat(part / f"{name}.json")
    put(part / "ok.json", "{}")
    with raises("EINVAL"):
        os.rename(part / "ok.json", part / f"{name}.json")
    with raises("EINVAL"):
        os.rename(part, table / name)
    assert rows(part) == ["ok.json"] and rows(table) == ["Channel_19"]


@pytest.mark.parametrize("name", ["a b", "a+b", "a'b", 'a"b', "a:b", "a*b", "a<b>", "a|b", "-a",
                                  "~", "é", "\U0001f600", "%25", "a,b;c", "a\u00a0b"])
def test_N7_all_other_characters_are_fine(part, name):
    put(part / f"{name}.json", "{}")
    assert os.listdir(part) == [f"{name}.json"]


def test_N8_table_names_keep_their_case(account):
    (account / "Blogs").mkdir()
    with raises("EEXIST"):
        (account / "blogs").mkdir()
    with raises("ENOENT"):
        os.stat(account / "BLOGS")
    assert os.listdir(account) == ["Blogs"]
    os.rename(account / "Blogs", account / "bLOGS")  # the way to change the case
    assert os.listdir(account) == ["bLOGS"]


@pytest.mark.parametrize("name,ok", [
    ("abc", True), ("a" * 24, True), ("0ab", True), ("ab", False), ("a" * 25, False),
    ("Abc", False), ("ab_c", False), ("ab-c", False), ("éab", False), ("a b", False)])
def test_N9_account_names(mnt, name, ok):
    if ok:
        (mnt / name).mkdir()
        assert name in os.listdir(mnt.path)
    else:
        with raises("EINVAL", "ENAMETOOLONG"):
            (mnt / name).mkdir()
        assert os.listdir(mnt.path) == []


@pytest.mark.parametrize("name,ok", [
    ("abc", True), ("A" + "9" * 62, True), ("ab", False), ("a" * 64, False), ("9ab", False),
    ("a_b", False), ("a-b", False), ("tables", False), ("Tables", False), ("éab", False)])
def test_N9_table_names(account, name, ok):
    if ok:
        (account / name).mkdir()
        assert name in os.listdir(account)
    else:
        with raises("EINVAL", "ENAMETOOLONG"):
            (account / name).mkdir()
        assert os.listdir(account) == []
