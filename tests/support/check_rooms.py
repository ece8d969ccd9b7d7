#!/usr/bin/env python3
"""Checks that the sources keep to the plan of the house: the table ROOMS below.

  check_rooms.py                  includes: one way between folders, one way between rooms, no circle inside a room; each
                                  source is in a room, and in the lists of the build and of the other checks
  check_rooms.py --symbols BUILD  by `nm` on the objects of a built tree: no room uses what a higher one defines
  check_rooms.py --dot            the rooms and their includes, for graphviz
  check_rooms.py --svg FILE       the same, drawn by graphviz's dot
  check_rooms.py --markdown       the table, for people
  check_rooms.py --folders        the top folders that hold sources, one per line

Prints each finding with the file that it is in. Exits with 1 if there are any, and with 77 if it cannot look.
"""
import argparse
import collections
import json
import os
import re
import shutil
import subprocess
import sys

# Bottom-up: a room may include those in the rows before it, except those that stand beside it; see SIDE_BY_SIDE.
# A room is one folder, without the folders in it; "." is the folder itself, "**" is all that it holds.
ROOMS = [
    # folder, room, what belongs there
    ("include/fsdp", ".", "the public headers: the contract, and the only documentation source of the API"),
    ("kernels", ".", "the tables of kernels, which the library calls"),
    ("kernels", "host", "element-wise compute on host memory: plain, AVX2, AVX-512 and NEON"),
    ("kernels", "hip", "element-wise compute on GPU memory"),
    ("lib", "base",
     "what everything stands on: a context's core, errors and the log, settings, types, time, locks, random numbers"),
    ("lib", "device",
     "memory, of the host and of GPUs: allocated and counted, copied, cast; and what a GPU is asked to do"),
    ("lib", "node", "which ranks share memory, what of it they share, and what they may read of each other"),
    ("lib", "record",
     "the flight recorder: what ranks have done last, kept where other processes find it, and written to files"),
    ("lib", "topology",
     "how a node is built, the plan that places its ranks on cores and GPUs, and binding them there"),
    ("lib", "sync",
     "how ranks meet: letters within a node, messages between nodes, events between GPUs; and the trace of it"),
    ("lib", "progress",
     "one operation from its issue to its end: the queue, its thread, and the agreement of all ranks"),
    ("lib", "context",
     "puts the rooms together: opening and closing a context, its symmetric buffers, its table of algorithms"),
    ("lib", "mesh", "ranks as a grid of axes: which rank is where, and a context for each axis"),
    ("collectives", ".", "the collectives as the folders above call them: as steps of something with a name"),
    ("collectives", "arguments",
     "what each collective finds out about its arguments, and each rank's part of a vector"),
    ("collectives", "reach", "how data is moved and reduced, on host and GPU, and how buffers of peers are read"),
    ("collectives", "blocks", "through slots of shared memory: short data on the agreement, other data in a series"),
    ("collectives", "rails", "across nodes, on all rails at once and in chunks: what rails, ring and pairwise share"),
    ("collectives", "select", "which algorithm carries out a call: inline, staged, direct, cma, rails or ring"),
    ("collectives", "allgather", "fsdp_allgather, and a file per algorithm of its own"),
    ("collectives", "allreduce", "fsdp_allreduce, and a file per algorithm of its own"),
    ("collectives", "alltoall", "fsdp_alltoall, and a file per algorithm of its own"),
    ("collectives", "alltoallv", "fsdp_alltoallv: what ranks tell each other of their counts, and its algorithms"),
    ("collectives", "barrier", "fsdp_barrier"),
    ("collectives", "broadcast", "fsdp_broadcast, and a file per algorithm of its own"),
    ("collectives", "reduce_scatter", "fsdp_reduce_scatter, and a file per algorithm of its own"),
    ("collectives", "reduce", "fsdp_reduce, by the algorithms of reduce_scatter and one of its own across nodes"),
    ("shard", "state",
     "what a model, its units and its flat parameters consist of, who holds which part, and how much memory that takes"),
    ("shard", "storage",
     "where the elements of a model lie, on the host or on a GPU, and element-wise work on them there"),
    ("shard", "hooks", "ways to compress gradients where they are averaged, and what they see of a model"),
    ("shard", "schedule",
     "passes of units: what is gathered and reduced when, what stands between passes, and steps that have failed"),
    ("shard", "optimizer", "from reduced gradients to new masters"),
    ("shard", "tensor_parallel", "what ranks exchange that have the parts of a layer"),
    ("shard", "training", "what a training loop needs around its steps"),
    ("shard", "model", "making, sizing, committing and releasing a model, and looking into one that is whole"),
    ("shard", "checkpoint/format",
     "how a checkpoint is laid out on a disk: JSON, safetensors, checksums, and the folder that it is in"),
    ("shard", "checkpoint/folder",
     "the folder that a run saves in: who may save there, and how a checkpoint appears and goes"),
    ("shard", "checkpoint/arrays",
     "the program's own arrays: boxes, whether they tile an array, and their rows between memory and files"),
    ("shard", "checkpoint/common",
     "what writing and reading share: a model as tensors of files, and what can be wrong with a call"),
    ("shard", "checkpoint/cache", "states of a run in the memory, or on the disks, of its nodes"),
    ("shard", "checkpoint/write", "saving, at once or behind the next steps"),
    ("shard", "checkpoint/read", "loading, on any number of ranks"),
    ("shard", "pipeline", "schedules of pipelines: made, read, proved and simulated, without MPI"),
    ("shard", "pipeline/run", "pipelines: what passes between stages, and steps in the order of a schedule"),
    ("fortran", "base", "constants, structs, handles, what becomes of a status, and contexts"),
    ("fortran", "collectives", "collectives and symmetric buffers, on addresses and on arrays"),
    ("fortran", "training", "models and their views, optimizers, hooks and checkpoints"),
    ("fortran", ".", "the module `fsdp` of Fortran, which is all of these, plans of nodes, and tools"),
    ("tools/common", ".", "what the installed programs share: command lines and JSON, without MPI"),
    ("tools/ckpt", ".", "fsdp-ckpt: lists, verifies, compares and converts checkpoints, without MPI"),
    ("tools/plan", ".", "fsdp-plan: proves schedules of pipelines and shows what they cost, without MPI"),
    ("tools/records", ".", "the records of ranks: read from files, processes and hosts, and what they say together, without MPI"),
    ("tools/run", ".", "fsdp-run: starts a job again, on the nodes that are left, when it ends badly; without MPI"),
    ("tools/why", ".", "fsdp-why: which rank stopped first, and where, without MPI"),
    ("tools/top", ".", "fsdp-top: what each rank of a running job does, without MPI"),
    ("tools/topo", "base", "options, the ranks of the job, words for things, and what cores and memory are doing"),
    ("tools/topo", "report", "what is known of a node and its ranks, planned or gathered, and how it comes to rank 0"),
    ("tools/topo", "text", "a report in words: text, JSON, command lines, and cores at work"),
    ("tools/topo", "svg", "a report as a drawing"),
    ("tools/topo", ".", "fsdp-topo's main: from the options to what is shown"),
    ("tools/preload", "entry", "what a program calls in MPI's place, in C and in Fortran, without MPI's header"),
    ("tools/preload", "engine", "which calls are taken to the library, and how; and the report"),
    ("bench", "base", "options, records, the ranks of the job, and what a collective on one size is"),
    ("bench", "machine", "what the machine can do: memory, links, disks, GPUs, and the bound that follows"),
    ("bench", "compare", "MPI's own collectives, the buffers of both sides, and the check of results"),
    ("bench", "twin", "a second job, which measures MPI at the other thread level, or with the drop-in"),
    ("bench", "job", "what every kind of run works with: opening, header, blocks of iterations, measurements"),
    ("bench", "collectives", "runs of collectives: sweep, overlap, sizes of shards"),
    ("bench", "floor", "runs between two nodes, beside the least that point-to-point messages need"),
    ("bench", "async", "runs of the progress thread alone"),
    ("bench", "lanes", "runs of short operations beside long ones"),
    ("bench", "record", "runs of the flight recorder, alone and under short operations"),
    ("bench", "drop_in", "runs of jobs with the drop-in and without"),
    ("bench", "tune", "runs of algorithms, for a tuning file"),
    ("bench", "training", "runs of training steps and of checkpoints"),
    ("bench", "pipeline", "runs of steps of pipelines"),
    ("bench", "kernels", "runs of GPU kernels"),
    ("bench", ".", "fsdp-bench's main: from the options to a run"),
    ("mpi-examples", "common", "what the programs of the ladder share"),
    ("mpi-examples", ".", "the ladder: programs of one file"),
    ("mpi-examples", "03_gpt", "a language model"),
    ("mpi-examples", "04_fashion_mnist", "a classifier of images"),
    ("mpi-examples", "05_gpu_mlp", "a perceptron on GPUs"),
    ("mpi-examples", "06_molecular_dynamics", "a potential that learns inside LAMMPS"),
    ("mpi-examples", "07_shallow_water", "a solver in Fortran that trains a surrogate, with the module and without"),
    ("docs", "**", "pages, and the listings that they show, which are compiled"),
    ("tests", "**", "tests, in folders that mirror those above"),
]

# None of these includes another of its row.
SIDE_BY_SIDE = [
    ("tools/ckpt", "tools/plan", "tools/records", "tools/topo", "tools/preload", "bench", "mpi-examples"),
    ("tools/ckpt", "tools/plan", "tools/why", "tools/top", "tools/topo", "tools/preload", "bench", "mpi-examples"),
    ("tools/topo/text", "tools/topo/svg"),
    ("bench/collectives", "bench/floor", "bench/async", "bench/lanes", "bench/record", "bench/drop_in", "bench/tune", "bench/training",
     "bench/pipeline", "bench/kernels"),
    ("collectives/allgather", "collectives/allreduce", "collectives/alltoall", "collectives/alltoallv",
     "collectives/barrier", "collectives/broadcast", "collectives/reduce_scatter"),
    ("collectives/allgather", "collectives/allreduce", "collectives/alltoall", "collectives/alltoallv",
     "collectives/barrier", "collectives/broadcast", "collectives/reduce"),
    ("mpi-examples/03_gpt", "mpi-examples/04_fashion_mnist", "mpi-examples/05_gpu_mlp",
     "mpi-examples/06_molecular_dynamics", "mpi-examples/07_shallow_water"),
]

FEW_FILES = 15  # of a room, which can be seen at once
SOURCES = (".c", ".h", ".S", ".cpp", ".hip", ".inc", ".f90", ".F90")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]*)[>"]', re.MULTILINE)
MPIS_OWN = re.compile("MPI_|mpi_")  # names that the drop-in defines in MPI's place
SKIPPED = 77


class Skip(Exception):
    """Why nothing can be checked."""


class Room:
    def __init__(self, order, folder, name, line):
        self.order, self.folder, self.name, self.line = order, folder, name, line
        self.path = folder if name in (".", "**") else f"{folder}/{name}"
        self.has_all_below = name == "**"


class Plan:
    """The table, and which room of it a file is in."""

    def __init__(self, rows, side_by_side):
        self.rooms = [Room(order, *row) for order, row in enumerate(rows)]
        self.by_path = {room.path: room for room in self.rooms}
        self.side_by_side = side_by_side

    def folders(self):
        return sorted({room.folder.split("/")[0] for room in self.rooms})

    def room_of(self, path):
        """The room of a file, by its path from the root; None if the table has none for it."""
        folder = path.rpartition("/")[0]
        room = self.by_path.get(folder)
        while not room and folder:
            folder = folder.rpartition("/")[0]
            room = self.by_path.get(folder)
            room = room if room and room.has_all_below else None
        return room

    def beside(self, a, b):
        """Whether two rooms belong to different members of a row of SIDE_BY_SIDE."""
        for row in self.side_by_side:
            found = [next((m for m in row if room.path == m or room.path.startswith(m + "/")), None) for room in (a, b)]
            if None not in found and found[0] != found[1]:
                return True
        return False

    def objection(self, user, used):
        """Why `user` may not include `used`, or use what it defines; None if it may."""
        if user is used:
            return None
        if self.beside(user, used):
            return "stands beside it"
        return "is above it" if used.order > user.order else None


class Tree:
    """The sources below a root, and what they include."""

    def __init__(self, root, plan):
        self.root, self.plan = root, plan
        self.sources, self.lists = [], []  # paths from the root: of sources, and of what names them for the build
        for folder, names, files in os.walk(root):
            relative = os.path.relpath(folder, root)
            relative = "" if relative == "." else relative + "/"
            names[:] = [n for n in names if not n.startswith(".") and not self.is_build(os.path.join(folder, n), relative)]
            self.sources += [relative + f for f in files if f.endswith(SOURCES)]
            self.lists += [relative + f for f in files if f == "CMakeLists.txt" or f.endswith(".cmake") or
                           relative.startswith("tests/") and f.endswith(".sh")]
        self.sources.sort()
        self.known = set(self.sources)

    @staticmethod
    def is_build(path, parent):
        """Only the root holds builds; a folder of several of them is one too."""
        if parent:
            return False
        return os.path.basename(path) == "build" or any(
            os.path.exists(os.path.join(p, "CMakeCache.txt")) for p in [path] + [e.path for e in os.scandir(path)])

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as file:
            return file.read()

    def resolve(self, path, name):
        """The path from the root of what a file includes as `name`; None if it is none of ours."""
        for start in (os.path.dirname(path), "", "include"):
            candidate = os.path.normpath(os.path.join(start, name))
            if candidate in self.known or os.path.isfile(os.path.join(self.root, candidate)):
                return candidate
        return None

    def includes(self):
        """(file, line, name, target or None) of each include of a file of ours, or in quotes."""
        for path in self.sources:
            room = self.plan.room_of(path)
            if not room or room.has_all_below:
                continue
            text = self.read(path)
            for match in INCLUDE.finditer(text):
                target = self.resolve(path, match[2])
                if target or match[1] == '"':
                    yield path, text.count("\n", 0, match.start()) + 1, match[2], target


def check_places(tree):
    """Each source is in a room, each room has sources, and few enough to see at once."""
    files = collections.Counter()
    for path in tree.sources:
        room = tree.plan.room_of(path)
        if room:
            files[room.path] += 1
        else:
            yield f"{path}: no room of the table is {os.path.dirname(path) or 'the root'}"
    for room in tree.plan.rooms:
        if files[room.path] == 0 and not room.has_all_below:
            yield f"{room.path}: a room of the table without a source"
        elif files[room.path] > FEW_FILES and not room.has_all_below:
            print(f"note: {room.path} holds {files[room.path]} files; up to {FEW_FILES} can be seen at once")


def check_includes(tree, includes):
    for path, line, name, target in includes:
        if not target:
            yield f'{path}:{line}: "{name}" is no file of this project; write <{name}> if it is a system header'
            continue
        user, used = tree.plan.room_of(path), tree.plan.room_of(target)
        objection = tree.plan.objection(user, used) if used else "is in no room"
        if objection:
            yield f"{path}:{line}: {user.path} may not include {target}, which {objection}"


def shortest_circle(graph, start):
    """A shortest way from `start` back to it; None if there is none."""
    before, queue = {}, collections.deque([start])
    while queue:
        node = queue.popleft()
        for other in sorted(graph[node]):
            if other == start:
                way = [node]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return way[::-1] + [start]
            if other not in before:
                before[other] = node
                queue.append(other)
    return None


def check_circles(tree, includes):
    """x.c and x.h are one thing: what either includes, it needs."""
    graph = collections.defaultdict(set)
    for path, _, _, target in includes:
        a, b = os.path.splitext(path)[0], os.path.splitext(target or path)[0]
        if a != b and tree.plan.room_of(path) is tree.plan.room_of(target):
            graph[a].add(b)
    seen = set()
    for node in sorted(graph):
        circle = shortest_circle(graph, node) if node not in seen else None
        if circle:
            seen.update(circle)
            yield f"{os.path.dirname(node)}: a circle of includes: {' -> '.join(os.path.basename(n) for n in circle)}"


def words_of(text):
    """Of a list: names of files and folders as it has them, relative to it or to the root."""
    return set(re.sub(r"#.*|\$\{[A-Z_]+_DIR\}/|[()\"=]", " ", text).split())


def is_named(path, lists):
    """Whether a list has the name of a source: as it is, or, beside or above it, as a word that a loop makes names of. Tests
    compile what docs shows."""
    stem = os.path.splitext(os.path.basename(path))[0]
    loop = {stem, stem.partition("_")[2]} if path.startswith("tests/") else {stem}
    for name, words in lists.items():
        folder = os.path.dirname(name)
        if path in words or os.path.relpath(path, folder or ".") in words:
            return True
        if path.startswith((folder, "docs/")) and loop & words:
            return True
    return False


def check_lists(tree):
    """What is not in these lists is not built, not tested or not looked at, and nothing else says so."""
    lists = {path: words_of(tree.read(path)) for path in tree.lists}
    folders = [path for path in tree.lists if os.path.basename(path) == "CMakeLists.txt"]
    for path in folders:
        above = os.path.dirname(os.path.dirname(path))
        while above and os.path.join(above, "CMakeLists.txt") not in lists:
            above = os.path.dirname(above)
        list_above = os.path.join(above, "CMakeLists.txt")
        if path != list_above and os.path.relpath(os.path.dirname(path), above or ".") not in lists.get(list_above, ()):
            yield f"{path}: {list_above} does not add this folder"
    for path in tree.sources:
        if path.endswith((".c", ".cpp", ".f90", ".F90")) and tree.plan.room_of(path) and not is_named(path, lists):
            yield f"{path}: no CMakeLists.txt names this file"

    by_folder = {os.path.dirname(path): path for path in folders}
    for room in tree.plan.rooms:
        parent, _, name = room.path.rpartition("/")
        line = parent in by_folder and re.search(rf"^ *# {name}: (.*)$", tree.read(by_folder[parent]), re.MULTILINE)
        if line and line[1] != room.line:
            yield f"{by_folder[parent]}: says of room {name} '{line[1]}', and the table '{room.line}'"

    tidy = re.search(r"^HeaderFilterRegex: *'(.*)'$", tree.read(".clang-tidy"), re.MULTILINE)
    for room in tree.plan.rooms:
        if not tidy or not re.search(tidy[1], f"/root/{room.path}/x.h"):
            yield f".clang-tidy: HeaderFilterRegex leaves out {room.path}"


class Symbols:
    """What the objects of a build define and use, by `nm`."""

    def __init__(self, tree, build):
        self.defined = collections.defaultdict(set)  # by name: sources
        self.used = collections.defaultdict(set)     # by source: names
        sources = self.objects(tree, build)
        if not sources:
            raise Skip(f"no objects in {build}; build it first")
        if not shutil.which("nm"):
            raise Skip("no nm")
        unread = self.list_with("nm", sources)
        if unread and shutil.which("gcc-nm"):
            unread = self.list_with("gcc-nm", {o: sources[o] for o in unread})
        if unread:
            raise Skip(f"nm cannot read {len(unread)} of {len(sources)} objects, as {sorted(unread)[0]}")
        self.n = len(sources)

    @staticmethod
    def objects(tree, build):
        """The objects that there are, with their sources: one object for each source, rather not of a test."""
        try:
            with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
                commands = json.load(file)
        except (OSError, ValueError) as problem:
            raise Skip(f"no commands of compilers: {problem}") from problem
        chosen = {}
        for command in commands:
            output = command.get("output") or re.search(r" -o (\S+)", command["command"])[1]
            output = os.path.normpath(os.path.join(command["directory"], output))
            path = os.path.relpath(command["file"], tree.root)
            room = tree.plan.room_of(path)
            if path in tree.known and room and not room.has_all_below and os.path.exists(output):
                of_test = os.path.relpath(output, build).startswith("tests/")
                chosen[path] = min(chosen.get(path, (True, "~")), (of_test, output))
        return {output: path for path, (_, output) in chosen.items()}

    def list_with(self, nm, sources):
        """@return the objects that it cannot read"""
        run = subprocess.run([nm, "-A", "-P", *sources], capture_output=True, text=True, check=False,
                             env=dict(os.environ, LC_ALL="C"))
        unread = {o for line in run.stderr.splitlines() for o in line.split(": ") if o in sources and "no symbols" not in line}
        for line in run.stdout.splitlines():
            output, _, rest = line.partition(": ")
            name, kind = rest.split()[:2]
            if name == "__gnu_lto_slim":
                unread.add(output)
            elif kind in "Uwv":
                self.used[sources[output]].add(name)
            elif kind.isupper():
                self.defined[name].add(sources[output])
        return unread


def check_symbols(tree, symbols):
    for user, names in sorted(symbols.used.items()):
        found = collections.defaultdict(list)
        for name in sorted(names):
            definers = () if MPIS_OWN.match(name) else symbols.defined.get(name, ())
            objections = [(d, tree.plan.objection(tree.plan.room_of(user), tree.plan.room_of(d))) for d in sorted(definers)]
            if objections and all(o for _, o in objections):
                found[objections[0]].append(name)
        for (definer, objection), several in sorted(found.items()):
            yield f"{user}: {tree.plan.room_of(user).path} may not use {', '.join(several)} of {definer}, which {objection}"


def draw(tree, includes):
    """A cluster per folder, an arrow per pair of rooms of one folder or per pair of folders, with the number of includes. What
    the table forbids is red. Rooms hang below each other as the table has them, so all other arrows point down."""
    plan = tree.plan
    counts = collections.Counter()
    for path, _, _, target in includes:
        user, used = plan.room_of(path), target and plan.room_of(target)
        if used and user is not used:
            counts[user, used] += 1
    drawn = [room for room in plan.rooms if not room.has_all_below]
    folders = list(dict.fromkeys(room.folder for room in drawn))
    rooms = {folder: [room for room in drawn if room.folder == folder] for folder in folders}
    yield "digraph rooms {"
    yield '  compound=true; newrank=true; nodesep=0.3; ranksep=0.35; fontname="sans-serif"; fontsize=13;'
    yield '  node [shape=box, style=filled, fillcolor=white, fontname="sans-serif", fontsize=11, height=0.3];'
    yield '  edge [fontname="sans-serif", fontsize=8, color="#555555", fontcolor="#555555", arrowsize=0.6];'
    for folder in folders:
        yield f'  subgraph "cluster_{folder}" {{'
        yield f'    label="{folder}"; labeljust=l; style=filled; color="#dddddd"; fillcolor="#f4f4f4";'
        for room in rooms[folder]:
            label = room.path.removeprefix(folder).strip("/") or os.path.basename(folder)
            yield f'    "{room.path}" [label="{label}"];'
        yield "  }"
    # arrows that are not drawn, but keep the order of the table
    for folder in folders:
        for i, room in enumerate(rooms[folder]):
            below = next((r for r in reversed(rooms[folder][:i]) if not plan.beside(room, r)), None)
            if below:
                yield f'  "{room.path}" -> "{below.path}" [style=invis];'
    for folder in folders:
        lower = reversed(folders[:folders.index(folder)])
        below = next((f for f in lower if not plan.beside(rooms[folder][0], rooms[f][0])), None)
        for room in rooms.get(below, []):
            if room is rooms[below][-1] or plan.beside(room, rooms[below][-1]):
                yield f'  "{rooms[folder][0].path}" -> "{room.path}" [style=invis, weight=20];'
    between = collections.Counter()
    for (user, used), n in sorted(counts.items(), key=lambda item: (item[0][0].order, item[0][1].order)):
        if plan.objection(user, used):
            yield f'  "{user.path}" -> "{used.path}" [label="{n}", color=red, fontcolor=red, penwidth=2, constraint=false];'
        elif user.folder == used.folder:
            yield f'  "{user.path}" -> "{used.path}" [label="{n}"];'
        else:
            between[user.folder, used.folder] += n
    for (above, below), n in between.items():
        yield (f'  "{rooms[above][0].path}" -> "{rooms[below][-1].path}" [label="{n}", ltail="cluster_{above}", '
               f'lhead="cluster_{below}", color="#3366aa", fontcolor="#3366aa", penwidth=1.5];')
    yield "}"


def report(findings):
    wrong = 0
    for finding in findings:
        print(finding)
        wrong = 1
    return wrong


def check_sources(tree):
    includes = list(tree.includes())
    wrong = report(check_places(tree))
    wrong |= report(check_includes(tree, includes))
    wrong |= report(check_circles(tree, includes))
    wrong |= report(check_lists(tree))
    return wrong


def draw_svg(tree, path):
    if not shutil.which("dot"):
        raise Skip("no dot; it is in the package graphviz")
    text = "\n".join(draw(tree, list(tree.includes())))
    return subprocess.run(["dot", "-Tsvg", "-o", path], input=text, text=True, check=False).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    one = parser.add_mutually_exclusive_group()
    one.add_argument("--symbols", metavar="BUILD")
    one.add_argument("--dot", action="store_true")
    one.add_argument("--svg", metavar="FILE")
    one.add_argument("--markdown", action="store_true")
    one.add_argument("--folders", action="store_true")
    arguments = parser.parse_args()

    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    plan = Plan(ROOMS, SIDE_BY_SIDE)
    if arguments.folders:
        print("\n".join(folder for folder in plan.folders() if os.path.isdir(os.path.join(root, folder))))
        return 0
    if arguments.markdown:
        print("| room | what belongs there |\n| --- | --- |")
        print("\n".join(f"| `{room.path}` | {room.line} |" for room in plan.rooms))
        return 0
    tree = Tree(root, plan)
    try:
        if arguments.symbols:
            symbols = Symbols(tree, os.path.realpath(arguments.symbols))
            wrong = report(check_symbols(tree, symbols))
            print(f"{symbols.n} objects, {len(symbols.defined)} symbols")
            return wrong
        if arguments.svg:
            return draw_svg(tree, arguments.svg)
    except Skip as reason:
        print(f"skipped: {reason}")
        return SKIPPED
    if arguments.dot:
        print("\n".join(draw(tree, list(tree.includes()))))
        return 0
    return check_sources(tree)


if __name__ == "__main__":
    sys.exit(main())
