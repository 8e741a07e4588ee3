# SPDX-License-Identifier: MIT
"""The soak: what is there before, who takes part, and what is there when all have ended."""

import json
import os
import random

import soak_bank as bank
import soak_dirs as dirs
import soak_killed as killed
import soak_looks as looks
import soak_mixed as mixed
import soak_rows as rows
import soak_tell as tell
import soak_trees as trees
from rest_client import ACCOUNT, ok
from soak import fork
from test_exact import document
from tools import FORCE_SYNC, get, put, statx

EDITORS = {"e0": False, "e1": False, "e2": False, "gap0": True, "gap1": True}


def prepare(soak):
    """The tables, and every row that is never removed."""
    for table in "Soak", "Bank", "Hot", "Side":
        ok(soak.client.create_table(table), 201)
    at = soak.mnt / ACCOUNT
    for part in "Soak/edit", "Soak/count", "Soak/mixed", "Soak/killed", "Hot/hot":
        (at / part).mkdir()
    for rk in EDITORS:
        put(at / "Soak" / "edit" / f"{rk}.json", document(0, random.Random(rk)))
    bank.open_bank(soak.client)
    dirs.fill_list(soak.client)
    dirs.fill_place(soak.client, "move")


class Cast:
    """Who takes part: each kind at least once, in a random cast some of them more often."""

    def __init__(self, soak):
        self.soak = soak
        self.boards = {rk: soak.counter() for rk in EDITORS}
        self.stay = {rk: b for rk, b in self.boards.items() if not EDITORS[rk]}
        self.counters = [rows.Counter(soak, rk) for rk in ("flock", "cond")]
        for c in self.counters:
            put(soak.mnt / ACCOUNT / "Soak" / "count" / f"{c.rk}.json", '{"N": 0}')

    def pair(self):
        n = len(self.soak.workers)
        names = [f"t{n}{x}" for x in "abcde"]
        ends = fork.Pipe()
        self.soak.add(tell.teller, names, ends[0])
        self.soak.add(tell.looker, names, ends[1])

    def all(self):
        add, (locked, conditional) = self.soak.add, self.counters
        for rk, gaps in EDITORS.items():
            add(rows.editor, rk, self.boards[rk], gaps)
        gapped = {rk for rk, gaps in EDITORS.items() if gaps}
        kinds = [
            (rows.editor_reader, self.boards, gapped), (rows.editor_reader, self.boards, gapped),
            (rows.counter_flock, locked), (rows.counter_flock, locked),
            (rows.counter_handle, conditional), (rows.counter_rest, conditional),
            (rows.counter_reader, self.counters), (bank.transfer,), (bank.transfer,),
            (bank.auditor,), (trees.rsync_in,), (trees.rsync_out,), (trees.tar_over,),
            (trees.git_checkout,), (trees.importer,), (dirs.moved_reader, "move"), (dirs.tables,),
            (mixed.mixed_files,), (mixed.mixed_tools,), (mixed.mixed_remover,), (mixed.mixed_rest,),
            (mixed.mixed_reader,), (dirs.list_churn,), (dirs.list_reader,), (looks.walker,),
            (looks.query_walker,), (looks.snapshotter, self.stay), (looks.watcher,),
            (looks.attributes,), (killed.killed,), (killed.hangs_up,), (killed.commander,)]
        add(dirs.mover, "move")
        dice, seed = random.Random(self.soak.seed), self.soak.seed
        if seed:
            kinds = dice.choices(kinds, k=24)
        for kind in kinds:
            add(*kind)
        for _ in range(dice.randint(1, 4) if seed else 2):
            self.pair()


class Ended:
    """What is there when all have ended, without a remount, with everything in the caches."""

    def __init__(self, soak):
        self.soak, self.at = soak, soak.mnt / ACCOUNT
        self.by_mount = dict(self._mount())
        self.by_rest = dict(self._rest())
        self.by_export = dict(self._export())

    @staticmethod
    def _plain(row):
        return {k: v for k, v in row.items() if k not in ("PartitionKey", "RowKey", "Timestamp")
                and not k.startswith(("odata.", "Timestamp@"))}

    def _mount(self):
        for table in os.listdir(self.at):
            for pk in os.listdir(self.at / table):
                for name in os.listdir(self.at / table / pk):
                    path = self.at / table / pk / name
                    if name.endswith(".json") and name[0] != "." and os.stat(path).st_size:
                        yield (table, pk, name[:-5]), self._plain(json.loads(get(path)))

    def _rest(self):
        for t in self.soak.client.tables().rows:
            for row in self.soak.client.all(t["TableName"]):
                yield (t["TableName"], row["PartitionKey"], row["RowKey"]), self._plain(row)

    def _export(self):
        for t in self.soak.client.tables().rows:
            text = self.soak.rowfs("export", self.soak.mount.store, f"{ACCOUNT}/{t['TableName']}")
            for row in map(json.loads, text.stdout.splitlines()):
                yield (t["TableName"], row["PartitionKey"], row["RowKey"]), self._plain(row)

    def stale(self):
        """Names whose cached attributes are not what the daemon says."""
        for d, names, files in os.walk(self.at):
            for name in ["", *names, *files]:
                path = os.path.join(d, name)
                if statx(path) != statx(path, FORCE_SYNC):
                    yield path, statx(path), statx(path, FORCE_SYNC)

    def stats(self):
        return json.loads(get(self.soak.mnt / ".rowfs/stats.json"))
