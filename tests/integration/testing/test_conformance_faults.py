"""The contract suites: a source and a sink that keep them pass, and each planted fault fails the case for it."""

from __future__ import annotations

import pytest

from kit import contracts
from kit.outcomes import class_of, outcomes_of

FAULTS = {**contracts.SOURCE_FAULTS, **contracts.SINK_FAULTS}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What became of each case, by class: "" if it passed, else the text of the failure."""
    cases = [f"{class_of(fault)}::{case}" for fault, case in FAULTS.items()]
    return outcomes_of(contracts.__file__, ["TestLines", "TestFiles", *cases], tmp_path_factory.mktemp("report"))


@pytest.mark.full("Faults that the contract kit notices")
@pytest.mark.parametrize("name", ["TestLines", "TestFiles"])
def test_connector_that_keeps_its_contract_passes(outcomes: dict[str, dict[str, str]], name: str) -> None:
    assert len(outcomes[name]) >= 10
    assert {case: text for case, text in outcomes[name].items() if text} == {}


@pytest.mark.full("Faults that the contract kit notices")
@pytest.mark.parametrize(("fault", "case"), FAULTS.items())
def test_planted_fault_fails_its_case(outcomes: dict[str, dict[str, str]], fault: str, case: str) -> None:
    assert outcomes[class_of(fault)][case], f"{case} passed, although the connector {fault}"
