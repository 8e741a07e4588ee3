#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the documentation with the code, both ways.

errors.md  has exactly the rows of base/err.h, with errno, HTTP status, code and text
rest.md    has exactly the rules by version of model/versions.h
rowfs.1    names every command and option that the program has, and no other option
           (mount options: this page or mount.rowfs.8; `help mount` has those of this page)
tests      a system test uses each command and each option of a command
semantics.md  every promise has a system test that names it, and every test's promise stands there
quotes     in the man pages no Ql within a Ql, and no " of an example that roff would take away
needs      README names the libraries that meson.build asks for, with their versions
env.md     has each variable that the program reads
links      relative links in README and docs/ lead somewhere, and files of tests/ that they name exist
sources    files of src/ that pages name by folder and name are there
pictures   docs/pictures has what docs/pictures.py draws of the pages
usage: docs.py TOP [--errors | --versions]    prints the table for errors.md or rest.md instead
"""

import glob
import os
import re
import subprocess
import sys

ROW = re.compile(r'^\s*X\((\w+),\s*(\w+),\s*(\d+),\s*"([^"]*)",\s*"((?:\\.|[^"\\])*)"\)', re.M)


def read(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as f:
        return f.read()


def error_rows(top):
    """The table of docs/errors.md as it must be, made from err.h."""
    rows = []
    for symbol, number, http, code, text in ROW.findall(read(top, "src/base/err.h")):
        text = text.replace("\\\\", "\\")
        if symbol != "OK":
            rows.append(f"| {number} | {symbol} | {http} | {code} | {text} |")
    return rows


def compare(want, have, page, source, say):
    """Lines of a page that are made from a source."""
    for line in want:
        if line not in have:
            say(f"{page} lacks: {line}")
    for line in have:
        if line not in want:
            say(f"{page} has, {source} has not: {line}")


def check_errors(top, say):
    want = error_rows(top)
    if len(want) < 20:
        say("src/base/err.h: the error list was not understood")
    have = [line for line in read(top, "docs/errors.md").split("\n") if re.match(r"\| E\w+ \|", line)]
    compare(want, have, "docs/errors.md", "err.h", say)


RULE = re.compile(r'^\s*X\((\w+), (\d{8}), (\d{8}|0), "([^"]*)"\)', re.M)


def version_rows(top):
    """The table of versions in docs/rest.md as it must be, made from versions.h."""
    def date(digits):
        return "" if digits == "0" else f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"
    return [f"| {date(since)} | {date(until)} | {text} |".replace("|  |", "| |")
            for _, since, until, text in RULE.findall(read(top, "src/model/versions.h"))]


def check_versions(top, say):
    want = version_rows(top)
    if len(want) < 10:
        say("src/model/versions.h: the rules were not understood")
    have = [line for line in read(top, "docs/rest.md").split("\n")
            if re.match(r"\| \d{4}-\d\d-\d\d \|", line)]
    compare(want, have, "docs/rest.md", "versions.h", say)


def roff_words(text):
    """A man page as plain text: escapes resolved, macros and fonts gone."""
    text = re.sub(r'^[.\']\\".*$', "", text, flags=re.M)
    text = re.sub(r"\\f(\[\w*\]|\(..|.)", "", text)
    return text.replace("\\-", "-").replace("\\&", "").replace("\\(aq", "'")


def sources_of_commands(top):
    """The commands, and the headers with options that several of them have."""
    paths = [p for of in ("commands/*.c", "core/*.h") for p in sorted(glob.glob(os.path.join(top, "src/daemon", of)))]
    # A macro's rows as those of a table.
    return re.sub(r"^(?:\t+\{ (?:\\\n\t+)?|\t+)(?=\"[a-z-]+\", (?:0|'.'), )", "\t{ ",
                  "".join(read(p) for p in paths), flags=re.M)


def check_commands(top, say):
    page = roff_words(read(top, "docs/rowfs.1"))
    source = sources_of_commands(top)
    commands = re.findall(r'^\t\.name = "([a-z ]+)"', source, re.M)
    options = re.findall(r'^\t\{ "([a-z-]+)", ', source, re.M)
    if len(commands) < 10 or not options:
        say("src/daemon/commands/*.c: the commands and their options were not understood")
    for name in re.findall(r'^\t\{ \.name = "([a-z-]+)"', source, re.M):
        say(f'src/daemon: write the option {name} as {{ "NAME", LETTER, VALUE, HELP }}')
    for name in sorted(commands):
        if not re.search(rf"\b{name}\b", page):
            say(f"docs/rowfs.1 lacks the command {name}")
    for name in sorted(set(options)):
        if f"--{name}" not in page:
            say(f"docs/rowfs.1 lacks --{name}")
    for name in sorted(set(re.findall(r"--([a-z][a-z-]+)", page)) - set(options) - {"help", "version"}):
        say(f"docs/rowfs.1 has --{name}, no command has")


def check_tested(top, say):
    """Commands as `"account", "add"` or `rowfs account add`, options by either of their names."""
    source = sources_of_commands(top)
    tests = "".join(read(p) for p in glob.glob(os.path.join(top, "tests/system/*/*.py")))
    for name in sorted(re.findall(r'^\t\.name = "([a-z ]+)"', source, re.M)):
        quoted = ", ".join(f'"{w}"' for w in name.split())
        if quoted not in tests and f"rowfs {name} " not in tests:
            say(f"no test in tests/system uses the command {name}")
    for name, letter in sorted(set(re.findall(r'^\t\{ "([a-z-]+)", (0|\'.\'), ', source, re.M))):
        short = f'"-{letter[1]}' if letter != "0" else f"--{name}"
        if f"--{name}" not in tests and short not in tests:
            say(f"no test in tests/system uses --{name}")


# Options that mean what mount(8) says, or nothing.
COMMON = {"OPTION_IGNORED", "OPTION_KERNEL", "OPTION_LATER", "OPTION_SOURCE", "OPTION_SUBTYPE"}


def check_mount_options(top, say):
    pages = roff_words(read(top, "docs/rowfs.1") + read(top, "docs/mount.rowfs.8"))
    table = re.findall(r'\{ "([\w-]+)=?", (OPTION_\w+) \}', read(top, "src/daemon/settings/mount_options.c"))
    if len(table) < 5:
        say("src/daemon/settings/mount_options.c: the mount options were not understood")
    for name, kind in table:
        if kind not in COMMON and not re.search(rf"\b{name}\b", pages):
            say(f"docs/: no man page has the mount option {name}")
    section = re.search(r"^\.Ss mount$(.*?)^\.Ss ", read(top, "docs/rowfs.1"), re.M | re.S)[1]
    items = roff_words("\n".join(re.findall(r"^\.It Cm (.*)$", section, re.M)))
    shown = re.findall(r"^(?:.* , )?(?:Cm )?([\w-]+)", items.replace(" , ", "\n"), re.M)
    help_ = read(top, "src/daemon/commands/cmd_mount.c")
    if "control" not in shown or "umask" not in shown:
        say("docs/rowfs.1: the mount options were not understood")
    for name in shown:
        if not re.search(rf"\b{name}\b", help_):
            say(f"src/daemon/commands/cmd_mount.c: the help lacks the mount option {name}")


def check_promises(top, say):
    """| R1 | … in semantics.md against def test_R1_… in tests/system."""
    have = re.findall(r"^\| ([A-Z]+\d+) \|", "".join(
        read(top, f"docs/{page}.md")
        for page in ("semantics", "blobs", "cluster", "operating", "page", "tokens")), re.M)
    if len(have) < 20:
        say("docs/semantics.md: the promises were not understood")
    for name in sorted({n for n in have if have.count(n) > 1}):
        say(f"docs/semantics.md: {name} twice")
    tests = {}
    for path in sorted(glob.glob(os.path.join(top, "tests/system/*/test_*.py"))):
        for name in re.findall(r"^def test_([A-Z]+\d+)_", read(path), re.M):
            tests.setdefault(name, os.path.relpath(path, top))
    for name in have:
        if name not in tests:
            say(f"docs/semantics.md: no test in tests/system is named test_{name}_…")
    for name in sorted(set(tests) - set(have)):
        say(f"{tests[name]}: test_{name}_… shows a promise that docs/semantics.md lacks")


def check_quotes(top, say):
    for page in sorted(glob.glob(os.path.join(top, "docs/*.[1-8]"))):
        for number, line in enumerate(read(page).split("\n"), 1):
            if re.match(r"\.(\w\w )*Ql .*\bQl\b", line) or re.match(r'\.(\w\w )*Ql (.* )?"', line):
                say(f"{os.path.relpath(page, top)}:{number}: quotes that go wrong: {line}")


LIBRARIES = {"libcrypto": "OpenSSL", "sqlite3": "SQLite", "fuse3": "libfuse", "gnutls": "GnuTLS",
             "libxml-2.0": "libxml2"}


def check_needs(top, say):
    readme = " ".join(read(top, "README.md").split())
    needs = re.findall(r"dependency\('([\w.-]+)', version: '>=([\d.]+)'", read(top, "meson.build"))
    if len(needs) < 5:
        say("meson.build: the libraries were not understood")
    for library, version in needs:
        want = f"{LIBRARIES.get(library, library)} {version}"
        if not re.search(rf"\b{re.escape(want)}(?![\w.]*\d)", readme):
            say(f"README.md lacks {want}, which meson.build asks for")


def check_variables(top, say):
    page = read(top, "docs/env.md").split("\n## ")[0]
    sources = sorted(glob.glob(os.path.join(top, "src/**/*.c"), recursive=True))
    names = {n for p in sources for n in re.findall(r'getenv\("(\w+)"\)', read(p))}
    if len(names) < 3:
        say("src/: the variables were not understood")
    for name in sorted(names):
        if f"| `{name}` |" not in page:
            say(f"docs/env.md lacks {name}, which the program reads")


def check_links(top, say):
    pages = glob.glob(os.path.join(top, "docs/*.md")) + glob.glob(os.path.join(top, "README*"))
    for page in sorted(pages):
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", read(page)):
            if "://" in target or target.startswith("mailto:"):
                continue
            if not os.path.exists(os.path.join(os.path.dirname(page), target)):
                say(f"{os.path.relpath(page, top)}: dead link {target}")
        for name in re.findall(r"`(?:\w+=\S+ )?(tests/[\w./-]+\w)[` ]", read(page)):
            if not os.path.exists(os.path.join(top, name)):
                say(f"{os.path.relpath(page, top)}: there is no {name}")


def check_sources(top, say):
    folders = "|".join(sorted(os.listdir(os.path.join(top, "src"))))
    for page in sorted(glob.glob(os.path.join(top, "docs/*.md"))):
        for path in sorted(set(re.findall(rf"`((?:{folders})/[a-z0-9_/]+\.[ch])`", read(page)))):
            if not os.path.exists(os.path.join(top, "src", path)):
                say(f"{os.path.relpath(page, top)} names src/{path}, which is not there")


def check_pictures(top, say):
    done = subprocess.run([sys.executable, "-B", os.path.join(top, "docs/pictures.py"), "--check"],
                          capture_output=True, text=True)
    for line in done.stdout.splitlines() or [done.stderr] * (done.returncode != 0):
        say(line)


def main(argv):
    top = argv[1]
    if "--errors" in argv:
        print("\n".join(error_rows(top)))
        return 0
    if "--versions" in argv:
        print("\n".join(version_rows(top)))
        return 0
    findings = []
    for check in (check_errors, check_versions, check_commands, check_mount_options, check_promises,
                  check_tested, check_quotes, check_needs, check_variables, check_links, check_sources,
                  check_pictures):
        try:
            check(top, findings.append)
        except FileNotFoundError as e:
            findings.append(f"missing: {os.path.relpath(e.filename, top)}")
    for line in findings:
        print(line)
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
