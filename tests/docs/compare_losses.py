#!/usr/bin/env python3
"""Starts programs on the same ranks, one after the other, and compares the losses that they print with those of the first.

    compare_losses.py STEPS TOLERANCE 'LAUNCHER...' PROGRAM OTHER...

Each prints STEPS lines `step N | loss X`. Fails if one prints other lines or none, a loss differs by more than TOLERANCE, or the
first program does not learn, so that equal losses would say nothing.
"""
import re
import shlex
import subprocess
import sys

LINE = re.compile(r"step +(\d+) \| loss (\d+\.\d{7})")


def losses_of(launcher, program, steps):
    result = subprocess.run(launcher + [program], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300, check=False)
    if result.returncode:
        sys.exit(f"{program} ends with {result.returncode}:\n{result.stdout}{result.stderr}")
    lines = [LINE.fullmatch(line) for line in result.stdout.splitlines()]
    if [int(line[1]) if line else None for line in lines] != list(range(1, steps + 1)):
        sys.exit(f"{program} does not print the losses of {steps} steps:\n{result.stdout}")
    return [float(line[2]) for line in lines]


def main():
    steps, tolerance, launcher = int(sys.argv[1]), float(sys.argv[2]), shlex.split(sys.argv[3])
    first, others = sys.argv[4], sys.argv[5:]
    expected = losses_of(launcher, first, steps)
    if len(set(expected)) < steps / 2 or sum(expected[-5:]) >= sum(expected[:5]):
        sys.exit(f"{first} does not learn: {expected}")
    for other in others:
        found = losses_of(launcher, other, steps)
        difference = max(abs(a - b) for a, b in zip(expected, found))
        print(f"{other}: {difference:.1e} at most from {first}, {tolerance:g} allowed")
        if not difference <= tolerance:
            sys.exit(1)


if __name__ == "__main__":
    main()
