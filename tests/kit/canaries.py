"""Planted secrets, and where they are found: each has a core that no quoting changes, looked for in all its forms."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterable
from pathlib import Path

# What a quoting, an escape or a URL changes: only the core stays as it is.
AROUND = '"\\ %+/'


class Canary:
    """One planted secret.

    Args:
        name: where it is planted.
        core: what is looked for; a text of letters and digits that stand nowhere else, if it is not given.

    Attributes:
        name: where it is planted.
        core: what is looked for.
    """

    def __init__(self, name: str, core: bytes | str = "") -> None:
        self.name = name
        self.core = core or f"Canary{secrets.token_hex(10)}"

    @property
    def value(self) -> str:
        """The secret: the core between characters that are quoted, escaped and encoded differently everywhere."""
        return f"{AROUND}{self.core!s}{AROUND}"

    @property
    def in_jaas(self) -> str:
        """The value inside of the quotation marks of a JAAS configuration."""
        return self.value.replace("\\", "\\\\").replace('"', '\\"')

    def forms(self) -> dict[str, bytes]:
        """Return what to look for: the core in plain and in other encodings, base64 at each position."""
        core = self.core if isinstance(self.core, bytes) else self.core.encode()
        found = {"plain": core, "hex": core.hex().encode(), "utf-16": core.decode("latin-1").encode("utf-16-le")}
        found["repr"] = repr(core)[2:-1].encode()
        for shift in range(3):
            encoded = base64.b64encode(b"x" * shift + core)
            # The first and the last characters depend on what stands before and behind.
            found[f"base64 at {shift}"] = encoded[4 if shift else 0 : len(encoded) - 4]
        return found


def hits(canaries: Iterable[Canary], texts: dict[str, bytes]) -> list[str]:
    """Return each canary that is in any of the texts, with the text's name and the form in which it is there."""
    looked_for = [(canary.name, form, sought) for canary in canaries for form, sought in canary.forms().items()]
    return [
        f"{name} ({form}) in {place}"
        for place, text in texts.items()
        for name, form, sought in looked_for
        if sought in text
    ]


def files_below(folder: Path) -> dict[str, bytes]:
    """Return the bytes of all files of a folder by their paths in it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
