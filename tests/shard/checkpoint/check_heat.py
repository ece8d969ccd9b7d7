#!/usr/bin/env python3
"""A simulation and its surrogate in one checkpoint: saved on 4 ranks, killed, resumed on 3. Fields are bitwise as of the run that
nobody disturbed, losses within 1e-6. The files are read, and their checksums worked out, by Python's standard library alone.

    check_heat.py HEAT FSDP_CKPT MPIEXEC NUMPROC_FLAG [MPIEXEC'S FLAGS...]
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

HEAT, CKPT, MPIEXEC, NUMPROC = sys.argv[1:5]
FLAGS = sys.argv[5:]
STEPS, KILLED_BEHIND, SHAPE = 140, 125, [60, 48]
PRIME, CHUNK = 2**61 - 1, 4 << 20


def run(ranks, folder, *more):
    """-> exit status, losses by step"""
    done = subprocess.run([MPIEXEC, NUMPROC, str(ranks), *FLAGS, HEAT, folder, str(STEPS), *more], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=240)
    text = done.stdout.decode(errors="replace")
    found = re.findall(r"^step (\d+) after [0-9.]+ s \| loss ([0-9.]+)$", text, re.MULTILINE)
    return done.returncode, {int(step): float(loss) for step, loss in found}, text


def read(path):
    with open(path, "rb") as file:
        content = file.read()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    assert header.pop("__metadata__") == {"format": "pt"}
    return header, content[8 + length:], content


def key(i):
    mask = 2**64 - 1
    z = (i + 0x9e3779b97f4a7c15) & mask
    z = ((z ^ z >> 30) * 0xbf58476d1ce4e5b9) & mask
    z = ((z ^ z >> 27) * 0x94d049bb133111eb) & mask
    return (z ^ z >> 31) >> 3


def check_sums(folder, content):
    """simulation.safetensors against checksums.bin, by the definition of SUM61."""
    with open(os.path.join(folder, "state.json"), encoding="utf-8") as file:
        files = json.load(file)["checksums"]["files"]
    with open(os.path.join(folder, "checksums.bin"), "rb") as file:
        chunks = file.read()
    at = 16 * sum(about["chunks"] for about in files if about["name"] != "simulation.safetensors")
    about = files[-1]
    assert about["name"] == "simulation.safetensors" and about["algorithm"] == "SUM61", about
    assert about["bytes"] == len(content) and about["chunks"] == (len(content) + CHUNK - 1) // CHUNK == 1
    n_bytes, written = struct.unpack("<QQ", chunks[at:at + 16])
    padded = content + b"\0" * (-len(content) % 4)
    words = struct.unpack(f"<{len(padded) // 4}I", padded)
    assert n_bytes == len(content) and written == sum(w * key(i) for i, w in enumerate(words)) % PRIME


def main():
    with tempfile.TemporaryDirectory() as folder:
        whole, broken = os.path.join(folder, "whole"), os.path.join(folder, "broken")
        status, expected, text = run(4, whole)
        assert status == 0 and len(expected) == STEPS, text
        status, before, text = run(4, broken, str(KILLED_BEHIND))
        assert status != 0 and KILLED_BEHIND + 1 not in before, text
        status, after, text = run(3, broken)
        assert status == 0, text
        first = min(after)
        assert first % 10 == 1 and STEPS - first + 1 >= 20, f"resumed at step {first}"
        for step, loss in after.items():
            assert abs(loss - expected[step]) < 1e-6, f"step {step}: {loss}, and {expected[step]} undisturbed"
        assert expected[STEPS] < expected[1] / 2, "it learns nothing"

        paths = [os.path.join(where, f"step-{STEPS:09d}") for where in (whole, broken)]
        files = [read(os.path.join(path, "simulation.safetensors")) for path in paths]
        assert sorted(files[0][0]) == ["seconds", "temperature"]
        assert files[0][0]["temperature"]["shape"] == SHAPE and files[0][0]["temperature"]["dtype"] == "F64"
        assert files[0][1] == files[1][1], "fields differ"
        begin, _ = files[0][0]["seconds"]["data_offsets"]
        assert struct.unpack_from("<d", files[0][1], begin)[0] == 0.5 * STEPS
        for path, (_, _, content) in zip(paths, files):
            check_sums(path, content)

        def ckpt(*arguments):
            return subprocess.run([CKPT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        assert ckpt("verify", paths[1]).returncode == 0
        assert b"temperature" in ckpt("list", paths[1], "--stats").stdout
        assert b"simulation: " not in ckpt("compare", *paths).stdout
        target = os.path.join(folder, "f32.safetensors")
        assert ckpt("convert", paths[1], target, "--part", "simulation", "--dtype", "f32").returncode == 0
        header, data, _ = read(target)
        begin, end = header["temperature"]["data_offsets"]
        f64 = files[1][0]["temperature"]["data_offsets"]
        doubles = struct.unpack(f"<{SHAPE[0] * SHAPE[1]}d", files[1][1][f64[0]:f64[1]])
        assert data[begin:end] == struct.pack(f"<{SHAPE[0] * SHAPE[1]}f", *doubles)
        with open(os.path.join(paths[1], "simulation.safetensors"), "r+b") as file:
            file.seek(-5, os.SEEK_END)
            byte = file.read(1)[0]
            file.seek(-5, os.SEEK_END)
            file.write(bytes([byte ^ 16]))
        assert ckpt("verify", paths[1]).returncode == 1
        assert b"simulation: seconds: values differ" in ckpt("compare", *paths).stdout


main()
