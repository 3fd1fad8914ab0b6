"""Builds the errors of a registry, each with its effect on the data; `inquiry` decides which."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pyspark_kafka.errors import MissingDependencyError, OptionError, RegistryError
from pyspark_kafka.version import install_command

if TYPE_CHECKING:
    from pyspark_kafka._client.options import Secret

_MAX_LENGTH = 300
# What became of the data is the same for all of them.
_OUTCOME = "No record is at fault, and none was treated as bad."
_URL_HINT = (
    "Check that option 'schema.registry.url' is the address of the registry's API; the address of Apicurio Registry "
    "ends with /apis/ccompat/v7."
)


def shown_url(url: str) -> str:
    """Return a URL without user, password, query and fragment.

    Example:
        >>> shown_url("https://me:secret@registry:8081/api?key=1")
        'https://registry:8081/api'
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return "an address that is not a URL"
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{parts.path.rstrip('/')}"


def shortened(text: object) -> str:
    """Return the message of a registry or a library, in at most 300 characters of one line, without a full stop."""
    said = " ".join(str(text).split()).rstrip(".")
    return said if len(said) <= _MAX_LENGTH else f"{said[:_MAX_LENGTH]}…"


def unreachable(question: str, where: str, reason: str, *, hint: str = "", retriable: bool = True) -> RegistryError:
    """Build the error of a registry that does not respond.

    Args:
        question: the object of the request: "schema 7".
        where: the registry, without credentials.
        reason: how, as the end of a sentence.
        hint: what to do, if more is known.
        retriable: whether it may respond later.
    """
    return RegistryError(
        f"The schema registry {where} did not answer the question about {question}: {reason}. {_OUTCOME}",
        condition="REGISTRY_UNREACHABLE",
        hint=hint
        or "Check that the registry runs and can be reached from the driver and from every executor, and check option "
        "'schema.registry.url'.",
        retriable=retriable,
        parameters={"registry": where, "question": question, "reason": reason},
    )


def login_refused(question: str, where: str, reason: str) -> RegistryError:
    """Build the error of a registry that does not let the user in, or not do this."""
    return RegistryError(
        f"The schema registry {where} refused the question about {question}: {reason}. {_OUTCOME}",
        condition="REGISTRY_REFUSED",
        hint="Check the user and password of option 'schema.registry.basic.auth.user.info', or the token of "
        "'schema.registry.bearer.auth.token', and that this user may do it.",
        parameters={"registry": where, "question": question, "reason": reason},
    )


def schema_rejected(question: str, where: str, reason: str) -> RegistryError:
    """Build the error of a registry that understood a question and will not do it."""
    return RegistryError(
        f"The schema registry {where} rejected {question}: {reason}. {_OUTCOME}",
        condition="REGISTRY_REJECTED",
        hint="Change the schema so that the registry accepts it, or the subject's compatibility.",
        parameters={"registry": where, "question": question, "reason": reason},
    )


def answer_invalid(question: str, where: str, reason: str, *, hint: str = _URL_HINT) -> RegistryError:
    """Build the error of a response that is not a registry's, or too large."""
    return RegistryError(
        f"The schema registry {where} answered the question about {question} with what cannot be used: {reason}. "
        f"{_OUTCOME}",
        condition="REGISTRY_ANSWER_INVALID",
        hint=hint,
        parameters={"registry": where, "question": question, "reason": reason},
    )


def rules_unsupported(question: str, where: str, rules: str) -> RegistryError:
    """Build the error of a schema whose values other programs change when they read or write them."""
    return RegistryError(
        f"The schema registry {where} has rules for {question} that change values when they are read or written, which "
        f"this connector does not apply: {rules}. {_OUTCOME}",
        condition="REGISTRY_RULES_UNSUPPORTED",
        hint="Read the column as bytes (valueFormat=binary) and decode it with a client that applies the rules, or "
        "remove them from the schema.",
        parameters={"registry": where, "question": question, "rules": rules},
    )


def files_unusable(reason: str) -> OptionError:
    """Build the error for unloadable certificates."""
    return OptionError(
        f"The certificates for the schema registry cannot be loaded: {reason}. Nothing was asked.",
        condition="TLS_FILES_INVALID",
        hint="Check options 'schema.registry.ssl.ca.location', '.ssl.certificate.location', '.ssl.key.location' and "
        "'.ssl.key.password': PEM files that exist on the driver and on every executor.",
        parameters={"reason": reason},
    )


def login_unusable(option: str, secret: Secret, reason: str) -> OptionError:
    """Build the error of a token, or of a user and a password, that no request can carry.

    Args:
        option: which has it.
        secret: the value; a reference is named, a text is not.
        reason: what is wrong, as the end of a sentence about the value, without a part of it.
    """
    reference = secret.reference
    value = f"The secret '{reference}' of option '{option}'" if reference else f"The value of option '{option}'"
    return OptionError(
        f"{value} {reason}. No connection was made.",
        condition="SECRET_UNAVAILABLE" if reference else "OPTION_INVALID",
        hint="Remove all other characters; a line end at the end is left out of a file (file:PATH) only.",
        parameters={"option": option, "reference": reference or "", "reason": reason},
    )


def missing_package(package: str, extra: str, need: str) -> MissingDependencyError:
    """Build the error for a missing library.

    Args:
        package: what cannot be imported.
        extra: the extra of this package that brings it.
        need: what needs it, as the subject of the sentence.
    """
    return MissingDependencyError(
        f"{need} needs the Python package '{package}', which cannot be imported.",
        condition="MISSING_DEPENDENCY",
        hint=f"Install it on the driver and on the executors: {install_command(extra)}.",
        parameters={"package": package},
    )
