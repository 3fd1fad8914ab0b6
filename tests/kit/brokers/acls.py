"""The rights of one user of a real broker, set and taken away one by one, as `kafka-acls` does it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from typing import Any

from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    KafkaAdminClient,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

from kit.waiting import eventually
from pyspark_kafka._client.client.wire.missing_rights import Right

_LINE = re.compile(r"`(kafka-acls [^`]*)`")


class Acls:
    """What one user may do; everything is in force when a method returns.

    Args:
        admin_servers: where somebody listens who may change rights, without credentials.
        principal: the user.
    """

    def __init__(self, admin_servers: str, principal: str) -> None:
        self._principal = principal
        self._admin: Any = KafkaAdminClient(bootstrap_servers=admin_servers)

    def close(self) -> None:
        """Return the connections."""
        self._admin.close()

    def put(self, rights: Iterable[Right]) -> None:
        """Let the user have exactly these rights."""
        self._change({self._acl(right) for right in rights})

    def take(self, right: Right) -> None:
        """Take one right away."""
        self._change(self.held() - {self._acl(right)})

    def run_line_of(self, text: str) -> str:
        """Grant what the line for kafka-acls in a text says, and return the line.

        Raises:
            AssertionError: there is none, or it is for another user.
        """
        found = _LINE.search(text)
        assert found, f"no line for kafka-acls in: {text}"
        words = shlex.split(found[1])
        principal = words[words.index("--allow-principal") + 1]
        assert principal == self._principal, principal
        (kind,) = {word[2:] for word in words} & {"topic", "group", "transactional-id", "cluster"}
        name = "kafka-cluster" if kind == "cluster" else words[words.index(f"--{kind}") + 1]
        prefixed = "--resource-pattern-type" in words
        operations = [words[at + 1] for at, word in enumerate(words) if word == "--operation"]
        self._change(self.held() | {(kind, name, prefixed, operation) for operation in operations})
        return found[1]

    @staticmethod
    def _acl(right: Right) -> tuple[str, str, bool, str]:
        name = "kafka-cluster" if right.kind == "cluster" else right.family or right.name
        return right.kind, name, bool(right.family), right.operation

    def of(self, rights: Iterable[Right]) -> set[tuple[str, str, bool, str]]:
        """Return rights as `held` does."""
        return {self._acl(right) for right in rights}

    def held(self) -> set[tuple[str, str, bool, str]]:
        """Return what the user has: kind, name, whether it is a prefix, and operation."""
        everything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
        wanted = ACLFilter(self._principal, "*", ACLOperation.ANY, ACLPermissionType.ANY, everything)
        acls, error = self._admin.describe_acls(wanted)
        assert not error.errno, error
        return {
            (
                acl.resource_pattern.resource_type.name.lower().replace("_", "-"),
                acl.resource_pattern.resource_name,
                acl.resource_pattern.pattern_type is ACLResourcePatternType.PREFIXED,
                acl.operation.name.title().replace("_", ""),
            )
            for acl in acls
        }

    def _change(self, wanted: set[tuple[str, str, bool, str]]) -> None:
        held = self.held()
        if wanted - held:
            self._admin.create_acls([self._to_acl(ACL, ResourcePattern, *each) for each in wanted - held])
        if held - wanted:
            self._admin.delete_acls([self._to_acl(ACLFilter, ResourcePatternFilter, *each) for each in held - wanted])
        # What a broker lists it also applies: both come from the same replayed metadata.
        eventually(lambda: self.held() == wanted)

    def _to_acl(self, acl: Any, pattern: Any, kind: str, name: str, prefixed: bool, operation: str) -> Any:
        pattern_type = ACLResourcePatternType.PREFIXED if prefixed else ACLResourcePatternType.LITERAL
        snake = re.sub("(?<!^)(?=[A-Z])", "_", operation).upper()
        return acl(
            self._principal,
            "*",
            ACLOperation[snake],
            ACLPermissionType.ALLOW,
            pattern(ResourceType[kind.upper().replace("-", "_")], name, pattern_type),
        )
