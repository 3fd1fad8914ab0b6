"""The suite of continuous sources: one that keeps its contract passes, and each planted fault fails for its reason."""

from __future__ import annotations

import pytest

from kit import continuous_contracts
from kit.continuous_contracts import CONTINUOUS_FAULTS
from kit.outcomes import class_of, outcomes_of


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    nodes = ["TestLanes", *(f"{class_of(fault)}::{case}" for fault, (case, _) in CONTINUOUS_FAULTS.items())]
    return outcomes_of(continuous_contracts.__file__, nodes, tmp_path_factory.mktemp("report"))


@pytest.mark.full("Faults that the contract kit notices")
def test_continuous_source_that_keeps_its_contract_passes(outcomes: dict[str, dict[str, str]]) -> None:
    assert len(outcomes["TestLanes"]) >= 11
    assert {case: text for case, text in outcomes["TestLanes"].items() if text} == {}


@pytest.mark.full("Faults that the contract kit notices")
@pytest.mark.parametrize(("fault", "case", "reason"), [(fault, *each) for fault, each in CONTINUOUS_FAULTS.items()])
def test_planted_fault_fails_its_case(outcomes: dict[str, dict[str, str]], fault: str, case: str, reason: str) -> None:
    text = outcomes[class_of(fault)][case]
    assert text, f"{case} passed, although the source {fault}"
    assert reason in text
