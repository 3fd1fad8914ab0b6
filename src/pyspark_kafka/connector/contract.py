"""The base of all contracts: a class that leaves a method out is refused by a sentence about this method."""

from __future__ import annotations

from abc import ABC
from inspect import getdoc
from typing import TYPE_CHECKING, Any

from pyspark_kafka.errors import ContractError

if TYPE_CHECKING:
    from typing_extensions import Self


class ConnectorContract(ABC):  # noqa: B024 - the contracts have the methods
    """A contract between an engine and a connector. A class that lacks one of its abstract methods has no objects.

    Raises:
        ContractError: when an object is made: the class leaves out a method of the contract.
    """

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Return a new object, if every method of the contract is there."""
        missing: list[str] = sorted(getattr(cls, "__abstractmethods__", ()))
        if missing:
            first = missing[0]
            rule = (getdoc(getattr(cls, first)) or "see its contract.").partition("\n")[0]
            others = f" It also lacks {', '.join(f'{each}()' for each in missing[1:])}." if missing[1:] else ""
            raise ContractError.violated(
                cls,
                first,
                f"is missing. Its contract: {rule}{others}",
                hint=f"Implement {cls.__qualname__}.{first}().",
            )
        return super().__new__(cls)
