"""The text of a `.proto` file without the options that it defines or imports: values need none of them.

Registries keep schemas whose options cannot be resolved: the file that defines them is not among the references. Pure.

Source: "Options" and "Custom Options" of protobuf.dev: the name of a custom option stands in parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Blanks and comments; texts; names and numbers; any other sign.
_TOKEN = re.compile(r"""(\s+|//[^\n]*|/\*.*?\*/)|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|[\w.]+|.""", re.DOTALL)
_OPENING, _CLOSING = frozenset("[{(<"), frozenset("]})>")


def without_custom_options(text: str) -> str:
    """Return a text without its custom options, as statements and in brackets after fields and names of enums.

    Example:
        >>> without_custom_options("int64 a = 1 [(v.min) = 0, deprecated = true]; option (v.x) = {y: 1};")
        'int64 a = 1 [ deprecated = true]; '
    """
    parts = _parts(text)
    out: list[str] = []
    begins = True
    for part, is_blank in parts:
        if is_blank:
            out.append(part)
            continue
        if part == "[":
            out.append(_kept_of_brackets(parts))
        elif begins and part == "option":
            statement, is_custom = _statement(parts)
            if not is_custom:
                out += [part, statement]
            continue
        else:
            out.append(part)
        begins = part in {";", "{", "}"}
    return "".join(out)


def _parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, and whether each is a blank or a comment."""
    return ((found.group(), found.group(1) is not None) for found in _TOKEN.finditer(text))


def _statement(parts: Iterator[tuple[str, bool]]) -> tuple[str, bool]:
    """Return the rest of a statement up to its semicolon, and whether it begins with a parenthesis."""
    found: list[str] = []
    first, depth = "", 0
    for part, is_blank in parts:
        found.append(part)
        if is_blank:
            continue
        first = first or part
        depth += (part in _OPENING) - (part in _CLOSING)
        if part == ";" and depth <= 0:
            break
    return "".join(found), first == "("


def _kept_of_brackets(parts: Iterator[tuple[str, bool]]) -> str:
    """Return what is left of a list of options, with its brackets; nothing if no option is left."""
    kept: list[str] = []
    item: list[str] = []
    first, depth = "", 0
    for part, is_blank in parts:
        if not is_blank:
            if depth == 0 and part in {",", "]"}:
                if first != "(":
                    kept.append("".join(item))
                item, first = [], ""
                if part == "]":
                    break
                continue
            first = first or part
            depth += (part in _OPENING) - (part in _CLOSING)
        item.append(part)
    return f"[{','.join(kept)}]" if any(each.strip() for each in kept) else ""
