#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds what the house style bans by name in the C sources.  usage: banned.py TOP"""

import os
import re
import sys

# name -> what to use instead
FUNCTIONS = {
    "strcpy": "buf.h or memcpy", "strcat": "buf.h", "sprintf": "snprintf", "vsprintf": "vsnprintf",
    "strtok": "span.h", "atoi": "text_to_i64", "atol": "text_to_i64", "atoll": "text_to_i64",
    "atof": "edm_text_parse", "gets": "getline", "rand": "crypto.h", "srand": "crypto.h",
    "random": "crypto.h", "strerror": "strerror_r", "localtime": "clock.h",
    "localtime_r": "clock.h", "gmtime": "clock.h", "ctime": "clock.h", "asctime": "clock.h",
    "tmpnam": "mkstemp", "mktemp": "mkstemp", "alloca": "a fixed array or arena.h",
    "system": "fork and exec", "setlocale": "nothing: no locale anywhere",
}
IN_TESTS = {"setlocale"}  # to show that it does not matter
CALL = re.compile(r"(?<![\w.>])(" + "|".join(FUNCTIONS) + r")[ \t]*\(")
OTHER = [
    (re.compile(r"\btypedef\s+(?:struct|enum|union)\b(?![^;(]*\(\s*\*)"), "typedef of a struct, enum or union"),
    (re.compile(r"//"), "// comment"),
    (re.compile(r"\b(?:malloc|realloc)\s*\([^;]*(?:\*\s*sizeof|sizeof\s*\([^)]*\)\s*\*)"),
     "allocation by multiplication: calloc or reallocarray"),
    (re.compile(r"\bassert\s*\("), "assert: BUG_ON, or an error for the user"),
]
# Every error of the mount is answered by reply_err(), which notes the reason of a refusal.
REPLY = re.compile(r"\bfuse_reply_err[ \t]*\(")
REPLIES = {"src/fs/requests/reply.c", "src/fs/tree/locks.c", "src/fs/cache/notify.c"}
# A lock has a rank, so that builds for tests check the order.
LOCK = re.compile(r"\bpthread_(?:mutex|rwlock)_|\bpthread_cond_\w*wait\b|\bPTHREAD_(?:MUTEX|RWLOCK)_")
RANK = re.compile(r'\bX\((\w+), "([^"]+)"')
# Comments and literals, in the order in which they can begin.
BLANK = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def code_of(text):
    """The text with comments and literals blanked, line numbers kept."""
    return BLANK.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def check(path, text, say):
    if "SPDX-License-Identifier: MIT" not in text.split("\n", 1)[0]:
        say(f"{path}:1: no SPDX line first")
    code = code_of(text)
    for number, line in enumerate(code.split("\n"), 1):
        for m in CALL.finditer(line):
            if m[1] not in IN_TESTS or not path.startswith("tests/"):
                say(f"{path}:{number}: {m[1]}: use {FUNCTIONS[m[1]]}")
        if path.startswith("src/") and path not in REPLIES and REPLY.search(line):
            say(f"{path}:{number}: fuse_reply_err: use reply_err() of fs/requests/ops.h")
        if path.startswith("src/") and path != "src/base/lock.h" and LOCK.search(line):
            say(f"{path}:{number}: a lock without a rank: use base/lock.h")
        for pattern, what in OTHER:
            if pattern.search(line):
                say(f"{path}:{number}: {what}")


def check_ranks(top, say):
    path = os.path.join(top, "src/base/lock_ranks.h")
    if not os.path.exists(path):
        return
    for rank, file in RANK.findall(open(path, encoding="utf-8").read()):
        if not os.path.exists(os.path.join(top, "src", file)):
            say(f"src/base/lock_ranks.h: {rank}: there is no {file}")


def main(top):
    findings, count = [], 0
    check_ranks(top, findings.append)
    for root in ("src", "mount-helper", "tests"):
        for folder, subfolders, names in os.walk(os.path.join(top, root)):
            subfolders[:] = [f for f in subfolders if f != "node_modules"]
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    path = os.path.join(folder, name)
                    text = open(path, encoding="utf-8").read()
                    check(os.path.relpath(path, top), text, findings.append)
                    count += 1
    for line in findings:
        print(line)
    print(f"{count} files, {len(findings)} findings")
    return 1 if findings or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
