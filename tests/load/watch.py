# SPDX-License-Identifier: MIT
"""tests/load/soak: a process for each house, what they tell meanwhile, and the tables.  Whatever
hangs, the run ends, with the tables of what is known: each house sends them every minute, and one
that is silent for too long is ended by force."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import traceback

import gauge
import test_concurrency
from conftest import Rowfs, detach, find_program
from house import Calm, Rough
from soak import fork, stacks, tree
from soak_cast import Ended
from tools import sanitized

TELL, FLUSH = 10.0, 60.0  # seconds
# Longer than all that a house waits for in a row; each wait of it has a bound of its own.
SILENT = 420.0


def told(house, start):
    """What a house is like now."""
    try:
        now = gauge.held(house.mount.proc.pid, house.mount.store)
    except (OSError, KeyError):  # its daemon has ended
        now = None
    recovered = getattr(house, "conductor", None) and house.conductor.recovered
    return {"at": time.monotonic() - start, "steps": house.steps(), "held": now,
            "faults": sum(map(len, recovered.values())) if recovered else 0}


def promises(house):
    """What the tests look at when all have ended."""
    house.soak.end = Ended(house.soak)
    for name, test in vars(test_concurrency).items():
        if name.startswith("test_Z") and test.__code__.co_varnames[:1] == ("soak",):
            try:
                test(house.soak)
            except BaseException as e:  # pytest.fail too
                house.problems.append(f"{name}: {e}")
    if not sanitized():
        house.problems += [f"{what} grew from {before:.0f} to {after:.0f}" for what, before, after,
                           _, flat in gauge.growth(house.plateaus) if flat is False]


def summary(house):
    """For the tables."""
    conductor = getattr(house, "conductor", None)
    return {"plateaus": house.plateaus, "kinds": house.clock.kinds, "work": str(house.work),
            "steps": house.steps(), "problems": house.problems,
            "recovered": conductor.recovered if conductor else {},
            "struck": conductor.struck if conductor else 0}


def live(make, seconds, pipe):
    """The life of a house, in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent says when
    early, house, start = [], None, time.monotonic()
    try:
        house = make()
        inner, due, flush = house.tick, [start], [start]

        def tick():
            inner()
            now = time.monotonic()
            if now >= due[0]:
                due[0] = now + TELL
                pipe.send(told(house, start))
            if now >= flush[0]:
                flush[0] = now + FLUSH
                house.clock = house.latencies()
                pipe.send({"so far": {**summary(house), "problems": house.soak.told()}})
            if pipe.poll():
                raise KeyboardInterrupt

        house.tick = tick
        house.run(seconds)
        if not house.rough and not house.soak.cut:
            promises(house)
        house.close()
    except KeyboardInterrupt:
        house.clean()
    except BaseException:
        early.append(traceback.format_exc())
        if house:
            house.problems.append("it ended early")
            house.clean()
    result = summary(house) if house else {}
    pipe.send({"end": {**result, "problems": early + result.get("problems", [])}})
    sys.stdout.flush()
    os._exit(0)  # a worker that cannot end holds nobody up


def line(name, t):
    held = t["held"]
    text = f"{t['at'] / 60:5.1f} min  {name:5}  {t['steps']:9} steps"
    if held:
        text += (f"  rss {held['rss'] / 1024:6.1f} MiB  pss {held['pss'] / 1024:6.1f}"
                 f"  fds {held['fds']:3}  threads {held['threads']:2}"
                 f"  store {held['store'] / 2**20:6.1f} MiB  log {held['log'] / 2**20:5.1f}")
    return text + (f"  faults {t['faults']}" if t["faults"] else "")


def give_up(process, known):
    """A house that is silent: where it hangs, and its end."""
    pids, where = tree(process.pid), []
    looks = threading.Thread(target=lambda: where.extend(map(stacks, pids)), daemon=True)
    looks.start()
    looks.join(30)  # /proc may wait for what hangs
    where = "".join(where)
    for pid in reversed(pids):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if "work" in known:
        work = pathlib.Path(known["work"])
        (work / "stacks of all").write_text(where)
        detach(work / "mnt")
        for name in "disk", "fusectl":
            subprocess.run(["umount", "-l", str(work / name)], capture_output=True)
    return f"nothing was heard of it for {SILENT:.0f} s; it hung in\n{where}"


class Following:
    """What is known of each house."""

    def __init__(self, args, houses):
        self.args, self.houses = args, houses
        self.known, self.results = {name: {} for name in houses}, {}
        self.heard = {name: time.monotonic() for name in houses}
        self.shown = {name: -60.0 for name in houses}

    def fails(self, name, why):
        known = self.known[name]
        self.results[name] = {**known, "problems": [why, *known.get("problems", [])]}

    def hear(self, name):
        process, pipe = self.houses[name]
        try:
            t = pipe.recv() if pipe.poll(0.2) else None
        except (EOFError, ConnectionError):
            self.fails(name, f"the process of the house ended: {process.exitcode}")
            return
        if t is None:
            if time.monotonic() - self.heard[name] > SILENT:
                self.fails(name, give_up(process, self.known[name]))
            return
        self.heard[name] = time.monotonic()
        if "end" in t:
            self.results[name] = t["end"]
        elif "so far" in t:
            self.known[name] = t["so far"]
            write(self.args, {**self.known, **self.results}, "not at its end yet")
        else:
            self.show(name, t)

    def show(self, name, t):
        if t["at"] - self.shown[name] >= 60:
            self.shown[name] = t["at"]
            print(line(name, t), flush=True)
        elif sys.stderr.isatty():
            print("\r" + line(name, t), end="\r", file=sys.stderr, flush=True)

    def all(self):
        """The results, when all have ended."""
        while len(self.results) < len(self.houses):
            for name in self.houses.keys() - self.results.keys():
                self.hear(name)
        return self.results


def recovery(results):
    rows = [("fault", "times", "p50 s", "longest s")]
    for kind, took in sorted(results.get("recovered", {}).items()):
        took = sorted(took)
        rows.append((kind, str(len(took)), f"{took[len(took) // 2]:.3f}", f"{took[-1]:.3f}"))
    return rows


UNITS = {"rss": (1024, "MiB"), "pss": (1024, "MiB"), "store": (1 << 20, "MiB"),
         "log": (1 << 20, "MiB"), "fds": (1, ""), "threads": (1, "")}


def flatness(results):
    rows = [("held while all stand still", "first", "second quarter", "last quarter",
             "in the second half, by the hour", "flat")]
    plateaus = results.get("plateaus", [])
    for what, *figures, flat in gauge.growth(plateaus):
        one, unit = UNITS[what]
        figures.insert(0, plateaus[0][what])
        rows.append((f"{what} {unit}".strip(), *(f"{f / one:.1f}" for f in figures[:3]),
                     f"{figures[3] / one:+.1f}",
                     {True: "yes", False: "NO", None: "too short to tell"}[flat]))
    return rows


def tables(results):
    """(title, rows) of each."""
    for name, r in results.items():
        clock = gauge.Clock()
        clock.kinds = r.get("kinds", {})
        if name == "calm":
            yield f"{name}: what the daemon holds", flatness(r)
        else:
            yield f"{name}: from the end of a fault to a change by both front ends", recovery(r)
        yield f"{name}: latencies in ms", gauge.table(clock)


def run(args):
    rowfs = Rowfs(find_program("src/daemon/rowfs"))
    seconds = args.minutes * 60
    makers = {}
    if not args.only_faults:
        makers["calm"] = lambda: Calm(rowfs, args.seed, max(2.0, min(60.0, seconds / 16)))
    if args.faults or args.only_faults:
        makers["rough"] = lambda: Rough(rowfs, args.seed)
    houses, ends = {}, []
    for name, make in makers.items():
        mine, its = fork.Pipe()
        process = fork.Process(target=live, args=(make, seconds, its), name=name)
        process.start()
        houses[name] = process, mine
        its.close()

    def interrupt(number, _):
        ends.append(number)
        for _, pipe in houses.values():
            with contextlib.suppress(OSError):  # it has ended
                pipe.send("end")

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    results = Following(args, houses).all()
    for process, _ in houses.values():
        process.join(30)
    code = report(args, results, bool(ends))
    return 128 + ends[0] if ends else code


def counted(name, r):
    faults = sum(map(len, r.get("recovered", {}).values()))
    return (f"{name}: {r.get('steps', 0)} steps, " + (f"{faults} faults, " if faults else "")
            + f"{len(r.get('problems', []))} problems")


def write(args, results, verdict):
    """The tables, as Markdown."""
    if not args.markdown:
        return
    text = [f"{title}\n\n{gauge.as_markdown(rows)}" for title, rows in tables(results)]
    text += [*(counted(name, r) for name, r in results.items()), verdict]
    pathlib.Path(args.markdown).write_text("\n\n".join(text) + "\n", encoding="utf-8")


def report(args, results, cut_short):
    for title, rows in tables(results):
        print(f"\n{title}\n{gauge.as_text(rows)}")
    failed = any(r["problems"] for r in results.values())
    verdict = ("FAILED" if failed else "ended from outside; no problem until then" if cut_short
               else "every promise was kept")
    for name, r in results.items():
        print("\n" + counted(name, r)
              + (f", kept: {r['work']}" if r["problems"] and "work" in r else ""))
        for text in r["problems"]:
            print(f"  {text[:4000]}")
    print(f"tests/load/soak: {verdict}")
    write(args, results, verdict)
    return int(failed)
