# SPDX-License-Identifier: MIT
"""What the figures of tests/bench share: programs, stores, mounts, and how a ratio is measured.

A figure is a ratio of rowfs to a yardstick that is measured in the same run, on the same CPU, in
alternating rounds: the medians of both are shown, and the median of the rounds' ratios is judged.
Absolute times say more about the machine than about rowfs; where both sides are woken on idle
CPUs they say more about the hypervisor.

Rows are /bench/rows/pPPPP/rowNNNNNNN.json everywhere: account, table, partition, row.
"""

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import resource
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
ACCOUNT, TABLE = "bench", "rows"
TICK = os.sysconf("SC_CLK_TCK")
# A sample is taken again where others took more than this of its CPU, at most so many times.
FOREIGN_SHARE, TRIES = 0.10, 4
# So much of a run (quick, full) may go into waiting for that and into samples taken again.
PATIENCE = (60, 600)
EXAMPLES = pathlib.Path("/usr/share/doc/libfuse3-dev/examples")


class Failure(Exception):
    """A figure that cannot be measured here; the others go on."""


class Interrupted(BaseException):
    """By a signal: what was started is ended, and no more is measured."""

    def __init__(self, number):
        super().__init__(signal.Signals(number).name)
        self.number = number


@dataclasses.dataclass
class Result:
    """A line of the table.  ratio None: the target is for `ours` itself (a count, bytes)."""

    name: str
    ours: float
    theirs: float | None
    unit: str
    yardstick: str
    ratio: float | None
    target: tuple | None = None
    note: str = ""
    spread: tuple | None = None
    group: str = ""

    def verdict(self):
        """met, near (within 5 %) or missed."""
        if self.target is None:
            return ""
        sign, bound = self.target
        value = self.ours if self.ratio is None else self.ratio
        slack = 0 if isinstance(value, int) else 0.05
        if sign == "<=":
            return "met" if value <= bound else "near" if value <= bound * (1 + slack) else "missed"
        return "met" if value >= bound else "near" if value >= bound * (1 - slack) else "missed"


@dataclasses.dataclass
class Ran:
    """What a program took."""

    wall: float
    cpu: float  # user + system, with its children
    out: str


@dataclasses.dataclass
class Pair:
    """Medians of both sides, and of the ratios of the rounds, with their extremes."""

    ours: float
    theirs: float
    ratio: float
    spread: tuple

    def result(self, name, unit, yardstick, target=None, note=""):
        return Result(name, self.ours, self.theirs, unit, yardstick, self.ratio, target, note,
                      self.spread)


class Mount:
    """Something that is mounted, and the process that serves it."""

    def __init__(self, bench, proc, path, tree=None, counts=None):
        self.bench, self.proc, self.path, self.counts_path = bench, proc, path, counts
        self.pid = proc.pid if proc else None
        self.tree = tree or path / ACCOUNT / TABLE

    def partition(self, number=0):
        return self.tree / f"p{number:04d}"

    def counts(self):
        """Requests of each kind: rowfs' own counters, or memfs' since the last call."""
        if self.counts_path is None:
            with open(self.path / ".rowfs" / "stats.json") as f:
                operations = json.load(f)["operations"].get("mount", {})
            return {k: v["count"] for k, v in operations.items()}
        self.counts_path.unlink(missing_ok=True)
        os.kill(self.pid, signal.SIGUSR1)
        for _ in range(2000):
            if self.counts_path.exists():
                return {k: int(v) for k, v in
                        (line.split() for line in self.counts_path.read_text().splitlines())}
            time.sleep(0.001)
        raise Failure("memfs tells no counts")

    def cpu_seconds(self):
        return self.bench.cpu_seconds(self.pid)


class Bench:
    """One run: its directories, programs and options."""

    def __init__(self, build, quick=False, directory=None):
        self.quick, self.build = quick, pathlib.Path(build).resolve()
        self.rowfs = self.build / "src" / "daemon" / "rowfs"
        cpus = sorted(os.sched_getaffinity(0))
        self.cpu, self.other_cpu = cpus[-1], cpus[0]
        # This process looks on from the other CPU; what it measures is pinned by run().
        os.sched_setaffinity(0, {self.other_cpu})
        self._shm = pathlib.Path(tempfile.mkdtemp(prefix="rowfs-bench-", dir="/dev/shm"))
        self._disk = pathlib.Path(tempfile.mkdtemp(prefix="rowfs-bench-", dir=directory))
        self._number = itertools.count(1)
        self._mounts, self._stores, self._tools = [], {}, {}
        self._patience = self.pick(*PATIENCE)
        self._undisturbed, self._interrupted = 0, None
        self.started = time.monotonic()
        self.left = None  # set by run: the seconds that are probably left

    def close(self):
        with self.undisturbed():
            for m in list(self._mounts):
                self._unmount(m)
            for d in (self._shm, self._disk):
                shutil.rmtree(d, ignore_errors=True)

    def interrupt(self, number, _frame=None):
        """The signals' handler: the first one ends the run, later ones change nothing."""
        if self._interrupted is None:
            self._interrupted = number
            if not self._undisturbed:
                raise Interrupted(number)

    @contextlib.contextmanager
    def undisturbed(self):
        """For what must not be left half done: an interruption waits."""
        before = self._interrupted
        self._undisturbed += 1
        try:
            yield
        finally:
            self._undisturbed -= 1
        if self._interrupted != before and not self._undisturbed:
            raise Interrupted(self._interrupted)  # at the end of the outermost one

    # ---- small things ----

    def pick(self, quick, full):
        return quick if self.quick else full

    def progress(self, text):
        passed = int(time.monotonic() - self.started)
        seconds = 0 if self.left is None else self.left()
        left = f", about {seconds / 60:.0f} min left" if seconds > 90 else \
            ", about a minute left" if seconds > 0 else ""
        print(f"bench [{passed // 60}:{passed % 60:02d}{left}] {text}", file=sys.stderr,
              flush=True)

    def tmp(self, tmpfs=True):
        """A fresh directory, which goes with the run."""
        d = (self._shm if tmpfs else self._disk) / str(next(self._number))
        d.mkdir()
        return d

    def tool(self, name):
        """A program of tests/bench, built if need be."""
        if name not in self._tools:
            if name == "passthrough_ll":
                self._tools[name] = self._build_passthrough()
            else:
                target = f"tests/bench/{name}"
                self._must(["ninja", "-C", self.build, target])
                self._tools[name] = self.build / target
        return self._tools[name]

    def _build_passthrough(self):
        """libfuse's example, from Debian's documentation of libfuse3-dev."""
        if not (EXAMPLES / "passthrough_ll.c").exists():
            raise Failure("no passthrough_ll.c: libfuse3-dev has no examples here")
        program = self.tmp() / "passthrough_ll"
        flags = self._must(["pkg-config", "--cflags", "--libs", "fuse3"]).split()
        self._must(["cc", "-O2", "-w", "-o", program, EXAMPLES / "passthrough_ll.c", *flags])
        return program

    @staticmethod
    def _must(cmd, **options):
        done = subprocess.run([str(c) for c in cmd], stdin=options.pop("stdin", subprocess.DEVNULL),
                              capture_output=True, text=True, check=False, **options)
        if done.returncode != 0:
            raise Failure(f"{shlex.join(map(str, cmd))}: {done.returncode}: "
                          f"{(done.stderr or done.stdout).strip()[-1000:]}")
        return done.stdout

    def run(self, cmd, cpu=-1, stdin=None, check=True, env=None, cwd=None):
        """Runs a program (a string: by the shell), by default on the CPU that is measured; cpu
        None: wherever the kernel wants."""
        cmd = ["sh", "-c", cmd] if isinstance(cmd, str) else [str(c) for c in cmd]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        with self._started(cmd, cpu, stdin=stdin or subprocess.DEVNULL, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, env=env, cwd=cwd) as proc:
            out, err = proc.communicate()
        wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if check and proc.returncode != 0:
            raise Failure(f"{shlex.join(cmd)}: {proc.returncode}: {err.strip()[-1000:]}")
        cpu_used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return Ran(wall, cpu_used, out)

    def run_together(self, cmds, cpu=None):
        """The seconds until all of these programs, started together, are done."""
        start = time.monotonic()
        with contextlib.ExitStack() as stack:
            running = [stack.enter_context(
                self._started(cmd, cpu, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)) for cmd in cmds]
            failed = sum(proc.wait() != 0 for proc in running)
        if failed:
            raise Failure(f"{shlex.join(map(str, cmds[0]))}: {failed} of {len(cmds)} failed")
        return time.monotonic() - start

    @contextlib.contextmanager
    def _started(self, cmd, cpu, **options):
        """A program in a group of its own, which goes with all that it started."""
        proc = None
        try:
            with self.undisturbed():
                proc = subprocess.Popen(self.pinned(cmd, cpu), start_new_session=True, **options)
            yield proc
        finally:
            if proc is not None and proc.returncode is None:
                os.killpg(proc.pid, signal.SIGKILL)
            if proc is not None:
                with proc:  # waits, and closes its pipes
                    pass

    def pinned(self, cmd, cpu=-1):
        cpus = ",".join(map(str, sorted({self.cpu, self.other_cpu}))) if cpu is None else \
            self.cpu if cpu < 0 else cpu
        return ["taskset", "-c", str(cpus), *map(str, cmd)]

    def fsops(self, op, directory, cpu=-1, **options):
        """Microseconds for one operation, as the client saw it (fsops.c)."""
        args = [f"--{k}={v}" for k, v in options.items()]
        return float(self.run([self.tool("fsops"), op, directory, *args], cpu).out.split()[1])

    # ---- processes ----

    @staticmethod
    def cpu_seconds(pid):
        """User + system time of a live process, in steps of a tick."""
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    @staticmethod
    def memory(pid):
        """Bytes: resident, the most it ever was, and the part that is not of files."""
        found = {}
        with open(f"/proc/{pid}/status") as f:
            for line in f:
                if line.startswith(("VmRSS", "VmHWM", "RssAnon")):
                    found[line.split(":")[0]] = int(line.split()[1]) * 1024
        return found

    def rss(self, pid):
        return self.memory(pid)["VmRSS"]

    @contextlib.contextmanager
    def server(self, cmd, cpu=-1, log=None):
        """A process that is ended with the block; its CPU time counts as ours."""
        m = self._serve(cmd, cpu, log or self.tmp() / "log", None, tree=pathlib.Path("/"))
        try:
            yield m.proc
        finally:
            self._unmount(m)

    def _serve(self, cmd, cpu, log, path, **options):
        with self.undisturbed(), open(log, "ab") as out:
            proc = subprocess.Popen(self.pinned(cmd, cpu), stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=out, start_new_session=True)
            m = Mount(self, proc, path, **options)
            self._mounts.append(m)
        return m

    # ---- quiet ----

    def _busy(self, cpu):
        with open("/proc/stat") as f:
            for line in f:
                name, *ticks = line.split()
                if name == f"cpu{cpu}":
                    t = list(map(int, ticks))
                    return (t[0] + t[1] + t[2] + t[5] + t[6] + t[7]) / TICK
        raise Failure(f"no cpu{cpu} in /proc/stat")

    def _own(self):
        used = 0.0
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
            r = resource.getrusage(who)
            used += r.ru_utime + r.ru_stime
        for m in self._mounts:
            with contextlib.suppress(OSError, TypeError):
                used += self.cpu_seconds(m.pid)
        return used

    def _spend(self, seconds):
        if self._patience > 0 >= self._patience - seconds:
            self.progress("others use the CPU all the time: from here on samples are as they come")
        self._patience -= seconds

    def wait_quiet(self, limit=5.0):
        """Until the CPU has nothing to do, for a bounded time."""
        start = time.monotonic()
        while time.monotonic() - start < min(limit, self._patience):
            before = self._busy(self.cpu)
            time.sleep(0.05)
            if self._busy(self.cpu) - before <= 0.011:
                break
        self._spend(max(0, time.monotonic() - start - 0.06))

    def restless(self):
        """Whether some samples were taken while others had much of the CPU."""
        return self._patience <= 0

    def sample(self, fn):
        """fn(), taken again where others had much of the CPU meanwhile."""
        best = None
        for i in range(TRIES):
            self.wait_quiet()
            busy, own, start = self._busy(self.cpu), self._own(), time.monotonic()
            value = fn()
            wall = time.monotonic() - start
            if i > 0:
                self._spend(wall)
            foreign = (self._busy(self.cpu) - busy - (self._own() - own) - 2 / TICK) / wall
            if best is None or foreign < best[0]:
                best = (foreign, value)
            if foreign <= FOREIGN_SHARE or wall < 0.1 or self._patience < wall:
                break
        return best[1]

    def alternate(self, ours, theirs, rounds):
        """Two functions that each give a number, in turn; which goes first alternates too."""
        pairs = []
        for i in range(rounds):
            if i % 2 == 0:
                a = self.sample(ours)
                b = self.sample(theirs)
            else:
                b = self.sample(theirs)
                a = self.sample(ours)
            pairs.append((a, b))
        return self.pair(pairs)

    def in_turn(self, functions, rounds):
        """The median of each of several functions that give a number; in alternating order."""
        found = {key: [] for key in functions}
        for i in range(rounds):
            for key in (list(functions) if i % 2 == 0 else reversed(functions)):
                found[key].append(self.sample(functions[key]))
        return {key: statistics.median(values) for key, values in found.items()}

    @staticmethod
    def pair(pairs):
        """Of rounds that were measured already: (ours, theirs), ..."""
        ratios = [a / b for a, b in pairs]
        return Pair(statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs),
                    statistics.median(ratios), (min(ratios), max(ratios)))

    # ---- stores and mounts ----

    def ndjson(self, path, rows, partitions=1, size=300):
        """Rows as text, one a line: the file of a row in a mount has `size` bytes."""
        per = (rows + partitions - 1) // partitions
        letters = "abcdefghijklmnopqrstuvwxyz" * (size // 26 + 2)
        with open(path, "w") as f:
            for i in range(rows):
                keys = f'"PartitionKey":"p{i // per:04d}","RowKey":"row{i:07d}"'
                body = f',"N":{i % 1000},"Flag":{"true" if i % 3 == 0 else "false"}' \
                    f',"Price":{i % 997}.5,"Name":"name {i:07d}","Text":"'
                # What the keys take stands in the file's name, not in the document.
                fill = size - (len(body) - 1) - 4
                f.write(f"{{{keys}{body}{letters[i % 26:i % 26 + fill]}\"}}\n")

    def new_store(self, tmpfs=False):
        """An empty store with the account."""
        store = self.tmp(tmpfs) / "store.db"
        self._must([self.rowfs, "init", store])
        self._must([self.rowfs, "account", "add", store, ACCOUNT])
        return store

    def store(self, rows, partitions=1, size=300, copy=True, tmpfs=False):
        """A store with rows; made once in a run.  copy: for a test that changes it."""
        key = (rows, partitions, size, tmpfs)
        if key not in self._stores:
            self.progress(f"a store of {rows} rows in {partitions} partitions")
            store = self.new_store(tmpfs)
            text = self.tmp() / "rows.ndjson"
            self.ndjson(text, rows, partitions, size)
            self._must([self.rowfs, "import", store, f"{ACCOUNT}/{TABLE}", text])
            text.unlink()
            self._stores[key] = store
        if not copy:
            return self._stores[key]
        d = self.tmp(tmpfs)
        for f in self._stores[key].parent.glob("store.db*"):
            shutil.copy(f, d / f.name)
        return d / "store.db"

    @contextlib.contextmanager
    def _mounted(self, cmd, cpu, **options):
        path = self.tmp() / "mnt"
        path.mkdir()
        log = path.parent / "log"
        before = os.stat(path).st_dev
        m = self._serve([*cmd, path], cpu, log, path, **options)
        try:
            end = time.monotonic() + 60
            while True:
                if m.proc.poll() is not None or time.monotonic() > end:
                    raise Failure(f"{cmd[0]} did not mount: {log.read_text()[-1000:]}")
                with contextlib.suppress(OSError):
                    if os.stat(path).st_dev != before:
                        break
                time.sleep(0.002)
            yield m
        finally:
            self._unmount(m)

    @staticmethod
    def _is_mounted(path):
        with open("/proc/self/mountinfo") as f:
            return any(line.split()[4] == str(path) for line in f)

    def _unmount(self, m):
        with self.undisturbed():
            if m in self._mounts:
                self._mounts.remove(m)
                self._end(m)

    def _end(self, m):
        tool = ["umount"] if os.geteuid() == 0 else ["fusermount3", "-u"]
        for extra in ([], ["-l"] if os.geteuid() == 0 else ["-z"]):
            if m.path is not None and self._is_mounted(m.path):
                subprocess.run([*tool, *extra, str(m.path)], capture_output=True, check=False)
        if m.path is None and m.proc.poll() is None:
            m.proc.terminate()
        try:
            m.proc.wait(60)
        except subprocess.TimeoutExpired:
            m.proc.kill()
            m.proc.wait(60)

    @contextlib.contextmanager
    def mount_rowfs(self, store, cpu=-1, options=()):
        extra = ["-o", ",".join(options)] if options else []
        with self._mounted([self.rowfs, "mount", "-f", *extra, store], cpu) as m:
            yield m

    @contextlib.contextmanager
    def mount_memfs(self, rows=0, partitions=1, size=300, cpu=-1, options=()):
        counts = self.tmp() / "counts"
        cmd = [self.tool("memfs"), f"--rows={rows}", f"--partitions={partitions}",
               f"--bytes={size}", f"--counts={counts}", *options]
        with self._mounted(cmd, cpu, counts=counts) as m:
            yield m

    @contextlib.contextmanager
    def mount_passthrough(self, source, cpu=-1, options=()):
        """libfuse's passthrough_ll over a directory; .tree is where its top is mounted."""
        extra = [x for o in (f"source={source}", *options) for x in ("-o", o)]
        with self._mounted([self.tool("passthrough_ll"), "-f", *extra], cpu) as m:
            m.tree = m.path
            yield m


# ---- what grows ----

def grown(name, unit, by_rows, target=("<=", 1.2), note=""):
    """A line that compares the largest with the best of the others; by_rows: the cost of one
    operation, or of one row, by the number of rows, which the name has as {n}."""
    *fewer, most = sorted(by_rows)
    against = min(fewer, key=lambda n: by_rows[n])
    each = " / ".join(number(float(by_rows[n])) for n in (*fewer, most))
    each = f"{each} {unit} at {' / '.join(f'{n:,}' for n in (*fewer, most))}" if fewer[1:] else ""
    return Result(name.format(n=f"{most:,}"), by_rows[most], by_rows[against], unit,
                  f"at {against:,}", by_rows[most] / by_rows[against], target,
                  "; ".join(x for x in (note, each) if x))


# ---- the table ----

HEAD = ("figure", "rowfs", "yardstick", "ratio", "target", "")


def number(x):
    if x is None:
        return ""
    if isinstance(x, int) or (abs(x) >= 1000 and x == int(x)):
        return f"{int(x):,}"
    for bound, digits in ((1000, 0), (100, 1), (10, 2), (0, 3)):
        if abs(x) >= bound:
            return f"{x:,.{digits}f}"
    return str(x)


def cells(r):
    theirs = f"{number(r.theirs)} {r.yardstick}" if r.theirs is not None else r.yardstick
    ratio = "" if r.ratio is None else f"{r.ratio:.2f}"
    if r.ratio is not None and r.spread:
        ratio += f" ({r.spread[0]:.2f}–{r.spread[1]:.2f})"
    target = f"{'≤' if r.target[0] == '<=' else '≥'} {r.target[1]:g}" if r.target else ""
    return [r.name + (f" [{r.note}]" if r.note else ""), f"{number(r.ours)} {r.unit}".strip(),
            theirs, ratio, target, r.verdict()]


def as_text(results):
    rows = [list(HEAD)] + [cells(r) for r in results]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    return "\n".join(" | ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in rows)


def as_markdown(results):
    lines = ["| " + " | ".join(HEAD[:-1]) + " | |", "| --- " * len(HEAD) + "|"]
    lines += ["| " + " | ".join(c.replace("|", "\\|") for c in cells(r)) + " |" for r in results]
    return "\n".join(lines)
