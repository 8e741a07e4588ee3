#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the calls between the files of src/ against docs/layers.txt.

An include shows what a file may call, but a header of a lower module can be implemented in a
higher one.  The symbols of the objects show what is really called.  Reports: a call that goes
up or sideways, and files of different modules or of one module that call each other in a circle.
usage: calls.py TOP BUILD
"""

import collections
import os
import subprocess
import sys

from layers import Layers


def objects(build):
    """(source below src/, object) of every object below BUILD/src; also of generated names."""
    root = os.path.join(build, "src")
    for folder, _, names in os.walk(root):
        if not folder.endswith(".p"):
            continue
        top = os.path.relpath(os.path.dirname(folder), root)
        for name in names:
            if name.endswith(".c.o"):
                yield top, name[:-2], os.path.join(folder, name)


def source_of(src, top, name):
    """meson writes core/nid.c of src/fs as fs/libfs.a.p/core_nid.c.o."""
    parts = name.split("_")
    for i in range(len(parts)):
        path = os.path.join(top, *parts[:i], "_".join(parts[i:]))
        if os.path.exists(os.path.join(src, path)):
            return path
    return None


def symbols(paths):
    """{object: (defined, used)}"""
    found = {p: (set(), set()) for p in paths}
    out = subprocess.run(["nm", "-A", "-P", *paths], capture_output=True, text=True, check=True)
    for line in out.stdout.splitlines():
        path, symbol, kind = line.rsplit(": ", 1)[0], *line.rsplit(": ", 1)[1].split()[:2]
        if kind == "U":
            found[path][1].add(symbol)
        elif kind.isupper():
            found[path][0].add(symbol)
    return found


def graph_of(src, build):
    sources = {}
    for top, name, path in objects(build):
        source = source_of(src, top, name)
        if source is not None:
            sources[path] = source
    table = symbols(sorted(sources)) if sources else {}
    home = {}
    for path, (defined, _) in table.items():
        for symbol in defined:
            home[symbol] = sources[path]
    graph = collections.defaultdict(lambda: collections.defaultdict(set))
    for path, (_, used) in table.items():
        graph[sources[path]]
        for symbol in used & home.keys():
            if home[symbol] != sources[path]:
                graph[sources[path]][home[symbol]].add(symbol)
    return graph


def circles(graph):
    """The sets of files that can all reach each other (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for to in graph.get(node, ()):
            if to not in index:
                visit(to)
            if to in stack:
                low[node] = min(low[node], low[to])
        if low[node] == index[node]:
            at = stack.index(node)
            if len(stack) - at > 1:
                found.append(sorted(stack[at:]))
            del stack[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def main(top, build):
    modules = Layers(os.path.join(top, "docs/layers.txt"))
    graph = graph_of(os.path.join(top, "src"), build)
    findings = []
    for mine, calls in sorted(graph.items()):
        for theirs, names in sorted(calls.items()):
            here, there = modules.module(mine), modules.module(theirs)
            if here is None or there is None or modules.may_use(here, there):
                continue
            findings.append(f"{mine} ({here}) calls {theirs} ({there}): "
                            + ", ".join(sorted(names)[:4]))
    found = circles(graph)
    for files in found:
        if files not in modules.circles:
            findings.append("files call each other in a circle: " + " ".join(files))
    for files in modules.circles:
        if files not in found:
            findings.append("docs/layers.txt: this circle is cut: " + " ".join(files))
    print("\n".join(findings))
    print(f"{len(graph)} files, {len(findings)} findings")
    return 1 if findings or not graph else 0


if __name__ == "__main__":
    sys.setrecursionlimit(10000)
    sys.exit(main(sys.argv[1], sys.argv[2]))
