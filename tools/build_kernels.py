"""Put the compiled kernels beside their sources: those kept from the same sources, or new ones by setup.py.

Kept in the user's cache, for all clones on this machine. Run by tools/prepare_venv.py, in the environment that it made;
without a C compiler the kernels stay uncompiled, as in any installation.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib import metadata
from pathlib import Path

from can_compile import COMPILER, can_compile
from pyspark_kafka.testing.cache import cache_directory

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")
MAX_KEPT = 8


def main() -> None:
    """Take the kept kernels, or compile and keep them."""
    for stale in compiled_kernels():
        stale.unlink()
    if not can_compile():
        print("No C compiler here: the kernels run as Python", flush=True)
        return
    kept = cache_directory() / "kernels" / key()
    if not kept.is_dir():
        print("Compiling the kernels; once for these sources on this machine", flush=True)
        subprocess.run([sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"], cwd=ROOT, check=True)
        keep(kept)
        return
    for kernel in kept.rglob(f"*{SUFFIX}"):
        shutil.copy(kernel, SOURCE / kernel.relative_to(kept))


def compiled_kernels() -> list[Path]:
    """Return the extension modules for this Python in the source folder."""
    return sorted(SOURCE.rglob(f"_kernel*{SUFFIX}"))


def key() -> str:
    """Hash what the compiled code depends on: sources, build, Cython, Python, compiler."""
    digest = hashlib.sha256()
    for path in (ROOT / "setup.py", *sorted(SOURCE.rglob("_kernel*.p*"))):
        if path.suffix in {".py", ".pxd"}:
            digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    version = subprocess.run([*COMPILER, "--version"], capture_output=True, check=False).stdout
    flags = " ".join(os.environ.get(name, "") for name in ("CC", "CFLAGS", "LDFLAGS"))
    for part in (metadata.version("cython"), metadata.version("setuptools"), sys.version, flags):
        digest.update(f"{part}\0".encode())
    digest.update(version)
    return digest.hexdigest()


def keep(kept: Path) -> None:
    """Copy the compiled kernels into the cache, whole or not at all, and drop the oldest sets."""
    kernels = compiled_kernels()
    # setup.py skips, with a warning, a kernel that does not compile: the installation of a user continues without it.
    if len(kernels) < len(list(SOURCE.rglob("_kernel*.py"))):
        return
    kept.parent.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(dir=kept.parent))
    for kernel in kernels:
        copy = place / kernel.relative_to(SOURCE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(kernel, copy)
    try:
        place.rename(kept)
    except OSError:
        # Another clone was sooner.
        shutil.rmtree(place)
    by_age = sorted(kept.parent.iterdir(), key=lambda path: path.stat().st_mtime)
    for old in by_age[:-MAX_KEPT]:
        shutil.rmtree(old, ignore_errors=True)


if __name__ == "__main__":
    main()
