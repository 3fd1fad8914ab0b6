"""How many examples property tests have is decided in one place: the profiles of `tests/conftest.py`."""

from __future__ import annotations

import ast

import pytest
from hypothesis import settings

from kit.pointers import REPO

DECIDED_BY_PROFILES = {"max_examples", "deadline", "derandomize"}


def settings_of(source: str) -> set[str]:
    """Return the names of the arguments that calls of Hypothesis' `settings` have."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return {
        str(argument.arg)
        for call in calls
        if ast.unparse(call.func).rpartition(".")[2] == "settings"
        for argument in call.keywords
    }


def test_no_test_sets_what_the_profiles_decide() -> None:
    sources = {path: path.read_text() for folder in ("tests", "fuzz") for path in (REPO / folder).rglob("*.py")}
    property_tests = {path: text for path, text in sources.items() if "from hypothesis import" in text}
    assert len(property_tests) > 10
    wrong = {
        str(path.relative_to(REPO)): found
        for path, text in property_tests.items()
        if (found := settings_of(text) & DECIDED_BY_PROFILES)
    }
    assert wrong == {}


def test_tests_that_take_their_number_of_seeds_from_the_profile_are_properties() -> None:
    """As plain tests they would have the time of a quick run for the seeds of a full one."""
    sources = {path: path.read_text() for path in (REPO / "tests" / "property").rglob("test_*.py")}
    by_profile = {path: text for path, text in sources.items() if "settings().max_examples" in text}
    assert len(by_profile) > 3
    plain = [path.name for path, text in by_profile.items() if "@given" not in text and "mark.property" not in text]
    assert plain == []


@pytest.mark.parametrize("decorator", ["@settings(max_examples=3)", "@hypothesis.settings(OTHER, deadline=None)"])
def test_settings_of_a_test_are_found(decorator: str) -> None:
    assert settings_of(f"{decorator}\n@given(x)\ndef test(): ...") & DECIDED_BY_PROFILES


def test_profile_is_quick_unless_the_option_names_another(pytestconfig: pytest.Config) -> None:
    wanted = settings.get_profile(pytestconfig.getoption("--hypothesis-profile") or "quick")
    assert (settings().max_examples, settings().derandomize) == (wanted.max_examples, wanted.derandomize)
    quick, full = settings.get_profile("quick"), settings.get_profile("full")
    assert quick.derandomize
    assert not full.derandomize
    assert quick.max_examples < full.max_examples
