# SPDX-License-Identifier: MIT
"""Types at an interactive program as a person would, who reads before the next key.

    typist.py [--bad RE] [--quit KEYS] COMMAND… -- STEP…

A STEP is KEYS to type (\\r, ^X for Ctrl-X, <Esc>; with a leading + again and again until the
next step is shown), or ?RE: wait until the screen shows that.
If it shows --bad instead, its lines go to stderr, the other steps are left out, and --quit
is typed, again and again: many programs throw away what was typed before their message.
Then the program has to end by itself; its exit status is ours.
A screen that shows nothing new for a minute ends the program, status 99, and is printed.
"""

import os
import pty
import re
import select
import signal
import struct
import sys
import termios
from fcntl import ioctl

ROWS, COLUMNS = 24, 132
PATIENCE, SETTLING, AGAIN = 60, 0.1, 0.3  # seconds
# What a terminal of the kind vt100 understands, and the little more that people's programs send.
PIECE = re.compile(r"\x1b\[(?P<args>[0-9;?>=]*)(?P<final>[@A-Za-z])|"
                   r"\x1b[()].|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP[^\x1b]*\x1b\\|"
                   r"\x1b(?P<esc>[^\[\]()P])|(?P<control>[\x00-\x1f\x7f])|"
                   r"(?P<text>[^\x00-\x1f\x7f]+)")


class Screen:
    def __init__(self):
        self.lines = [[" "] * COLUMNS for _ in range(ROWS)]
        self.row = self.column = 0
        self.top, self.bottom = 0, ROWS - 1
        self.rest = ""

    def feed(self, text):
        text = self.rest + text
        at = 0
        while at < len(text):
            m = PIECE.match(text, at)
            if not m:  # a sequence that is not whole yet
                break
            at = m.end()
            if m["text"]:
                self.put(m["text"])
            elif m["control"]:
                self.control(m["control"])
            elif m["final"]:
                self.sequence(m["final"], [int(x or 0) for x in
                                           re.sub("[?>=]", "", m["args"]).split(";")])
            elif m["esc"] in ("D", "M"):
                self.down() if m["esc"] == "D" else self.up()
        self.rest = text[at:]

    def put(self, text):
        for c in text:
            if self.column == COLUMNS:
                self.column = 0
                self.down()
            self.lines[self.row][self.column] = c
            self.column += 1

    def control(self, c):
        if c == "\r":
            self.column = 0
        elif c == "\n":
            self.down()
        elif c == "\b":
            self.column = max(0, self.column - 1)
        elif c == "\t":
            self.column = min(COLUMNS - 1, self.column // 8 * 8 + 8)

    def down(self):
        if self.row == self.bottom:
            del self.lines[self.top]
            self.lines.insert(self.bottom, [" "] * COLUMNS)
        else:
            self.row = min(ROWS - 1, self.row + 1)

    def up(self):
        if self.row == self.top:
            del self.lines[self.bottom]
            self.lines.insert(self.top, [" "] * COLUMNS)
        else:
            self.row = max(0, self.row - 1)

    def sequence(self, final, args):
        n = max(1, args[0])
        if final in "Hf":
            self.row = min(ROWS, n) - 1
            self.column = min(COLUMNS, max(1, (args + [1])[1])) - 1
        elif final in "ABCDGd":
            self.move(final, n)
        elif final == "K":
            self.erase([(self.row, self.row)], args[0])
        elif final == "J":
            self.erase([(0, ROWS - 1)], args[0])
        elif final == "r":
            self.top, self.bottom = n - 1, min(ROWS, (args + [0])[1] or ROWS) - 1
            self.row = self.column = 0

    def move(self, final, n):
        if final in "AB":
            self.row = max(0, min(ROWS - 1, self.row + (n if final == "B" else -n)))
        elif final in "CD":
            self.column = max(0, min(COLUMNS - 1, self.column + (n if final == "C" else -n)))
        elif final == "G":
            self.column = n - 1
        else:
            self.row = n - 1

    def erase(self, spans, how):
        for first, last in spans:
            for r in range(first, last + 1):
                for c in range(COLUMNS):
                    before = (r, c) < (self.row, self.column)
                    if how == 2 or (how == 1 and before) or (how == 0 and not before):
                        self.lines[r][c] = " "

    def __str__(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)


def keys(text):
    text = text.replace("<Esc>", "\x1b")
    text = re.sub(r"\^([A-Z\\_\]])", lambda m: chr(ord(m[1]) & 31), text)
    return text.replace("\\r", "\r").encode()


class Typist:
    def __init__(self, command, bad):
        self.screen, self.bad = Screen(), re.compile(bad) if bad else None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
            os.environ["TERM"] = "vt100"
            os.execvp(command[0], command)

    def look(self, seconds):
        """Whether there was something new on the screen; the end raises EOFError."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError:  # the program's side is closed
            data = b""
        if not data:
            raise EOFError
        self.screen.feed(data.decode("utf-8", "replace"))
        return True

    def give_up(self):
        print(f"nothing new for {PATIENCE} s:\n{self.screen}", file=sys.stderr)
        os.kill(self.pid, signal.SIGKILL)
        sys.exit(99)

    def wait(self, wanted):
        """Waits for it, or the end; whether that came before what must not be shown."""
        while True:
            shown = str(self.screen)
            if self.bad and self.bad.search(shown):
                return False
            if wanted and re.search(wanted, shown, re.M):
                return True
            if not self.look(PATIENCE):
                self.give_up()

    def complaint(self):
        """The lines that tell what went wrong, when the whole of them is there."""
        while self.look(SETTLING):
            pass
        return "\n".join(x.strip() for x in str(self.screen).split("\n") if self.bad.search(x))

    def type(self, text):
        os.write(self.fd, keys(text))

    def insist(self, text, wanted):
        for _ in range(int(PATIENCE / AGAIN)):
            self.type(text)
            while self.look(AGAIN):
                if re.search(wanted, str(self.screen), re.M):
                    return
        self.give_up()

    def leave(self, text):
        for _ in range(int(PATIENCE / AGAIN)):
            self.type(text)
            while self.look(AGAIN):
                pass
        self.give_up()

    def do(self, steps, leaving):
        """Raises EOFError in the end."""
        steps = [*steps, "?"]
        for step, following in zip(steps, [*steps[1:], "?"]):
            if step.startswith("+"):
                self.insist(step[1:], following[1:])
            elif not step.startswith("?"):
                self.type(step)
            elif not self.wait(step[1:]):
                print(self.complaint(), file=sys.stderr)
                self.leave(leaving)

    def exit_code(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def main(args):
    given = {"--bad": "", "--quit": ""}
    while args[0] in given:
        given[args[0]] = args[1]
        args = args[2:]
    cut = args.index("--")
    typist = Typist(args[:cut], given["--bad"])
    try:
        typist.do(args[cut + 1:], given["--quit"])
    except EOFError:
        return typist.exit_code()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
