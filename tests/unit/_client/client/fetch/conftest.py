"""The cluster that reads of one topic see."""

from __future__ import annotations

import pytest

from kit.fakes.simulated_cluster import SimulatedCluster


@pytest.fixture
def cluster() -> SimulatedCluster:
    cluster = SimulatedCluster()
    cluster.add_topic("t")
    return cluster
