"""docs/rights.md shows the table that the tests prove. To write it again: python tests/repo/test_rights_page.py."""

from __future__ import annotations

import sys
from pathlib import Path

from kit.marked_page import put_between
from kit.rights import BEGIN, END, FEATURES, page_part
from kit.rights_in_use import LOOKS, TRIALS

PAGE = Path(__file__).parents[2] / "docs" / "rights.md"


def test_page_shows_the_table_that_is_tested() -> None:
    _, _, rest = PAGE.read_text().partition(f"{BEGIN}\n")
    assert rest.partition(f"\n{END}")[0] == page_part(), "run: .venv/bin/python tests/repo/test_rights_page.py"


def test_each_feature_of_the_table_is_tried() -> None:
    looks = {key for key, _ in LOOKS} | {"list"}
    assert {each.key for each in FEATURES} == {key for key, _, _ in TRIALS} | looks


if __name__ == "__main__":
    put_between(PAGE, BEGIN, page_part(), END)
    sys.exit()
