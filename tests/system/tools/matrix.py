# SPDX-License-Identifier: MIT
"""The tool matrix: what a tool is, under which conditions it is tried, and what was seen.

docs/tools-cells.md holds what is expected; test_matrix.py compares.  The tools stand in
matrix_shell.py, matrix_editors.py and matrix_copy.py, each with a list TOOLS.

A script runs in the directory of a partition with the row r.json = OLD, and finds
  $V  what has to stand in the place of the 4     $S  a directory outside of the mount
  $M  the mount                                   $P  python3
and in $S/new.json the whole new document.
"""

import dataclasses
import json
import os
import re

OLD = '{"Author":"Ann","Rating":4}\n'
OTHER = '{"Author":"Rest","Rating":4}\n'
NONE = "–"
ANOTHER = "rejected (other)"

# name: V
CONDITIONS = {"valid": "5", "invalid": "[5]", "cut": "5", "meanwhile": "5", "full": "5",
              "readonly": "5", "killed": "5", "acked": "5"}

# Here a tool does as another one that makes its system calls: what differs is over, or not begun.
CERTAIN = ("readonly", "acked")

# What a kind is not tried under, and why.
NOT_TRIED = {
    "edit": {"cut": "makes the document itself, and makes it whole"},
    "put": {},
    "read": {"invalid": "writes nothing", "cut": "writes nothing", "full": "writes nothing",
             "acked": "writes nothing"},
    "remove": {"invalid": "writes no document", "cut": "writes no document"},
    "name": {"invalid": "writes no document", "cut": "writes no document"},
    "beside": {"invalid": "may write any bytes", "cut": "may write any bytes",
               "meanwhile": "writes what REST does not see"},
}


@dataclasses.dataclass(frozen=True)
class Tool:
    """One way of doing something to a row.

    kind    edit: reads the row and changes it;  put: writes a document from elsewhere;
            read: only looks;  remove: takes the row away;  name: touches, links … and leaves it;
            beside: ordinary files only
    script  for bash -c, or whatever shell says; prepare runs before, in $S and unobserved, while
            the store can still be written ($D: the partition's directory)
    shows   the command as the page shows it
    needs   programs; where one is missing the tool is skipped
    result  the row after success, where the kind does not say it: new, old or gone
    out, out_other  what a reader prints of OLD and of the row that REST puts (regex);
            beside: out is what `state` prints after success
    said    the message that a person sees, in the output (regex): for what has no stderr
    state   beside: prints the state afterwards in a word (bash, after a remount if any)
    moment  the file before whose first change something happens
    skip    condition: reason
    like    the tool that it does as; those conditions in which that is certain are left out
    silent  condition: reason, for cells that end with 0, without a message, and without success
    loses   condition: reason, for cells that say so and leave the row from before nowhere
    """
    name: str
    kind: str
    script: str
    needs: tuple = ()
    prepare: str = ""
    shows: str = ""
    shell: tuple = ("bash", "-c")
    result: str = ""
    out: str = re.escape(OLD.strip())
    out_other: str = re.escape(OTHER.strip())
    said: str = ""
    state: str = ""
    moment: str = "r.json"
    skip: dict = dataclasses.field(default_factory=dict)
    like: str = ""
    silent: dict = dataclasses.field(default_factory=dict)
    loses: dict = dataclasses.field(default_factory=dict)

    @property
    def wanted(self):
        """The row after success."""
        return self.result or {"remove": "gone", "name": "old"}.get(self.kind, "new")

    @property
    def slug(self):
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower().replace(">>", "append")
                      .replace(">", "to")).strip("-")

    def why_not(self, condition):
        """Why there is no such cell; None if there is."""
        known = {"acked": "leaves the row as it is"} if self.wanted == "old" else \
            dict.fromkeys(CERTAIN, f"does as {self.like}") if self.like else {}
        return {**known, **NOT_TRIED[self.kind], **self.skip}.get(condition)


@dataclasses.dataclass(frozen=True)
class Cell:
    """A line of the page without the tool's name."""
    exit: str = NONE
    says: str = NONE
    row: str = NONE
    refused: str = NONE
    before: str = NONE

    @property
    def fields(self):
        return dataclasses.astuple(self)


# ---- documents


def new_text(condition):
    """What a tool of kind put is to bring."""
    text = OLD.replace("4", CONDITIONS[condition])
    return text[:len(text) // 2] if condition == "cut" else text


def parsed(data):
    try:
        return json.loads(data)
    except ValueError:
        return None


def holds(data, text):
    """Whether a file holds this document, however it is spelled."""
    want = parsed(text)
    if want is None:
        return data.strip() == text.strip().encode()
    return parsed(data) == want


def row_word(data, condition):
    """The state of the row in a word."""
    if data is None:
        return "gone"
    if data == b"":
        return "empty"
    words = {"old": OLD, "rest's": OTHER, "new": new_text(condition),
             "both": OTHER.replace("4", CONDITIONS[condition])}
    found = [w for w, text in words.items() if holds(data, text)]
    return found[0] if found else "other"


# ---- what a person sees

ERRORS = ("Invalid argument", "Bad message", "No space left on device", "Stale file handle",
          "Read-only file system", "Transport endpoint is not connected",
          "Operation not permitted", "Operation not supported", "Input/output error",
          "Permission denied", "File exists", "No such device", "Is a directory",
          "Directory not empty", "File too large", "Argument list too long",
          "No such file or directory", "Invalid cross-device link", "I/O error",
          "keep size mode is unsupported")
# How others spell them: Go, node.
SPELLINGS = {"stale nfs file handle": "Stale file handle",
             "software caused connection abort": "Transport endpoint is not connected",
             "einval:": "Invalid argument", "enospc:": "No space left on device",
             "estale:": "Stale file handle", "erofs:": "Read-only file system",
             "enotconn:": "Transport endpoint is not connected",
             "econnaborted:": "Transport endpoint is not connected",
             **{f"unknown system error -{n}": f"Unknown system error -{n}" for n in (74, 116)},
             **{e.lower(): e for e in ERRORS}}
SPELLING = re.compile("|".join(re.escape(s) for s in SPELLINGS), re.I)


def errors_in(text):
    """The texts of errno in the order in which they were said, each once."""
    return list(dict.fromkeys(SPELLINGS[m[0].lower()] for m in SPELLING.finditer(text)))


def one_line(text):
    """Without what a terminal would act upon: a page's line must stay one."""
    return " ".join(re.sub(r"[\x00-\x1f\x7f]", " ", text).split())


def message(tool, out, err):
    """The message in few words; '' if there was none."""
    if tool.said:
        found = re.search(tool.said, err + out)
        words = one_line(found[0]) if found else ""
        return SPELLINGS.get(words.lower(), words)
    said = errors_in(err) or errors_in(out if tool.kind != "read" else "")
    if said:
        return "; ".join(said[:2])
    lines = [one_line(line) for line in err.splitlines() if line.strip()]
    return lines[-1][-60:] if lines else ""


def reader_says(tool, out, err, exit_code):
    """Which version a reader printed, and what it said if it failed."""
    version = "the old row" if re.search(tool.out, out) else \
        "REST's row" if re.search(tool.out_other, out) else ""
    said = "" if version and exit_code == 0 else message(tool, out, err)
    return "; ".join(filter(None, (version, said))) or "nothing"


# ---- where the bytes are

RANDOM = re.compile(r"^(\.?sed|\.?tmp\.?|.*\.json\.?(?:gawk\.)?o?\.?|XX|zi|\.#.*\.)[A-Za-z0-9_]{6,10}(\.json)?$")


def plain_name(name):
    """A temporary name without what is different at each time."""
    found = RANDOM.match(name)
    return f"{found[1]}XXXXXX{found[2] or ''}" if found else name


@dataclasses.dataclass
class Found:
    """Everything that could hold bytes after a tool has run: {name: bytes} each.
    sources is what lies outside of the mount and may be where a tool has its document from,
    made what the tool put there."""
    row: bytes | None
    beside: dict
    rejected: dict
    trash: dict
    sources: dict
    made: dict

    def places(self, text, outside, refused=False):
        """Where this document is, but for the row itself; refused: or what came of it."""
        names = [f"`{plain_name(n)}`" for n, data in sorted(self.beside.items())
                 if holds(data, text)]
        if any(holds(data, text) for data in self.rejected.values()):
            names.append("rejected")
        elif refused and any(data and text.encode().startswith(data)
                             for data in self.rejected.values()):
            names.append("rejected (its beginning)")
        elif refused and self.rejected:
            names.append(ANOTHER)
        if any(holds(data, text) for data in self.trash.values()):
            names.append("trash")
        if any(holds(data, text) for data in outside.values()):
            names.append("source")
        return names

    def litter(self, texts):
        """What lies beside the row and is none of these documents."""
        return [f"`{plain_name(n)}` ({'empty' if not data else 'other'})"
                for n, data in sorted(self.beside.items())
                if not any(holds(data, t) for t in texts)]


def cell_of(tool, condition, exit_code, out, err, found, state=None):
    """What was seen, as the page says it."""
    if tool.kind == "beside":
        said = message(tool, out, err)
        return Cell(str(exit_code), said or "nothing", state or NONE)
    row = row_word(found.row, condition)
    new = new_text(condition)
    if tool.kind == "read":
        return Cell(str(exit_code), reader_says(tool, out, err, exit_code), row)
    refused = [] if row in ("new", "both") else \
        found.places(new, found.sources if tool.kind == "put" else {}, refused=True)
    refused += found.litter((OLD, OTHER, new))
    before = [] if row == "old" else found.places(OLD, found.made)
    if condition == "meanwhile" and row not in ("rest's", "both"):
        before += [f"{p} (REST's)" for p in found.places(OTHER, found.made)]
    return Cell(str(exit_code), message(tool, out, err) or "nothing", row,
                ", ".join(refused) or NONE, ", ".join(before) or NONE)


# ---- what must hold whatever the page says


def problems(tool, condition, cell, found):
    """Breaches of what every cell has to keep; none is fine."""
    told = cell.says != "nothing" or cell.exit != "0"
    if tool.kind == "beside":
        return beside_problems(tool, condition, cell, told)
    if tool.kind == "read":
        return reader_problems(tool, condition, cell, told)
    done = cell.row == tool.wanted or (cell.row, tool.wanted) in (("both", "new"),
                                                                  ("rest's", "old"))
    return [*row_problems(condition, cell, done),
            *loss_problems(tool, condition, cell, found, told),
            *silence_problems(tool, condition, found, done, told)]


def beside_problems(tool, condition, cell, told):
    done = re.search(tool.out, cell.row)
    if not done and not told:
        yield "no success, and nobody was told"
    if not done and condition in ("valid", "acked"):
        yield "no success"


def reader_problems(tool, condition, cell, told):
    """A reader prints one version, whole, or says that it did not."""
    if cell.row != ("rest's" if condition == "meanwhile" else "old"):
        yield "reading changed the row"
    if not told and condition not in tool.silent:
        yield "printed neither version, and nobody was told"
    if cell.exit == "0" and condition in ("valid", "readonly") and cell.says != "the old row":
        yield "printed something else"


def row_problems(condition, cell, done):
    if cell.row == "other":
        yield "the row is neither of the documents, whole"
    if condition in ("valid", "acked") and not done:
        yield "nothing was in its way, and it is not done"
    if condition in ("invalid", "cut") and cell.row == "new":
        yield "what is no document was taken"
    if condition in ("readonly", "killed") and cell.row != "old":
        yield "the row cannot have changed"


def loss_problems(tool, condition, cell, found, told):
    """What was acknowledged is somewhere, unless another document was acknowledged for it."""
    last = OTHER if condition == "meanwhile" else OLD
    replaced = cell.row in ("new", "both")
    kept = holds(found.row or b"", last) or bool(found.places(last, found.made))
    if not replaced and not kept and not (condition in tool.loses and told):
        yield "the row from before is nowhere"
    if condition in tool.loses and (replaced or kept):
        yield "the page calls the row from before lost, and it is not"


def silence_problems(tool, condition, found, done, told):
    """Who is not told finds the new document; what rowfs refused as no document, all do."""
    silent = not done and not told
    if silent and condition not in tool.silent:
        yield "no success, and nobody was told"
    if condition in tool.silent and not silent:
        yield "the page calls this silent, and it is not"
    if done or tool.wanted != "new":
        return
    kept = {*found.places(new_text(condition), {}, refused=True)} - {ANOTHER}
    if silent and not kept and not found.places(new_text(condition), found.sources):
        yield "the refused bytes are nowhere, and nobody was told"
    if condition in ("invalid", "cut") and not kept:
        yield "the refused bytes are not kept"


def files_below(top, leave=()):
    """{relative name: bytes} of all files, but those named at the top."""
    found = {}
    for folder, folders, names in os.walk(top):
        for name in names:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, top)
            if relative not in leave and os.path.isfile(path):
                with open(path, "rb") as f:
                    found[relative] = f.read(1 << 20)
    return found
