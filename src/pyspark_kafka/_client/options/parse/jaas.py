"""Read `kafka.sasl.jaas.config`, the place where Java clients have user name and password.

The login modules of Java's clients are names here: each names mechanisms, and has settings. No error and no note
repeats any value of the configuration, because any part of it may be the password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark_kafka._client.options.values.secret import Secret
from pyspark_kafka._client.options.values.security import LOGIN_MODULES

# Serverless platforms and Kafka bundles rename the packages of Java classes; the class is the same.
_SHADED = re.compile(r"^(?:kafkashaded|shadedmskiam|shaded)\.")
# As Java's StreamTokenizer, with which JaasConfig reads: comments, quotes that end in their line, words between signs.
_TOKEN = re.compile(
    r"""(?:\s | //[^\r\n]* | /\*(?:[^*]|\*(?!/))*\*/)*(?:
        "(?P<double>(?:[^"\\\r\n]|\\.)*)"
      | '(?P<single>(?:[^'\\\r\n]|\\.)*)'
      | (?P<sign>[=;])
      | (?P<word>(?:[^\s=;"'/]|/(?![/*]))+)
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
# A configuration of real modules has some 300 characters, one with a certificate in it some thousands.
_MAX_LENGTH = 1 << 17

EXAMPLE = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="<user>" password="<password>";'
_FORM = f"must have the form {EXAMPLE} (with the semicolon)"
_SETTINGS_FORM = 'must have settings of the form name="value", one login module only'

_USER = frozenset({"username", "password"})
_PASSWORD = frozenset({"password"})
_KERBEROS = LOGIN_MODULES["GSSAPI"]


@dataclass(frozen=True, slots=True)
class _Module:
    """Settings of a login module: the used settings, the secrets, and Java's settings that mean nothing here."""

    used: frozenset[str] = frozenset()
    secret: frozenset[str] = frozenset()
    ignored: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()


_MODULES = {
    LOGIN_MODULES["PLAIN"]: _Module(_USER, _PASSWORD),
    LOGIN_MODULES["SCRAM-SHA-256"]: _Module(_USER | {"tokenauth"}, _PASSWORD),
    LOGIN_MODULES["OAUTHBEARER"]: _Module(
        frozenset({"clientId", "clientSecret", "scope", "unsecuredLoginLifetimeSeconds"})
        | {f"ssl.truststore.{name}" for name in ("location", "type", "password", "certificates")}
        # Of Strimzi's login, which has this module, too.
        | {f"oauth.{name}" for name in ("client.id", "client.secret", "scope", "token.endpoint.uri")}
        | {f"oauth.ssl.truststore.{name}" for name in ("location", "type", "password", "certificates")},
        frozenset(
            {
                "clientSecret",
                "oauth.client.secret",
                *(
                    f"{prefix}ssl.truststore.{name}"
                    for prefix in ("", "oauth.")
                    for name in ("password", "certificates")
                ),
            }
        ),
        prefixes=(
            "extension_",
            "unsecuredLoginStringClaim_",
            "unsecuredLoginNumberClaim_",
            "unsecuredLoginListClaim_",
        ),
    ),
    LOGIN_MODULES["AWS_MSK_IAM"]: _Module(
        frozenset({"awsProfileName", "awsRoleArn", "awsRoleSessionName"}),
        ignored=frozenset({"awsDebugCreds", "awsMaxRetries", "awsMaxBackOffTimeMs", "awsStsRegion"}),
    ),
    _KERBEROS: _Module(
        frozenset({"keyTab", "principal", "serviceName", "ticketCache", "useKeyTab", "useTicketCache"}),
        ignored=frozenset(
            {
                "clearPass",
                "client",
                "doNotPrompt",
                "isInitiator",
                "refreshKrb5Config",
                "renewTGT",
                "storeKey",
                "storePass",
                "tryFirstPass",
                "useFirstPass",
                "useDefaultCcache",
            }
        ),
    ),
}
# Java ignores these in any module.
_IGNORED_ANYWHERE = frozenset({"debug", "serviceName"})
_SAME_MODULES = {
    "com.ibm.security.auth.module.Krb5LoginModule": _KERBEROS,
    "org.apache.hadoop.security.authentication.util.KerberosUtil": _KERBEROS,
}
_FLAGS = ("required", "requisite", "sufficient", "optional")


@dataclass(frozen=True, slots=True)
class JaasConfig:
    """A login module and its settings.

    Attributes:
        module: the name of its class, without what bundles put before it.
        texts: settings by name, except secret settings.
        secrets: passwords and the like by name, or references to them.
        notes: sentences on settings without effect.
    """

    module: str
    texts: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The SASL mechanisms that the login module is for."""
        return tuple(name for name, module in LOGIN_MODULES.items() if module == self.module)

    def flag(self, name: str) -> bool:
        """Return whether a setting is true; as in Java, anything else is false."""
        return self.texts.get(name, "").strip().lower() == "true"


def jaas_config(raw: str) -> JaasConfig | Secret:
    """Parse the value of the option: a configuration, or a reference to one, which is read where connections are made.

    Raises:
        ValueError: as `parse_jaas_config`, or what looks like a reference is none.
    """
    secret = Secret.parse(raw)
    return parse_jaas_config(raw.removeprefix("literal:")) if secret.reference is None else secret


def parse_jaas_config(raw: str) -> JaasConfig:
    """Parse `<login module class> required name="value" …;`.

    Raises:
        ValueError: with a sentence that repeats nothing of the configuration.

    Source: Java's `JaasConfig` and `JaasContext.loadClientContext`.
    """
    if len(raw) > _MAX_LENGTH:
        raise ValueError(f"has {len(raw)} characters, more than {_MAX_LENGTH}")
    tokens = _tokens(raw)
    if len(tokens) < 3 or tokens[-1] != ("sign", ";"):
        raise ValueError(_FORM)
    module = _SHADED.sub("", tokens[0][1])
    module = _SAME_MODULES.get(module, module)
    if module not in _MODULES:
        raise ValueError(
            f"must use one of the login modules {', '.join(_MODULES)}; others are Java code, which does not run here"
        )
    if tokens[1][1].lower() not in _FLAGS:
        raise ValueError("must say 'required' after the login module")
    texts = _settings(tokens[2:-1])
    notes = _check_names(module, texts)
    if module in (LOGIN_MODULES["PLAIN"], LOGIN_MODULES["SCRAM-SHA-256"]):
        if not texts.get("username") or "password" not in texts:
            raise ValueError("must set username and password")
        if "\0" in texts["username"] + texts["password"]:
            raise ValueError("must not have a zero character in username or password")
    secret = _MODULES[module].secret
    return JaasConfig(
        module,
        {name: value for name, value in texts.items() if name not in secret},
        {name: Secret.parse(value, "kafka.sasl.jaas.config") for name, value in texts.items() if name in secret},
        notes,
    )


def _check_names(module: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    known = _MODULES[module]
    simple = module.rpartition(".")[2]
    ignored = []
    for name in texts:
        if name in known.used or name.startswith(known.prefixes or ("\0",)):
            continue
        if name.startswith("user_"):
            raise ValueError("has a setting that begins with 'user_': those are for brokers; set username and password")
        if name not in known.ignored | _IGNORED_ANYWHERE:
            # Not repeated: where quotation marks are missing, a name may be a part of the password.
            wanted = [*sorted(known.used), *(f"{prefix}<name>" for prefix in known.prefixes)]
            raise ValueError(f"has a setting that {simple} does not have here; it has {', '.join(wanted)}")
        ignored.append(name)
    return tuple(f"Setting '{name}' of {simple} in kafka.sasl.jaas.config has no effect here." for name in ignored)


def _settings(tokens: list[tuple[str, str]]) -> dict[str, str]:
    if len(tokens) % 3:
        raise ValueError(_SETTINGS_FORM)
    settings: dict[str, str] = {}
    for name, sign, value in zip(tokens[::3], tokens[1::3], tokens[2::3], strict=True):
        if name[0] == "sign" or sign != ("sign", "=") or value[0] == "sign":
            raise ValueError(_SETTINGS_FORM)
        if name[1] in settings:
            raise ValueError("sets the same name twice")
        settings[name[1]] = value[1]
    return settings


def _tokens(raw: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    while True:
        match = _TOKEN.match(raw, position)
        if match is None:
            raise ValueError("has an opening quotation mark without a closing one in the same line, or an open comment")
        kind = str(match.lastgroup)
        if kind == "end":
            return tokens
        value = match[kind]
        if kind in ("double", "single"):
            value, kind = _ESCAPE.sub(_unescape, value), "quoted"
        tokens.append((kind, value))
        position = match.end()


def _unescape(escape: re.Match[str]) -> str:
    code = escape[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _CONTROL.get(code, code)
