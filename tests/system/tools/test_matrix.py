# SPDX-License-Identifier: MIT
"""Every tool under every condition: what docs/tools-cells.md says, cell by cell.

ROWFS_MATRIX_WRITE=1 puts what was seen into the page; what must hold whatever the page says
is asserted all the same."""

import dataclasses
import importlib
import os
import subprocess

import pytest

import matrix_page
from conftest import find_program
from matrix import CONDITIONS, OLD, Found, Tool, cell_of, problems
from matrix_house import GAVE_UP, HOUSE_OF, HOUSES, House
from tools import need, sanitized

MODULES = ("shell", "editors", "copy")


def tools_of(modules):
    return [t for m in modules for t in importlib.import_module(f"matrix_{m}").TOOLS]


# ROWFS_MATRIX names some of these modules, for who works on one of them.
TOOLS = tools_of(os.environ.get("ROWFS_MATRIX", " ".join(MODULES)).split())
# With sanitizers each tool's system calls are seen once: the conditions have tests of their own.
TRIED = ("valid",) if sanitized() else tuple(CONDITIONS)
CELLS = [(tool, condition) for house in HOUSES for condition in TRIED
         if HOUSE_OF[condition] == house for tool in TOOLS if tool.why_not(condition) is None]
WRITE = bool(os.environ.get("ROWFS_MATRIX_WRITE"))


class Street:
    """The house in which the current cells live.  One at a time: the cells come in order."""

    def __init__(self, rowfs, items):
        self.rowfs, self.items, self.house = rowfs, items, None
        self.shim = find_program("tests/system/tools/meanwhile")
        self.can_hold = subprocess.run([self.shim, "true", "--", "true"]).returncode == 0
        self.seen = {}

    def house_of(self, condition):
        name = HOUSE_OF[condition]
        if self.house is None or self.house.name != name or \
                not self.house.mount.alive():
            self.leave()
            cells = [(i.callspec.params["tool"], i.callspec.params["condition"])
                     for i in self.items if hasattr(i, "callspec") and
                     {"tool", "condition"} <= i.callspec.params.keys()]
            self.house = House(self.rowfs, name, self.shim,
                               [(t, c) for t, c in cells if HOUSE_OF[c] == name])
        return self.house

    def leave(self):
        house, self.house = self.house, None
        bad = house.end() if house else []
        if bad:
            pytest.fail("\n".join(bad), pytrace=False)


@pytest.fixture(scope="module")
def street(rowfs, request):
    street = Street(rowfs, request.session.items)
    yield street
    try:
        street.leave()
    finally:
        if WRITE and street.seen:
            matrix_page.write_cells(street.seen, tools_of(MODULES))


@pytest.fixture(scope="module")
def page():
    return matrix_page.read_cells()


@pytest.fixture(scope="module")
def newer():
    """The cells in which the tools here do otherwise."""
    return matrix_page.read_cells(newer=True) if matrix_page.has_newer_tools() else {}


def test_names_and_slugs_are_unique():
    assert len({t.name for t in TOOLS}) == len({t.slug for t in TOOLS}) == len(TOOLS)


def test_TL1_the_page_has_these_cells_and_no_others(page):
    if WRITE:
        pytest.skip("the page is being written")
    tools = tools_of(MODULES)
    assert set(page) == {(condition, tool.name) for tool in tools for condition in CONDITIONS
                         if tool.why_not(condition) is None}
    text = matrix_page.PAGE.read_text(encoding="utf-8")
    assert matrix_page.with_cells(text, page, matrix_page.read_cells(newer=True), tools) == text


NEW = OLD.replace("4", "5")
PUT, REMOVE, READ = (Tool(kind, kind, "") for kind in ("put", "remove", "read"))
SILENT = Tool("silent", "put", "", silent={"cut": "it is"})
# (a tool, its condition, what it said, the row and the places where documents are): a breach
BREACHES = {
    "lost": (PUT, "full", "No space left on device", None, {}, "the row from before is nowhere"),
    "half": (PUT, "full", "No space left on device", OLD[:9], {}, "neither of the documents"),
    "silent": (PUT, "full", "", OLD, {"sources": NEW}, "nobody was told"),
    "removed in vain": (REMOVE, "full", "", OLD, {}, "nobody was told"),
    "not silent": (SILENT, "cut", "Invalid argument", OLD, {"rejected": NEW[:14]},
                   "calls this silent"),
    "nowhere": (SILENT, "cut", "", OLD, {}, "the refused bytes are nowhere"),
    "not kept": (PUT, "cut", "Invalid argument", OLD, {"sources": NEW[:14]}, "are not kept"),
    "other bytes": (PUT, "cut", "Invalid argument", OLD, {"rejected": "x"}, "are not kept"),
    "taken": (PUT, "invalid", "", NEW.replace("5", "[5]"), {}, "no document was taken"),
    "not done": (PUT, "acked", "Input/output error", OLD, {"sources": NEW}, "it is not done"),
    "changed": (PUT, "readonly", "Read-only file system", NEW, {}, "cannot have changed"),
    "undone": (PUT, "meanwhile", "Stale file handle", OLD, {"rejected": NEW},
               "from before is nowhere"),
    "removed": (REMOVE, "meanwhile", "", None, {"trash": OLD}, "from before is nowhere"),
    "half read": (READ, "valid", "", OLD, {}, "neither version"),
}


@pytest.mark.parametrize("name", BREACHES)
def test_TL2_a_loss_would_be_noticed(name):
    tool, condition, says, row, places, breach = BREACHES[name]
    found = Found(row and row.encode(), **{
        place: {"x": places[place].encode()} if place in places else {}
        for place in ("beside", "rejected", "trash", "sources", "made")})
    cell = cell_of(tool, condition, 1 if says else 0, OLD[:14], says, found)
    assert any(breach in problem for problem in problems(tool, condition, cell, found))


def test_TL2_silence_on_the_page_is_listed_there(page):
    tools = {tool.name: tool for tool in tools_of(MODULES)}
    for (condition, name), cell in page.items():
        tool = tools[name]
        if tool.kind in ("edit", "put", "remove") and (cell.exit, cell.says) == ("0", "nothing"):
            done = cell.row in (tool.wanted, "both") or tool.wanted == "old"
            assert done != (condition in tool.silent), (condition, name, cell)


# Go's runtime waits for files by epoll.  The kernel tells it EPOLLERR when the mount dies.  By then it has
# read the row from the page cache, as the page says, or it has not, and fails.
EPOLLED = {"restic backup", "rclone check", "rclone copy, outwards"}


@pytest.mark.parametrize("tool,condition", CELLS, ids=[f"{c}-{t.slug}" for t, c in CELLS])
def test_TL1_TL2_cell(street, page, newer, tool, condition):
    need(*tool.needs)
    if (condition, tool.name) in newer:  # none of these is silent or loses a row
        tool = dataclasses.replace(tool, silent={}, loses={})
    if condition in ("meanwhile", "killed") and not street.can_hold:
        pytest.skip("needs ptrace(2) and seccomp(2) to hold a tool at a moment")
    cell, found, outcome = street.house_of(condition).run(tool, condition)
    story = (f"{tool.name}: {tool.script}\n{condition}: {matrix_page.line_on_page(cell)}\n"
             f"out: {outcome.out}\nerr: {outcome.err}\n{found}")
    assert outcome.exit_code != GAVE_UP, story
    if condition in ("meanwhile", "killed"):
        assert outcome.moment, f"it never came to change the row\n{story}"
    bad = list(problems(tool, condition, cell, found))
    assert not bad, "\n".join([*bad, story])
    if WRITE:
        street.seen[condition, tool.name] = cell
        return
    want = newer.get((condition, tool.name)) or page.get((condition, tool.name))
    if condition == "killed" and tool.name in EPOLLED and cell.exit == "1":
        want = dataclasses.replace(want, exit="1", says=cell.says)
    assert cell == want, f"the page says {matrix_page.line_on_page(want)}\n{story}"
