# SPDX-License-Identifier: MIT
"""The matrix's editors and languages: how each is made to change r.json, or to read it."""

import pathlib

from matrix import ERRORS, Tool

TYPIST = f"$P {pathlib.Path(__file__).with_name('typist.py')}"
TOOLS = []


def tool(name, kind, script, *needs, **more):
    TOOLS.append(Tool(name=name, kind=kind, script=script, needs=needs, **more))


def typed(name, command, steps, *needs, bad, leave, shows, **more):
    """An interactive program at a terminal; what it says in its message line is the message."""
    quoted = " ".join('"' + s.replace("\\", "\\\\") + '"' for s in steps)
    tool(name, "edit", f"{TYPIST} --bad '{bad}' --quit '{leave}' {command} -- {quoted}",
         *(needs or (command.split()[0],)), shows=f"{command}, typed: {shows}", **more)


# ---- vi and its heirs

VIM = "vim -u NONE -N -i NONE -es -V1 -c 'set backupskip= {}' -c \"s/4/$V/\" -c {} r.json"
VIM_SAYS = "E(?:45|5[0-9]{2}|2[01][0-9]|749): [^\"\\r\\n]+|" + "|".join(ERRORS)


UNDOES = {"meanwhile": "is refused, and then puts back what it had read: REST's change is undone"}


def vim(name, settings="backupcopy=auto", end="wq", **more):
    tool(name, "edit", VIM.format(settings, end), "vim", said=VIM_SAYS, **more)


vim("vim")
vim("vim backupcopy=yes", "backupcopy=yes", loses=UNDOES)
vim("vim backupcopy=no", "backupcopy=no")
vim("vim nowritebackup", "nowritebackup")
vim("vim backup", "backup backupdir=.")
vim("vim swapfile", "swapfile directory=. updatecount=1")
vim("vim undofile", "undofile undodir=.")
vim("vim :x", end="x", like="vim")
vim("vim :w !tee", end="'w !tee r.json >/dev/null' -c 'q!'")
tool("ex", "edit", "printf '%s\\n' \"s/4/$V/\" wq | ex -s -V1 --cmd 'set backupskip='"
     " r.json", "ex", said=VIM_SAYS, loses=UNDOES)
tool("vim :saveas", "put", "vim -u NONE -N -i NONE -es -V1 --cmd 'set backupskip='"
     " -c 'w! r.json' -c q \"$S/new.json\"", "vim", said=VIM_SAYS)
tool("vim -R", "read", "vim -u NONE -N -i NONE -R -es -V1 -c '%print' -c q! r.json", "vim",
     said=VIM_SAYS)

VI_STEPS = ["?Rating", ":s/4/$V/\\r", "?:(5|.5)", ":wq!\\r"]
VI = {"bad": "E(5[0-9]{2}|2[01][0-9]): ", "leave": "\\r:q!\\r", "shows": "`:s/4/$V/` `:wq!`"}
typed("vim at a terminal", "vim -u NONE -N -i NONE --cmd 'set backupskip=' r.json", VI_STEPS,
      said=VIM_SAYS, **VI)
typed("neovim at a terminal", "nvim -u NONE -i NONE --cmd 'set backupskip=' r.json", VI_STEPS,
      "nvim", **VI)
# It looks at no result of ftruncate and close; the bytes are in .rowfs/rejected and in no backup.
VI_SILENT = dict.fromkeys(("invalid", "meanwhile"), "it does not look whether close failed")
typed("busybox vi at a terminal", "busybox vi r.json", VI_STEPS,
      silent=VI_SILENT, **{**VI, "bad": "Read-only|No space|not connected|1L, 0C"})

# ---- nano, emacs, joe, micro

NANO_STEPS = ["?Read 1 line|unwritable", "+^\\", "?Search", "4\\r", "?Replace with", "$V\\r",
              "?Replace this", "A", "?Replaced 1", "^O", "?File Name|Write to File", "\\r", "?Wrote 1", "^X"]
NANO = {"bad": "Error|changed on disk", "leave": "^C^Xn", "shows": "`^\\` 4 $V `A` `^O` `^X`"}
typed("nano at a terminal", "nano -I r.json", NANO_STEPS, **NANO)
typed("nano -B at a terminal", "nano -I -B r.json", NANO_STEPS, **NANO,
      skip={"full": "ends as nano alone does there, after ten seconds of its own"})

EMACS = ("emacs -Q --batch --eval '{}' r.json --eval \"(while (search-forward \\\"4\\\" nil t)"
         " (replace-match \\\"$V\\\"))\" -f save-buffer")
EMACS_SAYS = "|".join([*ERRORS, "[Bb]uffer.(?:is.)?read-only"])


def emacs(name, setting):
    tool(name, "edit", EMACS.format(setting), "emacs", said=EMACS_SAYS)


emacs("emacs --batch", "(setq make-backup-files nil)")
# It makes no backups below /tmp unless told so.
BACKUPS = "(setq make-backup-files t backup-enable-predicate (lambda (_) t) backup-by-copying {})"
emacs("emacs backup", BACKUPS.format("nil"))
emacs("emacs backup-by-copying", BACKUPS.format("t"))
emacs("emacs file-precious-flag", "(setq file-precious-flag t)")
tool("emacs copy-file", "put", "emacs -Q --batch --eval"
     " '(copy-file (concat (getenv \"S\") \"/new.json\") \"r.json\" t)'", "emacs")
typed("emacs at a terminal", "emacs -nw -Q r.json",
      ["?Rating", "<Esc>%", "?Query replace", "4\\r", "?with:", "$V\\r", "?\\?", "!",
       "?Replaced 1", "^X^S", "?Wrote", "^X^C"],
      bad="rror|changed on disk|[Ii]nvalid|No space|[Rr]ead-only|Stale|not connected",
      leave="^X^Cnyes\\r", said=EMACS_SAYS, shows="`M-%` 4 $V `!` `C-x C-s` `C-x C-c`")
typed("joe at a terminal", "joe r.json",
      ["?Rating", "^KF", "?Find", "4\\r", "?gnore", "R\\r", "?Replace with", "$V\\r",
       "?Replace \\(Y", "R", "?:(5|.5)", "^KX"],
      bad="rror|Read only|Could not", leave="^Cy",
      said="Error (writing|opening) file|Read only|Could not make backup file",
      shows="`^K F` 4 `R` $V `R` `^K X`")
typed("micro at a terminal", "micro r.json",
      ["?Rating", "^E", "?>", "replaceall 4 $V\\r", "?:(5|.5)", "^S", "?Saved", "^Q"],
      bad="rror|nvalid|[Nn]o space|[Rr]ead-only|denied|tale|not connected", leave="^Qn",
      shows="`^E` replaceall 4 $V `^S` `^Q`")

# ---- Python


def python(name, script, kind="edit", **more):
    tool(name, kind, f"$P -c '\n{script.strip()}'", shows=f"python3: {script.strip()}", **more)


EDITED = """import json, os
d = json.load(open("r.json"))
d["Rating"] = json.loads(os.environ["V"])
"""

python("python w", EDITED + 'with open("r.json", "w") as f:\n    json.dump(d, f, indent=2)')
python("python w, unbuffered", EDITED + """
with open("r.json", "wb", 0) as f:
    encoder = json.JSONEncoder(separators=(",", ":"))
    for piece in encoder.iterencode(d): f.write(piece.encode())""".strip())
python("python r+", """
import json, os
with open("r.json", "r+") as f:
    d = json.load(f)
    d["Rating"] = json.loads(os.environ["V"])
    f.seek(0)
    f.truncate()
    json.dump(d, f)""")
python("python r+ in place", """
import os
with open("r.json", "r+b", 0) as f:
    f.seek(25)
    f.write(os.environb[b"V"] + b"}\\n")""")
python("python os.replace", EDITED + """
with open("r.json.tmp", "w") as f:
    json.dump(d, f)
    f.flush()
    os.fsync(f.fileno())
os.replace("r.json.tmp", "r.json")""".strip())
python("python tempfile", EDITED + """
import tempfile
with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as f:
    json.dump(d, f)
os.rename(f.name, "r.json")""".strip())
python("python mkstemp .json", EDITED + """
import tempfile
fd, name = tempfile.mkstemp(suffix=".json", dir=".")
with open(fd, "w") as f: json.dump(d, f)
os.rename(name, "r.json")""".strip())
python("python pathlib", """
import os, pathlib
p = pathlib.Path("r.json")
p.write_text(p.read_text().replace("4", os.environ["V"]))""")
python("python fileinput", """
import fileinput, os
for line in fileinput.input("r.json", inplace=True):
    print(line.replace("4", os.environ["V"]), end="")""",
       loses=dict.fromkeys(("invalid", "full"), "says so, and removes as it fails what it has put"
                           " beside: the row from before"))
for how in ("copyfile", "copy", "copy2", "move"):
    python(f"python shutil.{how}", f"""
import os, shutil
shutil.{how}(os.environ["S"] + "/new.json", "r.json")""", "put")
python("python shutil.copytree", """
import os, shutil
tree = os.environ["S"] + "/tree"
os.mkdir(tree)
shutil.copyfile(os.environ["S"] + "/new.json", tree + "/r.json")
shutil.copytree(tree, ".", dirs_exist_ok=True)""", "put")
python("python, closed by another thread", EDITED + """
import threading
f = open("r.json", "w")
json.dump(d, f)
f.flush()
failed = []
def close():
    try: f.close()
    except OSError as e: failed.append(e)
t = threading.Thread(target=close)
t.start()
t.join()
if failed: raise failed[0]""".strip())
python("python, written by a fork", EDITED + """
fd = os.open("r.json", os.O_WRONLY | os.O_TRUNC)
pid = os.fork()
if pid == 0:
    with open(fd, "w") as f: json.dump(d, f)
    os._exit(0)
child = os.waitpid(pid, 0)[1]
os.close(fd)
raise SystemExit(os.waitstatus_to_exitcode(child))""".strip())
python("python without close", EDITED + """
f = open("r.json", "w")
f.write(json.dumps(d))
f.flush()
os._exit(0)""".strip())
python("python at exit", EDITED + 'f = open("r.json", "w")\nf.write(json.dumps(d))',
       silent=dict.fromkeys(("invalid", "full"),
                            "an error in the interpreter's last close is thrown away"))
python("python reads", 'print(open("r.json").read(), end="")', "read")
for access in ("READ", "COPY"):
    python(f"python mmap ACCESS_{access}", f"""
import mmap
f = open("r.json", "rb")
m = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_{access})
print(bytes(m).decode(), end="")""", "read")
python("python mmap ACCESS_WRITE", """
import mmap, os
with open("r.json", "r+b") as f:
    text = f.read().replace(b"4", os.environb[b"V"])
    f.truncate(len(text))
    with mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_WRITE) as m: m[:] = text""")

# ---- node


def node(name, script, kind="edit"):
    tool(name, kind, f"node -e '\nconst fs = require(\"fs\");\n{script.strip()}'", "node",
         shows=f"node: {script.strip()}")


CHANGED = """const d = JSON.parse(fs.readFileSync("r.json"));
d.Rating = JSON.parse(process.env.V);
"""

node("node writeFileSync", CHANGED + 'fs.writeFileSync("r.json", JSON.stringify(d));')
node("node fs.promises", """
(async () => {
  const d = JSON.parse(await fs.promises.readFile("r.json"));
  d.Rating = JSON.parse(process.env.V);
  await fs.promises.writeFile("r.json", JSON.stringify(d, null, 1));
})();""")
node("node createWriteStream", CHANGED + """
const s = fs.createWriteStream("r.json"), text = JSON.stringify(d);
s.write(text.slice(0, 16));
s.end(text.slice(16));""".strip())
node("node r+", CHANGED + """
const fd = fs.openSync("r.json", "r+");
fs.ftruncateSync(fd);
fs.writeSync(fd, JSON.stringify(d), 0);
fs.closeSync(fd);""".strip())
node("node rename", CHANGED + """
fs.writeFileSync("r.json.tmp", JSON.stringify(d), {flush: true});
fs.renameSync("r.json.tmp", "r.json");""".strip())
node("node copyFile", 'fs.copyFileSync(process.env.S + "/new.json", "r.json");', "put")
node("node cp", 'fs.cpSync(process.env.S + "/new.json", "r.json");', "put")
node("node pipeline", """
require("stream").pipeline(fs.createReadStream(process.env.S + "/new.json"),
  fs.createWriteStream("r.json"), e => { if (e) throw e; });""", "put")
node("node fs.watch", CHANGED + """
const w = fs.watch(".", (event, name) => { if (name == "r.json") w.close(); });
fs.writeFileSync("r.json", JSON.stringify(d));""".strip())
node("node reads", 'process.stdout.write(fs.readFileSync("r.json"));', "read")

# ---- perl, gawk, jq, patches

tool("perl +<", "edit", """perl -e '
open F, "+<", "r.json" or die "open: $!"; my $t = <F>; $t =~ s/4/$ENV{V}/;
seek F, 0, 0; truncate F, 0; print F $t; close F or die "close: $!"'""", "perl")
tool("perl File::Copy", "put",
     "perl -MFile::Copy -e 'copy \"$ENV{S}/new.json\", \"r.json\" or die \"copy: $!\"'", "perl")
tool("gawk print >", "edit", """gawk '{ t = gensub("4", ENVIRON["V"], 1) }
END { printf "%s\\n", t > "r.json"; if (close("r.json")) exit 1 }' r.json""", "gawk")
tool("jq in a string", "edit", "t=$(jq -c \".Rating = $V\" r.json) && echo \"$t\" > r.json", "jq")
tool("mktemp && mv", "edit",
     "t=$(mktemp ./r.json.XXXXXX) && jq -c \".Rating = $V\" r.json > $t && mv $t r.json", "jq")
tool("git apply", "edit", """{ printf '%s\\n' '--- a/r.json' '+++ b/r.json' '@@ -1 +1 @@'
sed 's/^/-/' r.json; sed "s/4/$V/;s/^/+/" r.json; } > "$S/p" && git apply "$S/p\"""", "git")

# ---- mappings

MAPPED = r"""#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	const char *v = getenv("V");
	int fd = open("r.json", O_RDWR);
	if (fd < 0 || ftruncate(fd, 27 + strlen(v)) != 0)
		return perror("open"), 1;
	char *p = mmap(NULL, 27 + strlen(v), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return perror("mmap"), 1;
	close(fd);
	sprintf(p + 25, "%s}", v);
	p[26 + strlen(v)] = 10;
	if (msync(p, 1, MS_SYNC) != 0)
		return perror("msync"), 1;
	return munmap(p, 27 + strlen(v));
}
"""
tool("C mmap, closed before", "edit", "$S/mapped", "cc", prepare=f"cat > m.c <<'X'\n{MAPPED}X\n"
     "cc -o mapped m.c", shows="open O_RDWR, ftruncate, mmap MAP_SHARED, close, change, msync")

# ---- ordinary files beside the rows


def beside(name, prepare, script, *needs, state, moment):
    tool(name, "beside", script, *needs, prepare=prepare, state=state, moment=moment,
         out="rows: 1,2")


def sqlite(mode, moment):
    beside(f"sqlite3 journal_mode={mode}",
           f"sqlite3 -bail $D/x.db 'PRAGMA journal_mode={mode}; CREATE TABLE t(a);"
           " INSERT INTO t VALUES(1)'",
           "sqlite3 -bail x.db 'INSERT INTO t VALUES(2)'", "sqlite3", moment=moment,
           state="sqlite3 -bail x.db \"SELECT 'rows: ' || group_concat(a) FROM t WHERE 'ok' ="
           ' (SELECT integrity_check FROM pragma_integrity_check)"')


sqlite("delete", "x.db")
sqlite("persist", "x.db")
sqlite("wal", "x.db-wal")
python("python mmap ACCESS_WRITE, beside", """
import mmap
with open("x.bin", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    m[4:5] = b"5"
    m.flush()""", "beside", prepare="printf 12344 > $D/x.bin", state="cat x.bin", moment="x.bin",
       out="12345",
       skip={"full": "is told by msync, and what is read then is the page cache's affair"})
