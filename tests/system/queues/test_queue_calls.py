# SPDX-License-Identifier: MIT
"""The tables of queues in docs/posix.md and docs/tools.md: each cell is tried."""

import contextlib
import errno
import fcntl
import mmap
import os
import shutil
import subprocess
import time

import pytest

from conftest import TOP
from tools import get, put

NOT_KEPT = "accepted, not kept"
PLACES = ("visible", "taken", "new")


def table(page, heading):
    """The rows of the first table behind the heading, without its own heading."""
    text = (TOP / "docs" / page).read_text("utf-8").split(f"\n## {heading}\n")[1]
    lines = text[text.index("\n|") + 1:].split("\n\n")[0].splitlines()
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines[2:]]


CALLS = table("posix.md", "Queues")
TOOLS = table("tools.md", "Queues")


@pytest.fixture
def jobs(mount, store):
    """A queue with a visible message and a taken one; a file outside is beside it."""
    m = mount(store)
    os.mkdir(m / "acct")
    jobs = m / "acct/.queue/jobs"
    os.mkdir(jobs)
    for text in ("first\n", "second\n"):
        put(jobs / "new", text)
    first = names(jobs)[0]
    os.rename(jobs / first, jobs / ".taken" / first)
    return jobs


def until(condition):
    """A close of a file without a byte puts a message soon, not at once."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def names(directory):
    return sorted(n for n in os.listdir(directory) if not n.startswith("."))


def at(jobs, place):
    if place == "new":
        return jobs / "another"
    directory = jobs if place == "visible" else jobs / ".taken"
    return directory / names(directory)[0]


@contextlib.contextmanager
def opened(path, flags):
    fd = os.open(path, flags, 0o644)
    try:
        yield fd
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(fd)
        raise
    os.close(fd)


def with_open(flags, act=lambda fd: None):
    def call(path):
        with opened(path, flags) as fd:
            act(fd)
    return call


def mapped(path, prot):
    with opened(path, os.O_RDWR if prot & mmap.PROT_WRITE else os.O_RDONLY) as fd, \
            mmap.mmap(fd, 0, mmap.MAP_SHARED, prot) as m:
        assert m[:5] in (b"first", b"secon")
        if prot & mmap.PROT_WRITE:
            m[0:1] = b"F"


def kept(path, act):
    """An attribute that is accepted and not kept."""
    before = os.stat(path)
    act()
    return "yes" if os.stat(path) != before else NOT_KEPT


def lock(fd):
    fcntl.flock(fd, fcntl.LOCK_EX)
    fcntl.lockf(fd, fcntl.LOCK_EX)


ACTS = {
    "stat": os.stat,
    "open O_RDONLY, read": with_open(os.O_RDONLY, lambda fd: os.read(fd, 100)),
    "open O_WRONLY, write": with_open(os.O_WRONLY, lambda fd: os.write(fd, b"x")),
    "open O_RDWR": with_open(os.O_RDWR),
    "open O_APPEND, write": with_open(os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, b"x")),
    "open O_TRUNC": with_open(os.O_WRONLY | os.O_TRUNC),
    "open O_CREAT, O_EXCL": with_open(os.O_WRONLY | os.O_CREAT | os.O_EXCL,
                                      lambda fd: os.write(fd, b"x")),
    "truncate": lambda p: os.truncate(p, 1),
    "fsync": with_open(os.O_RDONLY, os.fsync),
    "lseek": with_open(os.O_RDONLY, lambda fd: os.lseek(fd, 2, os.SEEK_SET)),
    "mmap to read": lambda p: mapped(p, mmap.PROT_READ),
    "mmap to write": lambda p: mapped(p, mmap.PROT_READ | mmap.PROT_WRITE),
    "fallocate": with_open(os.O_RDWR, lambda fd: os.posix_fallocate(fd, 0, 100)),
    "flock, fcntl": with_open(os.O_RDWR, lock),
    "flock of a reader": with_open(os.O_RDONLY, lambda fd: fcntl.flock(fd, fcntl.LOCK_EX)),
    "unlink": os.unlink,
    "rename to another name": lambda p: os.rename(p, p.with_name("renamed")),
    "link": lambda p: os.link(p, p.with_name("linked")),
    "symlink": lambda p: os.symlink("target", p.with_name("linked")),
    "mkdir": os.mkdir,
    "mkfifo": os.mkfifo,
    "chmod": lambda p: kept(p, lambda: os.chmod(p, 0o600)),
    "chown": lambda p: kept(p, lambda: os.chown(p, 1, 1)),
    "utimensat": lambda p: kept(p, lambda: os.utime(p, (1, 1))),
    "getxattr": lambda p: os.getxattr(p, "user.rowfs.id"),
    "setxattr of another name": lambda p: os.setxattr(p, "user.note", b"1"),
    "listxattr": os.listxattr,
}


def outcome(act, path):
    try:
        said = act(path)
        return said if said in ("yes", NOT_KEPT) else "yes"
    except OSError as e:
        return "EOPNOTSUPP" if e.errno == errno.EOPNOTSUPP else errno.errorcode[e.errno]


def test_every_call_is_in_the_table():
    assert [row[0] for row in CALLS] == list(ACTS)


@pytest.mark.parametrize("row", CALLS, ids=[row[0].replace(" ", "_") for row in CALLS])
def test_a_call_does_what_the_table_says(jobs, row):
    assert [outcome(ACTS[row[0]], at(jobs, place)) for place in PLACES] == row[1:]


# {ID}: the visible message's name; {OUT}: a file outside
COMMANDS = {
    "sh, bash": ("echo text > new", "mv {ID} .taken/ && echo other > .taken/{ID}"),
    "cp": ("cp {OUT} .", "mv {ID} .taken/ && cp {OUT} .taken/{ID}"),
    "mv": ("mv {OUT} .", None),
    "install": ("install -m 644 {OUT} given", None),
    "dd": ("dd if={OUT} of=new status=none", "mv {ID} .taken/ && dd if={OUT} of=.taken/{ID} status=none"),
    "tee": ("tee new < {OUT}", "mv {ID} .taken/ && tee .taken/{ID} < {OUT}"),
    "touch": ("touch new", None),
    "split": ("split -b 2 {OUT} part.", None),
    "sed -i": (None, "mv {ID} .taken/ && sed -i s/second/other/ .taken/{ID}"),
    "truncate": ("truncate -s 5 given", "mv {ID} .taken/ && truncate -s 3 .taken/{ID}"),
    "rsync": ("rsync {OUT} .", "mv {ID} .taken/ && rsync --inplace --ignore-times {OUT} .taken/{ID}"),
    "tar": ("tar -C $(dirname {OUT}) -c $(basename {OUT}) | tar -x", None),
    "python": ("python3 -c \"open('new', 'w').write('text')\"",
               "mv {ID} .taken/ && python3 -c \"open('.taken/{ID}', 'w').write('other')\""),
    "jq": ("jq -n 1 > new", "mv {ID} .taken/ && jq -n 1 > .taken/{ID}"),
    "ed": (None, "mv {ID} .taken/ && printf 's/second/other/\\nw\\n' | ed -s .taken/{ID}"),
    "vim": (None, "mv {ID} .taken/ && vim -es -u NONE +s/second/other/ +wq .taken/{ID}"),
}


def test_every_tool_is_in_the_table():
    assert [row[0] for row in TOOLS] == list(COMMANDS)


def done(jobs, work, command):
    """What the tool did to the visible message and the taken one."""
    out = work / "outside"
    out.write_text("given\n")
    name = names(jobs)[0]
    ran = subprocess.run(["bash", "-c", command.format(ID=name, OUT=out)], cwd=jobs,
                         stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    if ran.returncode != 0:
        return f"exit {ran.returncode}, puts {len(names(jobs))}"
    if name not in names(jobs):
        left = get(jobs / ".taken" / name)
        return "changes it" if left != b"second\n" else "leaves it"
    until(lambda: len(names(jobs)) > 1)
    return f"puts {len(names(jobs)) - 1}"


@pytest.mark.parametrize("row", TOOLS, ids=[row[0].replace(" ", "_") for row in TOOLS])
def test_a_tool_does_what_the_table_says(jobs, work, row):
    if shutil.which(row[0].split(",")[0].split()[0]) is None and row[0] != "python":
        pytest.skip(f"{row[0]} is not installed")
    seen = ["–" if command is None else done(jobs, work, command)
            for command in COMMANDS[row[0]]]
    assert seen == row[1:3]
