"""SASL GSSAPI: a ticket of Kerberos, from the ticket cache or by a keytab.

The state machine is kafka-python's; it takes the ticket of the process, this adds credentials of a login. The package
`gssapi` is optional, and its error classes cannot be named here.

Layer: client. Source: RFC 4752, KIP-12.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from pyspark_kafka.client.login.mechanism import ExchangeError, Refusal, shown
from pyspark_kafka.errors import MissingDependencyError, TransportError
from pyspark_kafka.options import check_reference

if TYPE_CHECKING:
    from pyspark_kafka.options import KerberosLogin


class KerberosMechanism:
    """One exchange of GSSAPI.

    Args:
        login: service name, and where the ticket comes from.
        host: the broker's name, which its principal ends with.

    Raises:
        MissingDependencyError: the package `gssapi` or the library of Kerberos is not there.
        OptionError: the administrator of this process does not allow the keytab, the cache or the ticket.
        TransportError: there is no ticket, the keytab cannot be used, or the cluster's realm does not know the broker.
    """

    name = "GSSAPI"

    def __init__(self, login: KerberosLogin, host: str) -> None:
        check_reference(*_credentials_of(login))
        try:
            import gssapi  # noqa: PLC0415 - an optional package, of which other logins need nothing
        except (ImportError, OSError) as error:
            raise MissingDependencyError(
                "SASL mechanism GSSAPI (Kerberos) needs the Python package 'gssapi', which cannot be imported.",
                condition="MISSING_DEPENDENCY",
                hint="Install pyspark-kafka[kerberos] on the driver and on the executors; it needs the libraries of "
                "MIT Kerberos or Heimdal.",
                facts={"package": "gssapi"},
            ) from error
        principal = f"{login.service_name}/{host}"
        try:
            self._machine = _machine(gssapi, login, host)
        except Exception as error:
            raise TransportError(
                f"SASL authentication (GSSAPI) for {principal} failed: {type(error).__name__}: {shown(str(error))}.",
                condition="KERBEROS_TICKET_MISSING",
                hint=_hint(login),
                facts={"principal": principal},
            ) from error

    def auth_bytes(self) -> bytes:
        """Return the next token."""
        return bytes(self._machine.auth_bytes())

    def receive(self, auth_bytes: bytes) -> None:
        """Take the server's token.

        Raises:
            ExchangeError: the library of Kerberos does not accept it.
        """
        try:
            self._machine.receive(auth_bytes)
        except Exception as error:
            raise ExchangeError(f"the server's token is not valid ({type(error).__name__})") from error

    def is_done(self) -> bool:
        """Whether there is nothing more to send."""
        return bool(self._machine.is_done())

    def is_authenticated(self) -> bool:
        """Whether both sides have proved who they are."""
        return bool(self._machine.is_authenticated())

    def refusal(self) -> Refusal:
        """Return nothing but the hint."""
        return Refusal(
            hint=(
                "Check kafka.sasl.kerberos.service.name, that the broker's host name is the one in its principal, and "
                "that the clocks agree within 5 minutes."
            )
        )


def _credentials_of(login: KerberosLogin) -> tuple[str, str, str]:
    """Return what a login takes of this process, for `check_reference`."""
    if login.keytab is not None:
        return "file", login.keytab, "kafka.sasl.jaas.config"
    # A name with a kind before it, such as FILE:/tmp/krb5cc_0 or KCM:0; most kinds are no files.
    found = re.fullmatch(r"(?:(?P<kind>[A-Za-z]{2,}):)?(?P<path>.+)", login.ticket_cache or "KCM:0")
    if found is None or (found["kind"] or "FILE").upper() not in ("FILE", "DIR"):
        return "identity", "kerberos", "kafka.sasl.mechanism"
    return "file", found["path"], "kafka.sasl.jaas.config"


def _machine(gssapi: Any, login: KerberosLogin, host: str) -> Any:
    # It brings all of kafka-python's network code, of which other connections need nothing.
    from kafka.net.sasl.gssapi import SaslMechanismGSSAPI  # noqa: PLC0415

    if login.keytab is None and login.principal is None and login.ticket_cache is None:
        return SaslMechanismGSSAPI(host=host, sasl_kerberos_service_name=login.service_name)
    wanted = None
    if login.principal is not None:
        wanted = gssapi.Name(login.principal, name_type=gssapi.NameType.kerberos_principal)
    store: dict[str, str] = {}
    if login.keytab is not None:
        if not os.access(login.keytab, os.R_OK):
            raise FileNotFoundError(f"the keytab '{login.keytab}' cannot be read")
        # A cache of this process only: one in a file would be shared by queries with other principals.
        store = {"client_keytab": login.keytab, "ccache": f"MEMORY:pyspark-kafka-{abs(hash(login)):x}"}
    elif login.ticket_cache is not None:
        store = {"ccache": login.ticket_cache}
    credentials = gssapi.Credentials(name=wanted, usage="initiate", store=store or None)
    machine = SaslMechanismGSSAPI.__new__(SaslMechanismGSSAPI)
    # As in its constructor, but with credentials.
    service = gssapi.Name(f"{login.service_name}@{host}", name_type=gssapi.NameType.hostbased_service)
    machine.auth_id = f"{login.service_name}@{host}"
    machine.gssapi_name = service.canonicalize(gssapi.MechType.kerberos)
    machine._is_done = machine._is_authenticated = False  # noqa: SLF001
    context = gssapi.SecurityContext(name=machine.gssapi_name, creds=credentials, usage="initiate")
    machine._client_ctx, machine._next_token = context, context.step(None)  # noqa: SLF001
    return machine


def _hint(login: KerberosLogin) -> str:
    if login.keytab is not None:
        return (
            "Check keyTab and principal in kafka.sasl.jaas.config: the keytab must be on the driver and on every "
            "executor, and klist -k must list the principal."
        )
    return (
        "Get a ticket with kinit on the driver and on every executor (klist shows it), or set keyTab and principal in "
        "kafka.sasl.jaas.config."
    )
