"""Unit tests open no connection to anything: an attempt is an error."""

from __future__ import annotations

import socket
from typing import Any

import pytest


def _refuse(address: Any) -> None:
    raise AssertionError(
        f"A unit test uses the network: {address}. Move it to tests/protocol, tests/contract or tests/integration."
    )


class _OfflineSocket(socket.socket):
    """A socket that neither connects nor listens, except to processes on this machine that need no network."""

    def connect(self, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _refuse(address)
        super().connect(address)

    def bind(self, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _refuse(address)
        super().bind(address)


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let connections and listeners of the internet family fail."""
    monkeypatch.setattr(socket, "socket", _OfflineSocket)
