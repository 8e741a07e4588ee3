# SPDX-License-Identifier: MIT
"""The tool matrix: shells and their redirections, coreutils, sed and tools like it, busybox."""

from matrix import Tool

DOCUMENT = "'{\"Author\":\"Ann\",\"Rating\":%s}\\n'"
# A new document that is in the partition already, under an ordinary name.
BESIDE = 'cp new.json "$D/new"'
TREE = "mkdir d && cp new.json d/r.json"

CLOSE = "a shell does not look at what close(2) says; the reason and the bytes are kept"
NO_LOOK = "busybox's tee does not look at what close(2) says; the bytes are kept"
YOUNGER = "-u leaves a row that is younger than the file, as REST's is by then"
IN_PLACE = "only the close can check what is written in place, and a shell does not look at it"
NOT_THE_ROW = "never touches the row itself"


def in_shells(name, script, **how):
    """The same line typed to bash, dash and busybox's sh."""
    return [Tool(f"{shell} {name}", script=script, shell=command, needs=command[:1],
                 like="" if shell == "bash" else f"bash {name}", **how)
            for shell, command in (("bash", ("bash", "-c")), ("dash", ("dash", "-c")),
                                   ("busybox sh", ("busybox", "sh", "-c")))]


def refused(name, script, *needs, kind="name", **how):
    """What is no way to change a row: it stays."""
    return Tool(name, kind, script, needs, result="old", **how)


REDIRECTIONS = [
    *in_shells("printf >", f'printf {DOCUMENT} "$V" > r.json', kind="edit"),
    *in_shells("printf > in pieces", "{ printf '{\"Author\":'; printf '\"Ann\",';"
               " printf '\"Rating\":%s}\\n' \"$V\"; } > r.json", kind="edit"),
    *in_shells("printf > of what was read", 'd=$(cat "$S/new.json"); printf %s "$d" > r.json',
               kind="put", silent={"cut": CLOSE}),
    *in_shells("printf <> in place", f'printf {DOCUMENT} "$V" 1<> r.json', kind="edit",
               silent={"invalid": IN_PLACE, "meanwhile": IN_PLACE}),
    *in_shells(">> a second document", "printf '{\"Rating\":%s}\\n' \"$V\" >> r.json",
               kind="edit", result="old"),
    *in_shells(": > to empty it", ": > r.json", kind="name", result="old"),
    Tool("cat >", "put", 'cat "$S/new.json" > r.json'),
    Tool("cat > here-document", "edit", "cat > r.json <<X\n{\"Author\":\"Ann\",\n\"Rating\":$V}\nX",
         shows='cat > r.json <<X …'),
    Tool("cat > twice in a subshell", "put",
         '( head -c 9 "$S/new.json"; tail -c +10 "$S/new.json" ) > r.json'),
    Tool("cat > mktemp, mv", "put", 't=$(mktemp -p .) && cat "$S/new.json" > $t && mv $t r.json'),
    Tool("tee", "put", 'tee r.json < "$S/new.json" > "$S/out"'),
    Tool("tee -a", "edit", "printf '{\"Rating\":%s}\\n' \"$V\" | tee -a r.json > \"$S/out\"",
         result="old"),
    Tool("sponge", "put", 'sponge r.json < "$S/new.json"', ("sponge",)),
]

COPIES = [
    *(Tool(f"cp{flag}", "put", f'cp{flag} "$S/new.json" r.json') for flag in (
        "", " -a", " -b", " --remove-destination")),
    *(Tool(f"cp{flag}", "put", f'cp{flag} "$S/new.json" r.json', like="cp") for flag in (
        " -f", " -p", " -u", " --sparse=always")),
    Tool("cp -r", "put", 'cp -r "$S/d/." .', prepare=TREE),
    Tool("cp from a file beside", "put", "cp new r.json", prepare=BESIDE),
    Tool("cp -n", "put", 'cp -n "$S/new.json" r.json', result="old",
         skip={"meanwhile": NOT_THE_ROW, "killed": NOT_THE_ROW}),
    refused("cp --reflink=always", 'cp --reflink=always "$S/new.json" r.json', kind="put"),
    *(Tool(f"mv{flag} from another disk", "put", f'mv{flag} "$S/new.json" r.json')
      for flag in ("", " -b")),
    *(Tool(f"mv{flag} within", "put", f"mv{flag} new r.json", prepare=BESIDE, like=like)
      for flag, like in (("", ""), (" -f", "mv within"), (" -b", ""), (" -T", "mv within"))),
    Tool("mv -u from another disk", "put", 'mv -u "$S/new.json" r.json',
         silent={"meanwhile": YOUNGER}),
    Tool("mv -u within", "put", "mv -u new r.json", prepare=BESIDE,
         silent={"meanwhile": YOUNGER}),
    Tool("mv -n within", "put", "mv -n new r.json", prepare=BESIDE, result="old"),
    Tool("mv away, row to row", "remove", "mv r.json s.json"),
    Tool("mv away, to an ordinary name", "remove", "mv r.json r.json.orig"),
    Tool("mv away, to another disk", "remove", 'mv r.json "$S/"'),
    *(Tool(f"install{flag}", "put", f'install{flag} "$S/new.json" r.json', like=like)
      for flag, like in (("", ""), (" -m 640", "install"), (" -b", ""), (" -C", "install"),
                         (" -p", "install"))),
    Tool("split, mv", "put", "split -n 1 -a 1 --additional-suffix=.json \"$S/new.json\" x"
         " && mv xa.json r.json"),
    Tool("csplit, mv", "put", 'csplit -s -z -n 1 -f part "$S/new.json" 1 && mv part0 r.json'),
    Tool("sort -o", "put", 'sort -o r.json "$S/new.json"'),
    Tool("dd", "put", 'dd if="$S/new.json" of=r.json status=none'),
    Tool("dd bs=7", "put", 'dd if="$S/new.json" of=r.json bs=7 status=none', like="dd"),
    Tool("dd conv=fsync", "put", 'dd if="$S/new.json" of=r.json conv=fsync status=none'),
    Tool("dd conv=notrunc", "edit",
         'printf %s "$V" | dd of=r.json bs=1 seek=25 conv=notrunc status=none'),
    Tool("dd conv=notrunc,fsync", "edit",
         'printf %s "$V" | dd of=r.json bs=1 seek=25 conv=notrunc,fsync status=none'),
    Tool("dd seek, cutting the end off", "edit",
         'printf %s "$V" | dd of=r.json bs=1 seek=25 status=none', result="old"),
]

EDITORS = [
    Tool("sed -i", "edit", 'sed -i "s/4/$V/" r.json'),
    Tool("sed -i.bak", "edit", 'sed -i.bak "s/4/$V/" r.json'),
    Tool("sed > tmp, mv", "edit", 'sed "s/4/$V/" r.json > tmp && mv tmp r.json'),
    Tool("perl -pi", "edit", 'perl -pi -e "s/4/$V/" r.json', ("perl",)),
    Tool("perl -pi.orig", "edit", 'perl -pi.orig -e "s/4/$V/" r.json', ("perl",)),
    Tool("gawk -i inplace", "edit", 'gawk -i inplace -v v="$V" \'{sub(4,v)} 1\' r.json',
         ("gawk",)),
    Tool("gawk -i inplace, with a backup", "edit", "gawk -i inplace -v inplace::suffix=.bak"
         ' -v v="$V" \'{sub(4,v)} 1\' r.json', ("gawk",), result="old"),
    Tool("ed", "edit", "printf '%s\\n' \"s/4/$V/\" w q | ed -s r.json", ("ed",)),
    Tool("patch", "edit", 'patch -s r.json "$S/p"', ("patch",),
         "printf '%s\\n' '{\"Author\":\"Ann\",\"Rating\":4}' > old;"
         ' sed "s/4/$V/" old > want; diff -u old want > p || true; rm want old'),
    Tool("jq > tmp, mv", "edit", 'jq -c ".Rating = $V" r.json > tmp && mv tmp r.json', ("jq",)),
    Tool("jq > itself", "edit", 'jq -c ".Rating = $V" r.json > r.json', ("jq",)),
    Tool("jq | sponge", "edit", 'jq ".Rating = $V" r.json | sponge r.json', ("jq", "sponge")),
    Tool("jq | tee", "edit", 'jq ".Rating = $V" r.json | tee r.json > "$S/out"', ("jq",)),
]

BUSYBOX = [
    *(Tool(f"busybox {applet}", kind, f"busybox {script}", ("busybox",), **how)
      for applet, kind, script, how in (
        ("cp", "put", 'cp "$S/new.json" r.json', {}),
        ("cp -a", "put", 'cp -a "$S/new.json" r.json', {}),
        ("mv from another disk", "put", 'mv "$S/new.json" r.json', {}),
        ("mv within", "put", "mv new r.json", {"prepare": BESIDE}),
        ("tee", "put", 'tee r.json < "$S/new.json" > "$S/out"', {"silent": {"cut": NO_LOOK}}),
        ("sed -i", "edit", 'sed -i "s/4/$V/" r.json', {}),
        ("sed -i.bak", "edit", 'sed -i.bak "s/4/$V/" r.json', {}),
        ("dd", "put", 'dd if="$S/new.json" of=r.json 2>&1', {}),
        ("dd conv=notrunc", "edit", 'dd if="$S/v" of=r.json bs=1 seek=25 conv=notrunc 2>&1',
         {"prepare": 'printf %s "$V" > v'}),
        ("sort -o", "put", 'sort -o r.json "$S/new.json"', {}),
        ("rm", "remove", "rm r.json", {}),
        ("touch", "name", "touch r.json", {}),
        ("truncate -s 0", "name", "truncate -s 0 r.json", {}))),
]

NAMES = [
    Tool("rm", "remove", "rm r.json"),
    Tool("rm -f", "remove", "rm -f r.json"),
    Tool("rm -r of the partition", "remove", 'rm -r "$PWD"'),
    Tool("unlink", "remove", "unlink r.json"),
    Tool("touch", "name", "touch r.json"),
    Tool("touch -d", "name", "touch -d 2002-03-04 r.json"),
    Tool("chmod", "name", "chmod 600 r.json"),
    refused("truncate -s 0", "truncate -s 0 r.json"),
    refused("truncate -s 3", "truncate -s 3 r.json"),
    refused("truncate -s +10", "truncate -s +10 r.json"),
    refused("fallocate -l", "fallocate -l 100 r.json"),
    refused("fallocate -p", "fallocate -p -o 0 -l 10 r.json"),
    refused("shred", "shred -n 1 r.json"),
    refused("shred -u", "shred -n 1 -u r.json"),
    refused("ln", "ln r.json hard"),
    refused("ln -f over the row", "ln -f new r.json", prepare=BESIDE),
    refused("ln -s", "ln -s r.json soft",
            skip={"meanwhile": NOT_THE_ROW, "killed": NOT_THE_ROW}),
    refused("ln -sf over the row", "ln -sf other r.json"),
    refused("mkdir over the row", "mkdir r.json",
            skip={"meanwhile": NOT_THE_ROW, "killed": NOT_THE_ROW}),
]

TOOLS = [*REDIRECTIONS, *COPIES, *EDITORS, *BUSYBOX, *NAMES]
