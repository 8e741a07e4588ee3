# SPDX-License-Identifier: MIT
"""docs/semantics.md: mounting by every way there is (S8 to S14).

Each test has a mount namespace of its own, in which /sbin has the helpers, /dev/fuse is open to
users, and /etc/fstab and /etc/fuse.conf are the test's.  The machine is not touched.
"""

import concurrent.futures
import contextlib
import errno
import fcntl
import json
import multiprocessing
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import pytest

from conftest import BUILD, ENV, TOP, add_accounts, detach, is_mount
from namespaces import CLONE_FS, CLONE_NEWNS, MNT_DETACH, MS_BIND, call, enter_own, mounts
from rest_client import ACCOUNT, KEY
from tools import busy, closes_are_known, fork, get, need, put, raises, rows, sh, traced

USER = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def bind(what, where):
    call("mount", what, where, None, MS_BIND, None)


def furnish(room):
    """The namespace's own /sbin, /dev/fuse, /etc/fstab and /etc/fuse.conf."""
    room.mkdir(mode=0o755)
    call("mount", "none", room, "tmpfs", 0, None)
    for d in ("up", "work", "build"):
        (room / d).mkdir()
    bind(BUILD, room / "build")  # the way to it may be closed to the user
    sbin = os.path.realpath("/sbin")
    call("mount", "none", sbin, "overlay", 0,
         f"lowerdir={sbin},upperdir={room}/up,workdir={room}/work")
    for name in ("mount.rowfs", "mount.fuse.rowfs", "umount.fuse.rowfs"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{sbin}/{name}")
        os.symlink(room / "build/mount-helper/mount.rowfs", f"{sbin}/{name}")
    os.mknod(room / "fuse", 0o600 | 0o020000, os.stat("/dev/fuse").st_rdev)
    os.chmod(room / "fuse", 0o666)
    bind(room / "fuse", "/dev/fuse")
    for name in ("fstab", "fuse.conf"):
        (room / name).write_text("")
        if not os.path.exists(f"/etc/{name}"):
            pytest.skip(f"needs /etc/{name}")
        bind(room / name, f"/etc/{name}")


@pytest.fixture(autouse=True)
def namespace(work):
    if os.geteuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("needs root and /dev/fuse")
    need("setpriv", "fusermount3")
    home, cwd = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC), os.getcwd()
    root = os.open("/", os.O_PATH | os.O_CLOEXEC)
    try:
        enter_own()
    except OSError as e:
        pytest.skip(f"needs a mount namespace: {e}")
    try:
        os.chmod(work, 0o755)
        furnish(work / "room")
        yield
        os.chdir("/")
        for at in list(mounts()):
            detach(at)
    finally:
        call("unshare", CLONE_FS)  # of threads that ended a moment ago
        call("setns", home, CLONE_NEWNS)
        os.fchdir(root)  # setns leads out of a chroot
        os.chroot(".")
        os.close(root)
        os.close(home)
        os.chdir(cwd)


@pytest.fixture
def at(work):
    path = work / "mnt"
    path.mkdir()
    return path


@pytest.fixture
def home(work):
    """Of the unprivileged user."""
    path = work / "home"
    path.mkdir()
    (path / "mnt").mkdir()
    sh(f"chown -R 65534:65534 '{path}'")
    return path


@contextlib.contextmanager
def ended(process):
    """A helper of the test, which ends with it."""
    try:
        yield process
    finally:
        process.terminate()
        process.wait(60)


@contextlib.contextmanager
def another_namespace():
    """A process with copies of all mounts that there are."""
    need("unshare")
    with ended(subprocess.Popen(["unshare", "-m", "--propagation=private", "sleep", "200"])) as p:
        while get(f"/proc/{p.pid}/comm") != b"sleep\n":
            time.sleep(0.002)
        yield p


def words_of_user(*words, groups=None):
    user = USER if groups is None else [*USER[:3], f"--groups={groups}"]
    open_build = os.path.dirname(os.path.dirname(os.readlink("/sbin/mount.rowfs")))
    return [*user, *(str(w).replace(str(BUILD), open_build) for w in words)]


def as_user(*words, groups=None, **kw):
    return subprocess.run(words_of_user(*words, groups=groups), capture_output=True, text=True,
                          env=ENV, stdin=subprocess.DEVNULL, timeout=60, **kw)


def fstab(line):
    pathlib.Path("/etc/fstab").write_text(line + "\n")


def server_of(store):
    """The process that holds the store."""
    inode = str(os.stat(store).st_ino)
    for line in open("/proc/locks"):
        w = line.split()
        if "FLOCK" in w and w[-3].split(":")[-1] == inode and "WRITE" in w:
            return int(w[-4])
    return None


def kill(store):
    pid = server_of(store)
    os.kill(pid, signal.SIGKILL)
    while server_of(store) is not None:
        time.sleep(0.002)


# ---- S8: options ----

PLAIN = {"rw", "nosuid", "nodev", "relatime"}
FINE = {  # option: what of the mount differs
    "ro": {"ro"}, "rw": set(), "suid": set(), "nosuid": set(), "dev": set(), "nodev": set(),
    "exec": set(), "noexec": {"noexec"}, "atime": set(), "noatime": {"noatime"},
    "async": set(), "sync": set(), "dirsync": set(), "diratime": set(), "nodiratime": set(),
    "relatime": set(), "norelatime": set(), "strictatime": set(), "nostrictatime": set(),
    "lazytime": set(), "nolazytime": set(), "symfollow": set(), "nosymfollow": set(),
    "nomand": set(), "silent": set(), "loud": set(), "noiversion": set(), "user": {"noexec"},
    "users": {"noexec"}, "nouser": set(), "owner": set(), "group": set(), "auto": set(),
    "noauto": set(), "defaults": set(), "nofail": set(), "_netdev": set(), "comment=hi": set(),
    "x-own.word": set(), "x-systemd.automount": set(), "uid=5": set(), "gid=5": set(),
    "umask=077": set(), "control=list": set(), "subtype=rowfs": set(), "trash=1M": set(),
    "trash-age=60": set(), "snapshot-lifetime=60": set(), "snapshot-log=1G": set(),
    "partition-target=9": set(), "rest-tenant=72f988bf-86f1-41af-91ab-2d7cd011db47": set(),
    "default_permissions": {"default_permissions"},
    "allow_other": {"default_permissions", "allow_other"},
}
REFUSED = {  # option: what of the message says why; libmount 2.41 refuses users itself
    "mand": "mandatory locks", "iversion": "ETag", "allow_root": "allow_other",
    "blkdev": "block device", "max_read=4096": "not supported", "fmask=1": "not known",
    "user_id=1": "kernel", "rootmode=1": "not known", "fd=3": "not known",
    "errors=remount-ro": "not known", "subtype=x": "only be rowfs", "nosuid=1": "takes no value",
    "remount=x": "not known", "uid=x": "a number|failed to parse",
    "uid=-1": "a number|failed to parse", "umask=8": "octal",
    "trash=1X": "a size", "control=x": "control=list", "rest=nowhere": "rest=",
    "umask": "wants a value", "rest-cert=/nowhere": "rest-cert", "log=": "no file", "log-level=all": "error, warning",
    "partition-target=x": "a number", "rest-tenant=common": "a UUID",
    "soft=1": "takes no value", "hard=1": "takes no value",
}


def test_S8_every_option_is_taken_or_named(store, at):
    """By mount(8), one mount for each."""
    wrong = []
    for option, differs in FINE.items():
        done = sh(f"mount -t rowfs -o {option} '{store}' '{at}'", check=False)
        flags, _, deep = mounts().get(str(at), ([], "", []))
        got = set(flags) | set(deep) - {"user_id=0", "group_id=0"}
        want = (PLAIN - ({"rw"} if "ro" in differs else set()) -
                ({"relatime"} if "noatime" in differs else set())) | differs
        if done.returncode != 0 or done.stderr or got != want:
            wrong.append((option, done.returncode, done.stderr, got))
        sh(f"umount '{at}'", check=False)
    for option, why in REFUSED.items():
        done = sh(f"mount -t rowfs -o {option} '{store}' '{at}'", check=False)
        name = option if "rest" not in option else option.split("=")[0]
        name = name.replace("user_id=1", "user_id")
        if done.returncode != 1 or not re.search(why, done.stderr) or \
                name not in done.stderr or is_mount(at):
            wrong.append((option, done.returncode, done.stderr))
    assert not wrong


@pytest.mark.parametrize("option", ["soft", "hard"])
def test_S8_options_of_accounts_elsewhere_are_refused_for_a_store(store, at, option):
    done = sh(f"mount -t rowfs -o {option} '{store}' '{at}'", check=False)
    assert done.returncode == 32 and not is_mount(at)
    assert f"option '{option}' is" in done.stderr and "for the URL of an account elsewhere" in done.stderr


def test_S8_nosuid_and_nodev_always_hold(rowfs, store, at):
    """By rowfs itself, which is given options as they are; mount(8) takes some out before 2.41."""
    rowfs("mount", store, at, "-o", "suid,dev,noatime,atime,noexec,exec")
    assert set(mounts()[str(at)][0]) == PLAIN
    rowfs("mount", store, at, "-o", "remount,suid,dev,noexec")
    assert set(mounts()[str(at)][0]) == PLAIN | {"noexec"}
    rowfs("umount", at)


def test_S8_what_the_options_do(rowfs, store, at):
    sh(f"mount -t rowfs -o uid=5,gid=6,umask=027,control=list,fsname=name '{store}' '{at}'")
    (at / "acct1").mkdir()
    st = os.stat(at)
    assert (st.st_uid, st.st_gid, st.st_mode & 0o777) == (5, 6, 0o750)
    assert ".rowfs" in rows(at) and mounts()[str(at)][1] == "name"
    sh(f"umount '{at}'")
    sh(f"mount -t rowfs '{store}' '{at}'")
    assert mounts()[str(at)][1] == str(store)
    (at / "acct1/Tab/p").mkdir(parents=True)
    put(at / "acct1/Tab/p/run", "#!/bin/sh\nexit 7\n")
    os.chmod(at / "acct1/Tab/p/run", 0o4755)
    assert sh(f"'{at}/acct1/Tab/p/run'", check=False).returncode == 7
    shutil.copy("/usr/bin/id", at / "acct1/Tab/p/id")
    os.chown(at / "acct1/Tab/p/id", 5, 5)
    os.chmod(at / "acct1/Tab/p/id", 0o6755)
    assert sh(f"'{at}/acct1/Tab/p/id' -u").stdout.strip() == "0"  # nosuid, always
    sh(f"umount '{at}'")
    sh(f"mount -t rowfs -o noexec '{store}' '{at}'")
    assert sh(f"'{at}/acct1/Tab/p/run'", check=False).returncode == 126
    sh(f"umount '{at}'")


def test_S8_X_mount_mkdir_makes_the_directory(store, at):
    sh(f"mount -t rowfs -o X-mount.mkdir '{store}' '{at}/a/b'")
    assert is_mount(at / "a/b")
    sh(f"umount '{at}/a/b'")


def test_S8_sync_makes_every_commit_durable(rowfs, mount, store, work):
    """Also one of a document that comes in many writes, for which the kernel's own sync would
    ask for half a row."""
    need("strace")
    syncs = {}
    text = json.dumps({"a": "x" * 30000, "b": "y" * 30000})
    for option in ("async", "sync"):
        m = mount(store, option)
        (m / "acct1/Tab/p").mkdir(parents=True, exist_ok=True)
        put(m / "acct1/Tab/p/warm.json", "{}")
        trace = subprocess.Popen(["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o",
                                  work / option, "-p", str(m.proc.pid)])
        traced(trace, m.proc.pid)
        with open(m / "acct1/Tab/p/r.json", "wb", buffering=0) as f:
            for i in range(0, len(text), 4096):
                f.write(text[i:i + 4096].encode())
        trace.send_signal(signal.SIGINT)
        trace.wait(60)
        syncs[option] = len(get(work / option).splitlines())
        assert json.loads(get(m / "acct1/Tab/p/r.json")) == json.loads(text)
        m.umount()
    assert syncs["async"] == 0 and syncs["sync"] >= 1


def test_S8_fstab(rowfs, store, at, work):
    """mount -a, findmnt, umount -a, more than once; a line that is wrong; nofail."""
    fstab(f"{store} {at} rowfs allow_other,nofail,noatime,x-systemd.requires-mounts-for=/ 0 0")
    for _ in range(2):
        sh("mount -a")
        assert list(mounts()) == [str(at)]
        assert "already mounted" in sh("mount -a -v").stdout
        assert sh(f"findmnt -n -o FSTYPE,SOURCE '{at}'").stdout.split() == ["fuse.rowfs", str(store)]
        sh("umount -a -t fuse.rowfs")
        assert not mounts() and server_of(store) is None
    fstab(f"{work}/none {at} rowfs defaults 0 0")
    done = sh("mount -a", check=False)
    assert done.returncode == 32 and "rowfs init" in done.stderr
    sh(f"ln -s '{store}' '{work}/link'")
    fstab(f"{work}/link {at} fuse.rowfs defaults 0 0")
    sh("mount -a")
    assert mounts()[str(at)][1] == str(store)
    assert "already" in sh("mount -a -v").stdout
    sh(f"umount '{at}'")


def test_S8_fstab_user(rowfs, work):
    """A line with `user`: mount(8) gives up root before it calls the helper."""
    home = work / "home"
    home.mkdir()
    (home / "mnt").mkdir()
    sh(f"chown -R 65534:65534 '{home}'")
    assert as_user(rowfs.program, "init", home / "s").returncode == 0
    fstab(f"{home}/s {home}/mnt rowfs noauto,user 0 0")
    done = as_user("mount", home / "mnt")
    assert done.returncode == 0, done.stderr
    assert {"user_id=65534", "group_id=65534"} <= set(mounts()[str(home / "mnt")][2])
    assert {"nosuid", "nodev", "noexec"} <= set(mounts()[str(home / "mnt")][0])
    done = as_user("umount", home / "mnt")
    assert done.returncode == 0, done.stderr
    assert not mounts()


def test_S8_the_lines_of_fstab_that_the_pages_show(rowfs, work):
    """Each with the store and the directory that it names."""
    text = "".join((TOP / page).read_text() for page in (
        "docs/mount.rowfs.8", "docs/recipes.md", "examples/systemd/srv-blogs.mount"))
    lines = sorted(set(re.findall(r"/\S+\.rowfs /\S+ rowfs \S+ 0 0", text)))
    assert len(lines) == 3, lines
    for place in ("/home", "/srv", "/var/lib"):
        over = work / "room" / place[1:]
        for name in ("up", "work"):
            (over / name).mkdir(parents=True)
        call("mount", "none", place, "overlay", 0,
             f"lowerdir={place},upperdir={over}/up,workdir={over}/work")
    for line in lines:
        store, at, _, options = line.split()[:4]
        os.makedirs(at)
        os.makedirs(os.path.dirname(store), exist_ok=True)
        rowfs("init", store)
        by, end = [], [rowfs.program, "umount"]  # umount(8) may not wait, if it is root's
        if "user" in options.split(","):
            by, end = USER, [*USER, "umount"]
            sh(f"chown -R 65534:65534 '{os.path.dirname(store)}'")
        fstab(line)
        for command, there in (([*by, "mount"], [at]), (end, [])):
            done = subprocess.run([*command, at], capture_output=True, text=True, timeout=60)
            assert done.returncode == 0 and list(mounts()) == there, f"{line}\n{done.stderr}"
        os.unlink(store)
        os.rmdir(at)


def test_S8_the_line_of_fstab_for_an_account_elsewhere(rowfs, serve, work, at):
    """As both pages show it, at another address.  A unit that systemd makes of it has no HOME."""
    lines = {re.search(r"^(?:\.Dl )?(https://\S+ \S+ rowfs \S+ 0 0)$", (TOP / page).read_text(), re.M)[1]
             for page in ("docs/mount.rowfs.8", "docs/cloud.md")}
    store, secret, cache = work / "there.rowfs", work / "prod", work / "cache"
    rowfs("init", store)
    add_accounts(rowfs, store)
    server = serve(store)
    url = server.url(ACCOUNT)
    secret.write_text(f"AccountName={ACCOUNT};AccountKey={KEY};TableEndpoint={url}")
    secret.chmod(0o600)
    cache.mkdir()
    home_cache = pathlib.Path(pwd.getpwuid(0).pw_dir) / ".cache"
    home_cache.mkdir(exist_ok=True)
    (work / "root").mkdir()
    bind(work / "root", home_cache)
    for line in lines:
        assert "_netdev" in line and "connection-string=/etc/rowfs/prod" in line
        _, _, kind, options = line.split()[:4]
        fstab(f"{url} {at} {kind} {options.replace('/etc/rowfs/prod', str(secret))} 0 0")
        for _ in range(2):
            sh("env -u HOME -u XDG_CACHE_HOME mount -a")
            assert list(mounts()) == [str(at)]
            assert "already mounted" in sh("mount -a -v").stdout
        assert sh(f"findmnt -n -o FSTYPE,SOURCE '{at}'").stdout.split() == ["fuse.rowfs", url]
        (at / ACCOUNT / "Posts").mkdir(exist_ok=True)
        sh("umount -a -t fuse.rowfs")
        assert not mounts()
        assert os.listdir(home_cache / "rowfs")


# ---- S9: remount ----

def flags_of(at):
    return mounts()[str(at)][0]


@pytest.fixture
def remountable(rowfs, store, at):
    """With REST and a row, by a line of fstab."""
    add_accounts(rowfs, store)
    fstab(f"{store} {at} rowfs allow_other,noatime,nofail,rest=unix:{at.parent}/sock,user 0 0")
    sh(f"mount '{at}'")
    (at / "acct1/Tab/p").mkdir(parents=True)
    put(at / "acct1/Tab/p/r.json", '{"v":1}')
    return at


def rest_insert(at, key):
    body = json.dumps({"PartitionKey": "p", "RowKey": key})
    done = sh(f"curl -s -o /dev/null -w '%{{http_code}}' --unix-socket '{at.parent}/sock' "
              f"-H 'Content-Type: application/json' -d '{body}' http://localhost/acct1/Tab")
    return int(done.stdout)


def test_S9_remount_to_read_only_and_back(rowfs, store, remountable):
    need("curl")
    at, row = remountable, remountable / "acct1/Tab/p/r.json"
    for n in range(2):
        sh(f"mount -o remount,ro '{at}'")
        assert {"ro", "noatime", "nosuid", "nodev", "noexec"} <= set(flags_of(at))
        with raises("EROFS"):
            put(row, '{"v":2}')
        with raises("EROFS"):
            (at / "acct2").mkdir()
        assert rest_insert(at, f"x{n}") == 403
        done = rowfs("import", store, "acct1/Tab", check=False,
                     input='{"PartitionKey":"p","RowKey":"y"}\n')
        assert done.returncode == 1 and "read-only" in done.stderr
        assert get(row) == b'{"v":1}' and rowfs("check", store)
        assert rows(at / "acct1/Tab/p") == ["r.json"] + [f"w{i}.json" for i in range(n)]
        sh(f"mount -o remount,rw '{at}'")
        assert rest_insert(at, f"w{n}") == 201
        put(row, '{"v":1}')


def test_S9_not_while_files_are_open_for_writing(rowfs, store, remountable):
    need("curl")
    at = remountable
    with open(at / "acct1/Tab/p/r.json", "r+b") as f:
        for how in (f"mount -o remount,ro '{at}'",
                    f"'{rowfs.program}' mount '{store}' '{at}' -o remount,ro"):
            done = sh(how, check=False)
            assert done.returncode in (1, 32) and "open for writing" in done.stderr
        assert "rw" in flags_of(at)
        assert rest_insert(at, "still") == 201
        f.write(b'{"v":3}')
    assert get(at / "acct1/Tab/p/r.json") == b'{"v":3}'
    with open(at / "acct1/Tab/p/r.json", "rb") as f:  # readers do not matter
        sh(f"mount -o remount,ro '{at}'")
        assert f.read() == b'{"v":3}'


def test_S9_flags_change_and_other_options_are_named(rowfs, store, remountable):
    at = remountable
    fstab("")
    sh(f"mount -o remount,exec '{at}'")
    assert "noexec" not in flags_of(at) and "rw" in flags_of(at)
    sh(f"mount -o remount,noexec '{at}'")
    assert "noexec" in flags_of(at)
    rowfs("mount", store, at, "-o", "remount,exec")
    assert "noexec" not in flags_of(at) and "noatime" in flags_of(at)
    for option in ("uid=7", "rest=127.0.0.1:0", "trash=1M", "sync", "log=/dev/null",
                   "control=list", "fsname=x", "ro,umask=077"):
        done = sh(f"mount -o remount,{option} '{at}'", check=False)
        assert done.returncode == 32 and option.split(",")[-1] in done.stderr
        assert "unmount it" in done.stderr and "rw" in flags_of(at)
    done = sh(f"mount -o remount,nonsense '{at}'", check=False)
    assert done.returncode == 1 and "nonsense" in done.stderr
    sh(f"mount -o remount,bind,ro '{at}'")
    with raises("EROFS"):
        (at / "acct2").mkdir()
    sh(f"mount -o remount,bind,rw '{at}'")
    (at / "acct2").mkdir()


def test_S9_who_and_what_cannot(rowfs, store, at, work):
    for words, why in (((store, at), "no mount of rowfs"), ((work / "none", at), "no mount"),
                       ((store, work / "nowhere"), "no mount")):
        done = rowfs("mount", *words, "-o", "remount,ro", check=False)
        assert done.returncode == 1 and why in done.stderr
    rowfs("mount", store, at, "-o", "ro")
    done = sh(f"mount -o remount,rw '{at}'", check=False)
    assert done.returncode == 32 and "opened read-only" in done.stderr and "ro" in flags_of(at)
    sh(f"mount -o remount,ro '{at}'")
    rowfs("umount", at)
    rowfs("mount", store, at, "-o", "allow_other,fsname=some")
    os.chmod(store, 0o644)
    done = as_user(rowfs.program, "mount", store, at, "-o", "remount,ro")
    assert done.returncode == 1 and "root" in done.stderr
    done = sh(f"mount -o remount,ro '{at}'", check=False)
    assert done.returncode == 32 and "fsname" in done.stderr and "rw" in flags_of(at)
    sh(f"mount -t rowfs -o remount,ro '{store}' '{at}'")
    assert "ro" in flags_of(at)
    other = work / "other"
    rowfs("init", other)
    rowfs("umount", at)
    rowfs("mount", store, at)
    done = rowfs("mount", other, at, "-o", "remount,ro", check=False)
    assert done.returncode == 1 and str(store) in done.stderr
    kill(store)
    done = rowfs("mount", store, at, "-o", "remount,ro", check=False)
    assert done.returncode == 1 and "killed" in done.stderr


def test_S9_read_only_waits_for_what_rest_has_begun(rowfs, store, remountable, work):
    need("curl", "strace")
    at, pid = remountable, server_of(store)
    part = at / "acct1/Tab/p"
    slow = subprocess.Popen(["strace", "-f", "-qq", "-o", work / "trace", "-e",
                             "trace=pwrite64", "-e", "inject=pwrite64:delay_enter=300000",
                             "-p", str(pid)])
    with ended(slow):
        traced(slow, pid)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            insert = pool.submit(rest_insert, at, "late")
            while not (work / "trace").stat().st_size:
                time.sleep(0.002)
            sh(f"mount -o remount,ro '{at}'")
            seen = rows(part)
            assert (insert.result(60), rows(part)) == (201, seen)
    assert seen == ["late.json", "r.json"]


@pytest.mark.parametrize("name, text", [
    ("{}.json", '{"v":2}'), (".batch", '[{"upsert":{"RowKey":"KEY","v":2}}]')])
def test_S9_read_only_waits_for_what_the_last_close_commits(store, remountable, work, name, text):
    """The kernel tells of it when the closing process has gone on: here a child, whose own close commits
    nothing."""
    need("strace")
    at, pid = remountable, server_of(store)
    part, keys = at / "acct1/Tab/p", "abcdefghijklmnopqrstuvwx"
    slow = subprocess.Popen(["strace", "-f", "-qq", "-o", work / "trace", "-e",
                             "trace=pwrite64", "-e", "inject=pwrite64:delay_enter=30000",
                             "-p", str(pid)])
    with ended(slow):
        traced(slow, pid)
        files = [(k, os.open(part / name.format(k), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644))
                 for k in keys]
        go, child = os.pipe(), os.fork()
        if child == 0:
            try:
                os.close(go[1])
                os.read(go[0], 1)
                for k, fd in files:
                    os.write(fd, text.replace("KEY", k).encode())
                os._exit(0)
            finally:
                os._exit(1)
        for fd in (*(fd for _, fd in files), *go):
            os.close(fd)
        assert os.waitpid(child, 0)[1] == 0
        sh(f"mount -o remount,ro '{at}'")
        assert [get(part / f"{k}.json") for k in keys if k + ".json" in rows(part)] == [
            get(part / "a.json")] * len(keys)
        assert json.loads(get(part / "a.json")) == {"v": 2}


def test_S9_who_only_reads_changes_nothing_after_it(rowfs, store, remountable):
    """A new name, as flock(1) opens it."""
    at = remountable
    with open(os.open(at / "acct1/Tab/p/new.json", os.O_RDONLY | os.O_CREAT)) as f:
        sh(f"mount -o remount,ro '{at}'")
        before = [p.read_bytes() for p in sorted(store.parent.glob(f"{store.name}*"))]
        fcntl.flock(f, fcntl.LOCK_EX)
    closes_are_known(at)
    after = [p.read_bytes() for p in sorted(store.parent.glob(f"{store.name}*"))]
    assert before == after
    assert rows(at / "acct1/Tab/p") == ["new.json", "r.json"]


def test_S9_a_user_cannot_open_the_other_front_ends_again(rowfs, home):
    """What the kernel refuses, the server does not do by halves.  Root remounts the mount of a
    user, and cannot look into it."""
    as_user(rowfs.program, "init", home / "s")
    words = [rowfs.program, "mount", home / "s", home / "mnt"]
    assert as_user(*words).returncode == 0
    assert as_user("mkdir", "-p", home / "mnt/acct1/Tab/p").returncode == 0
    rowfs("mount", home / "s", home / "mnt", "-o", "remount,ro")
    done = as_user(*words, "-o", "remount,rw")
    assert done.returncode == 1 and "only root" in done.stderr
    for want in (1, 0):
        done = rowfs("import", home / "s", "acct1/Tab", check=False,
                     input='{"PartitionKey":"p","RowKey":"y"}\n')
        assert done.returncode == want, done.stderr
        rowfs("mount", home / "s", home / "mnt", "-o", "remount,rw")
    assert as_user(rowfs.program, "umount", home / "mnt").returncode == 0


# ---- S10: an unprivileged user ----

def test_S10_a_user_mounts_through_fusermount3(rowfs, home):
    script = f"""set -e; cd '{home}'; R='{rowfs.program}'
        $R init s; $R mount s mnt; mkdir -p mnt/acct1/Tab/p; echo '{{"v":1}}' > mnt/acct1/Tab/p/r.json
        stat -c %u mnt/acct1; cat mnt/acct1/Tab/p/r.json; $R stat s > /dev/null"""
    done = as_user("bash", "-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout == '65534\n{"v":1}\n'
    with raises("EACCES"):
        os.listdir(home / "mnt")  # root too
    assert rowfs("stat", home / "s").stdout
    done = as_user(rowfs.program, "mount", home / "s", home / "mnt", "-o", "remount,ro")
    assert done.returncode == 1 and "only root" in done.stderr
    done = as_user("fusermount3", "-u", home / "mnt")
    assert done.returncode == 0 and not mounts()
    done = as_user("bash", "-c", f"cd '{home}'; R='{rowfs.program}'; $R mount s mnt && "
                   "cat mnt/acct1/Tab/p/r.json && $R umount mnt")
    assert (done.returncode, done.stdout) == (0, '{"v":1}\n'), done.stderr
    assert not mounts()


def test_S3_sigterm_ends_what_a_user_mounted_and_somebody_holds_open(rowfs, home):
    """Also where no fusectl is mounted, through which a user can cut off a mount."""
    with contextlib.suppress(OSError):
        call("umount2", "/sys/fs/fuse/connections", MNT_DETACH)
    script = f"""cd '{home}'; R='{rowfs.program}'; $R init s || exit; $R mount s mnt -f &
        until [ -e mnt/.rowfs/version ]; do sleep 0.01; done; mkdir -p mnt/acct1/Tab/p
        exec 3> mnt/acct1/Tab/p/plain; kill $!; wait $!; echo ended with $?"""
    done = as_user("bash", "-c", script)
    assert done.stdout == "ended with 0\n", done.stderr
    assert rowfs("check", home / "s") and not mounts()


def connection_at(directory):
    """The number of a mount's connection to the kernel."""
    for line in open("/proc/self/mountinfo"):
        w = line.split()
        if w[4] == str(directory):
            return w[2].split(":")[1]
    raise RuntimeError(f"{directory} is not mounted")


def cutter(connection):
    """Writing to it wakes all who wait in the mount. It is opened while the mount lives: later the
    number may be that of another mount."""
    call("mount", "none", "/sys/fs/fuse/connections", "fusectl", 0, None)
    fd = os.open(f"/sys/fs/fuse/connections/{connection}/abort", os.O_WRONLY)
    call("umount2", "/sys/fs/fuse/connections", MNT_DETACH)
    return fd


def busy_inside(directory, seed, inside):
    """As the user, and from within, so that it goes on where the mount is detached."""
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    os.chdir(directory)
    inside.release()
    busy(".", seed)


def test_S3_sigterm_ends_what_a_user_mounted_and_many_work_in(rowfs, home, work):
    """Nothing can cut it off, and what the server asks the kernel to forget has to wait for clients
    that wait for the server."""
    with contextlib.suppress(OSError):
        call("umount2", "/sys/fs/fuse/connections", MNT_DETACH)
    part = home / "mnt/acct1/Tab/p"
    assert as_user(rowfs.program, "init", home / "s").returncode == 0
    words = words_of_user(rowfs.program, "mount", home / "s", home / "mnt", "-f")
    with open(work / "log", "wb") as log:
        server = subprocess.Popen(words, env=ENV, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    inside = fork.Semaphore(0)
    workers = [fork.Process(target=busy_inside, args=(part, i, inside)) for i in range(8)]
    cut = None
    try:
        while str(home / "mnt") not in mounts():
            assert server.poll() is None, get(work / "log")
            time.sleep(0.002)
        cut = cutter(connection_at(home / "mnt"))
        assert as_user("mkdir", "-p", part).returncode == 0
        for w in workers:
            w.start()
        assert all(inside.acquire(timeout=60) for w in workers)
        time.sleep(0.5)  # of all kinds of work
        assert all(w.is_alive() for w in workers)
        server.terminate()
        assert server.wait(60) == 0, get(work / "log")
        for w in workers:
            w.join(60)
            assert w.exitcode == 0, f"{w.name}: {w.exitcode}"
    finally:
        server.kill()
        for w in workers:
            if w.pid is not None:
                w.kill()
        if cut is not None:
            os.write(cut, b"1")
            os.close(cut)
    assert not mounts() and rowfs("check", home / "s")


def test_S10_allow_other_wants_user_allow_other(rowfs, home):
    as_user(rowfs.program, "init", home / "s")
    words = (rowfs.program, "mount", home / "s", home / "mnt", "-o", "allow_other")
    done = as_user(*words)
    assert done.returncode == 1 and "user_allow_other" in done.stderr and not mounts()
    pathlib.Path("/etc/fuse.conf").write_text("user_allow_other\n")
    done = as_user(*words)
    assert done.returncode == 0, done.stderr
    assert rows(home / "mnt") == []
    assert as_user(rowfs.program, "umount", home / "mnt").returncode == 0


def test_S10_not_where_the_directory_is_anothers(rowfs, home, work):
    as_user(rowfs.program, "init", home / "s")
    (work / "roots").mkdir()
    done = as_user(rowfs.program, "mount", home / "s", work / "roots")
    assert done.returncode == 1 and str(work / "roots") in done.stderr
    assert "write access" in done.stderr and not mounts()


def test_S10_a_killed_server_of_a_user(rowfs, home):
    as_user(rowfs.program, "init", home / "s")
    (home / "b").mkdir()
    os.chown(home / "b", 65534, 65534)
    for again in ("mnt", "b"):
        assert as_user(rowfs.program, "mount", home / "s", home / "mnt").returncode == 0
        kill(home / "s")
        done = as_user(rowfs.program, "mount", home / "s", home / again)
        assert done.returncode == 0 and "was killed" in done.stderr, done.stderr
        assert list(mounts()) == [str(home / again)]
        assert as_user(rowfs.program, "umount", home / again).returncode == 0


# ---- S11: other users ----

def other(words, uid=1234, gid=1234, groups=()):
    """What a call of os gives for somebody else: 0 or an errno's name."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        said = "0"
        try:
            os.setgroups(groups)
            os.setgid(gid)
            os.setuid(uid)
            exec(words, {"os": os})
        except OSError as e:
            said = errno.errorcode[e.errno]
        except BaseException as e:
            said = repr(e)
        finally:
            os.write(writer, said.encode())
            os._exit(0)
    os.close(writer)
    said = os.read(reader, 4096).decode()
    os.close(reader)
    os.waitpid(child, 0)
    return said


def test_S11_without_allow_other_nobody_else_gets_in(mount, store):
    at = mount(store).path
    (at / "acct1").mkdir()
    for words in (f"os.stat('{at}')", f"os.listdir('{at}')", f"os.stat('{at}/acct1')",
                  f"os.stat('{at}/.rowfs/version')", f"os.mkdir('{at}/acct2')"):
        assert other(words) == "EACCES", words


# A stranger's call, in a directory 0755 of root with files 0644.
STRANGER = {
    "os.listdir(p)": "0", "os.stat(p+'/r.json')": "0", "open(p+'/r.json').read()": "0",
    "open(p+'/r.json','w')": "EACCES", "open(p+'/r.json','r+')": "EACCES",
    "open(p+'/r.json','a')": "EACCES", "os.truncate(p+'/r.json',1)": "EACCES",
    "open(p+'/new.json','w')": "EACCES", "open(p+'/new','w')": "EACCES",
    "os.mkdir(p+'/.d')": "EACCES", "os.unlink(p+'/r.json')": "EACCES",
    "os.unlink(p+'/o')": "EACCES", "os.rename(p+'/o',p+'/q.json')": "EACCES",
    "os.rename(p+'/r.json',p+'/s.json')": "EACCES", "os.chmod(p+'/r.json',0o777)": "EPERM",
    "os.chown(p+'/r.json',1234,1234)": "EPERM", "os.utime(p+'/r.json',(1,1))": "EPERM",
    "os.utime(p+'/r.json')": "EACCES", "os.rmdir(p)": "EACCES",
    "os.setxattr(p+'/r.json','user.rowfs.if_match',b'*')": "EACCES",
    "os.getxattr(p+'/r.json','user.rowfs.etag')": "0", "open(p+'/.batch','w')": "EACCES",
    "open(p+'/.rows.ndjson').read()": "0", "open(p+'/.rows.ndjson','a')": "EACCES",
    "open(p+'/shut.json')": "EACCES", "os.stat(p+'/shut.json')": "0",
    "os.listdir(m+'/.rowfs/rejected')": "EACCES", "os.listdir(m+'/.rowfs/trash')": "EACCES",
    "open(m+'/.rowfs/errors')": "EACCES", "open(m+'/.rowfs/version').read()": "0",
    "os.mkdir(m+'/acct2')": "EACCES", "os.mkdir(m+'/acct1/Tab2')": "EACCES",
    "os.mkdir(m+'/.rowfs/snapshots/x')": "EACCES",
}


def test_S11_modes_and_owners_hold_for_strangers(mount, store):
    m = mount(store, "allow_other")
    p = m / "acct1/Tab/p"
    p.mkdir(parents=True)
    for name in ("r.json", "o", "shut.json"):
        put(p / name, "{}")
    os.chmod(p / "shut.json", 0o600)
    before = {n: get(p / n) for n in rows(p)}
    wrong = [(w, got, want) for w, want in STRANGER.items()
             if (got := other(f"p, m = '{p}', '{m.path}'\n{w}")) != want]
    assert not wrong
    assert {n: get(p / n) for n in rows(p)} == before


def test_S11_owner_group_and_sticky(mount, store):
    m = mount(store, "allow_other")
    p = m / "acct1/Tab/p"
    p.mkdir(parents=True)
    put(p / "g.json", "{}")
    os.chown(p / "g.json", 0, 77)
    os.chmod(p / "g.json", 0o660)
    write = f"open('{p}/g.json','w').write('{{}}')"
    assert other(write) == "EACCES"
    assert other(write, gid=77) == "0"
    assert other(write, groups=(5, 77)) == "0"
    os.chmod(p, 0o1777)
    assert other(f"open('{p}/mine.json','w').write('{{}}')") == "0"
    assert os.stat(p / "mine.json").st_uid == 1234
    assert other(f"os.unlink('{p}/g.json')") == "EPERM"
    assert other(f"os.rename('{p}/mine.json','{p}/g.json')") == "EPERM"
    assert other(f"os.unlink('{p}/mine.json')", uid=99) == "EPERM"
    assert other(f"open('{p}/.batch','w')") == "EACCES"  # as it is of the owner alone there
    assert other(f"os.chmod('{p}/mine.json',0o600)") == "0"
    assert other(f"os.unlink('{p}/mine.json')") == "0"
    os.chmod(p, 0o700)
    for words in (f"os.stat('{p}/g.json')", f"os.listdir('{p}')", f"open('{p}/.rows.ndjson')"):
        assert other(words) == "EACCES"


# ---- S12: why a mount failed ----

def table_of(work):
    files = {str(p.relative_to(work)): p.lstat().st_size if p.is_file() else None
             for p in work.rglob("*") if "room" not in p.parts}
    running = set()
    for p in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if p.name.isdigit() and os.fsencode(work) in (p / "cmdline").read_bytes():
                running.add(p.name)
    # A machine that is not long up mounts others meanwhile.
    return files, running, [x for x in open("/proc/self/mountinfo") if str(work) in x]


def newer(store):
    with contextlib.closing(sqlite3.connect(store)) as db:
        db.execute("PRAGMA user_version = 9999")
        db.commit()
    return store


def no_fuse(work):
    (work / "dev").mkdir()
    os.mknod(work / "room/null", 0o666 | 0o020000, os.makedev(1, 3))
    call("mount", "none", "/dev", "tmpfs", 0, None)
    os.mknod("/dev/null", 0o666 | 0o020000, os.makedev(1, 3))


def full_disk(work, store):
    (work / "disk").mkdir()
    call("mount", "none", work / "disk", "tmpfs", 0, "size=4m")
    shutil.copy(store, work / "disk/s")
    fd = os.open(work / "disk/ballast", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(fd, b"x" * 4096)
    os.close(fd)
    return work / "disk/s"


def read_only_disk(work, store):
    (work / "disk").mkdir()
    call("mount", "none", work / "disk", "tmpfs", 0, None)
    shutil.copy(store, work / "disk/s")
    call("mount", None, work / "disk", None, 32 | 1, None)  # remount, ro
    return work / "disk/s"


# name: (store, directory, options, as a user, what the message must hold)
FAILURES = {
    "no store": (lambda e: e.work / "none", None, "", False, ["rowfs init"]),
    "a directory": (lambda e: e.work, None, "", False, ["directory"]),
    "not a store": (lambda e: e.text("hello" * 999), None, "", False, ["not a rowfs store"]),
    "an empty file": (lambda e: e.text(""), None, "", False, ["not a rowfs store"]),
    "newer": (lambda e: newer(e.store), None, "", False, ["reads up to version"]),
    "no permission": (None, None, "", True, ["ermission denied"]),
    "read-only disk": (lambda e: read_only_disk(e.work, e.store), None, "", False, ["-o ro"]),
    "full disk": (lambda e: full_disk(e.work, e.store), None, "", False, ["No space is left"]),
    "no directory": (None, lambda e: e.work / "nowhere", "", False, ["mkdir"]),
    "a file": (None, lambda e: e.text("x"), "", False, ["not a directory"]),
    "the store's directory": (None, lambda e: e.work, "", False, ["hide"]),
    "not mine": (None, None, "allow_other", True, ["permission denied"]),
    "option": (None, None, "nonsense", False, ["'nonsense'", "rowfs help mount"]),
    "value": (None, None, "uid=me", False, ["uid=me", "number"]),
    "log": (None, None, "log=/nowhere/log", False, ["/nowhere/log"]),
    "port": (None, None, "rest=127.0.0.1:{port},log={work}/log", False, ["{port}", "in use"]),
    "label": (None, None, "context=a:b:c:d,log={work}/log,rest=unix:{work}/sock", False,
              ["cannot mount", "nvalid argument"]),
    "no fuse": (None, None, "", False, ["modprobe"]),
    "fuse is closed": (lambda e: e.of_user(), lambda e: e.home / "mnt", "", True,
                       ["/dev/fuse", "0666"]),
    "no fusermount3": (lambda e: e.of_user(), lambda e: e.home / "mnt", "", True,
                       ["fusermount3"]),
}


class Example:
    def __init__(self, rowfs, work, store):
        self.rowfs, self.work, self.store = rowfs, work, store
        self.home = work / "home"

    def text(self, text):
        (self.work / "text").write_text(text)
        return self.work / "text"

    def of_user(self):
        self.home.mkdir()
        (self.home / "mnt").mkdir()
        sh(f"chown -R 65534:65534 '{self.home}'")
        assert as_user(self.rowfs.program, "init", self.home / "s").returncode == 0
        return self.home / "s"


@pytest.mark.parametrize("case", FAILURES)
def test_S12_it_says_why_and_leaves_nothing(rowfs, work, store, at, case):
    example = Example(rowfs, work, store)
    which, where, options, user, why = FAILURES[case]
    words = [which(example) if which else store, where(example) if where else at]
    taken = socket.create_server(("127.0.0.1", 0))
    known = {"port": str(taken.getsockname()[1]), "work": str(work)}
    if options:
        words += ["-o", options.format(**known)]
    if case == "no fuse":
        no_fuse(work)
    elif case == "fuse is closed":
        os.chmod("/dev/fuse", 0o600)
    elif case == "no fusermount3":
        bind("/dev/null", shutil.which("fusermount3"))
    before = table_of(work)
    for way in ([], ["-f"]):
        done = (as_user if user else lambda *w: subprocess.run(
            w, capture_output=True, text=True, timeout=60, env=ENV))(
                rowfs.program, "mount", *words, *way)
        assert done.returncode in (1, 2), done.stderr
        assert all(w.format(**known) in done.stderr for w in why), done.stderr
        lines = done.stderr.splitlines()
        assert all(line.startswith(("rowfs mount: ", "fuse: ", "fusermount3: "))
                   for line in lines), done.stderr
        assert len(lines) <= 5 and len(done.stderr) < 500
        if case == "full disk":  # an empty log may stay
            (work / "disk/s-wal").unlink(missing_ok=True)
        # The process that looked at a path beside the command ends by itself, soon after it.
        end = time.monotonic() + 10
        while table_of(work) != before and time.monotonic() < end:
            time.sleep(0.02)
        assert table_of(work) == before
    taken.close()
    if case == "read-only disk":
        rowfs("mount", *words, "-o", "ro")
        rowfs("umount", at)


def test_S12_a_directory_that_is_not_empty_is_fine(rowfs, store, at):
    """As for mount(8)."""
    (at / "hidden").write_text("")
    rowfs("mount", store, at)
    assert rows(at) == []
    rowfs("umount", at)
    assert rows(at) == ["hidden"]


# ---- S13: what a killed server left ----

def test_S13_every_way_out_of_a_dead_mount(rowfs, store, at, work):
    elsewhere = work / "elsewhere"
    elsewhere.mkdir()
    fstab(f"{store} {at} rowfs defaults 0 0")
    ways = {
        "again": (f"'{rowfs.program}' mount '{store}' '{at}'", at),
        "elsewhere": (f"'{rowfs.program}' mount '{store}' '{elsewhere}'", elsewhere),
        "mount(8)": (f"mount '{at}'", at),
        "umount": (f"'{rowfs.program}' umount '{at}'", None),
        "umount(8)": (f"umount '{at}'", None),
        "umount -i": (f"umount -i '{at}'", None),
        "serve": (f"'{rowfs.program}' serve '{store}' --rest=unix:{work}/sock > '{work}/said' & "
                  f"until [ -s '{work}/said' ]; do sleep 0.01; done; kill $!; wait", None),
    }
    for name, (script, mounted) in ways.items():
        rowfs("mount", store, at)
        (at / "acct1").mkdir(exist_ok=True)
        kill(store)
        with raises("ENOTCONN"):
            os.listdir(at)
        assert "already mounted" in sh("mount -a -v").stdout  # it cannot be told from a live one
        done = sh(script)
        assert list(mounts()) == ([str(mounted)] if mounted else []), name
        assert name == "umount -i" or f"'{at}' was the mount of a server that was killed" in \
            done.stderr
        if mounted:
            assert rows(mounted) == ["acct1"]
            rowfs("umount", mounted)
        assert not mounts()


def test_S13_mounts_of_its_directories_and_what_is_open(rowfs, store, at, work):
    inner = work / "inner"
    inner.mkdir()
    rowfs("mount", store, at)
    (at / "acct1/Tab/p").mkdir(parents=True)
    put(at / "acct1/Tab/p/r.json", '{"v":1}')
    bind(at / "acct1", inner)
    held = open(at / "acct1/Tab/p/r.json", "rb")
    here = os.open(at / "acct1", os.O_RDONLY)
    kill(store)
    done = rowfs("mount", store, at)
    assert done.stderr.count("was the mount of a server that was killed") == 2
    assert list(mounts()) == [str(at)] and get(at / "acct1/Tab/p/r.json") == b'{"v":1}'
    with raises("ENOTCONN"):
        os.listdir(here)
    os.close(here)
    held.close()
    rowfs("umount", at)


def test_S13_a_dead_mount_of_another_store(rowfs, store, at, work):
    rowfs("init", work / "second")
    rowfs("mount", store, at)
    kill(store)
    rowfs("mount", work / "second", at)
    assert mounts()[str(at)][1] == str(work / "second")
    done = rowfs("mount", store, at, check=False)  # alive: not stacked
    assert done.returncode == 1 and str(work / "second") in done.stderr
    rowfs("umount", at)


def test_S13_several_at_once(rowfs, store, at):
    """One of them mounts it; none takes the mount of that one away."""
    for _ in range(3):
        rowfs("mount", store, at)
        kill(store)
        tries = [subprocess.Popen([rowfs.program, "mount", store, at], env=ENV, text=True,
                                  stderr=subprocess.PIPE) for _ in range(4)]
        said = [t.communicate(timeout=60)[1] for t in tries]
        assert sorted(t.returncode for t in tries) == [0, 1, 1, 1], said
        assert list(mounts()) == [str(at)] and rows(at) == []
        rowfs("umount", at)


def writing(directory, name):
    """Makes, lists and removes rows until the mount is gone."""
    with contextlib.suppress(OSError):
        for i in range(10**9):
            with contextlib.suppress(FileNotFoundError):
                put(f"{directory}/{name}-{i % 20}.json", '{"v":%d}' % i)
                os.unlink(f"{directory}/{name}-{i % 7}.json")
            os.stat(f"{directory}/stays.json")
            os.listdir(directory)


def test_S13_killed_while_it_works_and_mounted_elsewhere(rowfs, store, at, work):
    """Threads of the server may be caught in the kernel then, with the store held."""
    (work / "elsewhere").mkdir()
    part = at / "acct1/Tab/p"
    rowfs("mount", store, at)
    part.mkdir(parents=True)
    put(part / "stays.json", "{}")
    with open(work / "in", "w") as f:
        f.write('{"PartitionKey":"p","RowKey":"first"}\n')
        for i in range(60_000):
            f.write('{"PartitionKey":"p","RowKey":"%d-%d","v":1}\n' % (i % 3, i % 20))
    clients = [multiprocessing.get_context("fork").Process(target=writing, args=(str(part), n))
               for n in range(3)]
    for c in clients:
        c.start()
    load = subprocess.Popen([rowfs.program, "import", store, "acct1/Tab", "--mode=upsert",
                             work / "in"], env=ENV, stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)
    try:
        # The import too: before it is heard it would open the store itself.
        while not (part / "first.json").exists():
            time.sleep(0.002)
        os.kill(server_of(store), signal.SIGKILL)
        rowfs("mount", store, work / "elsewhere", timeout=60)
        for c in clients:
            c.join(60)
            assert not c.is_alive(), "a client hangs"
        assert list(mounts()) == [str(work / "elsewhere")]
        assert "stays.json" in rows(work / "elsewhere/acct1/Tab/p")
    finally:
        load.kill()
        load.wait()
        for c in clients:
            c.kill()
    rowfs("umount", work / "elsewhere")
    rowfs("check", store)


def test_S13_auto_unmount_frees_the_directory_by_itself(rowfs, store, at):
    for _ in range(5):  # fusermount3 looks once, and too early where the kill takes its time
        rowfs("mount", store, at, "-o", "auto_unmount")
        kill(store)
        end = time.monotonic() + 10
        while mounts() and time.monotonic() < end:
            time.sleep(0.005)
        if not mounts():
            return
    pytest.fail("five times it was not freed")


def test_S13_a_mount_of_a_directory_in_it_is_no_mount_of_its_own(rowfs, mount, store, work):
    inner = work / "inner"
    inner.mkdir()
    m = mount(store)
    (m / "acct1").mkdir()
    bind(m / "acct1", inner)
    rowfs("umount", inner, timeout=20)  # and does not wait for a store that stays open
    assert m.alive() and rows(m.path) == ["acct1"]
    bind(m / "acct1", inner)
    m.allow("still mounted elsewhere")
    m.sigterm()  # ends it, also if others have a mount of it
    assert not mounts()
    rowfs("check", store)


def test_S13_a_stopped_server_is_not_taken_for_dead(rowfs, store, at, work):
    """Nor is it waited for by who cannot have the store or the directory anyway."""
    for name in ("b", "c"):
        (work / name).mkdir()
    rowfs("init", work / "second")
    rowfs("mount", store, at)
    pid = server_of(store)
    os.kill(pid, signal.SIGSTOP)
    try:
        tries = {words: subprocess.Popen([rowfs.program, *map(str, words)], env=ENV, text=True,
                                         stderr=subprocess.PIPE)
                 for words in (("mount", store, work / "b"), ("mount", store, at),
                               ("mount", work / "second", at),
                               ("serve", store, f"--rest=unix:{work}/sock"))}
        for words, t in tries.items():
            said = t.communicate(timeout=60)[1]
            assert t.returncode == 1 and (str(pid) in said or "already" in said), (words, said)
        assert list(mounts()) == [str(at)]
    finally:
        os.kill(pid, signal.SIGCONT)
    (at / "acct1").mkdir()
    rowfs("umount", at)


def wait_end(m):
    """As Mount.umount(), but what is mounted at the directory by now stays."""
    m._watchdog.cancel()
    assert m.proc.wait(60) == 0, m.log()


def test_S3_sigterm_leaves_what_others_mounted_over_it(rowfs, mount, store):
    m = mount(store)
    (m / "acct1").mkdir()
    call("mount", "none", m.path, "tmpfs", 0, None)
    put(m / "mine", "x")
    m.allow("still mounted elsewhere")
    m.proc.send_signal(signal.SIGTERM)
    wait_end(m)
    assert rows(m.path) == ["mine"]
    call("umount2", m.path, MNT_DETACH)
    done = rowfs("mount", store, m.path)
    assert "was killed" in done.stderr and rows(m.path) == ["acct1"]
    rowfs("umount", m.path)


def test_S3_sigterm_leaves_the_next_mount_at_the_directory(rowfs, mount, store, work):
    rowfs("init", work / "second")
    m = mount(store)
    m.allow("still mounted elsewhere")
    with another_namespace():
        m.proc.send_signal(signal.SIGTERM)
        while mounts():
            time.sleep(0.002)
        rowfs("mount", work / "second", m.path)
        wait_end(m)
        assert mounts()[str(m.path)][1] == str(work / "second")
        assert rows(m.path) == []
    rowfs("umount", m.path)
    rowfs("check", store)


def test_S3_umount_tells_who_has_it_elsewhere(rowfs, mount, store):
    m = mount(store)
    with another_namespace() as p:
        done = rowfs("umount", m.path, check=False, timeout=60)
        assert done.returncode == 1 and not mounts()
        assert f"process {p.pid} " in done.stderr and f"kill {m.proc.pid}\n" in done.stderr
    wait_end(m)


# ---- S14: systemd ----

def test_S14_the_units_are_understood(rowfs, work):
    need("systemd-analyze")
    units = []
    for unit in sorted((TOP / "examples/systemd").iterdir()):
        name = unit.name.replace("@.", "@blogs.")
        text = unit.read_text()
        # Where systemd finds a program by its name: in /usr/local/bin and /usr/bin.
        assert "bin/rowfs" not in text
        text = re.sub(r"^(Exec\w+=)rowfs ", rf"\1{rowfs.program} ", text, flags=re.M)
        (work / name).write_text(text.replace("=rowfs\n", "=root\n"))
        units.append(f"./{name}")
    assert len(units) == 5
    # What a unit of another package says is not ours to judge.
    done = sh(f"systemd-analyze verify --man=no {' '.join(units)}", cwd=work)
    assert str(work) not in done.stderr and "rowfs" not in done.stderr, done.stderr


def test_S14_the_services_start_tell_when_they_are_ready_and_stop_clean(rowfs, store, at, work):
    """The command lines of the units, as systemd runs them."""
    for unit, place in (("rowfs-mount@.service", "/srv/%i"), ("rowfs-serve@.service", None)):
        text = (TOP / "examples/systemd" / unit).read_text()
        line = re.search("^ExecStart=(.*)$", text, re.M)[1]
        assert "Type=notify" in text
        assert line.startswith("rowfs ")
        line = line.replace("rowfs", str(rowfs.program), 1).replace(
            "/var/lib/rowfs/%i.rowfs", str(store)).replace("/srv/%i", str(at)).replace(
            "127.0.0.1:10002", "127.0.0.1:0").replace("/run/rowfs-%i/sock", f"{work}/sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, \
                open(work / "journal", "wb") as journal:
            notify.bind(str(work / "notify"))
            notify.settimeout(60)
            server = subprocess.Popen(line.split(), env={**ENV, "NOTIFY_SOCKET": f"{work}/notify"},
                                      stdin=subprocess.DEVNULL, stdout=journal, stderr=journal)
            assert notify.recv(100) == b"READY=1"
            if place:
                (at / "acct1").mkdir()
            assert "accounts    1" in rowfs("stat", store).stdout
            server.terminate()
            assert notify.recv(100) == b"STOPPING=1"
            assert server.wait(60) == 0
        os.unlink(work / "notify")
        assert not pathlib.Path(f"{store}-wal").exists() and not mounts()
        said = (work / "journal").read_text()
        assert "signal 15" in said and "is closed" in said and len(said.splitlines()) < 10


# ---- W4: processes that the server is not shown ----

UNSEEING = ["setpriv", "--bounding-set=-sys_ptrace", "--inh-caps=-sys_ptrace"]


@pytest.fixture
def unseeing(rowfs, store, at):
    """A partition whose server sees nothing of this process in /proc."""
    try:
        call("mount", "proc", "/proc", "proc", 0, "hidepid=4")
    except OSError as e:
        pytest.skip(f"needs a /proc of its own: {e}")
    look = [*UNSEEING, "cat", f"/proc/{os.getpid()}/status"]
    if subprocess.run(look, capture_output=True, check=False).returncode == 0:
        pytest.skip("this process may do no more than the server")
    subprocess.run([*UNSEEING, rowfs.program, "mount", store, at], check=True,
                   stdin=subprocess.DEVNULL, env=ENV)
    part = at / "acct1/Tab/p"
    part.mkdir(parents=True)
    yield part
    sh(f"umount '{at}'")


@contextlib.contextmanager
def opened_by_a_thread(path):
    """The thread lives on."""
    opened, over, fds = threading.Event(), threading.Event(), []

    def live():
        fds.append(os.open(path, os.O_WRONLY | os.O_CREAT))
        opened.set()
        over.wait(60)

    t = threading.Thread(target=live)
    t.start()
    try:
        assert opened.wait(60)
        yield fds[0]
    finally:
        over.set()
        t.join()


def close_in_child(fd):
    child = os.fork()
    if child == 0:
        os.close(fd)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_W4_a_childs_close_commits_nothing_where_processes_are_hidden(unseeing):
    fd = os.open(unseeing / "r.json", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b'{"v":1}')
    close_in_child(fd)
    assert get(unseeing / "r.json") == b""
    os.close(fd)
    assert get(unseeing / "r.json") == b'{"v":1}'
    with opened_by_a_thread(unseeing / "s.json") as fd:
        os.write(fd, b'{"v":2}')
        close_in_child(fd)
        assert get(unseeing / "s.json") == b""
        os.close(fd)
        assert get(unseeing / "s.json") == b'{"v":2}'


def test_W4_a_thread_may_close_what_another_opened_where_processes_are_hidden(unseeing):
    fd = os.open(unseeing / "r.json", os.O_WRONLY | os.O_CREAT)
    os.write(fd, b'{"v":1}')
    t = threading.Thread(target=os.close, args=(fd,))
    t.start()
    t.join()
    assert get(unseeing / "r.json") == b'{"v":1}'
    with opened_by_a_thread(unseeing / "s.json") as fd:
        os.write(fd, b'{"v":2}')
        t = threading.Thread(target=os.close, args=(fd,))
        t.start()
        t.join()
        assert get(unseeing / "s.json") == b'{"v":2}'
