#!/usr/bin/env python3
"""check_complete.py finds what a header has gained or lost, and what the module has beside it.

    test_check_complete.py SOURCE CC FOLDER_OF_MPIS_HEADERS...
"""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, COMPILER, *INCLUDES = sys.argv[1:]
SCRIPT = os.path.join(os.path.dirname(os.path.realpath(__file__)), "check_complete.py")


class Complete(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = folder.name
        for name in ("include", "fortran"):
            shutil.copytree(os.path.join(SOURCE, name), os.path.join(self.root, name))

    def replace(self, name, old, new):
        path = os.path.join(self.root, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.assertIn(old, text)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(old, new, 1))

    def says(self, *complaints):
        command = [sys.executable, SCRIPT, self.root, "--cc", COMPILER, "--includes", *INCLUDES]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 1 if complaints else 0, run.stdout + run.stderr)
        for complaint in complaints:
            self.assertIn(complaint, run.stdout)

    def test_they_agree(self):
        self.says()

    def test_a_function_more(self):
        self.replace("include/fsdp/version.h", "FSDP_API const char *fsdp_version(void);",
                     "FSDP_API const char *fsdp_version(void);\nFSDP_API int fsdp_codename(int number);")
        self.says("fsdp_codename: no interface is bound to it")

    def test_a_function_less(self):
        self.replace("include/fsdp/version.h", "FSDP_API const char *fsdp_version(void);", "")
        self.says("fsdp_version: bound in Fortran, and in no header", "fsdp_version: in Fortran only")

    def test_an_argument_more(self):
        self.replace("include/fsdp/context.h", "fsdp_finalize(fsdp_context *ctx)", "fsdp_finalize(fsdp_context *ctx, int now)")
        self.says("fsdp_finalize: 2 arguments, and 1 in Fortran")

    def test_an_argument_of_another_type(self):
        self.replace("include/fsdp/gradients.h", "fsdp_scale_grad(fsdp_model *model, double factor)",
                     "fsdp_scale_grad(fsdp_model *model, size_t factor)")
        self.says("fsdp_scale_grad: size_t factor is real(c_double), value in Fortran")

    def test_a_member_more(self):
        self.replace("include/fsdp/sampler.h", "typedef struct fsdp_sampler {", "typedef struct fsdp_sampler {\n    int kind;")
        self.says("fsdp_sampler: members kind, dataset")

    def test_a_member_of_another_type(self):
        self.replace("include/fsdp/sampler.h", "    int      shuffle;", "    double   shuffle;")
        self.says("fsdp_sampler%shuffle: double is integer(c_int) in Fortran")

    def test_a_constant_more(self):
        self.replace("include/fsdp/dtype.h", "    X(FSDP_SUM, 0", "    X(FSDP_FIRST, 5, \"first\") X(FSDP_SUM, 0")
        self.says("FSDP_FIRST: no constant in Fortran")

    def test_a_macro_more(self):
        self.replace("include/fsdp/stop.h", "#define FSDP_STOP_EXIT_STATUS 75", "#define FSDP_STOP_EXIT_STATUS 75\n#define FSDP_STOPS 8")
        self.says("FSDP_STOPS: no constant in Fortran")

    def test_a_name_of_fortran_alone(self):
        self.replace("fortran/tools.f90", "public :: fsdp_algorithm_text", "public :: fsdp_algorithm_texts, fsdp_algorithm_text")
        self.says("fsdp_algorithm_texts: in Fortran only")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
