"""docs/security-matrix.md has a row for each way to log in, a column for each use, and says that all cases passed."""

from __future__ import annotations

import pytest

import security_matrix as tool
from kit.pointers import REPO
from kit.security_matrix import CASES, KERBEROS, USES, WAYS

USED = {use.name: use.sessions for use in USES}
NAMES = [way.name for way in WAYS]
AGAIN = "make security-matrix, and make test-kerberos for the rows of GSSAPI"


def results(passed: bool = True) -> dict[tuple[str, str, str], bool]:
    return {(case.way.name, case.use.name, case.session): passed for case in CASES}


def test_page_has_the_cases_of_the_tests_and_all_have_passed() -> None:
    legends = {use.name: use.legend for use in USES if use.legend}
    written = tool.page(results(), NAMES, USED, legends, {})
    page = (REPO / "docs" / "security-matrix.md").read_text()
    assert page.partition("\nWritten with")[0] == written, AGAIN


@pytest.mark.parametrize("kind", ["ways", "uses", "sessions"])
def test_quick_cases_have_all(kind: str) -> None:
    quick = [case for case in CASES if case.quick]
    if kind == "ways":
        assert {case.way for case in quick if case.session} == {way for way in WAYS if way.broker != KERBEROS}
    elif kind == "uses":
        assert {case.use for case in quick} == set(USES)
    else:
        assert {case.session for case in quick} == {case.session for case in CASES}


def test_cell_says_what_failed_and_what_did_not_run() -> None:
    found = results()
    way, use = NAMES[0], USES[0]
    assert tool.cell(found, way, use.name, use.sessions) == "yes"
    found[way, use.name, "classic"] = False
    assert tool.cell(found, way, use.name, use.sessions) == "classic: **no**, Connect: yes"
    assert tool.cell({}, way, use.name, use.sessions) == "not run"
    assert "**no**" in tool.table(found, NAMES, USED, {})


def test_last_outcome_of_a_case_counts() -> None:
    line = '{"way": "PLAIN", "use": "batch", "session": "classic", "passed": %s}\n'
    assert tool.read_results(line % "false" + line % "true") == {("PLAIN", "batch", "classic"): True}


def test_row_that_did_not_run_stays_as_it_was() -> None:
    page = tool.page(results(), NAMES, USED, {}, {})
    kept = tool.read_rows(page)
    assert list(kept) == NAMES
    assert tool.table({}, NAMES, USED, kept) in page
    assert "not run" in tool.table({}, [*NAMES, "new"], USED, kept)
