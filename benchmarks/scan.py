"""One file with very many bytes, scanned for very many fingerprints: how fast it is beside `grep`, and its memory.

    PYTHONPATH=. .venv/bin/python benchmarks/scan.py [--mib 1024] [--fingerprints 10000]

Half of the file is pseudo-random, half of it words. Each fingerprint is that of a value of 16 bytes, and `grep` looks
for the same values; ten of them are in the file. Medians of three rounds, with the file in the page cache. It prints
one JSON object; `peak_mib` is over what the process had before.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from orchestrator import Fingerprint, Keyring
from orchestrator.scan.fingerprints import Fingerprinter
from orchestrator.scan.report import Report
from orchestrator.scan.scanner import scan
from orchestrator.scan.sieve import CHUNK

MIB = 2**20
BLOCK = 8 * MIB
PLANTED = 10
ROUNDS = 3


def build(file: Path, mib: int, values: list[bytes]) -> None:
    """Write blocks of noise and of words in turn, and some of the values in the middle of some of them."""
    rng = np.random.default_rng(2)
    words = np.array(["".join(map(chr, rng.integers(97, 123, size))) for size in rng.integers(2, 11, 5_000)])
    blocks = mib * MIB // BLOCK
    holding = dict(zip(np.linspace(0, blocks - 1, PLANTED, dtype=int).tolist(), values, strict=False))
    with file.open("wb") as out:
        for number in range(blocks):
            text = number % 2 == 1
            block = " ".join(rng.choice(words, BLOCK // 3)).encode()[:BLOCK] if text else rng.bytes(BLOCK)
            value = holding.get(number, b"")
            out.write(block[: BLOCK // 2] + value + block[BLOCK // 2 + len(value) :])


def read(file: Path) -> None:
    """Read as the scan reads, and look at nothing."""
    buffer = bytearray(CHUNK)
    with file.open("rb", buffering=0) as source:
        while source.readinto(buffer):
            pass


def grep(file: Path, patterns: Path) -> None:
    command = ["grep", "-c", "-a", "-F", "-f", str(patterns), str(file)]
    done = subprocess.run(command, env={**os.environ, "LC_ALL": "C"}, capture_output=True, check=True)
    assert 0 < int(done.stdout) <= PLANTED


def resident(name: str) -> float:
    """Give VmRSS or VmHWM of this process in MiB."""
    (line,) = [text for text in Path("/proc/self/status").read_text().splitlines() if text.startswith(name)]
    return int(line.split()[1]) / 1024


def seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def measure(mib: int, fingerprints: int, folder: Path) -> dict[str, object]:
    rng = np.random.default_rng(1)
    values = [b"%016x" % number for number in rng.integers(0, 2**63, fingerprints).tolist()]
    patterns, file = folder / "values", folder / "file"
    patterns.write_bytes(b"\n".join(values) + b"\n")
    # A process of its own: what it needs would hide what the scan needs.
    builder = multiprocessing.get_context("spawn").Process(target=build, args=(file, mib, values))
    builder.start()
    builder.join()
    by = Fingerprinter.of(Keyring.create())
    wanted: dict[str, tuple[Fingerprint, ...]] = {}
    making = seconds(lambda: wanted.update({str(n): by.of_bytes(value).rows for n, value in enumerate(values)}))

    def look() -> Report:
        return scan([file], wanted, by=by, control=wanted["0"])

    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = resident("VmRSS")
    report = look()
    peak = resident("VmHWM") - before
    assert report.control_found
    assert report.hits == {str(n): 1 for n in range(PLANTED)}
    ways: dict[str, Callable[[], object]] = {"read": lambda: read(file), "scan": look}
    if shutil.which("grep"):
        ways["grep"] = lambda: grep(file, patterns)
    took: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            took[name].append(seconds(way))
    middle = {name: statistics.median(times) for name, times in took.items()}
    return {
        "mib": mib,
        "fingerprints": fingerprints,
        "microseconds_a_fingerprint": round(making / fingerprints * 1e6, 1),
        "mb_per_second": {name: round(mib * MIB / 1e6 / spent) for name, spent in middle.items()},
        "scan_to": {name: round(spent / middle["scan"], 3) for name, spent in middle.items() if name != "scan"},
        "peak_mib": round(peak, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--fingerprints", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(measure(given.mib, given.fingerprints, Path(folder)), indent=2))


if __name__ == "__main__":
    main()
