"""Read user name and password from `kafka.sasl.jaas.config`, the only place where Java clients have them.

Supports the login modules of PLAIN and SCRAM, which need no Java code. No error repeats any text of the configuration,
because any part of it may be the password. Layer: options.parse.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark_kafka.options.values.secret import Secret

_LOGIN_MODULES = {
    "org.apache.kafka.common.security.plain.PlainLoginModule": ("PLAIN",),
    "org.apache.kafka.common.security.scram.ScramLoginModule": ("SCRAM-SHA-256", "SCRAM-SHA-512"),
}
# Serverless platforms and Kafka bundles rename the packages of Java classes; the class is the same.
_SHADED = re.compile(r"^(?:kafkashaded|shadedmskiam|shaded)\.")
_TOKEN = re.compile(
    r"""\s*(?:
        "(?P<double>(?:[^"\\]|\\.)*)"
      | '(?P<single>(?:[^'\\]|\\.)*)'
      | (?P<sign>[=;])
      | (?P<word>[^\s=;"']+)
    )""",
    re.VERBOSE | re.DOTALL,
)
EXAMPLE = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="<user>" password="<password>";'


@dataclass(frozen=True, slots=True)
class Login:
    """A user of a JAAS configuration, and the SASL mechanisms that its login module supports."""

    username: str
    password: Secret
    mechanisms: tuple[str, ...]
    delegation_token: bool


def parse_jaas_config(raw: str) -> Login:
    """Parse `<login module class> required username="…" password="…";`.

    Raises:
        ValueError: with a sentence that repeats nothing of the configuration.
    """
    tokens = _tokens(raw)
    if len(tokens) < 3 or tokens[-1] != ("sign", ";"):
        raise ValueError(f"must have the form {EXAMPLE} (with the semicolon)")
    module = _SHADED.sub("", tokens[0][1])
    if module not in _LOGIN_MODULES:
        raise ValueError(
            "must use the login module of PLAIN or SCRAM "
            f"({' or '.join(_LOGIN_MODULES)}); other login modules are Java code and are not supported"
        )
    if tokens[1][1].lower() not in ("required", "requisite", "sufficient", "optional"):
        raise ValueError("must say 'required' after the login module")
    settings = _settings(tokens[2:-1])
    if not settings.get("username") or "password" not in settings:
        raise ValueError("must set username and password")
    return Login(
        username=settings["username"],
        password=Secret(settings["password"]),
        mechanisms=_LOGIN_MODULES[module],
        delegation_token=settings.get("tokenauth", "").lower() == "true",
    )


def _settings(tokens: list[tuple[str, str]]) -> dict[str, str]:
    if len(tokens) % 3:
        raise ValueError('must have settings of the form name="value", one login module only')
    settings: dict[str, str] = {}
    for name, sign, value in zip(tokens[::3], tokens[1::3], tokens[2::3], strict=True):
        if name[0] != "word" or sign != ("sign", "=") or value[0] == "sign":
            raise ValueError('must have settings of the form name="value", one login module only')
        if name[1] in settings:
            raise ValueError("sets the same name twice")
        settings[name[1]] = value[1]
    return settings


def _tokens(raw: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position, end = 0, len(raw.rstrip())
    while position < end:
        match = _TOKEN.match(raw, position)
        if match is None:
            raise ValueError("has an opening quotation mark without a closing one")
        kind = str(match.lastgroup)
        value = match[kind]
        if kind in ("double", "single"):
            value, kind = re.sub(r"\\(.)", r"\1", value, flags=re.DOTALL), "quoted"
        tokens.append((kind, value))
        position = match.end()
    return tokens
