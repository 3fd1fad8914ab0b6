"""The right that a broker found missing: in words, and as the line for kafka-acls that grants it.

Each request of the client names the rights that it needs; the broker's error code names the missing one. `name_user`
adds user and servers; the holder of the client calls it. Pure: no sockets, no clock.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

from pyspark_kafka.errors import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_kafka._client.options import ConnectionOptions
    from pyspark_kafka.errors import AccessError

Operation = Literal[
    "Alter", "AlterConfigs", "Create", "Delete", "Describe", "DescribeConfigs", "IdempotentWrite", "Read", "Write"
]
ResourceKind = Literal["cluster", "group", "topic", "transactional-id"]

# Where the name of the user, or the address, is not known where the error is built.
UNKNOWN_USER = "User:<you>"
UNKNOWN_SERVERS = "<servers>"
# Without TLS certificate and SASL, brokers call every client so.
_ANONYMOUS = "User:ANONYMOUS"
_NOUNS = {"cluster": "the cluster", "group": "consumer group", "topic": "topic", "transactional-id": "transactional id"}
_UPPER = {"AlterConfigs": "ALTER_CONFIGS", "DescribeConfigs": "DESCRIBE_CONFIGS", "IdempotentWrite": "IDEMPOTENT_WRITE"}


# The actions for rights in an AWS IAM policy; each includes what it depends on.
_ACTIONS: dict[tuple[str, str], tuple[str, ...]] = {
    ("Describe", "topic"): ("DescribeTopic",),
    ("Read", "topic"): ("DescribeTopic", "ReadData"),
    ("Write", "topic"): ("DescribeTopic", "WriteData"),
    ("Create", "topic"): ("CreateTopic",),
    ("DescribeConfigs", "topic"): ("DescribeTopicDynamicConfiguration",),
    ("AlterConfigs", "topic"): ("AlterTopicDynamicConfiguration",),
    ("Alter", "topic"): ("AlterTopic",),
    ("Delete", "topic"): ("DeleteTopic",),
    ("Describe", "group"): ("DescribeGroup",),
    ("Read", "group"): ("DescribeGroup", "AlterGroup"),
    ("Describe", "transactional-id"): ("DescribeTransactionalId",),
    ("Write", "transactional-id"): ("DescribeTransactionalId", "AlterTransactionalId"),
    ("Describe", "cluster"): ("DescribeCluster",),
    ("IdempotentWrite", "cluster"): ("WriteDataIdempotently",),
    ("Alter", "cluster"): ("AlterCluster",),
}


@dataclass(frozen=True, slots=True)
class Right:
    """One operation on one resource.

    Attributes:
        operation: as kafka-acls spells it.
        kind: of the resource.
        name: of the resource; empty for the cluster.
        granted_by: a wider operation to grant instead, which includes this one and which the caller needs as well;
            empty if there is none.
        family: what the names of all resources begin with that the caller needs this right on, one after the other; the
            grant is for all of them (KIP-290). Empty if there is only this one.

    Source: Kafka `AclOperation`, `ResourceType`; READ, WRITE, DELETE and ALTER include DESCRIBE.
    """

    operation: Operation
    kind: ResourceKind
    name: str = ""
    granted_by: Operation | Literal[""] = ""
    family: str = ""

    def __str__(self) -> str:
        noun = _NOUNS[self.kind]
        text = f"{_upper(self.operation)} on {noun}" + (f" '{self.name}'" if self.name else "")
        return f"{text} ({_upper(self.granted_by)} includes it)" if self.granted_by else text


def acls_command(rights: Sequence[Right], *, principal: str = UNKNOWN_USER, servers: str = UNKNOWN_SERVERS) -> str:
    """Return the line for a shell that grants rights on one resource.

    Args:
        rights: all on the same resource, at least one.
        principal: who gets them, such as `User:alice`.
        servers: the addresses of some brokers.
    """
    operations = dict.fromkeys(right.granted_by or right.operation for right in rights)
    words = ["kafka-acls", "--bootstrap-server", servers, "--add", "--allow-principal", principal]
    for operation in operations:
        words += ["--operation", operation]
    first = rights[0]
    if first.kind == "cluster":
        words.append("--cluster")
    else:
        words += [f"--{first.kind}", first.family or first.name]
    if first.family:
        words += ["--resource-pattern-type", "prefixed"]
    return shlex.join(words)


def missing_sentence(rights: Sequence[Right]) -> str:
    """Return which rights are missing, as a sentence.

    A topic that this user may not describe and one that does not exist look the same: brokers hide the difference.
    """
    named = " and ".join(map(str, rights))
    hidden = any(right.kind == "topic" and right.operation == "Describe" for right in rights)
    unless = ", unless there is no such topic: brokers do not tell who may not see it" if hidden else ""
    return f"Missing {'right' if len(rights) == 1 else 'rights'}: {named}{unless}."


def grant_sentence(rights: Sequence[Right], *, principal: str = UNKNOWN_USER, servers: str = UNKNOWN_SERVERS) -> str:
    """Return what an administrator does to grant rights on one resource, as a sentence with the line to run."""
    # One line, whatever the names are: an error shows it as it is here.
    return printable(f"Have an administrator run `{acls_command(rights, principal=principal, servers=servers)}`.")


def policy_sentence(rights: Sequence[Right]) -> str:
    """Return what an administrator of AWS MSK does to grant rights on one resource, as a sentence.

    Source: the actions of `kafka-cluster` in the service authorization reference of AWS.
    """
    keys = [(right.granted_by or right.operation, right.kind) for right in rights]
    actions = dict.fromkeys(f"kafka-cluster:{action}" for key in keys for action in _ACTIONS.get(key, ()))
    first = rights[0]
    name = f" '{first.family}*'" if first.family else f" '{first.name}'" if first.name else ""
    return printable(
        f"Have an administrator allow {', '.join(actions)} on {_NOUNS[first.kind]}{name} in the IAM policy."
    )


def principal_of(options: ConnectionOptions) -> str:
    """Return the principal that brokers see in the user of a connection, as far as the client knows it.

    A token or a certificate has its name inside, and brokers may map names (`ssl.principal.mapping.rules`): then it is
    `UNKNOWN_USER`.
    """
    # For errors only.
    from pyspark_kafka._client.options import PlainLogin, ScramLogin  # noqa: PLC0415

    if options.uses_sasl:
        login = options.login
        if isinstance(login, PlainLogin) or (isinstance(login, ScramLogin) and not login.delegation_token):
            return f"User:{login.username}"
        return UNKNOWN_USER
    return UNKNOWN_USER if options.uses_tls and options.tls.keystore is not None else _ANONYMOUS


def ask_for(error: AccessError, rights: Sequence[Right], hint: str = "") -> None:
    """Replace the rights in an error's hint, in place, by all that the caller needs.

    Args:
        error: without a user's name in it so far.
        rights: all on the same resource.
        hint: what else to do, as sentences.
    """
    error.rights, error.grant = tuple(rights), grant_sentence(rights)
    error.parameters["missing"] = "; ".join(map(str, rights))
    error.change_hint(f"{error.grant} {hint}" if hint else error.grant)


def widen(error: AccessError, family: str) -> None:
    """Extend the rights in an error's hint to all resources whose names begin with `family`, in place.

    Only if the resource that it names is one of them: see `Right.family`.
    """
    rights = cast("tuple[Right, ...]", error.rights)
    if rights and all(right.name.startswith(family) for right in rights):
        error.rights = tuple(replace(right, family=family) for right in rights)
        _grant_anew(error)


def name_user(error: AccessError, options: ConnectionOptions) -> None:
    """Fill the user's name and the servers into the hint of an error, in place; do nothing if it names no right."""
    if error.rights:
        error.parameters["principal"] = principal_of(options)
        error.parameters["granted_in"] = "IAM policy" if _has_policies(options) else "ACLs"
        error.parameters["servers"] = ",".join(f"{host}:{port}" for host, port in options.bootstrap_servers)
        _grant_anew(error)


def _grant_anew(error: AccessError) -> None:
    before, rights = error.grant, cast("tuple[Right, ...]", error.rights)
    if error.parameters.get("granted_in") == "IAM policy":
        error.grant = policy_sentence(rights)
    else:
        error.grant = grant_sentence(
            rights,
            principal=error.parameters.get("principal", UNKNOWN_USER),
            servers=error.parameters.get("servers", UNKNOWN_SERVERS),
        )
    error.change_hint(error.hint.replace(before, error.grant))


def _has_policies(options: ConnectionOptions) -> bool:
    """Return whether the brokers are AWS MSK with IAM, which has policies instead of ACLs."""
    return options.login is not None and options.login.mechanism == "AWS_MSK_IAM"


def _upper(operation: str) -> str:
    return _UPPER.get(operation, operation.upper())
