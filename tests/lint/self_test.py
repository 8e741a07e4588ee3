#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Shows that includes.py, calls.py, banned.py, affected.py and words.py find what they claim to find: each gets a small tree
with one violation of each kind.  A lint that cannot fail is worth nothing."""

import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SPDX = "/* SPDX-License-Identifier: MIT */\n"
LAYERS = """layer base
layer codec query
layer store
layer fs/low
layer fs/high rest
public store store/store.h
public fs fs/fs.h
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
    "src/fs/fs.h": '#include "fs/low/l.h"\n',
    "src/fs/low/l.h": '#include "base/ok.h"\n',
    "src/fs/low/up.c": '#include "fs/high/h.h"\n#include "fs/fs.h"\n',
    "src/fs/high/h.h": "",
    "src/fs/loose.c": "",
    "src/fs/high/private.c": '#include "store/sqlite/rows.h"\n#include <sqlite3.h>\n',
    "src/odd/a.c": "",
    "mount-helper/m.c": '#include "fs/high/h.h"\n',
}
TREE.update({f"src/{module}/README.md": "" for module in ("base", "codec", "query", "store", "fs/low")})
LAYER_FINDINGS = [
    "fs/high/ has no README.md: what comes in, goes out, may be touched",
    "base/up.h (base) includes codec/text.h (codec)",
    "query/side.c (query) includes codec/text.h (codec)",
    'query/gone.c: "base/gone.h" is not in src/',
    "codec/text.c: the first include is not codec/text.h",
    "circle: store/x.h -> store/y.h -> store/x.h",
    "fs/high/private.c: store/sqlite/rows.h is private to store/, use store/store.h",
    "fs/high/private.c: <sqlite3.h> belongs to store/sqlite/",
    "odd/a.c is in no module",
    "fs/loose.c is in no module",
    "fs/low/up.c (fs/low) includes fs/high/h.h (fs/high)",
    "mount-helper/m.c includes fs/high/h.h; it may use base only",
]
BANNED = (
    SPDX + "int f(void)\n{\n\tstrcpy(a, b);\n\tmy_strcpy(a, b); /* strcpy( */\n\tg(\"atoi(\");\n"
    "\tx.random(1);\n\t// no\n\treturn atoi(s);\n}\ntypedef struct x y;\np = malloc(n * sizeof(*p));\n"
    "pthread_mutex_lock(&m);\npthread_cond_signal(&c);\n"
)
RANKS = SPDX + '#define LOCKS(X) X(A, "a.c", "a") X(GONE, "gone.c", "b")\n'
BANNED_FINDINGS = [
    "src/a.c:4: strcpy: use buf.h or memcpy",
    "src/a.c:8: // comment",
    "src/a.c:9: atoi: use text_to_i64",
    "src/a.c:11: typedef of a struct, enum or union",
    "src/a.c:13: a lock without a rank: use base/lock.h",
    "src/base/lock_ranks.h: GONE: there is no gone.c",
    "src/a.c:12: allocation by multiplication: calloc or reallocarray",
    "src/b.c:1: no SPDX line first",
]

AFFECTED_TREE = {
    "src/base/a.c": "", "src/fs/tree/a.c": "",
    "tests/system/rest/test_b.py": "import test_a\nimport a\n", "tests/system/helpers/a.py": "",
    "tests/system/fs/test_a.py": "", "tests/unit/test_new.c": "",
    "tests/unit/meson.build": "['test_old', [base_dep]],\n",
    "tests/affected.txt": "src/base/ | unit | rest gone/test_a.py\nsrc/gone/ | fast |\n",
}
AFFECTED_FINDINGS = ["tests/affected.txt: " + f for f in (
    "src/fs/tree/ has no line",
    "src/gone/ does not exist",
    "src/gone/: there is no suite fast",
    "src/base/: tests/system/gone/test_a.py does not exist",
    "no line names a test of tests/system/fs",
    "tests/unit/meson.build lacks test_new.c",
    "tests/system/rest/test_b.py imports test_a of fs/: move what both need to helpers/",
)]


# What calls.py reads is compiled: a call up, one sideways, a circle in one module, and good ones.
CALLS = {
    "src/base/b.c": "void up(void); void b(void) { up(); }\n",
    "src/fs/low/up.c": "void b(void); void up(void) { b(); }\n",
    "src/codec/c.c": "void q(void); void c(void) { q(); }\n",
    "src/query/q.c": "void q(void) { }\n",
    "src/store/one.c": "void two(void); void c(void); void one(void) { two(); c(); }\n",
    "src/store/two.c": "void one(void); void two(void) { one(); }\n",
    "docs/layers.txt": LAYERS,
}
CALL_FINDINGS = [
    "base/b.c (base) calls fs/low/up.c (fs/low): up",
    "codec/c.c (codec) calls query/q.c (query): q",
    "files call each other in a circle: base/b.c fs/low/up.c",
    "files call each other in a circle: store/one.c store/two.c",
]


def compile_all(top):
    """As meson lays objects out."""
    for path in [p for p in CALLS if p.endswith(".c")]:
        _, module, rest = path.split("/", 2)
        folder = os.path.join(top, "build/src", module, f"lib{module}.a.p")
        os.makedirs(folder, exist_ok=True)
        subprocess.run(["cc", "-c", os.path.join(top, path), "-o",
                        os.path.join(folder, rest.replace("/", "_") + ".o")], check=True)


def run(script, files, prepare=lambda top: None):
    with tempfile.TemporaryDirectory() as top:
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(top, path)), exist_ok=True)
            with open(os.path.join(top, path), "w") as f:
                f.write(text)
        prepare(top)
        build = [os.path.join(top, "build")] if script == "calls.py" else []
        done = subprocess.run([sys.executable, "-B", os.path.join(HERE, script), top, *build],
                              capture_output=True, text=True)
    lines = done.stdout.split("\n")[:-2]  # without the count
    return done.returncode, sorted(lines), done.stderr


def expect(script, files, want, prepare=lambda top: None):
    rc, have, _ = run(script, files, prepare)
    assert rc == (1 if want else 0), f"{script}: exit status {rc}"
    assert have == sorted(want), f"{script}:\nhave {have}\nwant {sorted(want)}"


expect("includes.py", {**TREE, "docs/layers.txt": LAYERS}, LAYER_FINDINGS)
clean = {"src/base/ok.h": "", "src/codec/text.h": '#include "base/ok.h"\n', "docs/layers.txt": LAYERS,
         "src/base/README.md": "", "src/codec/README.md": ""}
expect("includes.py", clean, [])
expect("calls.py", CALLS, CALL_FINDINGS, compile_all)
expect("banned.py",
       {"src/a.c": BANNED, "src/b.c": "int x;\n", "src/base/lock_ranks.h": RANKS}, BANNED_FINDINGS)
expect("banned.py", {"src/a.c": SPDX, "src/base/lock_ranks.h": RANKS.replace("gone", "a")}, [])
expect("affected.py", AFFECTED_TREE, AFFECTED_FINDINGS)
del AFFECTED_TREE["src/fs/tree/a.c"]
expect("affected.py", {**AFFECTED_TREE, "tests/unit/meson.build": "['test_new', [base_dep]],\n",
                    "tests/system/rest/test_b.py": "import a\n",
                    "tests/affected.txt": "src/base/ | unit | rest fs/test_a.py\n"}, [])
WORDS = {
    "docs/glossary.md": "| door | of the data |\n\n## Words that are not used\n\n| word | use |\n| --- | --- |\n"
                        "| door | front end |\n| knowing (of a commit) | the one who retains |\n",
    "src/a.c": "/* Doors and doorways. */\nint front_door;\n", "src/b.c": "int indoor;\n",
    "tests/test_a.py": "knowing = 1\n", "docs/changelog.md": "The label door.\n",
}
expect("words.py", WORDS, [
    "src/a.c:1: Door: use front end", "src/a.c:2: door: use front end",
    "tests/test_a.py:1: knowing: use the one who retains"])
expect("words.py", {"docs/glossary.md": WORDS["docs/glossary.md"], "src/b.c": WORDS["src/b.c"]}, [])
rc, _, said = run("affected.py", {"tests/affected.txt": "src/a/ | unit | a\nsrc/b/ | unit |\nsrc/a/ | unit | b\n"})
assert rc == 1 and said == "tests/affected.txt:3: src/a/ has a line already\n", said
print("the lints find what they should")
