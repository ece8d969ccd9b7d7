#!/usr/bin/env python3
"""fsdp-ckpt against an independent reader and writer of safetensors, in plain Python.

    test_ckpt.py FSDP_CKPT MAKE_CHECKPOINT [unittest's options]
"""
import json
import math
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

CKPT, MAKE = sys.argv[1:3]
LIMIT = 200 * int(os.environ.get("TEST_TIME_FACTOR", "1"))  # seconds that no call takes
BITS = {"F64": 64, "F32": 32, "BF16": 16, "F16": 16, "I64": 64, "I32": 32, "U8": 8, "I8": 8, "BOOL": 8, "I16": 16,
        "U16": 16, "U32": 32, "U64": 64, "C64": 64, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F6_E2M3": 6,
        "F6_E3M2": 6, "F4": 4}


def write(path, tensors, metadata=None, padding=0):
    """tensors: name -> (dtype, shape, bytes)."""
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header, ensure_ascii=len(tensors) % 2 == 0).encode() + b" " * padding
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    """-> tensors as for write(), metadata, data offset; fails where the file breaks a rule."""
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    text = content[8:8 + length]
    assert text[:1] == b"{" and text.rstrip(b" ")[-1:] == b"}"
    header = json.loads(text, object_pairs_hook=unique)
    metadata = header.pop("__metadata__", None)
    end, tensors = 0, {}
    for name, about in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, after = about["data_offsets"]
        assert begin == end and (after - begin) * 8 == math.prod(about["shape"]) * BITS[about["dtype"]], name
        tensors[name] = (about["dtype"], about["shape"], content[8 + length + begin:8 + length + after])
        end = after
    assert len(content) == 8 + length + end
    return tensors, metadata, 8 + length


def unique(pairs):
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def floats(values):
    return struct.pack(f"<{len(values)}f", *values)


def to_bf16(bits):
    """The upper half of binary32, rounded to nearest even; NaN stays NaN."""
    if bits & 0x7fffffff > 0x7f800000:
        return bits >> 16 | 0x40
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16


def all_types():
    rng = random.Random(1)
    tensors = {f"of {dtype}": (dtype, [4, 2, 3], rng.randbytes(24 * bits // 8)) for dtype, bits in BITS.items()}
    tensors["scalar \u00e9\U0001f600"] = ("F32", [], floats([1.5]))
    tensors["nothing"] = ("F32", [0, 7], b"")
    return tensors


class Test(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="fsdp-ckpt-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_ckpt(self, status, *arguments, says=None, **options):
        done = subprocess.run([CKPT, *arguments], capture_output=True, text=True, timeout=LIMIT, check=False, **options)
        self.assertEqual(status, done.returncode, f"{arguments}: {done.stdout} {done.stderr}")
        if says:
            self.assertIn(says, done.stdout + done.stderr)
        return done.stdout

    def run_json(self, status, *arguments):
        return json.loads(self.run_ckpt(status, *arguments, "--json"), object_pairs_hook=unique)

    def checkpoint(self, *actor):
        subprocess.run([MAKE, self.path("run"), *actor], check=True, timeout=LIMIT)
        return self.path("run")

    # ---- list ----

    def test_lists_every_type(self):
        tensors = all_types()
        write(self.path("a.safetensors"), tensors, {"format": "pt", "\u00e9": "\n"}, padding=3)
        listed = self.run_json(0, "list", self.path("a.safetensors"))
        file = listed["files"][0]
        self.assertEqual({"format": "pt", "\u00e9": "\n"}, file["metadata"])
        self.assertEqual([(n, d, s, len(c)) for n, (d, s, c) in tensors.items()],
                         [(t["name"], t["dtype"], t["shape"], t["bytes"]) for t in file["tensors"]])
        self.assertEqual(len(tensors), listed["tensors"])
        self.assertEqual(sum(len(c) for _, _, c in tensors.values()), listed["bytes"])
        text = self.run_ckpt(0, "list", self.path("a.safetensors"), "--stats")
        self.assertIn("of F6_E2M3", text)

    def test_statistics_are_those_of_python(self):
        rng = random.Random(2)
        values = [rng.gauss(3, 10) for _ in range(600000)]  # more than one piece
        values = list(struct.unpack("<600000f", floats(values)))
        odd = [math.nan, math.inf, -math.inf]
        write(self.path("a.safetensors"), {"w": ("F32", [600003], floats(values + odd)),
                                           "i": ("I16", [3], struct.pack("<3h", -5, 7, 9)),
                                           "none": ("F32", [2], floats([math.nan, math.inf])),
                                           "c": ("C64", [1], bytes(8))})
        found = {t["name"]: t for t in self.run_json(0, "list", self.path("a.safetensors"), "--stats")["files"][0]["tensors"]}
        self.assertEqual((min(values), max(values), 3), (found["w"]["min"], found["w"]["max"], found["w"]["non_finite"]))
        self.assertAlmostEqual(math.fsum(values) / 600000, found["w"]["mean"], delta=1e-9)
        self.assertAlmostEqual(math.sqrt(math.fsum(v * v for v in values) / 600000), found["w"]["rms"], delta=1e-9)
        self.assertEqual((-5, 9, 11 / 3, 0), tuple(found["i"][k] for k in ("min", "max", "mean", "non_finite")))
        self.assertEqual(2, found["none"]["non_finite"])
        self.assertNotIn("mean", found["none"])
        self.assertNotIn("mean", found["c"])

    def test_lists_a_checkpoint(self):
        run = self.checkpoint()
        for path in run, self.path("run/step-000000005"):
            listed = self.run_json(0, "list", path)
            self.assertEqual(2, len(listed["files"]))
            self.assertEqual((5, 1, 7, 2**64 - 1, '"notes"', 3, "FULL_SHARD"), tuple(listed["state"][k] for k in (
                "step", "epoch", "sample", "seed", "text", "ranks", "strategy")))
            self.run_ckpt(0, "list", path, says="step 5, epoch 1, seed 18446744073709551615; saved by 3 ranks under FULL_SHARD; adamw after 5 steps")

    def test_lists_the_models_of_a_checkpoint(self):
        run = self.checkpoint("actor")
        listed = self.run_json(0, "list", run)
        self.assertEqual(["model", "optimizer", "actor.model", "actor.optimizer"],
                         [os.path.basename(file["path"])[:-len(".safetensors")] for file in listed["files"]])
        self.assertEqual([{"name": "actor", "strategy": "NO_SHARD", "optimizer": "sgd", "optimizer_steps": 1}],
                         listed["state"]["models"])
        self.assertEqual(8, listed["tensors"])
        self.run_ckpt(0, "list", run, says="after 5 steps\n  model actor under NO_SHARD; sgd after 1 step\n")

    def test_names_cannot_control_the_terminal(self):
        write(self.path("a.safetensors"), {"\x1b[31m\n": ("U8", [1], b"x")})
        self.assertNotIn("\x1b", self.run_ckpt(0, "list", self.path("a.safetensors")))

    # ---- convert ----

    def test_what_is_written_is_what_was_read(self):
        tensors = all_types()
        write(self.path("a.safetensors"), tensors, {"format": "pt"})
        self.run_ckpt(0, "convert", self.path("a.safetensors"), self.path("b.safetensors"))
        again, metadata, offset = read(self.path("b.safetensors"))
        self.assertEqual(tensors, again)
        self.assertEqual({"format": "pt"}, metadata)
        self.assertEqual(0, offset % 256)
        self.assertEqual(["a.safetensors", "b.safetensors"], sorted(os.listdir(self.folder)))

    def test_several_files_and_back(self):
        tensors = all_types()
        write(self.path("a.safetensors"), tensors, {"format": "pt"})
        os.mkdir(self.path("new"))
        self.run_ckpt(0, "convert", self.path("a.safetensors"), self.path("new/m.safetensors"), "--max-file-size", "300")
        with open(self.path("new/m.safetensors.index.json"), encoding="utf-8") as file:
            index = json.load(file, object_pairs_hook=unique)
        self.assertEqual(sum(len(c) for _, _, c in tensors.values()), index["metadata"]["total_size"])
        gathered, files = {}, sorted(set(index["weight_map"].values()))
        for number, name in enumerate(files):
            self.assertEqual(f"m-{number + 1:05}-of-{len(files):05}.safetensors", name)
            part, metadata, _ = read(self.path("new/" + name))
            self.assertLessEqual(sum(len(c) for _, _, c in part.values()), 300)
            self.assertEqual({"format": "pt"}, metadata)
            self.assertTrue(all(index["weight_map"][tensor] == name for tensor in part))
            gathered.update(part)
        self.assertGreater(len(files), 3)
        self.assertEqual(tensors, gathered)
        self.run_ckpt(0, "convert", self.path("new/m.safetensors.index.json"), self.path("b.safetensors"))
        self.assertEqual(tensors, read(self.path("b.safetensors"))[0])
        self.run_ckpt(0, "compare", self.path("a.safetensors"), self.path("new/m.safetensors.index.json"))

    def test_bf16_is_rounded_to_nearest_even(self):
        rng = random.Random(3)
        bits = [rng.getrandbits(32) for _ in range(600000)]  # more than one piece
        bits += [0x3f808000, 0x3f818000, 0x3f808001, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 1, 0x80000000,
                 0x7f800001, 0x00008000, 0x00018000]
        write(self.path("a.safetensors"), {"w": ("F32", [len(bits)], struct.pack(f"<{len(bits)}I", *bits)),
                                           "i": ("I32", [1], b"abcd")})
        self.run_ckpt(0, "convert", self.path("a.safetensors"), self.path("b.safetensors"), "--dtype=bf16")
        narrow = read(self.path("b.safetensors"))[0]
        self.assertEqual(("I32", [1], b"abcd"), narrow["i"])
        expected = [to_bf16(b) for b in bits]
        self.assertEqual(("BF16", [len(bits)], struct.pack(f"<{len(bits)}H", *expected)), narrow["w"])
        self.run_ckpt(0, "convert", self.path("b.safetensors"), self.path("d.safetensors"))
        self.assertEqual(narrow, read(self.path("d.safetensors"))[0])
        self.run_ckpt(0, "convert", self.path("b.safetensors"), self.path("c.safetensors"), "--dtype", "f32")
        self.assertEqual(struct.pack(f"<{len(bits)}I", *[b << 16 for b in expected]), read(self.path("c.safetensors"))[0]["w"][2])

    def test_converts_the_model_of_a_checkpoint(self):
        self.run_ckpt(0, "convert", self.checkpoint(), self.path("m.safetensors"))
        tensors = read(self.path("m.safetensors"))[0]
        self.assertEqual(floats(range(600)), tensors["w"][2])
        self.assertEqual(floats(range(600, 630)), tensors["b"][2])

    def test_converts_any_part_of_a_checkpoint(self):
        run = self.checkpoint("actor")
        for at, part in enumerate(("optimizer", "actor.model", "actor.optimizer"), 1):
            self.flip(self.path(f"run/step-000000005/{part}.safetensors"), -at)  # so that no two parts are alike
        for part in "model", "optimizer", "actor.model", "actor.optimizer":
            self.run_ckpt(0, "convert", run, self.path(f"{part}.safetensors"), "--part", part)
            self.assertEqual(read(self.path(f"run/step-000000005/{part}.safetensors"))[0],
                             read(self.path(f"{part}.safetensors"))[0])
        self.run_ckpt(2, "convert", run, self.path("c.safetensors"), "--part", "critic.model",
                      says="--part is 'critic.model'; use one of model, optimizer, actor.model, actor.optimizer")
        self.run_ckpt(3, "convert", run, self.path("c.safetensors"), "--part", "simulation", says="has no simulation; --part")

    def test_replaces_nothing_and_leaves_nothing_behind(self):
        write(self.path("a.safetensors"), {"w": ("F32", [50000], bytes(200000)), "v": ("U8", [1], b"x")})
        write(self.path("b.safetensors"), {})
        before = sorted(os.listdir(self.folder))
        self.run_ckpt(3, "convert", self.path("a.safetensors"), self.path("b.safetensors"), says="File exists")
        self.run_ckpt(3, "convert", self.path("a.safetensors"), self.path("none/c.safetensors"), says="No such file")
        self.run_ckpt(2, "convert", self.path("a.safetensors"), self.path("c"), says="must end in .safetensors")

        def little_room():
            resource.setrlimit(resource.RLIMIT_FSIZE, (100000, 100000))
        self.run_ckpt(3, "convert", self.path("a.safetensors"), self.path("c.safetensors"), says="cannot write",
                      preexec_fn=little_room, restore_signals=False)  # Python ignores SIGXFSZ
        self.run_ckpt(3, "convert", self.path("a.safetensors"), self.path("c.safetensors"), "--max-file-size", "1",
                      says="cannot write", preexec_fn=little_room, restore_signals=False)
        self.assertEqual(before, sorted(os.listdir(self.folder)))

    @unittest.skipIf("ASAN_OPTIONS" in os.environ, "a sanitizer needs more address space than any limit leaves")
    def test_64_mib_are_enough(self):
        size = 160 << 20
        header = json.dumps({"w": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
        with open(self.path("a.safetensors"), "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.truncate(8 + len(header) + size)  # a hole

        def little_memory():
            resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20))
        file = self.path("a.safetensors")
        for command in (["list", file, "--stats"], ["compare", file, file], ["verify", file],
                        ["convert", file, self.path("b.safetensors"), "--dtype", "bf16"]):
            self.run_ckpt(0, *command, preexec_fn=little_memory)

    # ---- compare ----

    def test_compares(self):
        a, b = self.path("a.safetensors"), self.path("b.safetensors")
        values = [1.0, -2.0, 0.0, math.nan, 1e30]
        write(a, {"w": ("F32", [5], floats(values)), "x": ("U8", [1], b"x"), "s": ("U8", [2], b"ab"), "z": ("F32", [1], floats([0.0]))})
        write(b, {"w": ("F32", [5], floats([1.0, -2.5, 0.0, math.nan, 1e30])), "y": ("U8", [1], b"x"), "s": ("U8", [1, 2], b"ab"),
                  "z": ("F32", [1], floats([-0.0]))})
        self.run_ckpt(0, "compare", a, a, says="4 tensors: 4 bitwise equal, 0 differ")
        found = self.run_json(1, "compare", a, b)
        self.assertEqual((5, 0), (found["tensors"], found["bitwise_equal"]))
        differences = {d["name"]: d for d in found["differences"]}
        self.assertEqual((1, 0.5, 0.2), tuple(differences["w"][k] for k in ("elements", "max_absolute", "max_relative")))
        self.assertEqual("only in the first", differences["x"]["difference"])
        self.assertEqual("only in the second", differences["y"]["difference"])
        self.assertEqual("shapes differ, 2 and 1 x 2", differences["s"]["difference"])
        self.assertEqual("bits differ, values do not", differences["z"]["difference"])
        write(b, {"w": ("F32", [5], floats([math.inf, -2, 0, 0, 1e30]))})
        found = self.run_json(1, "compare", a, b)["differences"]
        self.assertEqual((2, "Infinity"), tuple([d for d in found if d["name"] == "w"][0][k] for k in ("elements", "max_absolute")))

    def test_compares_checkpoints_with_their_optimizers(self):
        run, other = self.checkpoint(), self.path("other")
        shutil.copytree(run, other)
        self.run_ckpt(0, "compare", run, other, says="4 tensors: 4 bitwise equal")
        self.flip(self.path("other/step-000000005/optimizer.safetensors"), -1)
        self.run_ckpt(1, "compare", run, other, says="optimizer: b: values differ; 1 elements")
        self.run_ckpt(0, "compare", run, self.path("other/step-000000005/model.safetensors"), says="2 tensors: 2 bitwise")

    def test_compares_all_models_of_checkpoints(self):
        run, other = self.checkpoint("actor"), self.path("other")
        shutil.copytree(run, other)
        self.run_ckpt(0, "compare", run, other, says="8 tensors: 8 bitwise equal")
        self.flip(self.path("other/step-000000005/actor.optimizer.safetensors"), -1)
        self.run_ckpt(1, "compare", run, other, says="actor.optimizer: b: values differ; 1 elements")
        shutil.rmtree(other)
        subprocess.run([MAKE, other], check=True, timeout=LIMIT)
        self.run_ckpt(1, "compare", run, other, says="actor.model: b: only in the first")
        self.run_ckpt(1, "compare", other, run, says="actor.optimizer: w: only in the second")

    # ---- verify ----

    def flip(self, path, at):
        with open(path, "r+b") as file:
            file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))

    def test_verifies_a_checkpoint(self):
        run = self.checkpoint()
        self.assertEqual("good", self.run_json(0, "verify", run)["verdict"])
        for name in "model.safetensors", "optimizer.safetensors", "state.json":
            path = self.path("run/step-000000005/" + name)
            size = os.path.getsize(path)
            for at in [*range(0, size, 97), size - 1]:
                self.flip(path, at)
                self.run_ckpt(1, "verify", run, says=name)
                self.flip(path, at)
        self.run_ckpt(0, "verify", run)

    def test_verifies_every_model_of_a_checkpoint(self):
        run = self.checkpoint("actor")
        self.assertEqual(8, len(self.run_json(0, "verify", run)["checks"]))
        for name in "actor.model.safetensors", "actor.optimizer.safetensors":
            path = self.path("run/step-000000005/" + name)
            for at in 9, -1:
                self.flip(path, at)
                self.run_ckpt(1, "verify", run, says=name)
                self.flip(path, at)
            os.rename(path, path + ".away")
            self.run_ckpt(3, "verify", run, says=name)
            os.rename(path + ".away", path)
        self.run_ckpt(0, "verify", run)

    def test_one_damaged_file_does_not_hide_another(self):
        run = self.checkpoint()
        for name in "model.safetensors", "optimizer.safetensors":
            self.flip(self.path("run/step-000000005/" + name), -1)
        checks = self.run_json(1, "verify", run)["checks"]
        self.assertEqual(2, sum("damaged" in check.get("problem", "") for check in checks))

    def test_truncation_at_any_byte_is_found(self):
        write(self.path("a.safetensors"), {"w": ("F32", [2], bytes(8)), "v": ("U8", [1], b"x")}, {"k": "v"})
        size = os.path.getsize(self.path("a.safetensors"))
        self.run_ckpt(0, "verify", self.path("a.safetensors"), says="no checksums")
        for n in reversed(range(0, size, 3)):
            os.truncate(self.path("a.safetensors"), n)
            self.run_ckpt(1, "verify", self.path("a.safetensors"), says="damaged")

    def test_missing_files_are_not_readable(self):
        run = self.checkpoint()
        os.remove(self.path("run/step-000000005/model.safetensors"))
        self.run_ckpt(3, "verify", self.path("run/step-000000005"))
        self.run_ckpt(3, "verify", self.path("nowhere"), says="No such file")
        with open(self.path("run/latest"), "w", encoding="utf-8") as file:
            file.write("step-000000009\n")
        self.run_ckpt(3, "verify", run, says="step-000000009")
        with open(self.path("run/latest"), "w", encoding="utf-8") as file:
            file.write("../other\n")
        self.run_ckpt(1, "list", run)

    # ---- usage ----

    def test_usage(self):
        for arguments, says in (([], "a command is missing; --help"), (["x"], "there is no command 'x'; --help"),
                                (["list"], "PATH is missing"), (["list", "a", "b"], "argument 'b' is one too many"),
                                (["list", "a", "--dtype", "f32"], "fsdp-ckpt list: option '--dtype' is unknown"),
                                (["list", ""], "PATH is empty"),
                                (["compare", "a", "--json"], "the second PATH is missing"),
                                (["convert", "a", "b.safetensors", "--dtype"], "--dtype needs a value"),
                                (["convert", "a", "b.safetensors", "--dtype", "f8"], "--dtype is 'f8'; use f32, bf16 or f16")):
            self.run_ckpt(2, *arguments, says=says)
        for size in "0", "1X", "-1", "99999999T":
            self.run_ckpt(2, "convert", "a", "b.safetensors", "--max-file-size", size,
                          says=f"--max-file-size is '{size}'; give a whole number")
        self.run_ckpt(0, "--help", says="Exit status: 0 good; 1 the two differ")
        self.run_ckpt(0, "--version", says="fsdp-ckpt of libfsdp")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
