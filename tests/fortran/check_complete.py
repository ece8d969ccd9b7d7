#!/usr/bin/env python3
"""The module of Fortran against the public headers, so that neither gets ahead.

    check_complete.py SOURCE [--cc CC] [--fc FC] [--modules FOLDER] [--includes FOLDER...]

Every function has an interface with as many arguments, passed as C takes them; every struct has its members, in order, of the
same type; every constant is there; and nothing is in the module that is in no header, but for OWN. With --modules, two programs,
one in each language, then print values, sizes and offsets, which must be the same, and every name must be found by `use fsdp`.
--includes are the folders of MPI's headers.
"""
import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile

from headers import Headers

# What Fortran alone has, and why.
OWN = {
    "fsdp_is_null": "handles hide their pointer",
    "fsdp_string": "texts of C",
    "fsdp_set_text": "texts of C",
    "fsdp_tensor_spec": "fsdp_tensor without pointers",
    "fsdp_hook_function": "the type of members of fsdp_hook_callbacks",
    "fsdp_pipeline_forward": "of a member of fsdp_pipeline_callbacks, as the next three",
    "fsdp_pipeline_loss": "",
    "fsdp_pipeline_backward_input": "",
    "fsdp_pipeline_backward_weight": "",
}
# Functions that take C's handles of communicators, and by what the module reaches them.
REACHED = {"fsdp_init": "fsdp_init_f", "fsdp_comm_order_by_node": "fsdpi_comm_order_by_node_f"}
SCALARS = {"int": "integer(c_int)", "unsigned": "integer(c_int)", "size_t": "integer(c_size_t)", "uint64_t": "integer(c_int64_t)",
           "int64_t": "integer(c_int64_t)", "int32_t": "integer(c_int32_t)", "uint32_t": "integer(c_int32_t)", "double": "real(c_double)", "MPI_Fint": "integer(c_int)"}


def statements(text):
    """The statements of Fortran, without comments, in lower case but for what is in quotes."""
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    lines = []
    for line in text.split("\n"):
        code = re.match(r"""((?:[^!'"]|'[^']*'|"[^"]*")*)""", line)[1].strip()
        if code:
            lines.append(code)
    joined = re.sub(r" *&\n *&?", " ", "\n".join(lines))
    return [re.sub(r"\s+", " ", re.sub(r"('[^']*'|\"[^\"]*\")|([^'\"]+)", lambda m: m[1] or m[2].lower(), line))
            for line in joined.split("\n")]


class Module:
    """What the sources of the module declare."""

    def __init__(self, root):
        self.bound, self.structs, self.constants, self.public = {}, {}, {}, set()
        paths = [path for pattern in ("*.f90", "*.F90", "*.inc") for path in
                 glob.glob(os.path.join(root, "fortran", "**", pattern), recursive=True)]
        for path in sorted(paths):
            with open(path, encoding="utf-8") as file:
                self.read(statements(file.read()))

    def read(self, lines):
        struct = function = None
        for line in lines:
            bound = re.match(r'(?:pure )?(?:(.*) )?(function|subroutine) \w+\((.*?)\) bind\(c, name="(\w+)"\)', line)
            if bound:
                function = self.bound[bound[4]] = {"result": bound[1], "arguments": re.findall(r"\w+", bound[3]), "types": {}}
            elif re.match(r"end (function|subroutine)", line):
                function = None
            elif re.match(r"type, bind\(c\), public :: ", line):
                struct = self.structs[line.split(":: ")[1]] = []
                self.public.add(line.split(":: ")[1])
            elif line == "end type":
                struct = None
            elif "::" in line:
                kind, names = (part.strip() for part in line.split("::", 1))
                if struct is not None:
                    struct += [(name, kind, extent) for name, extent in
                               re.findall(r"(\w+)(?:\(([^)]*)\))?(?: = [^,]*)?(?:, |$)", names)]
                elif function is not None:
                    function["types"].update({name: kind for name in re.findall(r"(\w+)(?:\(\*\))?", names)})
                elif ", parameter" in kind:
                    self.constants.update({name: kind for name in re.findall(r"\b(fsdp_\w+) = ", names)})
                elif kind == "public" or re.match(r"type.*, public$", kind):
                    self.public.update(re.findall(r"\bfsdp_\w+", names))


class Check:
    def __init__(self, headers, module):
        self.headers, self.module, self.complaints = headers, module, []

    def complain(self, text):
        self.complaints.append(text)

    def scalar(self, c_type):
        if c_type in self.headers.callbacks or c_type == "(*)":
            return "type(c_funptr)"
        return "integer(c_int)" if c_type in self.headers.enums else SCALARS.get(c_type)

    def sources(self):
        self.functions()
        self.structs()
        self.constants()
        self.nothing_else()

    def functions(self):
        for name, (result, arguments) in self.headers.functions.items():
            if result == "inline":
                continue
            if name in REACHED:
                if REACHED[name] not in self.module.bound:
                    self.complain(f"{name}: nothing is bound to {REACHED[name]}")
                continue
            bound = self.module.bound.get(name)
            if not bound:
                self.complain(f"{name}: no interface is bound to it")
            elif len(bound["arguments"]) != len(arguments):
                self.complain(f"{name}: {len(arguments)} arguments, and {len(bound['arguments'])} in Fortran")
            else:
                self.function(name, result, arguments, bound)

    def function(self, name, result, arguments, bound):
        wanted = None if result == "void" else "type(c_ptr)" if result.endswith("*") else self.scalar(result)
        if wanted != bound["result"]:
            self.complain(f"{name}: returns {result}, and in Fortran {bound['result']}")
        for c, fortran in zip(arguments, bound["arguments"]):
            c_type, c_name = re.match(r"(.*?[ *])(\w+)$", c).groups()
            kind = bound["types"].get(fortran, "nothing")
            if c_name != fortran:
                self.complain(f"{name}: the argument {c_name} is called {fortran} in Fortran")
            self.argument(name, c_name, c_type.strip(), kind)

    def argument(self, name, argument, c_type, kind):
        by_value = kind.endswith(", value")
        if "*" not in c_type:
            good = kind == f"{self.scalar(c_type)}, value"
        else:
            target = c_type.replace("const", "").replace("*", "").strip()
            wanted = {"char": "character(kind=c_char)"}.get(target) or self.scalar(target) or f"type({target})"
            good = kind == "type(c_ptr), value" or not by_value and (
                kind.startswith(wanted + ",") or c_type.count("*") == 2 and kind.startswith("type(c_ptr),"))
        if not good:
            self.complain(f"{name}: {c_type} {argument} is {kind} in Fortran")

    def structs(self):
        for name, members in self.headers.structs.items():
            mine = self.module.structs.get(name)
            if mine is None:
                self.complain(f"{name}: no type in Fortran")
                continue
            if [member for member, _, _ in members] != [member for member, _, _ in mine]:
                self.complain(f"{name}: members {', '.join(m for m, _, _ in members)}; in Fortran {', '.join(m for m, _, _ in mine)}")
                continue
            for (member, c_type, _), (_, kind, _) in zip(members, mine):
                wanted = "type(c_ptr)" if "*" in c_type and c_type != "(*)" else \
                    "character(kind=c_char)" if c_type == "char" else self.scalar(c_type) or f"type({c_type})"
                if kind != wanted:
                    self.complain(f"{name}%{member}: {c_type} is {kind} in Fortran")

    def c_constants(self):
        return {name.lower(): name for name in self.headers.enumerators + self.headers.macros}

    def constants(self):
        for name in self.c_constants().values():
            if name.lower() not in self.module.constants:
                self.complain(f"{name}: no constant in Fortran")

    def nothing_else(self):
        known = {*self.headers.functions, *self.headers.structs, *self.headers.opaque, *self.headers.callbacks,
                 *self.c_constants(), *OWN, "fsdp_in_place"}
        for name in self.module.public | set(self.module.constants) | set(self.module.structs):
            if name not in known:
                self.complain(f"{name}: in Fortran only")
        for name in self.module.bound:
            if name.startswith("fsdp_") and name not in self.headers.functions:
                self.complain(f"{name}: bound in Fortran, and in no header")

    # ---- with compilers

    def programs(self, arguments):
        with tempfile.TemporaryDirectory() as folder:
            self.compile(folder, "c.c", self.c_program(), [arguments.cc, f"-I{arguments.source}/include", *arguments.includes])
            self.compile(folder, "f.f90", self.fortran_program(), [arguments.fc, f"-I{arguments.modules}", f"-J{folder}"])
            if self.complaints:
                return
            c, fortran = (subprocess.run([os.path.join(folder, name)], capture_output=True, text=True, check=True).stdout.split("\n")
                          for name in ("c", "f"))
        for mine, yours in zip(c, fortran):
            if mine != yours:
                self.complain(f"C says '{mine}', and Fortran '{yours}'")
        print(f"{len(c) - 1} values, sizes and offsets compared")

    def compile(self, folder, name, text, command):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        # what is linked is constants and layouts alone
        run = subprocess.run([*command, path, "-o", os.path.splitext(path)[0]], capture_output=True, text=True, check=False)
        if run.returncode:
            self.complain(f"{name} does not compile:\n{run.stderr}")

    def members(self):
        for name, members in self.headers.structs.items():
            for member, _, _ in members:
                yield name, member

    def numbers(self):
        return [name for name in self.c_constants().values() if name not in ("FSDP_INHERIT", "FSDP_ALGORITHM_NAMES")]

    def c_program(self):
        lines = ["#include <stddef.h>", "#include <stdio.h>", "#include <fsdp/fsdp.h>", "int main(void)", "{"]
        lines += [f'    printf("{name} %lld\\n", (long long){name});' for name in self.numbers()]
        lines += ['    printf("FSDP_INHERIT %.1f\\n", FSDP_INHERIT);', '    printf("%s\\n", FSDP_ALGORITHM_NAMES);']
        lines += [f'    printf("{name} %zu\\n", sizeof({name}));' for name in self.headers.structs]
        lines += [f'    printf("{name}.{member} %zu\\n", offsetof({name}, {member}));' for name, member in self.members()]
        return "\n".join(lines + ["    return 0;", "}", ""])

    def fortran_program(self):
        functions = [name for name in {**self.headers.functions, **OWN} if name not in ("fsdp_tensor_spec",)]
        lines = ["program f", "   use, intrinsic :: iso_c_binding", "   use, intrinsic :: iso_fortran_env, only: int64"]
        # found by name, which is all that is wanted of them here
        lines += [f"   use fsdp, only: {name}" for name in [*functions, *self.headers.opaque, "FSDP_IN_PLACE", "fsdp_tensor_spec"]]
        lines += [f"   use fsdp, only: {name}" for name in [*self.headers.structs, *self.c_constants().values()]]
        lines += ["   implicit none"]
        lines += [f"   type({name}), target :: s{i}" for i, name in enumerate(self.headers.structs)]
        lines += [f"   print '(a, 1x, i0)', '{name}', int({name}, int64)" for name in self.numbers()]
        lines += ["   print '(a, 1x, f0.1)', 'FSDP_INHERIT', FSDP_INHERIT", "   print '(a)', FSDP_ALGORITHM_NAMES"]
        lines += [f"   print '(a, 1x, i0)', '{name}', c_sizeof(s{i})" for i, name in enumerate(self.headers.structs)]
        index = {name: i for i, name in enumerate(self.headers.structs)}
        extents = {(name, member): extent for name, members in self.headers.structs.items() for member, _, extent in members}
        lines += [f"   print '(a, 1x, i0)', '{name}.{member}', offset(c_loc(s{index[name]}), "
                  f"c_loc(s{index[name]}%{member}{'(1)' if extents[name, member] else ''}))" for name, member in self.members()]
        return "\n".join(lines + ["contains", "   integer(c_intptr_t) function offset(from, to)",
                                  "      type(c_ptr), intent(in) :: from, to",
                                  "      offset = transfer(to, offset) - transfer(from, offset)", "   end function", "end program", ""])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--fc", default="gfortran")
    parser.add_argument("--modules")
    parser.add_argument("--includes", nargs="*", default=[])
    arguments = parser.parse_args()
    arguments.includes = [f"-I{folder}" for folder in arguments.includes]
    check = Check(Headers(arguments.cc, arguments.includes, arguments.source), Module(arguments.source))
    check.sources()
    print(f"{len(check.headers.functions)} functions, {len(check.headers.structs)} structs, {len(check.c_constants())} constants")
    if arguments.modules and not check.complaints:
        check.programs(arguments)
    print("\n".join(check.complaints) or "the module and the headers agree")
    return 1 if check.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
