#!/usr/bin/env python3
"""Shows that check_rooms.py finds what it is there to find, on trees made for it. Exits with 77 where there is no compiler for
the part about symbols.

  test_check_rooms.py [COMPILER]
"""
import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import check_rooms  # noqa: E402

COMPILER = "cc"

ROWS = [
    ("include/fsdp", ".", "headers"),
    ("kernels", "host", "kernels"),
    ("lib", "base", "low"),
    ("lib", "queue", "high"),
    ("shard", ".", "shards"),
    ("tools/common", ".", "shared by tools"),
    ("tools/ckpt", ".", "one tool"),
    ("tools/topo", ".", "another"),
    ("bench", ".", "a third"),
    ("mpi-examples", "03_gpt", "an example"),
    ("tests", "**", "tests"),
]
BESIDE = [("tools/ckpt", "tools/topo", "bench", "mpi-examples")]

GOOD = {
    "CMakeLists.txt": "foreach(part kernels lib shard)\n    add_subdirectory(${part})\nendforeach()\n"
                      "add_library(fsdp tools/ckpt/t.c mpi-examples/03_gpt/m.c)\nadd_subdirectory(tests)\n",
    ".clang-tidy": "HeaderFilterRegex: '/(include/fsdp|kernels|lib|shard|tools|bench|mpi-examples|tests)/'\n",
    "include/fsdp/a.h": "#include <stdio.h>\n",
    "kernels/CMakeLists.txt": "set(kernels k)\n",
    "kernels/host/k.c": '#include "half.h"\n#include "fsdp/a.h"\n',
    "kernels/host/half.h": "#include <stddef.h>\n",
    "lib/CMakeLists.txt": 'add_library(lib base/l.c "${PROJECT_SOURCE_DIR}/lib/queue/q.c")\n',
    "lib/base/l.h": '  #  include  "kernels/host/half.h"\n',
    "lib/base/l.c": '#include "lib/base/l.h"\n#include "lib/base/m.h"\n',
    "lib/base/m.h": "#include <stddef.h>\n",
    "lib/queue/q.h": '#include "lib/base/l.h"\n',
    "lib/queue/q.c": '#include "lib/queue/q.h"\n',
    "shard/CMakeLists.txt": "",
    "shard/s.h": '#include "lib/queue/q.h"\n',
    "tools/common/c.h": "#include <stddef.h>\n",
    "tools/ckpt/t.h": '#include "tools/common/c.h"\n',
    "tools/ckpt/t.c": '#include "tools/ckpt/t.h"\n',
    "tools/topo/u.h": '#include "tools/common/c.h"\n',
    "bench/b.h": '#include "shard/s.h"\n#include "tools/common/c.h"\n',
    "mpi-examples/03_gpt/m.c": '#include "fsdp/a.h"\n',
    "tests/CMakeLists.txt": "fsdp_test(l)\n",
    "tests/lib/test_l.c": '#include "bench/b.h"\n',
}


class MadeUpTree(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="rooms.")
        self.addCleanup(shutil.rmtree, self.root)
        for path, text in GOOD.items():
            self.append(path, text)

    def append(self, path, text):
        full = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "a", encoding="utf-8") as file:
            file.write(text)

    def tree(self, rows=None):
        return check_rooms.Tree(self.root, check_rooms.Plan(rows or ROWS, BESIDE))

    def check(self, rows=None):
        """The exit status and what is printed."""
        with contextlib.redirect_stdout(io.StringIO()) as output:
            status = check_rooms.check_sources(self.tree(rows))
        return status, output.getvalue()

    def refuses(self, path, text, expected, rows=None):
        """With `text` appended to a file the check fails and says what is expected, and that alone."""
        self.append(path, text + "\n")
        status, output = self.check(rows)
        self.assertEqual(1, status)
        self.assertIn(expected, output)
        self.assertEqual(1, output.count("\n"), output)


class Sources(MadeUpTree):
    def test_a_good_tree(self):
        self.assertEqual((0, ""), self.check())

    def test_a_header_of_the_interface_includes_nothing_else(self):
        self.refuses("include/fsdp/a.h", '#include "kernels/host/half.h"',
                     "include/fsdp/a.h:2: include/fsdp may not include kernels/host/half.h, which is above it")

    def test_a_relative_path_upwards(self):
        self.refuses("kernels/host/half.h", '# include "../../lib/base/m.h"', "kernels/host may not include lib/base/m.h")

    def test_angle_brackets_upwards(self):
        self.refuses("lib/base/l.h", "#include <shard/s.h>", "lib/base may not include shard/s.h, which is above it")

    def test_a_folder_above(self):
        self.refuses("shard/s.h", '#include "bench/b.h"', "shard may not include bench/b.h")

    def test_what_the_tools_share_includes_no_program(self):
        self.refuses("tools/common/c.h", '#include "bench/b.h"', "tools/common may not include bench/b.h")

    def test_nothing_includes_tests(self):
        self.append("tests/lib/help.h", "")
        self.refuses("bench/b.h", '#include "tests/lib/help.h"', "bench may not include tests/lib/help.h, which is above it")

    def test_programs_side_by_side(self):
        self.refuses("mpi-examples/03_gpt/m.c", '#include "bench/b.h"',
                     "mpi-examples/03_gpt may not include bench/b.h, which stands beside it")

    def test_tools_side_by_side(self):
        self.refuses("tools/topo/u.h", '#include "tools/ckpt/t.h"', "tools/topo may not include tools/ckpt/t.h, which stands")

    def test_bench_and_tools_side_by_side(self):
        self.refuses("tools/ckpt/t.h", '#include "bench/b.h"', "tools/ckpt may not include bench/b.h, which stands beside it")

    def test_quotes_around_a_header_of_the_system(self):
        self.refuses("lib/base/l.h", '#include "stdlib.h"', '"stdlib.h" is no file of this project')

    def test_a_file_that_is_in_no_room(self):
        self.append("cmake/probe.h", "")
        self.append("shard/s.h", '#include "cmake/probe.h"\n')
        status, output = self.check()
        self.assertEqual(1, status)
        self.assertIn("cmake/probe.h: no room of the table is cmake", output)
        self.assertIn("shard may not include cmake/probe.h, which is in no room", output)

    def test_a_room_above(self):
        self.refuses("lib/base/m.h", '#include "lib/queue/q.h"', "lib/base may not include lib/queue/q.h, which is above it")

    def test_a_circle_of_two_files(self):
        self.refuses("lib/base/m.h", '#include "lib/base/l.h"', "lib/base: a circle of includes: l -> m -> l")

    def test_a_circle_through_a_source(self):
        self.append("lib/base/n.h", '#include "lib/base/l.h"\n')
        self.append("lib/base/n.c", '#include "lib/base/n.h"\n')
        self.append("lib/CMakeLists.txt", "target_sources(lib PRIVATE base/n.c base/m.c)\n")
        self.refuses("lib/base/m.c", '#include "lib/base/n.h"', "lib/base: a circle of includes: l -> m -> n -> l")

    def test_a_folder_that_is_no_room(self):
        self.refuses("lib/queue/deep/x.h", "", "lib/queue/deep/x.h: no room of the table is lib/queue/deep")

    def test_a_file_beside_the_rooms(self):
        self.refuses("lib/x.h", "", "lib/x.h: no room of the table is lib")

    def test_a_new_top_folder(self):
        self.refuses("plugins/x.h", "", "plugins/x.h: no room of the table is plugins")

    def test_a_room_without_files(self):
        os.remove(os.path.join(self.root, "shard/s.h"))
        os.remove(os.path.join(self.root, "bench/b.h"))
        self.append("bench/b.h", "")
        self.refuses("tests/CMakeLists.txt", "", "shard: a room of the table without a source")

    def test_a_crowded_room_is_only_noted(self):
        for i in range(check_rooms.FEW_FILES):
            self.append(f"shard/s{i}.h", "")
        status, output = self.check()
        self.assertEqual(0, status)
        self.assertIn("note: shard holds 16 files", output)

    def test_a_source_that_nothing_compiles(self):
        self.refuses("lib/base/x.c", "", "lib/base/x.c: no CMakeLists.txt names this file")

    def test_a_test_that_nothing_runs(self):
        self.refuses("tests/lib/test_x.c", "", "tests/lib/test_x.c: no CMakeLists.txt names this file")

    def test_a_folder_that_the_build_leaves_out(self):
        self.refuses("tests/lib/CMakeLists.txt", "", "tests/lib/CMakeLists.txt: tests/CMakeLists.txt does not add this folder")

    def test_another_line_for_a_room(self):
        self.append("lib/CMakeLists.txt", "# base: low\n")
        self.refuses("lib/CMakeLists.txt", "    # queue: higher", "says of room queue 'higher', and the table 'high'")

    def test_a_folder_that_clang_tidy_leaves_out(self):
        self.append("plugins/x.h", "")
        self.refuses("CMakeLists.txt", "", ".clang-tidy: HeaderFilterRegex leaves out plugins",
                     ROWS + [("plugins", ".", "new")])

    def test_a_build_inside_the_tree_is_none_of_it(self):
        self.append("build/x.h", "")
        self.append("out/debug/CMakeCache.txt", "")
        self.append("out/debug/x.c", "")
        self.append(".hidden/x.c", "")
        self.assertEqual((0, ""), self.check())


class Drawing(MadeUpTree):
    def drawn(self):
        tree = self.tree()
        return "\n".join(check_rooms.draw(tree, list(tree.includes())))

    def test_arrows_are_counted(self):
        self.append("lib/queue/q.c", '#include "lib/base/m.h"\n')
        self.assertIn('"lib/queue" -> "lib/base" [label="2"]', self.drawn())

    def test_arrows_point_down(self):
        """In the drawing of the sources themselves; what is forbidden is not asked here."""
        if not shutil.which("dot"):
            self.skipTest("no dot; it is in the package graphviz")
        root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
        tree = check_rooms.Tree(root, check_rooms.Plan(check_rooms.ROOMS, check_rooms.SIDE_BY_SIDE))
        text = "\n".join(line for line in check_rooms.draw(tree, list(tree.includes())) if "color=red" not in line)
        drawing = subprocess.run(["dot", "-Tplain"], input=text, stdout=subprocess.PIPE, text=True, check=True).stdout
        lines = [line.split() for line in drawing.splitlines()]
        height = {line[1]: float(line[3]) for line in lines if line[0] == "node"}
        arrows = [line for line in lines if line[0] == "edge" and "invis" not in line]
        self.assertGreater(len(arrows), len(check_rooms.ROOMS))
        for arrow in arrows:
            self.assertGreater(height[arrow[1]], height[arrow[2]], f"{arrow[1]} -> {arrow[2]}")

    def test_what_is_forbidden_is_red(self):
        self.assertNotIn("color=red", self.drawn())
        self.append("lib/base/m.h", '#include "lib/queue/q.h"\n')
        self.assertIn('"lib/base" -> "lib/queue" [label="1", color=red', self.drawn())


class Symbols(MadeUpTree):
    def setUp(self):
        super().setUp()
        if not shutil.which(COMPILER):
            self.skipTest(f"no {COMPILER}")
        self.append("lib/base/l.c", "int base_value(void);\nint base_value(void) { return 1; }\n")
        self.append("lib/queue/q.c", "int base_value(void);\nint queue_value(void);\n"
                                     "int queue_value(void) { return base_value(); }\n")

    def compile(self, *flags):
        """Compiles all of lib and tools/ckpt, as CMake would have it. @return the build folder"""
        build = os.path.join(self.root, "build")
        commands = []
        for path in ("lib/base/l.c", "lib/queue/q.c", "tools/ckpt/t.c"):
            output = f"CMakeFiles/all.dir/{path}.o"
            command = [COMPILER, *flags, "-I", self.root, "-I", os.path.join(self.root, "include"), "-o", output, "-c",
                       os.path.join(self.root, path)]
            os.makedirs(os.path.dirname(os.path.join(build, output)), exist_ok=True)
            subprocess.run(command, cwd=build, check=True)
            commands.append({"directory": build, "command": " ".join(command), "file": os.path.join(self.root, path)})
        self.append("build/compile_commands.json", json.dumps(commands))
        return build

    def check_symbols(self, build):
        tree = self.tree()
        return list(check_rooms.check_symbols(tree, check_rooms.Symbols(tree, build)))

    def make_upward_call(self):
        self.append("lib/base/l.c", "int queue_value(void);\nint up(void);\nint up(void) { return queue_value(); }\n")

    def test_a_good_tree(self):
        self.assertEqual([], self.check_symbols(self.compile()))

    def test_a_room_above(self):
        self.make_upward_call()
        self.assertEqual(["lib/base/l.c: lib/base may not use queue_value of lib/queue/q.c, which is above it"],
                         self.check_symbols(self.compile()))

    def test_a_folder_above(self):
        self.append("tools/ckpt/t.c", "int tool_value(void);\nint tool_value(void) { return 1; }\n")
        self.append("lib/queue/q.c", "extern int tool_value(void);\nint up(void);\nint up(void) { return tool_value(); }\n")
        self.assertEqual(["lib/queue/q.c: lib/queue may not use tool_value of tools/ckpt/t.c, which is above it"],
                         self.check_symbols(self.compile()))

    def test_a_variable_above(self):
        self.append("lib/queue/q.c", "int queue_state;\n")
        self.append("lib/base/l.c", "extern int queue_state;\nint *state(void);\nint *state(void) { return &queue_state; }\n")
        self.assertEqual(["lib/base/l.c: lib/base may not use queue_state of lib/queue/q.c, which is above it"],
                         self.check_symbols(self.compile("-fPIC")))

    def test_objects_for_the_linker_to_optimize(self):
        self.make_upward_call()
        version = subprocess.run([COMPILER, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        if "Free Software Foundation" not in version:
            self.skipTest("the flags are GCC's")
        for flags in (("-flto", "-ffat-lto-objects"), ("-flto", "-fno-fat-lto-objects")):
            with self.subTest(flags=flags):
                build = self.compile(*flags)
                try:
                    self.assertEqual(1, len(self.check_symbols(build)))
                except check_rooms.Skip as reason:
                    self.assertIn("-fno-fat-lto-objects", flags, reason)
                shutil.rmtree(build)

    def test_without_objects_it_says_why_it_cannot_look(self):
        with self.assertRaisesRegex(check_rooms.Skip, "no commands of compilers"):
            self.check_symbols(os.path.join(self.root, "build"))
        build = self.compile()
        shutil.rmtree(os.path.join(build, "CMakeFiles"))
        with self.assertRaisesRegex(check_rooms.Skip, "no objects in"):
            self.check_symbols(build)


class Table(unittest.TestCase):
    def test_rooms_are_named_once_and_have_a_line_each(self):
        paths = [room.path for room in check_rooms.Plan(check_rooms.ROOMS, check_rooms.SIDE_BY_SIDE).rooms]
        self.assertEqual(len(paths), len(set(paths)))
        for _, _, line in check_rooms.ROOMS:
            self.assertRegex(line, r"^\w.*[^.]$")

    def test_what_stands_side_by_side_is_in_the_table(self):
        known = {room.path for room in check_rooms.Plan(check_rooms.ROOMS, []).rooms} | {row[0] for row in check_rooms.ROOMS}
        for row in check_rooms.SIDE_BY_SIDE:
            self.assertLessEqual(set(row), known)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        COMPILER = sys.argv.pop(1)
    unittest.main()
