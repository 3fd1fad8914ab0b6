"""A class name stands for one class of this package."""

from __future__ import annotations

import re
from collections import defaultdict

from kit.source_tree import PACKAGE, places, python_files

_CLASS = re.compile(r"^[ \t]*class \w+", re.MULTILINE)


def test_class_name_stands_once_in_the_source() -> None:
    """Those inside of others count too."""
    where = defaultdict(list)
    for path in python_files(PACKAGE):
        for place in places(_CLASS, path):
            where[place.split()[-1]].append(place)
    assert len(where) > 1
    found = [place for same in where.values() if len(same) > 1 for place in same]
    assert not found, "\n".join(found)
