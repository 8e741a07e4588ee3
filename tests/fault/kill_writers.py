# SPDX-License-Identifier: MIT
"""Writers: each kind has an account of its own, changes it in one way, and keeps in its memory
what it asked for and what was acknowledged.  kill_front_ends.py has those of the other front ends.

An operation is a method op_…; it picks names by what is there.  What it does goes through do():
the states that are possible while the call runs, in their order, the last one once it returned."""

import ctypes
import errno
import os
import random
import shutil

import kill_state as state
from kill_house import Wrong

LIBC = ctypes.CDLL(None, use_errno=True)
EXCHANGE = 2
NEW_EMPTY_ROW = state.one_of(None, b"")


def write_file(path, data, flags=os.O_CREAT | os.O_TRUNC, sync=False, piece=1 << 20):
    fd = os.open(path, os.O_WRONLY | flags, 0o644)
    try:
        for at in range(0, len(data), piece):
            os.write(fd, data[at:at + piece])
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def exchange(a, b):
    if LIBC.renameat2(-100, os.fsencode(a), -100, os.fsencode(b), EXCHANGE) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


class Writer:
    sizes = (0, 0, 30, 600, 5000, 30000)

    def __init__(self, house, name, seed):
        self.house, self.name, self.top = house, name, house.mnt
        self.rng = random.Random(f"{seed} {name}")
        self.table = name.capitalize()
        self.at = f"{name}/{self.table}/p/"
        self.known, self.flight, self.error = {f"{name}/": True}, None, None
        self.n = self.done = 0

    def prepare(self):
        """Once, on a new store: what the operations count on."""
        for path in (f"{self.name}/{self.table}/", self.at, f"{self.name}/{self.table}/q/"):
            self.do([{path: True}], os.mkdir, self.top / path)

    def ops(self):
        return [getattr(self, name) for name in sorted(dir(self)) if name.startswith("op_")]

    def do(self, steps, call, *args, **kw):
        self.flight = steps
        result = call(*args, **kw)
        self.acknowledged(steps[-1])
        return result

    def acknowledged(self, step):
        self.known = state.changed(self.known, step)
        self.flight = None
        self.done += 1

    def run(self, ops):
        """Until all are done or the daemon has gone; what went wrong otherwise is kept."""
        pid = self.house.proc.pid
        try:
            for op in ops:
                op()
        except Exception as e:  # told by verify(), in the main thread
            if not (state.is_lost(e) and self.house.was_killed(pid)):
                self.error = (e, op.__name__)

    def forever(self):
        pid = self.house.proc.pid
        while pid not in self.house.killed:  # commands work without a daemon too
            yield self.rng.choice(self.ops())

    def verify(self, found):
        """After a kill: what is there is what was acknowledged, and of the operation that was
        under way as much as is allowed."""
        if self.error:
            raise Wrong(f"{self.name}: {self.error[1]}: {self.error[0]!r}")
        self.observe(found)
        mine = {k: v for k, v in found.items() if self.owns(k)}
        now, wrong = state.settle(self.known, self.flight or [], mine)
        if now is None:
            doing = ", one operation was under way" if self.flight else ""
            raise Wrong(f"{self.name}: after {self.done} operations{doing}:\n  "
                        + "\n  ".join(wrong[:12]))
        self.known, self.flight = now, None

    def observe(self, found):
        """What a walk does not show."""

    def owns(self, key):
        kind, _, rest = key.partition(":")
        if kind == "trash":
            return rest.startswith(f"{self.table}-")
        if kind == "rejected":
            return f'"{self.name}"' in rest
        return (rest if kind in ("keys", "acl", "etag", "message") else key).startswith(self.name)

    # -- names and contents

    def data(self, size=None):
        self.n += 1
        pad = "x" * (self.rng.choice(self.sizes) if size is None else size)
        return b'{"V":%d,"W":"%s","X":"%s"}\n' % (self.n, self.name.encode(), pad.encode())

    def rows(self, at=None):
        return [k for k, v in self.known.items() if k.startswith(at or self.at)
                and k.endswith(".json") and v and v is not True and ":" not in k]

    def a_row(self):
        """One that is there."""
        rows = self.rows()
        if not rows:
            self.op_put()
            rows = self.rows()
        return self.rng.choice(rows)

    def a_name(self, at=None):
        return f"{at or self.at}r{self.rng.randrange(8)}.json"

    def free_name(self, at=None):
        at = at or self.at
        return next(f"{at}r{i}.json" for i in range(10000) if f"{at}r{i}.json" not in self.known)

    def put(self, path, data, **kw):
        empty = [] if path in self.known else [{path: NEW_EMPTY_ROW}]
        self.do([*empty, {path: data}], write_file, self.top / path, data, **kw)

    def op_put(self):
        self.put(self.a_name(), self.data())

    def remove(self, path):
        kept = self.known[path]
        step = {path: None}
        if kept and path.endswith(".json"):
            _, table, part, row = path.split("/")
            step[state.trash_key(f"{table}-{part}-{row}", kept)] = True
        self.do([step], os.unlink, self.top / path)

    def rename(self, a, b):
        self.do([{a: None, b: self.known[a]}], os.rename, self.top / a, self.top / b)


class Close(Writer):
    def op_edit(self):
        path, data = self.a_row(), self.data()

        def edit():
            fd = os.open(self.top / path, os.O_RDWR)
            try:
                os.pwrite(fd, data, 0)
                os.ftruncate(fd, len(data))
            finally:
                os.close(fd)
        self.do([{path: data}], edit)

    def op_rm(self):
        self.remove(self.a_row())

    def op_touch(self):
        path = self.free_name()
        self.do([{path: NEW_EMPTY_ROW}, {path: b""}], write_file, self.top / path, b"")
        self.put(path, self.data())
        self.remove(path)


class Blobs(Close):
    """Files that are blobs from their close on."""

    def __init__(self, *args):
        super().__init__(*args)
        self.at = f"{self.name}/.blob/photos/"

    def prepare(self):
        self.do([{f"{self.name}/.blob/": True, self.at: True}], os.mkdir, self.top / self.at)

    def remove(self, path):
        """No trash keeps it."""
        self.do([{path: None}], os.unlink, self.top / path)


class Fsync(Writer):
    def op_put(self):
        self.put(self.a_name(), self.data(), sync=True)

    def op_handle(self):
        """Several commits by one handle."""
        path = self.a_row()
        fd = os.open(self.top / path, os.O_RDWR)
        try:
            for _ in range(3):
                data = self.data()

                def commit():
                    os.ftruncate(fd, 0)
                    os.pwrite(fd, data, 0)
                    os.fsync(fd)
                self.do([{path: data}], commit)
        finally:
            os.close(fd)

    def op_folder(self):
        fd = os.open(self.top / self.at, os.O_RDONLY)
        try:
            self.do([{}], os.fsync, fd)
        finally:
            os.close(fd)

    def op_file(self):
        path, data = f"{self.at}f", self.data()
        old = self.known.get(path)
        steps = [{path: state.begun(data, old)}, {path: data}]
        self.do(steps, write_file, self.top / path, data, sync=True)


class Rename(Writer):
    def op_free(self):
        self.rename(self.a_row(), self.free_name())

    def op_replace(self):
        a, b = self.a_row(), self.a_name()
        if a != b:
            self.rename(a, b)

    def op_other_partition(self):
        self.rename(self.a_row(), self.a_name(f"{self.name}/{self.table}/q/"))

    def op_back(self):
        rows = self.rows(f"{self.name}/{self.table}/q/")
        if rows:
            self.rename(rows[0], self.free_name())

    def op_onto(self):
        """As editors do."""
        tmp, data = f"{self.at}.tmp", self.data()
        steps = [{tmp: state.begun(data)}, {tmp: data}]
        self.do(steps, write_file, self.top / tmp, data)
        self.rename(tmp, self.a_name())

    def op_away(self):
        away = f"{self.at}old~"
        self.rename(self.a_row(), away)
        self.rename(away, self.a_name())

    def op_exchange(self):
        a, b = self.a_row(), self.free_name()
        self.put(b, self.data())
        step = {a: self.known[b], b: self.known[a]}
        self.do([step], exchange, self.top / a, self.top / b)


class Parts(Writer):
    """Whole partitions and tables."""

    def prepare(self):
        super().prepare()
        for i in range(8):
            self.put(f"{self.at}r{i}.json", self.data())
        path, data = f"{self.at}note", self.data(9000)
        self.do([{path: data}], write_file, self.top / path, data)

    def move(self, old, new):
        step = {k: None for k in self.known if k.startswith(old)}
        step.update({new + k[len(old):]: v for k, v in self.known.items() if k.startswith(old)})
        self.do([step], os.rename, self.top / old[:-1], self.top / new[:-1])
        self.at = new + self.at[len(old):]

    def verify(self, found):
        super().verify(found)
        self.at = next(k for k in self.known if k.endswith("/note"))[:-4]

    def op_partition(self):
        table = self.at.split("/")[1]
        self.move(self.at, f"{self.name}/{table}/p{self.rng.randrange(1000)}x/")

    def op_table(self):
        table = "/".join(self.at.split("/")[:2]) + "/"
        self.move(table, f"{self.name}/{self.table}{self.rng.randrange(1000)}x/")


class Files(Writer):
    """Ordinary files, small and large."""

    def new(self, path, size, **kw):
        data = self.data(size)
        old = self.known.get(path)
        steps = [{path: state.begun(data, old)}, {path: data}]
        self.do(steps, write_file, self.top / path, data, **kw)

    def op_put(self):
        self.new(f"{self.at}small", self.rng.choice((0, 200, 2900, 3100)))

    def op_large(self):
        self.new(f"{self.at}large", self.rng.choice((100_000, 700_000)), piece=65536)

    def op_append(self):
        path = f"{self.at}log"
        old, more = self.known.get(path, b""), self.data(400)
        if len(old) > 8000:
            self.do([{path: b""}], os.truncate, self.top / path, 0)
            old = b""
        grown = old + more
        steps = [{path: lambda f, old=old: (f or b"")[:len(old)] == old
                  and grown.startswith(f or b"")}, {path: grown}]
        self.do(steps, write_file, self.top / path, more, os.O_CREAT | os.O_APPEND)

    def op_in_place(self):
        path = f"{self.at}large"
        if path not in self.known:
            self.op_large()
        old, more = self.known[path], self.data(30000)[:20000]
        new = more + old[len(more):]
        steps = [{path: state.mixed(new, old)}, {path: new}]
        self.do(steps, write_file, self.top / path, more, 0, piece=4096)

    def op_rm(self):
        path = f"{self.at}small"
        if path in self.known:
            self.remove(path)


class Log(Files):
    """So much that the log is copied into the store and begun anew."""

    def op_large(self):
        self.new(f"{self.at}large", 17 << 20)


class Dirs(Writer):
    def make(self, path):
        self.do([{path: True}], os.mkdir, self.top / path)

    def drop(self, path):
        self.do([{path: None}], os.rmdir, self.top / path)

    def toggle(self, path):
        (self.drop if path in self.known else self.make)(path)

    def op_partition(self):
        self.toggle(f"{self.name}/{self.table}/m{self.rng.randrange(3)}/")

    def op_table(self):
        self.toggle(f"{self.name}/Dirs{self.rng.randrange(3)}x/")

    def op_account(self):
        self.toggle(f"{self.name}{self.rng.randrange(3)}x/")

    def op_dots(self):
        path = f"{self.at}.d/"
        if path not in self.known:
            self.make(path)
            self.make(f"{path}e/")
            name, data = f"{path}e/f", self.data()
            self.do([{name: state.begun(data)}, {name: data}], write_file, self.top / name, data)
            return
        if f"{path}e/f" in self.known:
            self.remove(f"{path}e/f")
        if f"{path}e/" in self.known:
            self.drop(f"{path}e/")
        self.drop(path)

    def op_rm_r(self):
        """Of a partition with rows: a step each."""
        path = f"{self.name}/{self.table}/full/"
        if path not in self.known:
            self.make(path)
            for i in range(3):
                self.put(f"{path}r{i}.json", self.data())
            return
        for name in [k for k in self.known if k.startswith(path) and k != path]:
            self.remove(name)
        self.drop(path)


class Trash(Writer):
    """A row is in its place or in the trash.  One row of a name there at a time."""

    def kept(self):
        """{name of the row: (name in the trash, key)}"""
        keys = {k.split(":")[1]: k for k in self.known if k.startswith("trash:")}
        names = {state.row_in_trash(n): n for n in os.listdir(self.top / ".rowfs/trash")}
        return {k: (names[k], keys[k]) for k in keys if k in names}

    def op_rm(self):
        kept = self.kept()
        for path in self.rows():
            if f"{self.table}-p-{path.rpartition('/')[2]}" not in kept:
                return self.remove(path)
        return self.op_put()

    def op_back(self):
        for row, (name, key) in self.kept().items():
            path = self.at + row.split("-")[2]
            data = key.split(":", 2)[2].encode()
            self.do([{key: None, path: data}], os.rename, self.top / ".rowfs/trash" / name,
                    self.top / path)
            return

    def op_purge(self):
        for name, key in list(self.kept().values())[:1]:
            self.do([{key: None}], os.unlink, self.top / ".rowfs/trash" / name)


class Snaps(Writer):
    """Snapshots that are held while rows change; they end with the daemon."""

    def op_hold(self):
        path = self.a_row()
        old, name = self.known[path], f"s{self.n}"
        snapshot = self.top / ".rowfs/snapshots" / name
        os.mkdir(snapshot)
        for _ in range(3):
            self.put(path, self.data())
        if state.read(snapshot / path) != old:
            raise Wrong(f"the snapshot shows another {path}")
        if self.rng.random() < 0.8:
            os.rmdir(snapshot)
        elif len(os.listdir(snapshot.parent)) > 12:
            for one in os.listdir(snapshot.parent):
                os.rmdir(snapshot.parent / one)

    def observe(self, found):
        if os.listdir(self.top / ".rowfs/snapshots"):
            raise Wrong("a snapshot outlived its daemon")


class Refused(Writer):
    def refuse(self, path, data):
        steps = [{state.rejected_key(data): True}]
        if path not in self.known:
            steps = [{path: NEW_EMPTY_ROW}, {path: NEW_EMPTY_ROW, **steps[0]}]
        self.flight = steps
        try:
            write_file(self.top / path, data)
        except OSError as e:
            if e.errno != errno.EINVAL:
                raise
            self.acknowledged(steps[-1])
            return
        raise Wrong(f"{path} took what is no row")

    def op_at_close(self):
        self.refuse(self.a_row(), self.data()[:-3])

    def op_at_write(self):
        self.refuse(self.a_row(), b'{"W":"%s","V":%d,,' % (self.name.encode(), self.n))
        self.n += 1


class Attrs(Writer):
    def prepare(self):
        super().prepare()
        for name in ("a.json", "note"):
            path, data = self.at + name, self.data(10)
            self.do([{path: data}], write_file, self.top / path, data)
            s = os.stat(self.top / path)
            self.known[path + "@"] = (s.st_mode & 0o7777, s.st_mtime_ns)

    def op_put(self):
        """Both stay as they are."""

    def op_mode(self):
        for path in (f"{self.at}a.json", f"{self.at}note"):
            now = self.known[path + "@"]
            mode = self.rng.choice((0o600, 0o640, 0o444, 0o755))
            self.do([{path + "@": (mode, now[1])}], os.chmod, self.top / path, mode)

    def op_times(self):
        for path in (f"{self.at}a.json", f"{self.at}note"):
            now = self.known[path + "@"]
            ns = self.rng.randrange(4 * 10**18)
            self.do([{path + "@": (now[0], ns)}], os.utime, self.top / path, ns=(ns, ns))


class Copies(Writer):
    """cp, and mv over what is there: programs rather than calls."""

    def op_copy(self):
        a, b = self.a_row(), self.free_name()
        self.do([{b: NEW_EMPTY_ROW}, {b: self.known[a]}], shutil.copyfile, self.top / a, self.top / b)
        self.rename(b, a)
