"""The text of an error, held to its end."""

from __future__ import annotations

import re

from pyspark_kafka.version import DOCUMENTATION, entry_address

_ADDRESS = f"{DOCUMENTATION}errors/#"


def said(error: object) -> str:
    """Return the text of an error without its end, which must be the address of its condition's entry.

    Args:
        error: the error, or its text; ends of lines may follow it.
    """
    text = str(error).rstrip("\n")
    found = re.fullmatch(r"(\[([A-Z0-9_.]+)\] .*) See (\S+)", text, re.DOTALL)
    assert found is not None, text
    assert found[3] == entry_address("errors", found[2])
    assert _ADDRESS not in found[1]
    return found[1]
