"""Run the compiled kernel under AddressSanitizer and UndefinedBehaviorSanitizer. `make fuzz-asan` runs this.

The extensions are built in a directory of their own, beside a copy of the package's Python files; the ones in src/ are
left alone. Then the mutation engine runs on them, and the codec's unit tests. Arrow and Python take their memory from
malloc meanwhile, as the sanitizer watches nothing else.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILT = ROOT / "build" / "asan"
FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
# Of the targets those that run compiled code of ours; codecs are libraries that are not built here.
TARGETS = ("batch", "encode")


def main() -> None:
    """Build, then run both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=75, help="for each target")
    arguments = parser.parse_args()
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(map(str, libraries())),
        # Leaks: the interpreter keeps memory until it ends. SEGVs are the sanitizer's to report.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": str(BUILT),
        "PYTHONMALLOC": "malloc",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "PYSPARK_KAFKA_REQUIRE_COMPILED": "1",
    }
    build()
    check = "import sys; from pyspark_kafka.records import codec_info as c; print(c().path); sys.exit(not c().compiled)"
    found = subprocess.run([sys.executable, "-c", check], env=environment, capture_output=True, text=True, check=False)
    if found.returncode != 0 or not found.stdout.startswith(str(BUILT)):
        sys.exit(f"the kernel with a sanitizer cannot be loaded: {found.stdout}{found.stderr}")
    print(f"kernel: {found.stdout.strip()}", flush=True)
    fuzz = [
        sys.executable,
        str(ROOT / "fuzz" / "run_fuzz.py"),
        "--sanitized",
        f"--seconds={arguments.seconds}",
        *TARGETS,
    ]
    # From another directory: pytest's own path would put src/ first.
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not uncompiled"]
    tests += ["-o", "pythonpath=tests", "--timeout=600", "--hypothesis-profile=full"]
    tests += ["tests/unit/records", "tests/property/records"]
    failed = [
        command
        for command in (fuzz, tests)
        if subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode
    ]
    sys.exit(1 if failed else 0)


def libraries() -> list[Path]:
    """Find the sanitizers' libraries, or end with a sentence that says what is missing."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    found = []
    for name in ("libasan.so", "libubsan.so"):
        try:
            answer = subprocess.run(
                [*compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=False
            )
        except OSError:
            sys.exit(f"The kernel cannot be built with a sanitizer: there is no compiler {compiler[0]!r}. Install gcc.")
        path = Path(answer.stdout.strip())
        # A compiler that does not know the library prints its bare name.
        if not path.is_absolute():
            sys.exit(f"The kernel cannot be built with a sanitizer: {compiler[0]} has no {name}. Install gcc with it.")
        found.append(path.resolve())
    return found


def build() -> None:
    """Build the extensions with sanitizers into BUILT, with the package's Python files around them."""
    shutil.rmtree(BUILT, ignore_errors=True)
    shutil.copytree(
        ROOT / "src" / "pyspark_kafka", BUILT / "pyspark_kafka", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    environment = {**os.environ, "CFLAGS": FLAGS, "LDFLAGS": FLAGS}
    command = [sys.executable, "setup.py", "-q", "build_ext", "--force", "--build-lib", str(BUILT)]
    command += ["--build-temp", str(ROOT / "build" / "asan-objects")]
    if subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode != 0 or not list(BUILT.rglob("*.so")):
        sys.exit("The kernel cannot be built with a sanitizer; the compiler's lines above say why.")


if __name__ == "__main__":
    main()
