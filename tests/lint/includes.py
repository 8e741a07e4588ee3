#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the includes of src/ against docs/layers.txt.

Reports: an include that goes up or sideways, a circle of headers, a private header used
from outside its folder, an external header outside its owner, a .c file whose first include
is not its own header (being first proves that the header stands alone), an include of ours
that does not exist, a module without a README.md.  usage: includes.py TOP
"""

import os
import re
import sys

from layers import Layers

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


def sources(root):
    for folder, subfolders, names in os.walk(root):
        subfolders.sort()
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(folder, name), root)


def belongs(path, places):
    return any(path == p or (p.endswith("/") and path.startswith(p)) for p in places)


def check_external(path, header, rules, say):
    for owned, places in rules.owners:
        if (header == owned or owned.endswith("/") and header.startswith(owned)) and not belongs(
            path, places
        ):
            say(f"{path}: <{header}> belongs to {' '.join(places)}")


def check_own(path, header, rules, say):
    mine, theirs = rules.module(path), rules.module(header)
    top = header.split("/")[0]
    public_headers = rules.public_headers.get(top)
    if public_headers and path.split("/")[0] != top and header not in public_headers:
        say(f"{path}: {header} is private to {top}/, use {' or '.join(public_headers)}")
    if mine is None or (rules.is_public(header) and path.split("/")[0] == top):
        return  # a public header promises for all modules of its folder, and each may use it
    if theirs is None and rules.is_public(header):
        theirs = rules.highest(top)
    if theirs is None:
        say(f"{path}: {header} is in no module")
    elif not rules.may_use(mine, theirs):
        say(f"{path} ({mine}) includes {header} ({theirs})")


def check_file(src, path, rules, say):
    if rules.module(path) is None and not rules.is_public(path):
        say(f"{path} is in no module")
        return []
    found = INCLUDE.findall(open(os.path.join(src, path), encoding="utf-8").read())
    ours = []
    for mark, header in found:
        if mark == "<":
            check_external(path, header, rules, say)
        elif not os.path.exists(os.path.join(src, header)):
            say(f'{path}: "{header}" is not in src/')
        else:
            ours.append(header)
            check_own(path, header, rules, say)
    own = path[:-2] + ".h"
    if path.endswith(".c") and os.path.exists(os.path.join(src, own)):
        if not found or found[0][1] != own:
            say(f"{path}: the first include is not {own}")
    return ours


def check_circles(graph, say):
    done = set()

    def walk(node, trail):
        if node in trail:
            say("circle: " + " -> ".join(trail[trail.index(node):] + [node]))
        elif node not in done:
            for to in graph.get(node, []):
                walk(to, trail + [node])
            done.add(node)

    for node in sorted(graph):
        walk(node, [])


def check_apart(top, rules, say):
    for folder, allowed in rules.apart.items():
        for path in sources(os.path.join(top, folder)):
            text = open(os.path.join(top, folder, path), encoding="utf-8").read()
            for mark, header in INCLUDE.findall(text):
                if mark == "<":
                    check_external(f"{folder}/{path}", header, rules, say)
                elif header.split("/")[0] not in allowed:
                    say(f"{folder}/{path} includes {header}; it may use {' '.join(allowed)} only")


def main(top):
    rules = Layers(os.path.join(top, "docs/layers.txt"))
    src = os.path.join(top, "src")
    findings, graph, count = [], {}, 0
    for path in sources(src):
        count += 1
        graph[path] = check_file(src, path, rules, findings.append)
    for module in sorted({rules.module(path) for path in graph} - {None}):
        if not os.path.exists(os.path.join(src, module, "README.md")):
            findings.append(f"{module}/ has no README.md: what comes in, goes out, may be touched")
    check_circles(graph, findings.append)
    check_apart(top, rules, findings.append)
    for line in findings:
        print(line)
    print(f"{count} files, {len(findings)} findings")
    return 1 if findings or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
