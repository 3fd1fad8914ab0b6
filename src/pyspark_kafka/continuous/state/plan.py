"""What the driver tells tasks about states. Plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class StatePlan:
    """What the states of a run begin with; it travels with the code of the task.

    Attributes:
        location: of the checkpoint.
        run: tells the files of this run from those of others.
        key_groups: the key groups of each lane.
        heads: the text of the version to open, by directory; a state that is not here is empty.
        ttls_ms: after how many milliseconds without an update a value is gone, for each step; 0 for never.
    """

    location: str
    run: str
    key_groups: Mapping[int, Sequence[str]]
    heads: Mapping[str, str]
    ttls_ms: Sequence[int]
