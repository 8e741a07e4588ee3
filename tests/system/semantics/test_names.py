# SPDX-License-Identifier: MIT
"""The tables of rowfs(5) against a mount: each name is what the page says, and each thing
that may or may not be done with it goes as the page says, with the page's errno."""

import errno
import os
import re
import stat

import pytest

from conftest import TOP
from tools import put, raises, xattr

PAGE = (TOP / "docs/rowfs.5").read_text(encoding="utf-8")
ROW = '{"Text":"Hi","Rating":5}\n'
MAY = "rwcdanu"


def words(text):
    """A cell without mdoc's escapes and macros."""
    text = re.sub(r"^(Pa|Li|Em) ", "", text.strip())
    return text.replace("\\-", "-").replace("\\&", "").strip('"')


def tables(section):
    """The tables of a section: (subsection, [[cell, ...], ...]), without the headings."""
    body = re.search(rf"^\.Sh {section}\n(.*?)(?=^\.Sh )", PAGE, re.M | re.S)[1]
    parts = re.split(r"^\.Ss (.*)\n", "\n" + body, flags=re.M)
    for name, text in zip([""] + parts[1::2], parts[::2]):
        rows = [[words(c) for c in line.split(" Ta ")]
                for line in re.findall(r"^\.It (.* Ta .*)$", text, re.M)]
        if rows:
            yield name, [r for r in rows if not r[0].startswith("Sy ")]


NAMES = [(f"{place}/{name}".removeprefix("DIR/"), kind, listed == "yes", set(may.split()),
          [getattr(errno, e) for e in re.findall(r"E[A-Z]+", refusal)])
         for place, rows in tables("NAMES") for name, kind, listed, may, refusal in rows]


@pytest.fixture(scope="module")
def page_names():
    names = [n[0] for n in NAMES]
    assert len(names) == len(set(names)) >= 30
    return names


@pytest.fixture
def tree(mnt):
    """One of everything; the page's name -> its path."""
    put_row = mnt / "account/Table/Part"
    put_row.mkdir(parents=True)
    put(put_row / "Row.json", ROW)
    put(put_row / "Gone.json", ROW)
    (put_row / "Gone.json").unlink()
    put(put_row / "other", "any")
    (put_row / ".dot").mkdir()
    put(put_row / ".dot/any", "any")
    with raises("EINVAL"):
        put(put_row / "Row.json", "{bad")
    (mnt / ".rowfs/snapshots/NAME").mkdir()
    queue = mnt / "account/.queue/queue"
    queue.mkdir()
    for _ in range(3):
        put(queue / "new", "text")
    ids = {"": (names := sorted(os.listdir(queue)))[0], ".taken/": names[1], ".hidden/": names[2]}
    os.rename(queue / names[1], queue / ".taken" / names[1])
    os.setxattr(queue / names[2], "user.rowfs.visibility", b"600")

    container = mnt / "account/.blob/container"
    container.mkdir()
    (container / "PREFIX").mkdir()
    put(container / "NAME", "bytes")

    def path(name):
        below = "Table/Part/Row.json" if name.startswith(".rowfs") else "Part/Row.json"
        if "/.queue/QUEUE" in name:
            inside = name.removeprefix("account/.queue/QUEUE").removeprefix("/").removesuffix("ID")
            name = name.replace("QUEUE", "queue").replace("ID", ids.get(inside, ""))
        name = name.replace("CONTAINER", "container").replace("OPTIONS", "Rating ge 5").replace("...", below)
        for place in ("rejected", "trash"):
            if name == f".rowfs/{place}/NAME":
                name = f".rowfs/{place}/{os.listdir(mnt / '.rowfs' / place)[0]}"
        return str(mnt / name)

    return path


def make_file(directory):
    path = os.path.join(directory, "made")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    os.unlink(path)


def make_directory(directory):
    # Accounts are in lower case, and in a partition a directory's name begins with a dot.
    path = os.path.join(directory, ".made" if directory.endswith("/Part") else "made")
    os.mkdir(path)
    os.rmdir(path)


def read(path):
    if os.path.isdir(path):
        os.listdir(path)
        return
    with open(path, "rb") as f:
        f.read()


def rename(path):
    to = path.removesuffix(".json") + "z" + (".json" if path.endswith(".json") else "")
    os.rename(path, to)
    os.rename(to, path)


def remove(path):
    """By the call of its kind; a full directory that could be removed says that it is full."""
    if not os.path.isdir(path):
        os.unlink(path)
        return
    try:
        os.rmdir(path)
    except OSError as e:
        if e.errno != errno.ENOTEMPTY:
            raise


def set_attributes(path):
    st = os.stat(path)
    os.chmod(path, stat.S_IMODE(st.st_mode))
    os.utime(path, ns=(st.st_mtime_ns, st.st_mtime_ns))


def write(path):
    os.close(os.open(path, os.O_WRONLY))


DOES = {"r": read, "w": write, "c": make_file, "d": make_directory, "a": set_attributes,
        "n": rename, "u": remove}


@pytest.mark.parametrize("name,kind,listed,may,refusals", NAMES, ids=[n[0] for n in NAMES])
def test_T1_the_table_of_names(tree, page_names, name, kind, listed, may, refusals):
    path = tree(name)
    st = os.lstat(path)
    if kind != "any":
        assert stat.S_ISDIR(st.st_mode) == (kind == "dir")
    above, leaf = os.path.split(path)
    assert (leaf in os.listdir(above)) == listed
    assert may <= set(MAY)
    in_directories = "cd" if stat.S_ISDIR(st.st_mode) else "w"
    for what, do in DOES.items():
        if what in "wcd" and what not in in_directories:
            continue
        if what == "d" and name.endswith("/Part"):
            continue  # a dot directory only: said below the tables
        if what in may:
            do(path)
        else:
            with raises(*refusals):
                do(path)


def test_T1_nothing_is_there_that_the_page_does_not_name(mount, store):
    """With control=list everything is listed; each is a name of the page."""
    m = mount(store, "control=list")
    (m / "account/Table/Part").mkdir(parents=True)
    put(m / "account/Table/Part/Row.json", ROW)
    for place in ("", "account/", "account/Table/", "account/Table/Part/", ".rowfs/"):
        said = {n[0].removeprefix(place) for n in NAMES if n[0].startswith(place)}
        said = {s for s in said if "/" not in s}
        assert set(os.listdir(m / place)) <= said, place
        assert {s for s in said if s.startswith(".")} - {".dot"} <= set(os.listdir(m / place))


def test_T1_snapshots_are_removed_full(tree):
    os.rmdir(tree(".rowfs/snapshots/NAME"))
    with raises("ENOENT"):
        os.lstat(tree(".rowfs/snapshots/NAME"))


def test_N1_the_table_of_keys(part):
    (_, rows), = tables("KEYS")
    assert len(rows) >= 5
    for key, name in rows:
        put(part / name, "{}")
        assert xattr(part / name, "row_key") == ("" if key == "(the empty key)" else key)


def test_A8_the_table_of_attributes(tree, mnt):
    (_, rows), = tables("EXTENDED ATTRIBUTES")
    assert len(rows) >= 9
    at = {"rows": "account/Table/Part/Row.json", "partitions": "account/Table/Part",
          "everything": "account/Table/Part/other", "snapshots": ".rowfs/snapshots/NAME",
          "ordinary files": "account/Table/Part/other"}
    etag = xattr(tree(at["rows"]), "etag")
    assert "(line 1, column" in xattr(tree(at["rows"]), "error")
    writer = os.open(tree(at["rows"]), os.O_RDWR)
    for name, of, may in rows:
        for kind in of.split(", "):
            path = writer if kind == "descriptors" else tree(at[kind])
            assert name not in os.listxattr(path)
            if "w" in may:
                os.setxattr(path, name,
                            etag.encode() if name.endswith("if_match") else b"60")
            else:
                with raises("EPERM", "EOPNOTSUPP", "EROFS"):
                    os.setxattr(path, name, b"x")
            os.getxattr(path, name)
            if name.endswith(".error") and kind == "everything":
                assert "if_match alone" in xattr(path, "error")
    os.close(writer)
