#!/usr/bin/env python3
"""check_docs.py finds what is wrong on a page, and finds nothing on one that is right."""
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # others read this folder meanwhile
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_docs

GOOD = """# Title

See [the part](#a-part), [another](docs/other.md#its-head) and `lib/thing.c`; `thing.c`, `FSDP_LOG`, preset `default`.

## A part

<!-- listing: docs/listings/a.c part -->
```c
int a;
```
"""


class Pages(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = self.folder.name
        self.write("docs/other.md", "# Its head\n")
        self.write("docs/listings/a.c", "/* begin part */\n    int a;\n/* end part */\n")
        self.write("lib/thing.c", "")
        self.write("tests/support/folder/check.sh", "")
        self.write("CMakePresets.json", '{ "name": "default", "configurePreset": "default" }')
        self.write("include/fsdp/config.h", '#define FSDP_ALGORITHM_NAMES "auto|ring"\n#define FSDP_SETTINGS(X) \\\n'
                   '    X(log_level, CHOICE, "FSDP_LOG", "warn", 0, "off|warn", "help") \\\n'
                   '    X(algo, CHOICE, "FSDP_ALGO", "auto", 1, FSDP_ALGORITHM_NAMES, \\\n      "help")\n')

    def write(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def complaints(self, page=GOOD):
        self.write("README.md", page)
        check = check_docs.Check(self.root)
        check.pages_alone()
        return check.complaints

    def finds(self, text, page):
        found = self.complaints(page)
        self.assertEqual(1, len(found), found)
        self.assertIn(text, found[0])

    def test_a_good_page_is_good(self):
        self.assertEqual([], self.complaints())

    def test_a_broken_link(self):
        self.finds("the link leads nowhere: docs/none.md", GOOD.replace("docs/other.md#its-head", "docs/none.md"))

    def test_a_broken_anchor(self):
        self.finds("no heading for #no-head", GOOD.replace("#its-head", "#no-head"))

    def test_a_missing_path(self):
        self.finds("there is no lib/nothing.c", GOOD.replace("`lib/thing.c`", "`lib/nothing.c`"))

    def test_a_missing_file(self):
        self.finds("no file is called nothing.c", GOOD.replace("`thing.c`", "`nothing.c`"))

    def test_an_unknown_name(self):
        self.finds("FSDP_LOGS is declared nowhere", GOOD.replace("FSDP_LOG", "FSDP_LOGS"))

    def test_an_unknown_preset(self):
        self.finds("there is no preset 'fast'", GOOD.replace("preset `default`", "preset `fast`"))

    def test_a_stale_listing(self):
        self.finds("differs from docs/listings/a.c part", GOOD.replace("int a;", "int b;"))

    def test_a_listing_without_its_part(self):
        self.finds("has no part 'whole'", GOOD.replace("a.c part", "a.c whole"))

    def test_code_that_is_in_no_file(self):
        self.finds("a block of c that is in no file", GOOD.replace("<!-- listing: docs/listings/a.c part -->\n", ""))

    def test_output_of_nothing(self):
        self.finds("nothing says what printed this", GOOD + "\n```text\nhello\n```\n")

    def test_a_long_line(self):
        self.finds("at most 120", GOOD + "x" * 121 + "\n")

    def test_a_settings_table_that_is_not_the_headers(self):
        row = "| `FSDP_LOG` | warn | off, warn | no | help |\n| `FSDP_ALGO` | auto | auto, ring | yes | help |\n"
        self.write("docs/settings.md", row)
        self.assertEqual([], self.complaints())
        self.write("docs/settings.md", row.replace("| warn |", "| off |"))
        self.assertEqual(2, len(self.complaints()))


class Options(unittest.TestCase):
    HELPS = {"run.sh": {"--full"}, "dependencies.sh": set(), "fsdp-topo": {"--ranks", "--json"}}

    def check(self, text):
        with tempfile.TemporaryDirectory() as root:
            with open(os.path.join(root, "README.md"), "w", encoding="utf-8") as file:
                file.write(text)
            check = check_docs.Check(root)
            documented = {name: set() for name in self.HELPS}
            check.options(check.pages[0], self.HELPS, documented)
            return check.complaints, documented

    def test_options_behind_a_program_are_its_own(self):
        complaints, documented = self.check("`mpirun --any 4 fsdp-topo --ranks 8` and `cmake --build x`\n")
        self.assertEqual([], complaints)
        self.assertEqual({"--ranks"}, documented["fsdp-topo"])

    def test_an_option_that_no_page_documents(self):
        check = check_docs.Check(os.path.join(os.path.dirname(__file__), "none"))
        check.undocumented({"fsdp-topo": {"--ranks", "--json", "--help"}}, {"fsdp-topo": {"--ranks"}})
        self.assertEqual(["no page documents fsdp-topo --json"], check.complaints)

    def test_an_unknown_option_of_a_program(self):
        self.assertEqual(1, len(self.check("```sh\nfsdp-topo --rank 8\n```\n")[0]))

    def test_a_program_that_is_not_built_everywhere(self):
        page = "<!-- options: 06_molecular_dynamics -->\n`--interval`, `build/default/mpi-examples/06_molecular_dynamics/06_molecular_dynamics`\n"
        self.assertEqual([], self.check(page)[0])
        self.assertEqual(1, len(self.check(page.replace("06_molecular_dynamics", "03_gpt"))[0]))

    def test_options_alone_are_those_of_the_comment_above(self):
        page = "<!-- options: fsdp-topo -->\n`--json` and `--full`\n"
        complaints, documented = self.check(page)
        self.assertEqual(1, len(complaints))
        self.assertIn("fsdp-topo: no option --full", complaints[0])
        self.assertEqual({"--json"}, documented["fsdp-topo"])


class Output(unittest.TestCase):
    def test_numbers_may_differ_and_lines_may_be_left_out(self):
        self.assertIsNone(check_docs.first_missing("loss 0.5\n...\nend 7", "head\nloss 0.25\nmore\nend 8"))

    def test_a_line_that_is_not_printed(self):
        self.assertEqual("middle", check_docs.first_missing("loss 1\nmiddle\nend", "loss 1\nend"))

    def test_order_counts(self):
        self.assertEqual("a", check_docs.first_missing("b\n...\na", "a\nb"))


if __name__ == "__main__":
    unittest.main()
