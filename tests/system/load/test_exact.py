# SPDX-License-Identifier: MIT
"""Isolation and coherence, hammered: processes that read, map and stat rows while others
write, replace, remove and import them.  Every document says twice which version it is, and
every writer publishes what was acknowledged, so a reader can tell a torn, a cut and a stale
read from a good one."""

import concurrent.futures
import contextlib
import ctypes
import errno
import json
import mmap
import multiprocessing
import os
import random
import subprocess
import threading
import time

import pytest

import calls

SECONDS = float(os.environ.get("ROWFS_HAMMER_SECONDS", "3"))
fork = multiprocessing.get_context("fork")


def document(version, rng):
    pad = "x" * rng.choice((0, 10, 200, 5000, 40000 if rng.random() < 0.1 else 300))
    pads = {f"Pad{i}": pad[i * 20000:(i + 1) * 20000] for i in range(1 + len(pad) // 20000)}
    return json.dumps({"V": version, **pads, "W": version}).encode() + b"\n"


def version_of(text, where):
    """The version of a whole document; anything else is a broken read."""
    try:
        d = json.loads(text)
        assert d["V"] == d["W"]
    except (ValueError, AssertionError, KeyError):
        raise AssertionError(f"{where}: not one whole version: {text[:60]!r}…{text[-30:]!r} "
                             f"({len(text)} bytes)") from None
    return d["V"]


# ---- ways of writing ----

def write_truncating(path, doc):
    fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o644)
    os.write(fd, doc[:7])
    os.write(fd, doc[7:])
    os.close(fd)


def write_in_place(path, doc):
    fd = os.open(path, os.O_RDWR)
    try:
        old = os.read(fd, 1 << 20)
        os.lseek(fd, 0, os.SEEK_SET)
        os.write(fd, doc)
        if len(doc) < len(old):
            os.ftruncate(fd, len(doc))
        assert os.fstat(fd).st_size == len(doc)
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(fd)
        raise
    os.close(fd)


def write_aside(path, doc):
    temp = os.path.join(os.path.dirname(path), ".%s.%d" % (os.path.basename(path), os.getpid()))
    with open(temp, "wb") as f:
        f.write(doc)
    os.rename(temp, path)


def write_again(path, doc):
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(fd, doc)
    os.close(fd)


def writer(path, ways, acknowledged, stop, failures, seed):
    rng, version = random.Random(seed), 0
    try:
        while not stop.is_set():
            version += 1
            doc = document(version, rng)
            rng.choice(ways)(path, doc)
            acknowledged.value = version
            with open(path, "rb") as f:
                assert f.read() == doc, "the writer does not read what it wrote"
            assert os.stat(path).st_size == len(doc), "stat after close"
    except BaseException as e:
        failures.put(f"writer of {path}: {type(e).__name__}: {e}")


# ---- ways of reading ----

def read_to_end(path):
    with open(path, "rb") as f:
        return f.read()


def map_to_read(fd):
    """Shared; where that is refused, since it would not be exact (W12), privately."""
    try:
        return mmap.mmap(fd, 0, mmap.MAP_SHARED, mmap.PROT_READ)
    except OSError as e:
        if e.errno != errno.ENODEV:
            raise
        return mmap.mmap(fd, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)


def read_mapped(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        with map_to_read(fd) as m:
            first = bytes(m)
            assert first == bytes(m), "a mapping changed under its reader"
            return first
    finally:
        os.close(fd)


def read_exactly(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def reader(path, acknowledged, stop, failures, reads, gaps, seed):
    rng = random.Random(seed)
    ways = (read_to_end, read_mapped, read_exactly)
    try:
        while not stop.is_set():
            known = acknowledged.value
            way = rng.choice(ways)
            try:
                version = version_of(way(path), way.__name__)
            except FileNotFoundError:
                assert gaps, "a row that is never removed was not there"
                continue
            except (OSError, ValueError, AssertionError) as e:
                # Between unlink and the first commit the name holds an empty file.
                if gaps and (isinstance(e, ValueError) or "(0 bytes)" in str(e) or
                             getattr(e, "errno", 0) == errno.EINVAL):
                    continue
                raise
            assert version >= known, f"stale: {version} after {known} was acknowledged"
            with reads.get_lock():
                reads.value += 1
    except BaseException as e:
        failures.put(f"reader of {path}: {type(e).__name__}: {e}")


def noise(directory, stop, failures, seed):
    """Lists with attributes, makes and removes other names in the same directory."""
    rng = random.Random(seed)
    try:
        while not stop.is_set():
            for entry in os.scandir(directory):
                try:
                    entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    pass
            name = os.path.join(directory, f"noise{seed}-{rng.randrange(8)}.json")
            if rng.random() < 0.5:
                with open(name, "w") as f:
                    f.write('{"N":1}')
            elif os.path.exists(name):
                os.unlink(name)
    except BaseException as e:
        failures.put(f"noise: {type(e).__name__}: {e}")


def go_on_until(enough, failures):
    """For SECONDS, and where that was not enough as long as it takes."""
    end = time.monotonic() + SECONDS
    while failures.empty() and (time.monotonic() < end or not enough()):
        assert time.monotonic() < end + 120, "hardly anybody ran"
        time.sleep(0.05)


def hammer(part, ways, gaps=False, names=2, with_noise=True):
    stop, failures = fork.Event(), fork.Queue()
    reads = fork.Value("Q", 0)
    workers = []
    for n in range(names):
        path = str(part / f"row{n}.json")
        with open(path, "wb") as f:
            f.write(document(0, random.Random(n)))
        acknowledged = fork.Value("Q", 0)
        workers.append(fork.Process(
            target=writer, args=(path, ways, acknowledged, stop, failures, n)))
        for r in range(2):
            workers.append(fork.Process(
                target=reader, args=(path, acknowledged, stop, failures, reads, gaps, 100 + r)))
    if with_noise:
        workers += [fork.Process(target=noise, args=(str(part), stop, failures, s))
                    for s in range(2)]
    for w in workers:
        w.start()
    go_on_until(lambda: reads.value > 50, failures)
    stop.set()
    found = []
    for w in workers:
        w.join(60)
        if w.is_alive():
            w.kill()
            found.append("a worker hangs")
    while not failures.empty():
        found.append(failures.get())
    assert not found, "\n".join(found)


@pytest.mark.parametrize("way", [write_truncating, write_in_place, write_aside],
                         ids=lambda w: w.__name__)
def test_W1_readers_see_one_whole_version_whatever_the_way_of_writing(part, way):
    hammer(part, [way])


def test_W1_readers_see_one_whole_version_under_mixed_writers(part):
    hammer(part, [write_truncating, write_in_place, write_aside])


def test_W1_unlink_and_create_never_shows_half_a_document(part):
    hammer(part, [write_again, write_truncating], gaps=True)


# ---- the other front end ----

def test_C6_what_an_import_changed_is_seen_at_once(rowfs, store, mnt, part):
    """After the command returned: stat, read, listing and failed lookups are right, with
    everything of before in the kernel's caches."""
    rng = random.Random(7)
    names = [f"k{i}" for i in range(20)]
    state = {}
    for round_ in range(12):
        for name in names:  # fill the caches, negative entries too
            path = part / f"{name}.json"
            if path.exists():
                path.read_bytes()
        os.listdir(part)
        rows = {n: {"PartitionKey": part.name, "RowKey": n, "N": round_, "S": "y" * rng.randrange(50)}
                for n in rng.sample(names, 8)}
        rowfs("import", store, "acct1/Blogs",
              input="".join(json.dumps(r) + "\n" for r in rows.values()))
        state.update(rows)
        assert sorted(os.listdir(part)) == sorted(f"{n}.json" for n in state)
        for name in names:
            path = part / f"{name}.json"
            if name not in state:
                assert not path.exists()
                continue
            want = {k: v for k, v in state[name].items() if not k.endswith("Key")}
            text = path.read_bytes()
            assert json.loads(text) == want
            assert path.stat().st_size == len(text)


def test_C6_an_import_into_new_partitions_shows_them(rowfs, store, mnt, table):
    assert os.listdir(table) == []
    assert not (table / "new").exists()
    before = table.stat().st_mtime_ns
    rowfs("import", store, "acct1/Blogs", input='{"PartitionKey":"new","RowKey":"r","A":1}\n')
    assert os.listdir(table) == ["new"]
    assert (table / "new" / "r.json").read_bytes() == b'{"A":1}\n'
    assert table.stat().st_mtime_ns > before


def importer(program, store, table, pk, stop, failures, acknowledged):
    n = 0
    try:
        while not stop.is_set():
            n += 1
            row = json.dumps({"PartitionKey": pk, "RowKey": "row0", "V": n, "W": n})
            done = subprocess.run([program, "import", str(store), table], input=row.encode(),
                                  capture_output=True)
            assert done.returncode == 0, done.stderr
            acknowledged.value = n
    except BaseException as e:
        failures.put(f"importer: {type(e).__name__}: {e}")


def test_C6_readers_are_never_behind_an_acknowledged_import(rowfs, store, mnt, part):
    stop, failures = fork.Event(), fork.Queue()
    reads, acknowledged = fork.Value("Q", 0), fork.Value("Q", 0)
    path = part / "row0.json"
    path.write_text('{"V":0,"W":0}')
    workers = [fork.Process(target=importer, args=(
        str(rowfs.program), store, "acct1/Blogs", part.name, stop, failures, acknowledged))]
    workers += [fork.Process(target=reader, args=(
        str(path), acknowledged, stop, failures, reads, False, s)) for s in range(2)]
    workers.append(fork.Process(target=noise, args=(str(part), stop, failures, 1)))
    for w in workers:
        w.start()
    go_on_until(lambda: acknowledged.value > 3 and reads.value > 50, failures)
    stop.set()
    found = []
    for w in workers:
        w.join(60)
        if w.is_alive():
            w.kill()
            found.append("a worker hangs")
    while not failures.empty():
        found.append(failures.get())
    assert not found, "\n".join(found)


def test_W14_many_writers_of_the_same_names_never_get_an_error_from_open(part):
    """Writers that remove, recreate, replace and truncate the same two names at once: a
    lost update is told at close, never at open."""
    stop, failures = fork.Event(), fork.Queue()

    def worker(seed):
        rng = random.Random(seed)
        try:
            while not stop.is_set():
                path = str(part / f"row{rng.randrange(2)}.json")
                doc = document(seed, rng)
                how = rng.randrange(4)
                if how == 0:
                    try:
                        os.unlink(path)
                    except FileNotFoundError:
                        pass
                else:
                    if how == 1:
                        write_aside(path, doc)
                    else:
                        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if how == 2 else 0)
                        fd = os.open(path, flags, 0o644)
                        try:
                            os.ftruncate(fd, 0)
                            os.write(fd, doc)
                        finally:
                            try:
                                os.close(fd)
                            except OSError as e:
                                assert e.errno == errno.ESTALE, e
        except BaseException as e:
            at = e.__traceback__
            while at.tb_next:
                at = at.tb_next
            failures.put(f"line {at.tb_lineno}: {type(e).__name__}: {e}")

    workers = [fork.Process(target=worker, args=(s,)) for s in range(6)]
    for w in workers:
        w.start()
    time.sleep(SECONDS)
    stop.set()
    for w in workers:
        w.join(60)
        assert not w.is_alive(), "a worker hangs"
    found = []
    while not failures.empty():
        found.append(failures.get())
    assert not found, "\n".join(found)


def look(path):
    """By another process: the kernel has the committed node under the name from now on."""
    subprocess.run(["stat", str(path)], check=True, stdout=subprocess.DEVNULL)


def test_W14_an_open_that_ended_in_an_error_does_not_tell_on_the_next_one(rowfs, store, mnt, part):
    """The first try of an open whose second one is never made (RESOLVE_CACHED), as where it ends in
    an error.  What the thread opens later has a node of its own: fstat tells its size."""
    libc = ctypes.CDLL(None, use_errno=True)
    how = (ctypes.c_uint64 * 3)(os.O_WRONLY, 0, 0x20)  # RESOLVE_CACHED
    row = part / "r.json"
    row.write_text("{}")
    look(row)
    assert libc.syscall(437, -100, str(row).encode(), how, 24) < 0
    rowfs("import", store, f"{part.parent.parent.name}/{part.parent.name}",
          input=json.dumps({"PartitionKey": part.name, "RowKey": "r", "A": 3}))
    assert row.exists()  # is given a node to write to
    look(row)
    write_in_place(str(row), b'{"A":4444}')
    assert row.read_bytes() == b'{"A":4444}'


def test_W14_a_file_that_is_being_made_is_there_for_who_was_refused_before(part):
    """As above; then the row is removed and another thread makes it anew.  That nothing was found
    there must not outlive the close of the new one either."""
    libc = ctypes.CDLL(None, use_errno=True)
    how = (ctypes.c_uint64 * 3)(os.O_WRONLY, 0, 0x20)  # RESOLVE_CACHED
    row = part / "r.json"
    row.write_text("{}")
    look(row)
    assert libc.syscall(437, -100, str(row).encode(), how, 24) < 0
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        other.submit(os.unlink, row).result()
        fd = other.submit(os.open, row, os.O_WRONLY | os.O_CREAT).result()
        there = row.exists()
        other.submit(os.write, fd, b'{"A":1}').result()
        other.submit(os.close, fd).result()
        assert other.submit(row.read_bytes).result() == b'{"A":1}'
        assert there and row.exists()


def test_W14_fsync_and_chmod_of_an_open_file_beside_renames_of_its_row_do_not_hang(part):
    """The kernel holds the inode's lock during both, and the directory's during a rename;
    an answer that waits for the other one would end in a deadlock.  The handle is one that
    has no node of its own: the second try of an open arrives at the committed row."""
    libc = ctypes.CDLL(None, use_errno=True)
    how = (ctypes.c_uint64 * 3)(os.O_WRONLY, 0, 0x20)  # RESOLVE_CACHED
    row, other = str(part / "row.json"), str(part / "other.json")
    with open(row, "w") as f:
        f.write("{}")
    stop, failures = fork.Event(), fork.Queue()

    def renamer():
        try:
            while not stop.is_set():
                for a, b in ((row, other), (other, row)):
                    os.rename(a, b)
                    os.stat(b)
                    # b"": such a handle's O_TRUNC is the committed node's for a moment.
                    assert read_to_end(b).strip(b"\0") in (b"", b"{}", b'{"n":1}')
        except BaseException as e:
            failures.put(f"renamer: {type(e).__name__}: {e}")

    def syncer():
        while not stop.is_set():
            libc.syscall(437, -100, row.encode(), how, 24)
            try:
                fd = os.open(row, os.O_WRONLY | os.O_TRUNC)
            except FileNotFoundError:
                continue
            try:
                os.write(fd, b'{"n":1}')
                os.fsync(fd)
                os.fchmod(fd, 0o600)
            except OSError as e:
                assert e.errno == errno.ESTALE, e
            try:
                os.close(fd)
            except OSError as e:
                assert e.errno == errno.ESTALE, e

    workers = [fork.Process(target=renamer), fork.Process(target=syncer)]
    for w in workers:
        w.start()
    time.sleep(SECONDS)
    stop.set()
    for w in workers:
        w.join(60)
        assert not w.is_alive(), "a worker hangs"
    assert failures.empty(), failures.get()


# ---- what is open stays what it is ----

def replace_by_rename(path):
    (path.parent / "next").write_text('{"A":55555}')
    os.rename(path.parent / "next", path)


@pytest.mark.parametrize("change", [
    lambda p: p.write_text('{"A":55555}'), replace_by_rename, os.unlink,
    lambda p: (replace_by_rename(p), replace_by_rename(p), os.unlink(p))],
    ids=["written", "replaced", "removed", "all of it"])
def test_U3_a_file_that_became_a_row_stays_what_it_was_for_who_has_it_open(part, change):
    """Temporary files of editors are such."""
    temp, row = part / "temp", part / "r.json"
    temp.write_text('{"A":1}')
    with open(temp, "rb", buffering=0) as f:
        os.rename(temp, row)
        change(row)
        assert os.fstat(f.fileno()).st_size == 7
        assert f.read() == b'{"A":1}'
        assert os.fstat(f.fileno()).st_size == 7
        if row.exists():
            assert os.stat(row).st_size == 11 and row.read_text() == '{"A":55555}'


def test_O3_a_row_that_is_read_by_a_link_goes(part):
    row = part / "r.json"
    row.write_text('{"A":1}')
    fd = os.open(row, os.O_PATH)
    try:
        with open(f"/proc/self/fd/{fd}", "rb", buffering=0) as f:
            os.unlink(row)
            assert f.read() == b'{"A":1}'
            assert os.fstat(f.fileno()).st_size == 7
    finally:
        os.close(fd)


def test_O3_a_rejected_document_that_goes_can_be_read_on(mnt, part):
    fd = os.open(part / "r.json", os.O_WRONLY | os.O_CREAT)
    try:
        os.write(fd, b'{"A":')
        with pytest.raises(OSError):
            os.fsync(fd)
        [name] = os.listdir(mnt / ".rowfs/rejected")
        with open(mnt / ".rowfs/rejected" / name, "rb", buffering=0) as f:
            os.write(fd, b"1}")
            os.fsync(fd)  # it is accepted after all
            assert os.listdir(mnt / ".rowfs/rejected") == []
            assert f.read() == b'{"A":'
            assert os.fstat(f.fileno()).st_size == 5
    finally:
        os.close(fd)


def test_Z5_what_fsync_made_of_an_empty_file_is_seen_by_its_name(part):
    """Others saw the name while it waited for its document."""
    end, n = time.monotonic() + min(SECONDS, 2), 0
    with concurrent.futures.ThreadPoolExecutor(1) as other:
        while time.monotonic() < end:
            n += 1
            row = part / f"r{n}.json"
            fd = os.open(row, os.O_WRONLY | os.O_CREAT)
            try:
                assert other.submit(os.stat, row).result().st_size == 0
                os.write(fd, b'{"A":1}')
                os.fsync(fd)
                assert os.stat(row).st_size == 7
            finally:
                os.close(fd)


def open_and_use(path, opened, ready, seen):
    try:
        f = open(path, "rb", buffering=0)
    except OSError as e:
        seen.append(errno.errorcode[e.errno])
        return
    opened.set()
    with f:
        assert ready.wait(60)
        try:
            seen.append((os.fstat(f.fileno()).st_size, f.read()))
        except OSError as e:
            seen.append(f"{errno.errorcode[e.errno]} of what is open")


@pytest.mark.parametrize("change", ["unlink", "rename"])
def test_U1_what_could_be_opened_while_it_was_removed_can_be_used(struck, change):
    """The change is held up at its commit, after it was looked whether the file is open."""
    m, control = struck()
    part = m / "acct1/Blogs/p"
    part.mkdir(parents=True)
    path, other = part / "notes", part / "other"
    path.write_text("what it was")
    other.write_text("another")
    control.strike("stall", calls.WRITE, 1)
    changing = threading.Thread(
        target=os.unlink if change == "unlink" else os.rename,
        args=(path,) if change == "unlink" else (other, path))
    changing.start()
    end = time.monotonic() + 60
    while not control.struck:  # it is about to be committed
        assert time.monotonic() < end, "nothing is written"
        time.sleep(0.002)
    opened, ready, seen = threading.Event(), threading.Event(), []
    using = threading.Thread(target=open_and_use, args=(path, opened, ready, seen))
    using.start()
    opened.wait(0.5)  # it may have to wait until it is known what becomes of it
    control.stop()
    changing.join(60)
    ready.set()
    using.join(60)
    fine = [["ENOENT"], ["ESTALE"], [(11, b"what it was")]]
    assert seen in fine + [[(7, b"another")]] * (change == "rename")
