"""tools/build_kernels.py, which each new environment runs: kernels are compiled once for all clones of a machine."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import build_kernels

SUFFIX = build_kernels.SUFFIX


class Clones:
    """Two clones of a project with two kernels, a cache, and a compiler that notes its calls."""

    def __init__(self, place: Path, patch: pytest.MonkeyPatch) -> None:
        self.place, self._patch = place, patch
        self.compiled: list[str] = []
        self.fails: set[str] = set()
        self.can_compile = True
        for clone in ("a", "b"):
            (place / clone / "src").mkdir(parents=True)
            (place / clone / "setup.py").write_text("setup()")
            for name in ("_kernel_read", "_kernel_write"):
                (place / clone / "src" / f"{name}.py").write_text(f"{name} = 1")
        patch.setattr(build_kernels, "cache_directory", lambda: place / "cache")
        patch.setattr(build_kernels, "can_compile", lambda: self.can_compile)

    def build(self, clone: str) -> set[str]:
        """Build in a clone; return the names of its compiled kernels."""
        run = subprocess.run

        def compile_or_run(command: list[str], **options: Any) -> Any:
            if "setup.py" not in command:
                return run(command, **options)
            self.compiled.append(clone)
            for source in sorted((self.place / clone / "src").glob("*.py")):
                if source.stem not in self.fails:
                    source.with_name(source.stem + SUFFIX).write_text(source.read_text())
            return None

        self._patch.setattr(build_kernels, "ROOT", self.place / clone)
        self._patch.setattr(build_kernels, "SOURCE", self.place / clone / "src")
        self._patch.setattr(subprocess, "run", compile_or_run)
        build_kernels.main()
        self._patch.setattr(subprocess, "run", run)
        return {path.name.removesuffix(SUFFIX) for path in (self.place / clone / "src").glob(f"*{SUFFIX}")}


@pytest.fixture
def clones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clones:
    return Clones(tmp_path, monkeypatch)


def test_second_clone_takes_the_kernels_of_the_first(clones: Clones) -> None:
    assert clones.build("a") == clones.build("b") == {"_kernel_read", "_kernel_write"}
    assert clones.compiled == ["a"]


def test_changed_source_is_compiled_and_the_former_one_is_still_kept(clones: Clones) -> None:
    clones.build("a")
    source = clones.place / "b" / "src" / "_kernel_read.py"
    before = source.read_text()
    source.write_text("changed = 2")
    clones.build("b")
    assert source.with_name(f"_kernel_read{SUFFIX}").read_text() == "changed = 2"
    source.write_text(before)
    clones.build("b")
    assert source.with_name(f"_kernel_read{SUFFIX}").read_text() == before
    assert clones.compiled == ["a", "b"]


def test_set_that_lacks_a_kernel_is_not_kept(clones: Clones) -> None:
    clones.fails = {"_kernel_write"}
    assert clones.build("a") == {"_kernel_read"}
    clones.fails = set()
    assert clones.build("b") == {"_kernel_read", "_kernel_write"}
    assert clones.compiled == ["a", "b"]


def test_kernel_of_former_sources_does_not_stay_where_there_is_no_compiler(clones: Clones) -> None:
    clones.build("a")
    clones.can_compile = False
    assert clones.build("a") == set()


def test_oldest_sets_are_dropped(clones: Clones) -> None:
    for number in range(build_kernels.MAX_KEPT + 2):
        (clones.place / "a" / "setup.py").write_text(f"setup({number})")
        clones.build("a")
    assert len(list((clones.place / "cache" / "kernels").iterdir())) == build_kernels.MAX_KEPT
