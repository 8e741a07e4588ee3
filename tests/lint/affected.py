#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks tests/affected.txt, which says which tests a change can break; or asks it.

Reports: a folder of src/ without a line, a path that does not exist, a suite that meson does not
know, a folder of tests/system that no line names, a test file that imports a module of another
folder than its own and helpers/, a source of a test that no meson.build names.
usage: affected.py TOP            check
       affected.py TOP FILE...    print what to run if these files change: a line of suites, then
                               a system test a line
"""

import os
import re
import sys

SUITES = {"unit", "fuzz", "lint"}
SYSTEM = "tests/system"


def read_table(top):
    """{path: (suites, system tests)}, in the order of the file."""
    table = {}
    for number, line in enumerate(open(os.path.join(top, "tests/affected.txt")), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        parts = [p.split() for p in (line + " ").split("|")]
        if len(parts) != 3 or len(parts[0]) != 1:
            sys.exit(f"tests/affected.txt:{number}: not PATH | SUITES | TESTS: {line}")
        if parts[0][0] in table:
            sys.exit(f"tests/affected.txt:{number}: {parts[0][0]} has a line already")
        table[parts[0][0]] = (parts[1], parts[2])
    return table


def system_tests(top):
    """{folder: [test file]} of tests/system."""
    found = {}
    for folder in sorted(os.listdir(os.path.join(top, SYSTEM))):
        path = os.path.join(top, SYSTEM, folder)
        if os.path.isdir(path):
            names = sorted(n for n in os.listdir(path) if re.fullmatch(r"test_\w+\.py", n))
            if names:
                found[folder] = names
    return found


def check(top, say):
    table, tests, used = read_table(top), system_tests(top), set()
    for folder, _, names in os.walk(os.path.join(top, "src")):
        path = os.path.relpath(folder, top) + "/"
        if any(n.endswith((".c", ".h")) for n in names) and path not in table:
            say(f"{path} has no line")
    for path, (suites, chosen) in table.items():
        if path not in (".", "meson") and not os.path.exists(os.path.join(top, path)):
            say(f"{path} does not exist")
        for suite in set(suites) - SUITES:
            say(f"{path}: there is no suite {suite}")
        for test in chosen:
            if not os.path.exists(os.path.join(top, SYSTEM, test)):
                say(f"{path}: {SYSTEM}/{test} does not exist")
            used.add(test.split("/")[0])
    # A change of such tests runs them; no change of src/ needs them beside the others.
    for folder in sorted(set(tests) - used):
        say(f"no line names a test of {SYSTEM}/{folder}")
    check_imports(top, tests, say)
    check_built(top, say)


def check_imports(top, tests, say):
    """A test may use its own folder, helpers/ and conftest.py."""
    modules = {}
    for folder in os.listdir(os.path.join(top, SYSTEM)):
        if os.path.isdir(os.path.join(top, SYSTEM, folder)) and folder != "helpers":
            for name in os.listdir(os.path.join(top, SYSTEM, folder)):
                modules.setdefault(name.removesuffix(".py"), folder)
    for folder in [*tests, "helpers"]:
        for name in sorted(os.listdir(os.path.join(top, SYSTEM, folder))):
            if not name.endswith(".py"):
                continue
            text = open(os.path.join(top, SYSTEM, folder, name)).read()
            for module in re.findall(r"^\s*(?:from|import) (\w+)", text, re.M):
                if modules.get(module, folder) != folder and not os.path.exists(
                        os.path.join(top, SYSTEM, "helpers", module + ".py")):
                    say(f"{SYSTEM}/{folder}/{name} imports {module} of {modules[module]}/: move what "
                        "both need to helpers/")


def check_built(top, say):
    for folder in ("unit", "fault", "fuzz"):
        path = os.path.join(top, "tests", folder)
        if not os.path.isdir(path):
            continue
        rules = open(os.path.join(path, "meson.build")).read()
        for name in sorted(n.removesuffix(".c") for n in os.listdir(path) if n.endswith(".c")):
            if f"'{name}" not in rules and f"'{name.removeprefix('fuzz_')}'" not in rules:
                say(f"tests/{folder}/meson.build lacks {name}.c")


def own_tests(top, path):
    """What a changed file below tests/system runs besides."""
    parts = path.split("/")
    if len(parts) < 4 or parts[2] == "helpers":
        return []
    folder, name = parts[2], parts[3]
    if not name.endswith(".py"):
        return []
    test = f"{folder}/{name}" if name.startswith("test_") else folder
    return [test] if os.path.exists(os.path.join(top, SYSTEM, test)) else []


def choose(top, paths):
    """(suites, system tests) of these files."""
    table, suites, chosen = read_table(top), set(), []
    for path in paths:
        fits = [p for p in table if path.startswith(p)] or ["."]
        row = table[max(fits, key=len)]
        suites.update(row[0])
        chosen += row[1]
        if path.startswith(SYSTEM + "/"):
            chosen += own_tests(top, path)
    chosen = list(dict.fromkeys(chosen))
    return sorted(suites), [c for c in chosen if "/" not in c or c.split("/")[0] not in chosen]


def main():
    top = sys.argv[1]
    if len(sys.argv) > 2:
        suites, chosen = choose(top, sys.argv[2:])
        print(" ".join(suites), *chosen, sep="\n")
        return 0
    findings = []
    check(top, findings.append)
    for f in findings:
        print(f"tests/affected.txt: {f}")
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
