# SPDX-License-Identifier: MIT
"""A store full of rows as people have them, and of names, values, times, modes and files that
are hard on the tools that copy them; and what there is to see of a tree.

The rows are the packages of this machine's Debian archive as examples/debian-packages makes
them (without apt: those that are installed, or none), made-up rows with every type of value
up to the number asked for, and awkward keys.  All of it is the same in every run."""

import hashlib
import itertools
import json
import os
import random
import re
import shutil
import stat
import subprocess
from typing import NamedTuple

from conftest import TOP

ACCOUNT = "acct1"

# Every one is a legal PartitionKey and a legal RowKey.
AWKWARD_KEYS = [
    "", " ", "  two  ", "trailing ", " leading", "\u00a0", "a b", "'", '"', "it's", 'say "hi"', "`id`",
    "$(id)", "$HOME", "~", "~root", "!", "!!", "*", "[a-z]*", "{a,b}", "a;b", "a&b", "a|b", "<a>", "^",
    "(", ")", ":", "a:b", "=", "@", "@odata.type", ",", "+", "-", "--", "-rf", "--help", "-n", ".",
    "..", "...", ".hidden", ".batch", ".rowfs", ".json", "r.json", "r.json.json", "r.json~", "a.",
    "%", "%%", "100%", "%41", "%2F", "a%2fb", "%_", "%~", "%~" + "A" * 52, "con", "NUL", "A", "a",
    "\u00e4", "a\u0308", "\u00df", "\u0130", "\u65e5\u672c\u8a9e", "\u05e2\u05d1", "\u202eabc", "\u200b",
    "\ufeffbom", "\ue000", "\ufffd", "\U0001f600", "\U0001d518\U00010000", "\U0010fffd", "e\ufe0f\u20e3",
    # 235 bytes and .json are the longest that a name takes whole; 240 in a directory's.
    "k" * 235, "k" * 236, "k" * 240, "k" * 241, "k" * 512, "-" * 300, "." + "d" * 400, "%" * 80, "%" * 79,
    " " * 300, "'" * 300, '"' * 512, "\u00e9" * 512, "\u65e5" * 80, "\U0001f600" * 256,
]

EVERY_TYPE = {
    "Text": 'white\tspace \n and "quotes" \\ / \u2028 \U0001f600', "Empty": "", "Yes": True, "No": False,
    "Small": -2**31, "Large": -2**63, "Large@odata.type": "Edm.Int64", "Half": 0.5, "Tiny": 5e-324,
    "Whole": 1.0, "NaN": "NaN", "NaN@odata.type": "Edm.Double", "Inf": "-Infinity",
    "Inf@odata.type": "Edm.Double", "When": "2024-02-29T23:59:59.9999999Z",
    "When@odata.type": "Edm.DateTime", "Who": "12345678-9abc-def0-1234-56789abcdef0",
    "Who@odata.type": "Edm.Guid", "Bytes": "AAECAwQF/w==", "Bytes@odata.type": "Edm.Binary",
}


def packages(limit):
    """NDJSON lines of real rows; none where this is no Debian."""
    if shutil.which("apt-cache"):
        source = "apt-cache dumpavail; cat /var/lib/dpkg/status"
    else:
        source = "cat /var/lib/dpkg/status"
    script = f"({source}) 2>/dev/null | '{TOP}/examples/debian-packages'"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as p:
        yield from itertools.islice(p.stdout, limit)
        p.kill()


def made_up(n):
    """NDJSON lines: partitions of a thousand rows and one large one, with values of all types."""
    chance = random.Random(5)
    types = [k for k in EVERY_TYPE if "@" not in k]
    for i in range(n):
        row = {"PartitionKey": "large" if i % 2 else f"part {i // 1000}", "RowKey": f"{i:06}", "n": i}
        for name in chance.sample(types, 2):
            row |= {k: v for k, v in EVERY_TYPE.items() if k.split("@")[0] == name}
        yield json.dumps(row).encode() + b"\n"


def awkward():
    """NDJSON lines: all keys in one partition, the same row in all partitions."""
    for key in AWKWARD_KEYS:
        yield json.dumps({"PartitionKey": "keys", "RowKey": key, **EVERY_TYPE}).encode() + b"\n"
        yield json.dumps({"PartitionKey": key, "RowKey": key, "Key": key}).encode() + b"\n"
    yield json.dumps({"PartitionKey": "keys", "RowKey": "limit", "A": "x" * 32768}).encode() + b"\n"


def fill_by_import(rowfs, store, rows):
    """At least this many rows, by commands."""
    rowfs("account", "add", store, ACCOUNT)
    special = list(awkward())
    real = list(packages((rows - len(special)) * 4 // 10))
    for table, lines in (("Packages", real), ("Awkward", special),
                         ("MadeUp", made_up(rows - len(special) - len(real)))):
        rowfs("import", store, f"{ACCOUNT}/{table}", input=b"".join(lines), timeout=600)


def write(path, data, mode=0o644):
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        assert os.write(fd, data) == len(data)
    finally:
        os.close(fd)


TEXTS = [b'{"a":1}', b'{"a":1}\n', b'{\r\n\t"a" : 1\r\n}\r\n\r\n', b'{ }', b'{}' + b" " * 5000 + b"\n",
         b'{"Double":1.50e+01,"s":"\\u00e4\\/"}', '{"ä":"日本語 \U0001f600","b":null}'.encode(),
         b'{"odata.etag":"W/\\"x\\"","RowKey@odata.type":"Edm.String","n":7}']
TIMES = [0, 1, 999_999_999, 10**18 + 123_456_789, 2**31 * 10**9 + 5, 4 * 10**18 + 100]
MODES = [0o644, 0o600, 0o755, 0o444, 0o666, 0o640]


def fill_rows_by_mount(table):
    """Documents as people type them, under awkward names of their own, with times, modes and
    owners."""
    part = table / "-- it's \"here\""
    part.mkdir()
    for i, (text, when) in enumerate(itertools.product(TEXTS, TIMES)):
        path = part / f"-{i} '\"%25\U0001f600.json"
        write(path, text)
        os.chmod(path, MODES[i % len(MODES)])
        if os.geteuid() == 0:
            os.chown(path, 1000 + i, 65534 - i)
        os.utime(path, ns=(when, when))


def fill_files(part):
    """Ordinary files and folders of every kind, and an empty file that waits for its document."""
    chance = random.Random(7)
    names = [b"notes.txt", b"r.json~", b".r.json.swp", b"-rf", b"'\"`$(id)", b" ", b"two\nlines", b"100%",
             b"caf\xe9", "\U0001f600".encode(), b"x" * 255, b"tmp", b"upper.JSON", b"%zz"]
    top = os.fsencode(part)
    for i, name in enumerate(names):
        write(os.path.join(top, name), chance.randbytes(i * 999), MODES[i % len(MODES)])
    write(part / "empty", b"")
    write(part / "later.json", b"", 0o600)
    with open(part / "holes", "wb") as f:
        f.truncate(400_000)
        f.seek(100_000)
        f.write(b"data")
    for folder in (".git/objects/ab", ".empty", ".a/.b/c"):
        (part / folder).mkdir(parents=True)
    write(part / ".git/objects/ab/cdef", chance.randbytes(300_000), 0o444)
    write(part / ".a/row.json", b"no row here, no document")
    os.utime(part / "later.json", ns=(10**18, 10**18 + 7))
    os.utime(part / "holes", ns=(5, 5))


def fill_by_mount(mount):
    """What only files can hold, in accounts and tables of its own and beside the rows."""
    (mount / ACCOUNT / "Packages").mkdir(exist_ok=True)
    table = mount / ACCOUNT / "ByHand"
    table.mkdir()
    fill_rows_by_mount(table)
    (table / "files").mkdir()
    fill_files(table / "files")
    fill_files(mount / ACCOUNT / "Awkward" / "keys")
    for empty in ("%_", " ", "-", "\U0001f600", "e" * 240):
        (table / empty).mkdir(mode=0o750)
    (mount / ACCOUNT / "Empty").mkdir()
    (mount / "acct2").mkdir(mode=0o711)
    (mount / "acct2/Table").mkdir()
    for i, (where, _, _) in enumerate(os.walk(os.fsencode(mount.path), topdown=False)):
        when = 10**18 + i * 1_000_000_007
        os.utime(where, ns=(when, when))


class Seen(NamedTuple):
    mode: int
    uid: int
    gid: int
    mtime_ns: int
    size: int
    digest: bytes  # of the content; of a directory b""


def seen(path):
    st = os.lstat(path)
    if stat.S_ISDIR(st.st_mode):
        return Seen(st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, 0, b"")
    with open(path, "rb", buffering=0) as f:
        data = f.readall()
    assert len(data) == st.st_size and st.st_nlink == 1, path
    assert st.st_blocks * 512 >= st.st_size or not str(path).endswith(".json"), path
    return Seen(st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, st.st_size,
                hashlib.blake2b(data, digest_size=16).digest())


def look(top):
    """{path: Seen} of a tree, in the order of its listings, directories before their entries."""
    top = os.fsencode(top)
    found = {b".": seen(top)}
    for where, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(where, name)
            found[os.path.relpath(path, top) if where == top else path[len(top) + 1:]] = seen(path)
    return found


TIMESTAMP = re.compile(r'^(\{"PartitionKey":"(?:[^"\\]|\\.)*","RowKey":"(?:[^"\\]|\\.)*")'
                       r',"Timestamp@odata.type":"Edm.DateTime","Timestamp":"[^"]*"', re.MULTILINE)


def exported_table(rowfs, store, table):
    """Its rows as `rowfs export` has them, without the Timestamps."""
    out = rowfs("export", store, table, timeout=600).stdout
    rows, n = TIMESTAMP.subn(r"\1", out)
    assert n == out.count("\n")
    return rows


def exported(rowfs, store):
    return {t: exported_table(rowfs, store, f"{ACCOUNT}/{t}")
            for t in ("Packages", "Awkward", "MadeUp", "ByHand", "Empty")}
