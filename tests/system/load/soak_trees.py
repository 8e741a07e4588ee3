# SPDX-License-Identifier: MIT
"""Workers of the soak that bring whole trees by rsync, tar, cpio, cp, git and imports, each
into a partition of its own, and look at both front ends whether all of it is there."""

import json
import os
import re

from soak import GONE, must, whole
from test_exact import document, read_to_end


def make_trees(w, n=12):
    """Two directories of rows that have some names in common; what they hold."""
    trees = []
    for which in range(2):
        at = w.tmp / f"tree{which}"
        at.mkdir()
        for i in range(which * 3, n):
            (at / f"r{i}.json").write_bytes(document(which * 1000 + i, w.rng))
        trees.append(at)
    return trees


def same(w, tree, pk, how):
    """The partition holds the tree's rows: through this path, and over REST."""
    want = {p.name: p.read_bytes() for p in tree.iterdir() if p.suffix == ".json"}
    at = w.at / "Side" / pk
    must("Z5", sorted(os.listdir(at)) == sorted(want), how, sorted(os.listdir(at)), sorted(want))
    for name, text in want.items():
        must("Z5", os.stat(at / name).st_size == len(text), how, name, "size")
        must("Z5", read_to_end(at / name) == text, how, name)
    w.done()
    rows = w.client.all("Side", filter=f"PartitionKey eq '{pk}'")
    must("Z5", sorted(f"{r['RowKey']}.json" for r in rows) == sorted(want), how, "REST", rows)
    for r in rows:
        must("Z5", json.loads(want[f"{r['RowKey']}.json"])["V"] == r["V"], how, "REST", r["RowKey"])


def rsync_in(w):
    trees = make_trees(w)
    pk = w.name
    to = w.at / "Side" / pk
    modes = ["", "--inplace", "--delay-updates", "--checksum", "--delete-after", "--fsync", "-AX"]
    i = 0
    while w.go():
        i += 1
        tree = trees[i % 2]
        w.tool(f"rsync -a --delete {w.rng.choice(modes)} {tree}/ {to}/")
        same(w, tree, pk, "rsync in")
        again = w.tool(f"rsync -a --delete --itemize-changes {tree}/ {to}/")
        must("Z5", again.stdout == "", "a second run transfers", again.stdout)


# A file that another program is writing: the kernel tells the size after a write as soon as it is
# answered, but reads to it only when that program has run again.  Never a row.
NO_ROW = r'(\.[^"/ ]*|[^"/ ]*(?<!\.json))'
HALF_WRITTEN = re.compile(
    GONE.pattern + rf'|read errors mapping "([^"]*/)?{NO_ROW}": No data|'
    rf"ERROR: {NO_ROW} failed verification -- update discarded")


def rsync_out(w):
    to = w.tmp / "out"
    while w.go():
        w.tool(f"rsync -a --delete {w.rng.choice(['', '--checksum', '-AX'])} "
               f"{w.at}/Soak/edit/ {to}/", may=HALF_WRITTEN)
        for name in os.listdir(to):
            text = (to / name).read_bytes()
            if name.endswith(".json") and text and not name.startswith("."):
                whole(text, f"rsync out of {name}")


def tar_over(w):
    trees = make_trees(w)
    pk, i = w.name, 0
    to = w.at / "Side" / pk
    for tree in trees:
        w.tool(f"tar -C {tree} -cf {tree}.tar .")
        w.tool(f"cd {tree} && find . -name '*.json' | cpio -o --quiet > {tree}.cpio")
    while w.go():
        tree = trees[i % 2]
        i += 1
        how = w.rng.choice([
            f"tar -C {to} -xf {tree}.tar", f"tar -C {to} --overwrite -xf {tree}.tar",
            f"cd {to} && cpio -idu --quiet < {tree}.cpio", f"cp -r {tree}/. {to}",
            f"cp -a {tree}/. {to}"])
        w.tool(f"mkdir -p {to} && {how} && cd {to} && "
               f"for r in *.json; do [ -e {tree}/$r ] || rm $r; done")
        same(w, tree, pk, how)


def git_checkout(w):
    trees = make_trees(w)
    to, git = w.at / "Side" / w.name, f"git --git-dir={w.tmp}/git"
    to.mkdir()
    w.tool(f"{git} init -q && {git} config core.bare false && "
           f"{git} config core.worktree {to} && {git} config user.name t && "
           f"{git} config user.email t@t")
    for i, tree in enumerate(trees):
        w.tool(f"{git} --work-tree={tree} checkout -q --orphan b{i} && "
               f"{git} --work-tree={tree} add -A {tree} && "
               f"{git} --work-tree={tree} commit -q -m {i}", cwd=tree)
    i = 0
    while w.go():
        i += 1
        w.tool(f"{git} checkout -q -f b{i % 2} && {git} clean -qfd", cwd=to)
        same(w, trees[i % 2], w.name, "git checkout")
        left = w.tool(f"{git} status --porcelain", cwd=to).stdout
        must("Z5", left == "", "git status:", left)


def importer(w):
    """Whole partitions by .rows.*, and out again."""
    pk, n = w.name, 60
    (w.at / "Side" / pk).mkdir()
    version = 0
    while w.go():
        version += 1
        rows = [{"PartitionKey": pk, "RowKey": f"r{i}", "V": version, "S": "s" * (i % 9)}
                for i in range(n)]
        if w.rng.random() < 0.7:
            text, name = "".join(json.dumps(r) + "\n" for r in rows), ".rows.ndjson"
        else:
            lines = [f"{pk},{r['RowKey']},{version},{r['S']}\r\n" for r in rows]
            text, name = "PartitionKey,RowKey,V@Edm.Int32,S\r\n" + "".join(lines), ".rows.csv"
        (w.tmp / "in").write_text(text)
        at = w.rng.choice([w.at / "Side", w.at / "Side" / pk]) / name
        w.tool(w.rng.choice(["cp {} {}", "cat {} >> {}", "dd if={} of={} bs=501 status=none"])
               .format(w.tmp / "in", at))
        i = w.rng.randrange(n)
        must("Z5", json.loads(read_to_end(w.at / "Side" / pk / f"r{i}.json"))["V"] == version,
             f"{pk}/r{i} after {name}")
        found = [r["V"] for r in w.client.all("Side", filter=f"PartitionKey eq '{pk}'")]
        must("Z5", found == [version] * n, f"REST after {name}", found, version)
        out = read_to_end(w.at / "Side" / pk / ".rows.ndjson").decode().splitlines()
        must("Z5", [json.loads(r)["V"] for r in out] == [version] * n, "the stream after", name)
