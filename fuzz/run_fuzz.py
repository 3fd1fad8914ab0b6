"""Fuzz every target for a while, in processes of their own, and tell what was found. `make fuzz` runs this.

Each target gets two thirds of its time with the coverage engine, which runs both variants of the kernel on every
input, and one third with the mutation engine, which runs the compiled one alone and so takes many more inputs. Without
atheris the mutation engine has all the time, and runs both. Exits with 1 when something was found.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent / "tools")]

from fuzzing import child  # noqa: E402 - after the path is set
from fuzzing.targets import TARGETS  # noqa: E402 - likewise
from results import Run  # noqa: E402 - likewise

# Corpora that grow while fuzzing; a selection is committed, see minimise_corpus.py.
GROWN = HERE.parent / "build" / "fuzz"
# A target that ends early is started again, with another seed, this many times.
MAX_FINDINGS = 3


def main() -> None:
    """Run the targets one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; all without one")
    parser.add_argument("--seconds", type=float, default=75, help="for each target")
    parser.add_argument("--seed", type=int, help="of the first worker; by the clock without one")
    parser.add_argument("--sanitized", action="store_true", help="for a kernel that is built with a sanitizer")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no such targets: {', '.join(unknown)}")
    seed = int(time.time()) % 2**31 if arguments.seed is None else arguments.seed
    found = executions = 0
    record = Run("fuzz-asan" if arguments.sanitized else "fuzz", broker=None)
    print(f"seed {seed}")
    for name in arguments.targets or TARGETS:
        for job in jobs(name, arguments.seconds, seed, sanitized=arguments.sanitized):
            done, findings = run_until_done(job)
            executions += done
            found += findings
    targets = len(arguments.targets or TARGETS)
    if targets == len(TARGETS) or arguments.sanitized:
        counts = {"targets": targets, "seconds each": arguments.seconds, "executions": executions, "findings": found}
        record.end(passed=not found, counts=counts, seed=seed)
    if found:
        sys.exit(f"{found} findings; their inputs and reports are in {child.CRASHES}")
    print("nothing was found")


def jobs(target: str, seconds: float, seed: int, *, sanitized: bool) -> list[child.Job]:
    """Return the jobs of a target."""
    grown = GROWN / target
    grown.mkdir(parents=True, exist_ok=True)
    for entry in sorted((child.CORPUS / target).glob("*")):
        shutil.copy(entry, grown)
    if sanitized:
        return [child.Job(target, "mutation", seconds, seed, "compiled", grown, sanitized=True)]
    if importlib.util.find_spec("atheris") is None:
        return [child.Job(target, "mutation", seconds, seed, "both", grown)]
    return [
        child.Job(target, "coverage", seconds * 2 / 3, seed, "both", grown),
        child.Job(target, "mutation", seconds / 3, seed, "compiled", grown),
    ]


def run_until_done(job: child.Job) -> tuple[int, int]:
    """Run a job, again with what is left of its time when it ended early; return the executions and the findings."""
    begun = time.monotonic()
    executions = findings = 0
    seed, left = job.seed, job.seconds
    while findings < MAX_FINDINGS and left >= 1:
        one = child.Job(job.target, job.engine, left, seed, job.variants, job.corpus, job.sanitized)
        report = child.run(one, dict(os.environ))
        executions += report.executions
        if not report.finding:
            break
        findings += 1
        print(f"FOUND {job.target}: {report.finding}\n  input: {report.saved}", flush=True)
        seed, left = seed + 1, job.seconds - (time.monotonic() - begun)
    seconds = time.monotonic() - begun
    print(
        f"{job.target:15} {job.engine:9} {executions:>9,} executions in {seconds:3.0f} s, {findings} findings",
        flush=True,
    )
    return executions, findings


if __name__ == "__main__":
    main()
