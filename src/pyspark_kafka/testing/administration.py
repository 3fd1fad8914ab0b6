"""Changes to a running test broker: topics deleted, rights, passwords and settings, by kafka-python's admin client.

Each function waits until the broker applies the change; the address belongs to a listener without credentials.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from pyspark_kafka._client.client.cluster.metadata import unknown_topic
from pyspark_kafka._client.client.waiting.deadline import Deadline
from pyspark_kafka._client.client.waiting.retry import Backoff, attempts
from pyspark_kafka._client.client.wire.error_codes import broker_error
from pyspark_kafka.errors import SetupError

CLUSTER_NAME = "kafka-cluster"
# A broker that was just started on a busy machine takes its time for the first request, too.
_TIMEOUT_MS = 120_000
_FIRST_PAUSE_MS, _MAX_PAUSE_MS = 20, 500
_ANY_HOST = "*"
_T = TypeVar("_T")


@contextmanager
def administer(address: str, what: str) -> Iterator[Any]:
    """Lend a `KafkaAdminClient`; what the broker refuses is raised as an error of this package.

    Raises:
        BrokerError: the broker refused; the sentence begins with `what`.
    """
    # Most programs with a test broker do not change it.
    from kafka.admin import KafkaAdminClient  # noqa: PLC0415
    from kafka.errors import BrokerResponseError  # noqa: PLC0415

    admin = KafkaAdminClient(bootstrap_servers=address, client_id="embedded", bootstrap_timeout_ms=_TIMEOUT_MS)
    try:
        yield admin
    except BrokerResponseError as error:
        raise broker_error(error.errno, f"{what} failed", detail=", ".join(map(str, error.args))) from error
    finally:
        admin.close()


def delete_topic(address: str, name: str) -> None:
    """Delete a topic.

    Raises:
        BrokerError: the broker refused, or there is no such topic (condition UNKNOWN_TOPIC).
    """
    from kafka.errors import UnknownTopicOrPartitionError  # noqa: PLC0415

    with administer(address, f"Deleting topic '{name}'") as admin:
        try:
            admin.delete_topics([name])
        except UnknownTopicOrPartitionError:
            raise unknown_topic(name) from None
        wait_until(
            lambda: all(topic["error_code"] for topic in admin.describe_topics([name])),
            f"Waiting until topic '{name}' is deleted",
        )


def grant(address: str, user: str, operation: str, resource: str, name: str, *, prefixed: bool = False) -> None:
    """Grant a right from any host; a right that is there already stays. `BrokerSecurity.grant` describes the words.

    Raises:
        BrokerError: the broker refused, such as SECURITY_DISABLED if it checks no rights.
    """
    from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern  # noqa: PLC0415

    pattern = ResourcePattern(*_pattern(resource, name, prefixed))
    rule = ACL(f"User:{user}", _ANY_HOST, ACLOperation[operation], ACLPermissionType.ALLOW, pattern)
    wanted = _filter(user, operation, resource, name, prefixed)
    with administer(address, "Granting a right") as admin:
        for refused in connected(partial(admin.create_acls, [rule]), "Granting a right")["failed"]:
            raise refused
        wait_until(lambda: bool(admin.describe_acls(wanted)[0]), "Waiting until the broker knows the right")


def revoke(address: str, user: str, operation: str, resource: str, name: str, *, prefixed: bool = False) -> bool:
    """Revoke a right that was granted with the same words; return whether there was one.

    Raises:
        BrokerError: the broker refused.
    """
    wanted = _filter(user, operation, resource, name, prefixed)
    with administer(address, "Revoking a right") as admin:
        ((_, found, refused),) = admin.delete_acls([wanted])
        if refused.errno:
            raise refused
        wait_until(lambda: not admin.describe_acls(wanted)[0], "Waiting until the broker has revoked the right")
    return bool(found)


def set_scram_passwords(address: str, passwords: Mapping[str, str], mechanisms: Iterable[str]) -> None:
    """Set the passwords of users; whoever is connected stays connected.

    Args:
        address: of the broker.
        passwords: password by name.
        mechanisms: `SCRAM-SHA-256`, `SCRAM-SHA-512`, or both.

    Raises:
        SetupError: the broker refused.
    """
    from kafka.admin import ScramMechanism, UserScramCredentialUpsertion  # noqa: PLC0415

    with administer(address, "Setting passwords") as admin:
        # Brokers refuse two mechanisms of one user in one request.
        for mechanism in [ScramMechanism[name.replace("-", "_")] for name in mechanisms]:
            changes = [UserScramCredentialUpsertion(user, mechanism, password) for user, password in passwords.items()]
            change = partial(admin.alter_user_scram_credentials, changes)
            for user, refused in connected(change, "Setting passwords").items():
                _raise_refused(refused, f"the password of user '{user}'")
            wait_until(partial(_has_passwords, admin, passwords, mechanism), "Waiting until the broker knows passwords")


def _has_passwords(admin: Any, users: Iterable[str], mechanism: int) -> bool:
    found = admin.describe_user_scram_credentials(list(users)).values()
    return all(mechanism in [each["mechanism"] for each in user["credential_infos"]] for user in found)


def set_broker_config(address: str, broker_id: int, name: str, value: str) -> None:
    """Set a value of a running broker that can be changed without a restart (KIP-226).

    The broker uses it a moment later.

    Raises:
        SetupError: the broker refused.
    """
    from kafka.admin import ConfigResource, ConfigResourceType  # noqa: PLC0415

    changed = ConfigResource(ConfigResourceType.BROKER, str(broker_id), {name: value})
    with administer(address, f"Setting '{name}'") as admin:
        # The names of a listener's settings are in no list of the broker.
        change = partial(admin.alter_configs, [changed], raise_on_unknown=False, incremental=True)
        (result,) = connected(change, f"Setting '{name}'")["broker"].values()
        _raise_refused(None if result == "OK" else result, f"the setting '{name}'")


def connected(change: Callable[[], _T], step: str, is_last: Callable[[_T], bool] = lambda _: True) -> _T:
    """Return the result of a change that may be made twice; make it again if the connection is lost.

    A broker that has just started may close a connection before it has responded.

    Args:
        change: makes the change, or checks whether the broker has applied it.
        step: what is done, as the error names it.
        is_last: whether a result is the one to return; otherwise the change is repeated.

    Raises:
        DeadlineError: no such result within a minute; the sentence begins with `step`.
    """
    from kafka.errors import KafkaConnectionError  # noqa: PLC0415

    deadline, failure = Deadline(_TIMEOUT_MS), None
    for _ in attempts(Backoff(_FIRST_PAUSE_MS, _MAX_PAUSE_MS), deadline=deadline):
        try:
            result = change()
        except KafkaConnectionError as error:
            failure = error
        else:
            if is_last(result):
                return result
    raise deadline.error(step, failure)


def wait_until(done: Callable[[], bool], step: str) -> None:
    """Wait for what a broker does soon.

    Raises:
        DeadlineError: it did not do so within a minute; the sentence begins with `step`.
    """
    connected(done, step, bool)


def _raise_refused(reason: str | None, what: str) -> None:
    if reason is not None:
        raise SetupError(
            f"The embedded broker refused {what}: {reason}",
            condition="BROKER_SECURITY_MISSING",
            hint="Read its log.",
        )


def _filter(user: str, operation: str, resource: str, name: str, prefixed: bool) -> Any:
    """Return the filter that fits one right only."""
    from kafka.admin import ACLFilter, ACLOperation, ACLPermissionType, ResourcePatternFilter  # noqa: PLC0415

    pattern = ResourcePatternFilter(*_pattern(resource, name, prefixed))
    return ACLFilter(f"User:{user}", _ANY_HOST, ACLOperation[operation], ACLPermissionType.ALLOW, pattern)


def _pattern(resource: str, name: str, prefixed: bool) -> tuple[Any, str, Any]:
    from kafka.admin import ACLResourcePatternType, ResourceType  # noqa: PLC0415

    pattern_type = ACLResourcePatternType.PREFIXED if prefixed else ACLResourcePatternType.LITERAL
    return ResourceType[resource], name, pattern_type
