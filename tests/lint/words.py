#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds the words that docs/glossary.md lists as not used, in the sources, the tests and the pages.
usage: words.py TOP.  A word counts in comments, messages and names, alone or as a part of a name."""

import os
import re
import sys

HEADING = "## Words that are not used"
ROW = re.compile(r"^\| (\w+)(?: \([^)]*\))? \| (.+) \|$", re.M)
ENDINGS = (".c", ".h", ".py", ".md", ".1", ".8", ".service")
APART = ("docs/glossary.md", "docs/changelog.md", "tests/lint/")  # they speak about the words


def words_of(top):
    page = open(os.path.join(top, "docs/glossary.md"), encoding="utf-8").read()
    return {word: use for word, use in ROW.findall(page.split(HEADING)[1]) if word != "word"}


def files_of(top):
    for root in ("src", "mount-helper", "tests", "docs", "examples"):
        for folder, subfolders, names in os.walk(os.path.join(top, root)):
            subfolders[:] = sorted(f for f in subfolders if f != "node_modules")
            for path in (os.path.join(folder, name) for name in sorted(names)
                         if name.endswith(ENDINGS) or "." not in name):
                relative = os.path.relpath(path, top)
                if not relative.startswith(APART):
                    yield relative, open(path, encoding="utf-8", errors="replace").read()


def main(top):
    words = words_of(top)
    word = re.compile(r"(?<![^\W_])(" + "|".join(words) + r")s?(?![^\W_])", re.I)
    findings, count = [], 0
    for path, text in files_of(top):
        count += 1
        for number, line in enumerate(text.split("\n"), 1):
            for found in word.findall(line):
                findings.append(f"{path}:{number}: {found}: use {words[found.lower()]}")
    for line in findings:
        print(line)
    print(f"{count} files, {len(findings)} findings")
    return 1 if findings or not count or not words else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
