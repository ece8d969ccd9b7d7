#!/usr/bin/env python3
"""The pages say what is so: README.md, CONTRIBUTING.md, CHANGELOG.md and docs/*.md against the sources and the programs.

    check_docs.py SOURCE                                            what needs no program
    check_docs.py SOURCE --programs BUILD --launch 'COMMAND...'     what does: options, and output that is printed anew

Without programs: links and anchors lead somewhere; paths and file names in backquotes exist; the tables of settings and errors
are those of the headers; names that begin with FSDP_ or fsdp_ are declared; presets exist; code blocks are parts of files; no
line of text is longer than 120 characters.

With programs: options on the pages are in the programs' --help and the other way around; output is what the program prints,
but for numbers. COMMAND starts ranks, whose number takes the place of {}.

HTML comments say what a block is:

    <!-- listing: FILE [PART] -->    the block below is FILE, or what is between /* begin PART */ and /* end PART */ in it,
                                     in Fortran ! begin PART and ! end PART
    <!-- output: COMMAND -->         the lines below are printed by COMMAND, in this order; `...` stands for any lines
    <!-- prepare: COMMAND -->        run before, in the same empty folder; tests/ is there, and programs are found by name
    <!-- recorded: COMMAND; DATE; WHERE -->   printed once: not run
    <!-- rooms -->                   the table below is what check_rooms.py --markdown prints
    <!-- options: PROGRAM... -->     options named alone are of these programs, up to the next such comment; none: of any
"""
import argparse
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile
import textwrap

DROP_IN_SETTINGS = "tools/preload/engine/settings.h"
RUN_VARIABLES = ("tools/run/attempt.c", "tools/run/processes.h", "shard/checkpoint/folder/token.h",  # those of fsdp-run
                 "tests/cluster/cluster.sh")
PROGRAMS = {  # where they are: in the build, or in the source
    "fsdp-bench": "bench/fsdp-bench", "fsdp-topo": "tools/topo/fsdp-topo", "fsdp-ckpt": "tools/ckpt/fsdp-ckpt", "fsdp-plan": "tools/plan/fsdp-plan",
    "fsdp-why": "tools/why/fsdp-why", "fsdp-top": "tools/top/fsdp-top", "fsdp-run": "tools/run/fsdp-run",
    "03_gpt": "mpi-examples/03_gpt/03_gpt", "04_fashion_mnist": "mpi-examples/04_fashion_mnist/04_fashion_mnist",
    "05_gpu_mlp": "mpi-examples/05_gpu_mlp/05_gpu_mlp",
    "06_molecular_dynamics": "mpi-examples/06_molecular_dynamics/06_molecular_dynamics",
    "07_shallow_water": "mpi-examples/07_shallow_water/07_shallow_water",
    "07_shallow_water_plain": "mpi-examples/07_shallow_water/07_shallow_water_plain",
}
# Built where LAMMPS or a Fortran compiler is; else nothing is said of their options.
OPTIONAL = {"06_molecular_dynamics", "07_shallow_water", "07_shallow_water_plain"}
SCRIPTS = {"demo.sh": "mpi-examples/demo.sh", "run.sh": "tests/run.sh", "cluster.sh": "tests/cluster/cluster.sh",
           "dependencies.sh": "cmake/dependencies.sh", "deb.sh": "packaging/deb.sh"}
ALSO_TAKES = {"demo.sh": "03_gpt"}  # options that a program hands on
UNDOCUMENTED = {"cluster.sh", "dependencies.sh"}  # those whose --help is the only place
FOREIGN = {"--oversubscribe", "--allow-run-as-root", "--bind-to", "--tune", "--host", "--nodelist", "--requeue"}  # of mpirun, srun and sbatch
TOPS = ("include", "lib", "kernels", "collectives", "shard", "fortran", "bench", "tests", "mpi-examples", "docs", "tools", "cmake", "packaging", ".ci")
NOT_LISTED = {"text", "sh", ""}  # fenced blocks that are no code of ours
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
SEPARATORS = {"|", "&&", ";", "--"}


class Page:
    def __init__(self, root, name):
        self.name = name
        with open(os.path.join(root, name), encoding="utf-8") as file:
            self.lines = file.read().split("\n")
        self.blocks = []  # (first line, language, text, the comment above)
        self.prose = []  # (line number, line) outside of blocks; comments are left out
        self.comments = []  # (line number, key, value)
        self._read()

    def _read(self):
        number, comment = 0, None
        while number < len(self.lines):
            line = self.lines[number]
            if line.startswith("<!--"):
                text = line
                while "-->" not in text:
                    number += 1
                    text += " " + self.lines[number]
                match = re.match(r"<!-- *([a-z]+):? *(.*?) *-->", text)
                if match:
                    comment = (match[1], match[2])
                    self.comments.append((number, *comment))
            elif line.startswith("```"):
                first, body = number, []
                number += 1
                while number < len(self.lines) and not self.lines[number].startswith("```"):
                    body.append(self.lines[number])
                    number += 1
                self.blocks.append((first + 1, line[3:].strip(), "\n".join(body), comment))
                comment = None
            else:
                self.prose.append((number + 1, line))
                if line.strip():
                    comment = None
            number += 1

    def anchors(self):
        found, inside = set(), False
        for line in self.lines:
            inside ^= line.startswith("```")
            if not inside and line.startswith("#"):
                text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line.lstrip("#").strip()).replace("`", "")
                found.add(re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-"))
        return found

    def spans(self):
        for number, line in self.prose:
            for span in re.findall(r"`([^`]+)`", line):
                yield number, span


class Check:
    def __init__(self, root):
        self.root, self.complaints = root, []
        names = [name for name in ("README.md", "CONTRIBUTING.md") if os.path.exists(os.path.join(root, name))]
        if os.path.isdir(self.path("docs")):
            names += sorted("docs/" + name for name in os.listdir(self.path("docs")) if name.endswith(".md"))
        self.pages = [Page(root, name) for name in names]
        self.files = set()
        for top in TOPS:
            for _, _, files in os.walk(self.path(top)):
                self.files.update(files)
        self.files.update(os.listdir(root) if os.path.isdir(root) else [])

    def path(self, name):
        return os.path.join(self.root, name)

    def text(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def complain(self, page, line, what):
        self.complaints.append(f"{page.name}:{line}: {what}")

    # ---- without programs

    def pages_alone(self):
        words = self.declared_words()
        for page in self.pages:
            self.links(page)
            self.paths(page)
            self.listings(page)
            self.lengths(page)
            self.names(page, words)
            self.presets(page)
        self.settings()
        self.drop_in()
        self.errors()
        self.rooms()

    def links(self, page):
        for number, line in page.prose:
            plain = re.sub(r"`[^`]*`", "", line)
            for target in re.findall(r"\]\(([^)]+)\)", plain):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, anchor = target.partition("#")
                path = os.path.normpath(os.path.join(os.path.dirname(page.name), name)) if name else page.name
                if not os.path.exists(self.path(path)):
                    self.complain(page, number, f"the link leads nowhere: {target}")
                elif anchor and anchor not in Page(self.root, path).anchors():
                    self.complain(page, number, f"{path} has no heading for #{anchor}")

    def paths(self, page):
        for number, span in page.spans():
            word = span.split()[0] if span.split() else ""
            if word.startswith("./"):
                word = word[2:]
            for path in [word] if " " not in span or "/" in word else []:
                if re.search(r"[<>{}$=]", path) or path.startswith(("-", "/")):
                    continue
                path = path.rstrip("/")
                if path.split("/")[0] in TOPS and "/" in path:
                    if not self.exists(path):
                        self.complain(page, number, f"there is no {path}")
                elif path.startswith("fsdp/"):
                    if not self.exists("include/" + path):
                        self.complain(page, number, f"there is no include/{path}")
                elif re.fullmatch(r"[A-Za-z0-9_]+\.(c|h|cpp|py|cmake)", path) and path not in self.files:
                    self.complain(page, number, f"no file is called {path}")

    def exists(self, path):
        return bool(glob.glob(self.path(path)))

    def listings(self, page):
        for number, language, text, comment in page.blocks:
            if comment and comment[0] == "listing":
                self.listing(page, number, text, comment[1].split())
            elif language not in NOT_LISTED:
                self.complain(page, number, f"a block of {language} that is in no file: <!-- listing: FILE [PART] --> is missing")
            elif language == "text" and not (comment and comment[0] in ("output", "recorded")):
                self.complain(page, number, "nothing says what printed this: <!-- output: --> or <!-- recorded: --> is missing")

    def listing(self, page, number, text, where):
        if not self.exists(where[0]):
            self.complain(page, number, f"the listing {where[0]} does not exist")
            return
        wanted = listing_part(self.text(where[0]), where[1] if len(where) > 1 else None)
        if wanted is None:
            self.complain(page, number, f"{where[0]} has no part '{where[1]}'")
        elif wanted != text.strip("\n"):
            self.complain(page, number, f"differs from {' '.join(where)}; check_docs.py SOURCE --fix copies it")

    def lengths(self, page):
        for number, line in page.prose:
            if len(line) > 120 and not line.startswith("|"):
                self.complain(page, number, f"{len(line)} characters; at most 120")

    def declared_words(self):
        words = set()
        for folder in ("include/fsdp", "cmake", "tests/support"):
            if os.path.isdir(self.path(folder)):
                for name in os.listdir(self.path(folder)):
                    if os.path.isfile(self.path(f"{folder}/{name}")) and not name.endswith(".py"):
                        words.update(re.findall(r"\b(?:FSDP|fsdp)_\w+", self.text(f"{folder}/{name}")))
        for path in glob.glob(self.path("fortran/**/*.[fF]90"), recursive=True):
            with open(path, encoding="utf-8") as file:
                words.update(re.findall(r"\bfsdp_\w+", file.read()))
        for name in ("CMakeLists.txt", "CMakePresets.json", DROP_IN_SETTINGS, *RUN_VARIABLES):
            if self.exists(name):
                words.update(re.findall(r"\bFSDP_\w+", self.text(name)))
        return words

    def names(self, page, words):
        for number, line in enumerate(page.lines, 1):
            for word in re.findall(r"(?<![\w/-])(?:FSDP_[A-Z0-9_]*[A-Z0-9]|fsdp_[a-z0-9_]*[a-z0-9])\b(?![*.]?/)", line):
                if word not in words:
                    self.complain(page, number, f"{word} is declared nowhere")

    def presets(self, page):
        known = set(re.findall(r'"name": "([\w-]+)", "configurePreset"', self.text("CMakePresets.json"))) \
            if self.exists("CMakePresets.json") else set()
        for number, line in enumerate(page.lines, 1):
            for preset in re.findall(r"--preset[ =]([a-z][\w-]*)", line) + re.findall(r"[Pp]reset `([\w-]+)`", line):
                if preset not in known:
                    self.complain(page, number, f"there is no preset '{preset}'")

    def drop_in(self):
        """The table of the drop-in's settings: variable, default, what it accepts."""
        if not self.exists(DROP_IN_SETTINGS) or not self.exists("docs/drop-in.md"):
            return
        page = next(page for page in self.pages if page.name == "docs/drop-in.md")
        rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")][:3]
                for _, line in page.prose if line.startswith("| `FSDP_MPI")]
        wanted = [[name, fallback, values.replace("|", ", ")] for name, fallback, values in
                  re.findall(r'X\("(FSDP_MPI\w*)", "([^"]*)", "([^"]*)"', self.text(DROP_IN_SETTINGS))]
        for row in rows + wanted:
            if row not in wanted or row not in rows:
                self.complain(page, 1, f"the table of settings and {DROP_IN_SETTINGS} differ in {row}")

    def settings(self):
        if not self.exists("include/fsdp/config.h") or not self.exists("docs/settings.md"):
            return
        page = next(page for page in self.pages if page.name == "docs/settings.md")
        rows = [(number, [cell.strip().strip("`") for cell in line.strip("|").split("|")])
                for number, line in page.prose if line.startswith("| `FSDP_")]
        wanted = settings_of(self.text("include/fsdp/config.h"))
        for number, row in rows:
            if row[:4] not in wanted:
                self.complain(page, number, f"no such row in include/fsdp/config.h: {row[:4]}")
        for row in wanted:
            if row not in [found[:4] for _, found in rows]:
                self.complain(page, 1, f"no row {row}")

    def errors(self):
        if not self.exists("include/fsdp/status.h") or not self.exists("docs/errors.md"):
            return
        page = next(page for page in self.pages if page.name == "docs/errors.md")
        rows = {tuple(cell.strip().strip("`") for cell in line.strip("|").split("|"))[:2]
                for _, line in page.prose if line.startswith("| `FSDP_ERR")}
        wanted = set(re.findall(r'X\((FSDP_ERR_\w+), \d+, "([^"]*)"\)', self.text("include/fsdp/status.h")))
        for row in rows ^ wanted:
            self.complain(page, 1, f"in only one of this page and include/fsdp/status.h: {row}")

    def rooms_table(self):
        script = self.path("tests/support/check_rooms.py")
        if not os.path.exists(script):
            return None
        return subprocess.run([sys.executable, script, "--markdown"], capture_output=True, text=True, check=True).stdout.split("\n")

    def rooms(self):
        table = self.rooms_table()
        for page in self.pages:
            for number, key, _ in page.comments:
                if key == "rooms" and table and table != page.lines[number + 1:number + 1 + len(table)]:
                    self.complain(page, number, "differs from check_rooms.py --markdown; check_docs.py SOURCE --fix copies it")

    def fix(self):
        table = self.rooms_table()
        for page in self.pages:
            lines = list(page.lines)
            for number, _, text, comment in reversed(page.blocks):
                if comment and comment[0] == "listing":
                    where = comment[1].split()
                    part = listing_part(self.text(where[0]), where[1] if len(where) > 1 else None)
                    lines[number:number + (text.count("\n") + 1 if lines[number] != "```" else 0)] = part.split("\n")
            for number in [at for at, line in enumerate(lines) if line == "<!-- rooms -->" and table]:
                lines[number + 1:lines.index("", number) + 1] = table
            with open(self.path(page.name), "w", encoding="utf-8") as file:
                file.write("\n".join(lines))

    # ---- with programs

    def with_programs(self, build, launch):
        absent = {name for name in OPTIONAL if not os.path.exists(os.path.join(build, PROGRAMS[name]))}
        helps = {name: options_of([os.path.join(build, path), "--help"]) for name, path in PROGRAMS.items()
                 if name not in absent}
        helps.update({name: options_of([self.path(path), "--help"]) for name, path in SCRIPTS.items()})
        for name in SCRIPTS:
            helps[name].add("--help")
        for name, more in ALSO_TAKES.items():
            helps[name] = helps[name] | helps[more]
        for name, options in helps.items():
            if not options:
                self.complaints.append(f"{name} --help names no options")
        documented = {name: set() for name in helps}
        for page in self.pages:
            self.options(page, helps, documented)
            self.built_paths(page, build, absent)
            self.output(page, build, launch)
        self.undocumented(helps, documented)

    def undocumented(self, helps, documented):
        for name in sorted(set(helps) - UNDOCUMENTED):
            own = helps[name] - (helps[ALSO_TAKES[name]] if name in ALSO_TAKES else set())
            for option in sorted(own - documented[name] - {"--help"}):
                self.complaints.append(f"no page documents {name} {option}")

    def options(self, page, helps, documented):
        """Options behind the name of a program are that program's; those named alone are the programs' of the comment above."""
        marks = [(number, value.split()) for number, key, value in page.comments if key == "options"]
        texts = [(number, span, None) for number, span in page.spans()]
        for number, language, text, _ in page.blocks:
            if language in ("sh", ""):
                texts += [(number, line.split("#")[0], "") for line in text.replace("\\\n", " ").split("\n")]
        for number, text, program in texts:  # None: an option named alone
            for word in text.split():
                base = os.path.basename(word.strip("'\""))
                if base in helps:
                    program = base
                elif word in SEPARATORS or base in ("mpirun", "srun", "sbatch", "#SBATCH", "mpiexec", "cmake", "ctest"):
                    program = ""
                for option in OPTION.findall(word) if word.startswith("--") else []:
                    if program:
                        if option in helps[program]:
                            documented[program].add(option)
                        elif not (program == "run.sh" and option.startswith("--parallel")):
                            self.complain(page, number, f"{program} has no option {option}")
                    elif program is None:
                        self.lone(page, number, option, marks, helps, documented)

    def lone(self, page, number, option, marks, helps, documented):
        programs = next((value for line, value in reversed(marks) if line < number), None)
        known = [name for name in (programs or helps) if option in helps.get(name, ())]
        absent = OPTIONAL.intersection(programs or []) - set(helps)
        if not known and option not in FOREIGN and not absent:
            self.complain(page, number, f"{' and '.join(programs or ['no program'])}: no option {option}")
        for name in known if programs else []:
            documented[name].add(option)

    def built_paths(self, page, build, absent):
        for number, line in enumerate(page.lines, 1):
            for path in re.findall(r"(?<![\w/])build/default/([\w./-]*\w)", line):
                if not os.path.exists(os.path.join(build, path)) and os.path.basename(path) not in absent:
                    self.complain(page, number, f"the build makes no {path}")

    def output(self, page, build, launch):
        if not any(key == "output" for _, key, _ in page.comments):
            return
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.abspath(self.path("tests")), os.path.join(folder, "tests"))
            for _, key, value in page.comments:
                if key == "prepare":
                    run(value, folder, build, launch)
            for number, _, text, comment in page.blocks:
                if comment and comment[0] == "output":
                    printed, status = run(comment[1], folder, build, launch)
                    missing = first_missing(text, printed)
                    if missing is not None or status:
                        self.complain(page, number, f"'{comment[1]}' (status {status}) does not print here: {missing}\n"
                                      + textwrap.indent(printed, "    "))


def listing_part(text, part):
    if part is None:
        return text.strip("\n")
    name = re.escape(part)
    match = re.search(rf"^ */\* begin {name} \*/\n(.*?)^ */\* end {name} \*/$", text, re.M | re.S) or \
        re.search(rf"^ *! begin {name}\n(.*?)^ *! end {name}$", text, re.M | re.S)
    return textwrap.dedent(match[1]).strip("\n") if match else None


def settings_of(header):
    """Variable, default, accepted values, and whether all ranks must agree, of each row of FSDP_SETTINGS."""
    names = re.search(r'FSDP_ALGORITHM_NAMES "([^"]*)"', header)[1]
    table = header[header.index("define FSDP_SETTINGS(X)"):].replace("FSDP_ALGORITHM_NAMES", f'"{names}"').replace("\\\n", "")
    rows = re.findall(r'X\(\w+, [A-Z]+, "(\w+)", "([^"]*)", ([01]), *"([^"]*)"', table)
    return [[variable, fallback, values.replace("|", ", "), "yes" if int(agree) else "no"]
            for variable, fallback, agree, values in rows]


def options_of(command):
    result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120, check=False)
    # an option is documented where a line begins with it, or in the lines of usage
    lines = [line for line in result.stdout.split("\n") if re.match(r" *(\[?--|usage|Usage|       )", line) or "  --" in line]
    return {option for line in lines for option in re.findall(r"(?:^|[\s\[,])(--[a-z][a-z0-9-]*)", line)
            if not re.match(r" {8}", line) or "fsdp-" in line or "cluster.sh" in line}


def run(command, folder, build, launch):
    words = shlex.split(command)
    if words[0] == "mpirun":
        words = [word.replace("{}", words[2]) for word in launch] + words[3:]
    found = [os.path.join(build, PROGRAMS[w]) if w in PROGRAMS else w for w in words]
    listings = os.path.join(build, "tests", "docs")
    found = [os.path.join(listings, w) if "/" not in w and os.path.isfile(os.path.join(listings, w)) else w for w in found]
    result = subprocess.run(found, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300,
                            check=False)
    return result.stdout + (result.stderr if result.returncode else ""), result.returncode


def masked(line):
    return " ".join(re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "#", line).split())


def first_missing(block, printed):
    """The first line of a block that is not printed where it should be; None: all are. `...`: any lines."""
    lines, at, anywhere = [masked(line) for line in printed.split("\n")], 0, True
    for line in block.split("\n"):
        if line.strip() == "...":
            anywhere = True
            continue
        rest = lines[at:] if anywhere else lines[at:at + 1]
        if masked(line) not in rest:
            return line
        at += rest.index(masked(line)) + 1
        anywhere = False
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--programs")
    parser.add_argument("--launch", default="mpirun -n {}")
    parser.add_argument("--fix", action="store_true", help="copy the listings into the pages")
    arguments = parser.parse_args()
    check = Check(arguments.source)
    if arguments.fix:
        check.fix()
    elif arguments.programs:
        check.with_programs(os.path.abspath(arguments.programs), shlex.split(arguments.launch))
    else:
        check.pages_alone()
    print("\n".join(check.complaints) or f"{len(check.pages)} pages are as they should be")
    return 1 if check.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
