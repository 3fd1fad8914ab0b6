"""SASL GSSAPI: a ticket of Kerberos, from the ticket cache or by a keytab.

An exchange of its own instead of kafka-python's, which takes a server's refusal of the one layer that Kafka has for
success, and does not check whether the server has proved who it is. The cryptography is from the package `gssapi`,
which is optional; its error classes cannot be named here.

Source: RFC 4752, chapter 3.1; KIP-12.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from pyspark_kafka._client.client.login.mechanism import ExchangeError, Refusal, shown
from pyspark_kafka._client.options import check_reference
from pyspark_kafka.errors import MissingDependencyError, TransportError
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from pyspark_kafka._client.options import KerberosLogin


# The bit of connections without protection of messages.
_NO_LAYER = 1


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
                hint=f"Run {install_command('kerberos')} on the driver and on the executors; it needs the libraries of "
                "MIT Kerberos or Heimdal.",
                parameters={"package": "gssapi"},
            ) from error
        self._mutual = gssapi.RequirementFlag.mutual_authentication
        self._agreed = self._is_done = False
        principal = f"{login.service_name}/{host}"
        try:
            self._context = _open_context(gssapi, login, host)
            self._to_send = bytes(self._context.step(None) or b"")
        except Exception as error:
            raise TransportError(
                f"SASL authentication (GSSAPI) for {principal} failed: {type(error).__name__}: {shown(str(error))}.",
                condition="KERBEROS_TICKET_MISSING",
                hint=_hint(login),
                parameters={"principal": principal},
            ) from error

    def auth_bytes(self) -> bytes:
        """Return the next token."""
        # The last one; the response to it is empty.
        self._is_done = self._agreed
        return self._to_send

    def receive(self, auth_bytes: bytes) -> None:
        """Take the server's token.

        Raises:
            ExchangeError: the library of Kerberos does not accept it, the server has not proved who it is, or does not
                want a connection without a security layer, the only one that Kafka has.
        """
        if self._is_done:
            if auth_bytes:
                raise ExchangeError("the server sent bytes after the end of the exchange")
            return
        try:
            self._take(auth_bytes)
        except ExchangeError:
            raise
        except Exception as error:
            raise ExchangeError(f"the server's token is not valid ({type(error).__name__})") from error

    def _take(self, auth_bytes: bytes) -> None:
        if not self._context.complete:
            self._to_send = bytes(self._context.step(auth_bytes) or b"")
            return
        offered = bytes(self._context.unwrap(auth_bytes).message)
        if self._mutual not in self._context.actual_flags:
            raise ExchangeError("the server has not proved who it is")
        if len(offered) != 4:
            raise ExchangeError(f"the server's token is not valid: its offer has {len(offered)} bytes")
        if not offered[0] & _NO_LAYER:
            raise ExchangeError("the server wants a security layer, which Kafka does not have")
        # No layer, so no size. No authorization id: the server takes the ticket's.
        self._to_send = bytes(self._context.wrap(bytes((_NO_LAYER, 0, 0, 0)), False).message)
        self._agreed = True

    def is_done(self) -> bool:
        """Return whether nothing is left to send."""
        return self._is_done

    def is_authenticated(self) -> bool:
        """Return whether both sides have proved their identity."""
        return self._agreed

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
    # A name with a kind before it, such as FILE:/tmp/krb5cc_0 or KCM:0; most kinds are not files.
    found = re.fullmatch(r"(?:(?P<kind>[A-Za-z]{2,}):)?(?P<path>.+)", login.ticket_cache or "KCM:0")
    if found is None or (found["kind"] or "FILE").upper() not in ("FILE", "DIR"):
        return "identity", "kerberos", "kafka.sasl.mechanism"
    return "file", found["path"], "kafka.sasl.jaas.config"


def _open_context(gssapi: Any, login: KerberosLogin, host: str) -> Any:
    credentials = None
    if login.keytab is not None or login.principal is not None or login.ticket_cache is not None:
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
    service = gssapi.Name(f"{login.service_name}@{host}", name_type=gssapi.NameType.hostbased_service)
    return gssapi.SecurityContext(
        name=service.canonicalize(gssapi.MechType.kerberos), creds=credentials, usage="initiate"
    )


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
