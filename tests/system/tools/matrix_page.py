# SPDX-License-Identifier: MIT
"""docs/tools-cells.md: reads the tables that the tests compare with, and writes them.

Each condition has a section whose heading is its name, with one table in it.  These are the tools
of Debian 12; where those of 13 do otherwise the section NEWER says so.  The writer
(ROWFS_MATRIX_WRITE=1) puts in the lines that were seen, keeps all others and everything
that people wrote; several may write at a time.
"""

import fcntl
import os
import platform
import re

from conftest import TOP
from matrix import CONDITIONS, NONE, NOT_TRIED, Cell

PAGE = TOP / "docs" / "tools-cells.md"
HEAD = ("| tool | exit | says | row | refused bytes | row before |",
        "| --- | --- | --- | --- | --- | --- |")
NEWER = "Debian 13"
NEWER_HEAD = ("| tool | condition | exit | says | row | refused bytes | row before |",
              "| --- | --- | --- | --- | --- | --- | --- |")
TOOLS_HEAD = ("| tool | kind | command |", "| --- | --- | --- |")
REASON_HEAD = ("| tool | condition | why |", "| --- | --- | --- |")


def escaped(text):
    return text.replace("|", "\\|").replace("\n", " ")


def line_of(*fields):
    return "| " + " | ".join(escaped(f) for f in fields) + " |"


def fields_of(line):
    """The fields of a table's line, pipes that are escaped left in."""
    return [f.strip().replace("\\|", "|") for f in re.split(r"(?<!\\)\|", line)[1:-1]]


def sections(text):
    """[[heading or '', [line, ...]], ...] in order."""
    parts = [["", []]]
    for line in text.split("\n"):
        if line.startswith("#"):
            parts.append([line.lstrip("# ").strip(), []])
        parts[-1][1].append(line)
    return parts


def read_cells(newer=False):
    """{(condition, tool's name): Cell} of the page, or of NEWER only."""
    cells = {}
    for heading, lines in sections(PAGE.read_text(encoding="utf-8")):
        if heading not in ([NEWER] if newer else CONDITIONS):
            continue
        for line in lines:
            if not line.startswith("|") or line in (*HEAD, *NEWER_HEAD):
                continue
            name, *fields = fields_of(line)
            condition = fields.pop(0) if newer else heading
            if len(fields) != 5 or "" in fields or (condition, name) in cells:
                raise ValueError(f"{PAGE}: {heading}: not a cell, or one twice: {line}")
            cells[condition, name] = Cell(*fields)
    return cells


def has_newer_tools():
    """Whether this is a Debian whose tools NEWER is about."""
    try:
        found = platform.freedesktop_os_release()
    except OSError:
        return False
    return found["ID"] == "debian" and int(found.get("VERSION_ID", "99")) >= 13


def with_table(lines, head, body, notes=()):
    """The section's lines with its generated part, from the table on, made anew."""
    first = next((i for i, line in enumerate(lines) if line.startswith("|")), len(lines))
    kept = lines[:first]
    while kept and kept[-1] == "":
        kept.pop()
    return [*kept, "", *head, *body, *(["", *notes] if notes else []), ""]


def not_tried(condition, tools):
    """Why lines are missing: of whole kinds, and of single tools."""
    kinds = [f"Not tried with kind `{kind}`, which {whys[condition]}."
             for kind, whys in NOT_TRIED.items() if condition in whys]
    names = {}
    for tool in tools:
        why = tool.why_not(condition)
        if why and condition not in NOT_TRIED[tool.kind]:
            names.setdefault(why, []).append(tool.name)
    return [*kinds, *(f"Not tried, since it {why}: {'; '.join(sorted(of))}."
                      for why, of in names.items())]


def condition_table(condition, tools, cells):
    body = [line_of(tool.name, *cells[condition, tool.name].fields) for tool in tools
            if tool.why_not(condition) is None and (condition, tool.name) in cells]
    return HEAD, body, not_tried(condition, tools)


def command_of(tool):
    shell = "" if tool.shell[0] == "bash" else f"{' '.join(tool.shell[:-1])}: "
    text = (tool.shows or shell + tool.script).replace("`", "'")
    return f"`{' '.join(text.split())}`"


def newer_table(tools, newer):
    body = [line_of(tool.name, condition, *newer[condition, tool.name].fields) for tool in tools
            for condition in CONDITIONS if (condition, tool.name) in newer]
    return NEWER_HEAD, body, ()


def with_cells(text, cells, newer, tools):
    """The page's text with all that is generated made anew."""
    made = {c: condition_table(c, tools, cells) for c in CONDITIONS}
    made[NEWER] = newer_table(tools, newer)
    made["The tools"] = (TOOLS_HEAD, [line_of(t.name, t.kind, command_of(t)) for t in tools], ())
    for heading, field in (("Silent cells", "silent"), ("Cells that lose a row", "loses")):
        made[heading] = (REASON_HEAD, [line_of(t.name, c, why) for t in tools
                                       for c, why in getattr(t, field).items()], ())
    out = []
    for heading, lines in sections(text):
        out += with_table(lines, *made[heading]) if heading in made else lines
    return "\n".join(out).rstrip("\n") + "\n"


def write_cells(seen, tools):
    """Puts what was seen into the page, and the lists of the tools themselves."""
    with open(PAGE, "r+", encoding="utf-8") as page:
        fcntl.flock(page, fcntl.LOCK_EX)
        cells, newer = read_cells(), read_cells(newer=True)
        (newer if has_newer_tools() else cells).update(seen)
        newer = {at: cell for at, cell in newer.items() if cell != cells.get(at)}
        text = with_cells(page.read(), cells, newer, tools)
        page.seek(0)
        page.write(text)
        page.truncate()
        page.flush()
        os.fsync(page.fileno())


def line_on_page(cell):
    return line_of(*cell.fields) if cell else f"no line ({NONE})"
