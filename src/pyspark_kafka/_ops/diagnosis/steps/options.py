"""The options: whether they are valid, with all problems at once. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka._client.client.net.connection import address_of
from pyspark_kafka._ops.diagnosis.findings import Finding, FindingStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_kafka._ops.operations.settings import Settings
    from pyspark_kafka.errors import OptionError


def judge_options(settings: Settings | None, refused: OptionError | None) -> Iterator[Finding]:
    """Yield a finding for each fault in the options, or one for valid options."""
    if refused is not None:
        option = refused.parameters.get("options", "")
        for message, hint in refused.problems or ((refused.message, refused.hint),):
            yield Finding(
                "options", FindingStatus.FAILED, message, hint, {"condition": refused.condition, "options": option}
            )
        return
    if settings is None:
        return
    connection = settings.connection
    servers = [address_of(*server) for server in connection.bootstrap_servers]
    login = f", login with {connection.login.mechanism}" if connection.login is not None else ""
    asks = [name for name, part in (("read", settings.read), ("write", settings.write)) if part is not None]
    facts = {
        "servers": servers,
        "security_protocol": connection.security_protocol,
        "mechanism": connection.login.mechanism if connection.login is not None else None,
        "queries": asks,
    }
    what = f"to {' and '.join(asks)}" if asks else "to connect"
    text = f"The options {what} are valid: {', '.join(servers)}, {connection.security_protocol}{login}."
    yield Finding("options", FindingStatus.OK, text, facts=facts)
    for note in settings.notes:
        yield Finding("options", FindingStatus.WARNING, note)
