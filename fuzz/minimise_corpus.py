"""Choose from what fuzzing grew the inputs that are worth keeping, and write them to corpus/. `make fuzz-corpus`.

Kept are, shortest first, those that reach a step of the package's code which no kept one reached, or end in an error
text that none did. Entries of a target that was not grown are left as they are.
"""

from __future__ import annotations

import re
import sys
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from fuzzing import oracles  # noqa: E402 - after the path is set
from fuzzing.seeds import seeds_of  # noqa: E402 - likewise
from fuzzing.targets import TARGETS  # noqa: E402 - likewise

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

MAX_ENTRY_BYTES = 4096
MAX_TARGET_BYTES = 60_000
_PACKAGE = "pyspark_kafka"

Step = tuple[Any, ...]


def main() -> None:
    """Minimise every target's corpus."""
    variants = oracles.load_variants("uncompiled")
    for name, target in TARGETS.items():
        kept_in, grown = HERE / "corpus" / name, HERE.parent / "build" / "fuzz" / name
        entries = {path.read_bytes() for folder in (kept_in, grown) if folder.is_dir() for path in folder.iterdir()}
        entries |= set(seeds_of(name))
        seen: set[Step] = set()
        kept: list[bytes] = []
        for data in sorted(
            (entry for entry in entries if len(entry) <= MAX_ENTRY_BYTES), key=lambda one: (len(one), one)
        ):
            steps = steps_of(partial(target.run, data, variants))
            if steps - seen and sum(map(len, kept)) + len(data) <= MAX_TARGET_BYTES:
                seen |= steps
                kept.append(data)
        kept_in.mkdir(parents=True, exist_ok=True)
        for path in kept_in.iterdir():
            path.unlink()
        for data in kept:
            (kept_in / sha256(data).hexdigest()[:16]).write_bytes(data)
        print(f"{name:15} {len(kept):4} of {len(entries):6} entries, {sum(map(len, kept)):6} bytes, {len(seen)} steps")


def steps_of(call: Callable[[], None]) -> set[Step]:
    """Run a call and return the pairs of successive lines that it ran in the package, and the errors' texts."""
    steps: set[Step] = set()
    last: dict[FrameType, int] = {}

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        code: CodeType = frame.f_code
        if _PACKAGE not in code.co_filename:
            return None
        if event == "exception":
            # Without the numbers, which differ with every input.
            steps.add((argument[0].__name__, re.sub(r"[0-9]+|0x[0-9a-f]+", "#", str(argument[1]))[:80]))
        else:
            steps.add((code.co_filename, last.get(frame, 0), frame.f_lineno))
            last[frame] = frame.f_lineno
        if event == "return":
            last.pop(frame, None)
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)
    return steps


if __name__ == "__main__":
    main()
