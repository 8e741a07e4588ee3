#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that floors.py and banned.py find what they claim to find: each gets a small tree
with one violation of each kind.  A lint that cannot fail is worth nothing."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SPDX = "/* SPDX-License-Identifier: MIT */\n"
FLOORS = """floor base
floor codec query
floor store
floor fs rest
door store store/store.h
owner sqlite3.h store/sqlite/
apart mount-helper base
"""
TREE = {
    "src/base/up.h": '#include "codec/text.h"\n',
    "src/base/ok.h": "#include <stdio.h>\n",
    "src/codec/text.h": '#include "base/ok.h"\n',
    "src/codec/text.c": '#include <stdio.h>\n#include "codec/text.h"\n',
    "src/query/side.c": '#include "codec/text.h"\n',
    "src/query/gone.c": '#include "base/gone.h"\n',
    "src/store/store.h": "",
    "src/store/x.h": '#include "store/y.h"\n',
    "src/store/y.h": '#include "store/x.h"\n',
    "src/store/sqlite/rows.h": "#include <sqlite3.h>\n",
    "src/fs/private.c": '#include "store/sqlite/rows.h"\n#include <sqlite3.h>\n',
    "src/odd/a.c": "",
    "mount-helper/m.c": '#include "fs/private.h"\n',
}
FLOOR_FINDINGS = [
    "base/up.h (floor 0) includes codec/text.h (floor 1)",
    "query/side.c (floor 1) includes codec/text.h (floor 1)",
    'query/gone.c: "base/gone.h" is not in src/',
    "codec/text.c: the first include is not codec/text.h",
    "circle: store/x.h -> store/y.h -> store/x.h",
    "fs/private.c: store/sqlite/rows.h is private to store/, use store/store.h",
    "fs/private.c: <sqlite3.h> belongs to store/sqlite/",
    "odd/a.c: odd/ is on no floor",
    "mount-helper/m.c includes fs/private.h; it may use base only",
]
BANNED = (
    SPDX + "int f(void)\n{\n\tstrcpy(a, b);\n\tmy_strcpy(a, b); /* strcpy( */\n\tg(\"atoi(\");\n"
    "\tx.random(1);\n\t// no\n\treturn atoi(s);\n}\ntypedef struct x y;\np = malloc(n * sizeof(*p));\n"
)
BANNED_FINDINGS = [
    "src/a.c:4: strcpy: use buf.h or memcpy",
    "src/a.c:8: // comment",
    "src/a.c:9: atoi: use text_to_i64",
    "src/a.c:11: typedef of a struct, enum or union",
    "src/a.c:12: allocation by multiplication: calloc or reallocarray",
    "src/b.c:1: no SPDX line first",
]


def run(script, files):
    with tempfile.TemporaryDirectory() as top:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
            with open(os.path.join(top, path), "w") as f:
                f.write(text)
        done = subprocess.run([sys.executable, os.path.join(HERE, script), top],
                              capture_output=True, text=True)
    lines = done.stdout.split("\n")[:-2]  # without the count
    return done.returncode, sorted(lines)


def expect(script, files, want):
    rc, have = run(script, files)
    assert rc == (1 if want else 0), f"{script}: exit status {rc}"
    assert have == sorted(want), f"{script}:\nhave {have}\nwant {sorted(want)}"


expect("floors.py", {**TREE, "docs/floors.txt": FLOORS}, FLOOR_FINDINGS)
clean = {"src/base/ok.h": "", "src/codec/text.h": '#include "base/ok.h"\n', "docs/floors.txt": FLOORS}
expect("floors.py", clean, [])
expect("banned.py", {"src/a.c": BANNED, "src/b.c": "int x;\n"}, BANNED_FINDINGS)
expect("banned.py", {"src/a.c": SPDX}, [])
print("the lints find what they should")
