"""Figures beside their goals, for tables and JSON."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line of a table of goals.

    Attributes:
        name: what was measured.
        figure: what came out, as text with its unit.
        goal: what it is to be; empty where the line only explains another one.
        met: whether it is; None where there is no goal.
        values: the numbers behind it, for the JSON.
    """

    name: str
    figure: str
    goal: str = ""
    met: bool | None = None
    values: dict[str, float | str] | None = None

    @property
    def verdict(self) -> str:
        """Say in a word whether the goal is met."""
        return {None: "", True: "yes", False: "no"}[self.met]


def seconds(name: str, took: float, maximum: float, **values: float) -> Figure:
    """Return the line of something that is to take less than `maximum` seconds."""
    return Figure(name, f"{took:.2f} s", f"< {maximum:g} s", took < maximum, {"seconds": took, **values})
