"""The options of a client of a secured listener, as users write them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_kafka.errors import SetupError
from pyspark_kafka.testing.secured.listeners import OAUTHBEARER, UNSECURED, Listener, jaas_line

if TYPE_CHECKING:
    from pyspark_kafka.testing.secured.broker_security import BrokerSecurity

STORES = ("PEM", "PEM-inline", "PKCS12", "JKS")


def build_client_options(
    security: BrokerSecurity, listener: Listener, address: str, user: str | None, mechanism: str | None, store: str
) -> dict[str, str]:
    """Build the options of a client; see `BrokerSecurity.client_options`. Files of stores and tokens are written.

    Raises:
        SetupError: the listener cannot be used like this.
    """
    options = {"kafka.bootstrap.servers": address, "kafka.security.protocol": listener.protocol}
    if listener.uses_tls:
        shown = user if listener.client_auth == "required" or not listener.uses_sasl else None
        options.update(_tls_options(security, shown, store))
    if listener.uses_sasl:
        if user is None:
            raise _invalid(f"of {listener.listener_name} need a user", "Name a user.")
        chosen = mechanism or listener.mechanisms[0]
        if chosen not in listener.mechanisms:
            known = ", ".join(listener.mechanisms)
            raise _invalid(
                f"of {listener.listener_name} have the mechanisms {known}, not {chosen}", "Name one of them."
            )
        options["kafka.sasl.mechanism"] = chosen
        options.update(_sasl_options(security, listener, user, chosen))
    return options


def _sasl_options(security: BrokerSecurity, listener: Listener, user: str, mechanism: str) -> dict[str, str]:
    if mechanism == "GSSAPI":
        return {"kafka.sasl.kerberos.service.name": "kafka"}
    if mechanism != OAUTHBEARER:
        line = jaas_line(mechanism, {"username": user, "password": security.password(user)})
        return {"kafka.sasl.jaas.config": line}
    if listener.jwks_url == UNSECURED:
        return {"kafka.sasl.jaas.config": jaas_line(mechanism, {"unsecuredLoginStringClaim_sub": user})}
    options = {"kafka.sasl.jaas.config": jaas_line(mechanism, {})}
    if not listener.jwks_url:
        options["kafka.sasl.oauthbearer.token.endpoint.url"] = security.token_file(user).as_uri()
    return options


def _tls_options(security: BrokerSecurity, user: str | None, store: str) -> dict[str, str]:
    authority = security.authority
    if store not in STORES:
        raise _invalid(f"have stores of {', '.join(STORES)}, not {store!r}", "Name one of them.")
    options = {"kafka.ssl.truststore.type": store.partition("-")[0]}
    if store == "PEM":
        options["kafka.ssl.truststore.location"] = str(authority.file)
    elif store == "PEM-inline":
        options["kafka.ssl.truststore.certificates"] = authority.pem.decode()
    else:
        options["kafka.ssl.truststore.password"] = password = security.new_store_password()
        options["kafka.ssl.truststore.location"] = str(authority.trust_store(store, password))
    if user is None:
        return options
    certificate = authority.issue(user=user)
    options["kafka.ssl.keystore.type"] = store.partition("-")[0]
    if store == "PEM":
        options["kafka.ssl.keystore.location"] = str(authority.write(certificate.pem, f"{user}.pem"))
    elif store == "PEM-inline":
        options["kafka.ssl.keystore.certificate.chain"] = certificate.chain_pem.decode()
        options["kafka.ssl.keystore.key"] = certificate.key_pem.decode()
    else:
        options["kafka.ssl.keystore.password"] = password = security.new_store_password()
        options["kafka.ssl.keystore.location"] = str(authority.key_store(certificate, store, password))
    return options


def _invalid(what: str, hint: str) -> SetupError:
    return SetupError(f"Clients {what}.", condition="BROKER_SECURITY_MISSING", hint=hint)
