"""One question to a registry over HTTP, with all its requests and attempts, within one time.

Uses confluent-kafka's client for the words of the API, and none of its retries, caches and timeouts: it waits for ever
by default, and remembers nothing of what is not there.
"""

from __future__ import annotations

import base64
import html
import logging
import re
import ssl
import time
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, quote_plus, unquote

from pyspark_kafka._client.options import Revealed, Secret
from pyspark_kafka._typed.codecs.schemas import UnknownSchemaError
from pyspark_kafka._typed.registry.backoff import RegistryBackoff
from pyspark_kafka._typed.registry.clients import Clients, load_client_class, rest_of
from pyspark_kafka._typed.registry.failures import (
    answer_invalid,
    login_refused,
    login_unusable,
    schema_rejected,
    shortened,
    shown_url,
    unreachable,
)
from pyspark_kafka._typed.registry.guard import AnswerError, Guard
from pyspark_kafka.errors import OptionError, RegistryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

    from pyspark_kafka._client.options import RegistryOptions

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")

SUBJECT_UNKNOWN, VERSION_UNKNOWN, SCHEMA_UNKNOWN = 40401, 40402, 40403
_UNKNOWN = {
    SUBJECT_UNKNOWN: "is not a subject of the schema registry {where}",
    VERSION_UNKNOWN: "has no such version in the schema registry {where}",
    SCHEMA_UNKNOWN: "is not in the schema registry {where}",
}
# The request may succeed later, as a failure of the registry itself may.
_PASSING = frozenset({408, 425, 429})
# For how many attempts there is time, even if each waits in vain.
_MIN_ATTEMPTS = 3
_STARS = "***"
_TOKEN = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_ESCAPED = re.compile("%[0-9A-F]{2}")
_UNSENDABLE = "has characters that a header of HTTP cannot hold: control characters, or characters outside of ASCII"


class RegistryAccess:
    """The state that all requests to one registry share in this process.

    Args:
        options: the addresses, the login, and the time for a request.
    """

    def __init__(self, options: RegistryOptions) -> None:
        self.options = options
        self.backoff = RegistryBackoff()
        self.clients = Clients(options)


class _PassingError(Exception):
    """A failed attempt, whose repetition may succeed; its text is the end of a sentence."""


class Inquiry:
    """The requests of one question.

    Runs on: driver and executor; blocks until the deadline at most. One thread.

    Args:
        access: to the registry.

    Raises:
        MissingDependencyError: without the package confluent-kafka.
    """

    def __init__(self, access: RegistryAccess) -> None:
        # The time is for the registry: it begins when the library is loaded.
        load_client_class()
        self._access = access
        self._options = options = access.options
        self._backoff = access.backoff
        self._timeout_ms = options.timeout_ms
        self._guard = Guard(time.monotonic() + options.timeout_ms / 1000)
        # By address, each with the time when it was built; clients whose last request failed are not here.
        self._clients: dict[str, tuple[float, Any]] = {}
        # The address of the last response comes first.
        self._urls = list(options.urls)

    def __enter__(self) -> Inquiry:  # noqa: PYI034 - typing.Self needs Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._guard.close()
        for url, (built_at, client) in self._clients.items():
            self._access.clients.put_back(url, built_at, client)

    @property
    def url(self) -> str:
        """The current address."""
        return self._urls[0]

    @property
    def where(self) -> str:
        """The same, without credentials."""
        return shown_url(self.url)

    def ask(self, question: str, request: Callable[[Any], _T], *, once: bool = False) -> _T:
        """Return the result of a request; silent addresses are retried, in turn, until the deadline.

        Args:
            question: what is asked for, for errors: "schema 7".
            request: makes one request with confluent-kafka's client.
            once: whether each address gets one request only.

        Raises:
            UnknownSchemaError: the registry has none.
            RegistryError: it does not respond, refuses the login or the request, or responds with nonsense.
            OptionError: a certificate cannot be loaded (`TLS_FILES_INVALID`), a secret is not there
                (`SECRET_UNAVAILABLE`), or is none that a request can carry (the same, or `OPTION_INVALID`).
        """
        attempts = 0
        reason = "there was no time left for an attempt"
        while not self._guard.was_cut:
            if not self._rest():
                break
            for index in range(len(self._urls)):
                # A lost response must leave time for another attempt, and for the other addresses.
                left_s = self._guard.left_s() / (len(self._urls) - index)
                self._guard.share_s = min(left_s, self._timeout_ms / 1000 / _MIN_ATTEMPTS)
                attempts += 1
                try:
                    found = self._attempt(question, request)
                except _PassingError as error:
                    # An attempt that the end of the time cut short explains less than the one before it.
                    if attempts == 1 or not self._guard.was_cut:
                        reason = f"{self.where}: {error}" if len(self._urls) > 1 else str(error)
                except (UnknownSchemaError, RegistryError) as error:
                    if getattr(error, "condition", "") != "REGISTRY_UNREACHABLE":
                        self._backoff.answered()
                    raise
                else:
                    self._backoff.answered()
                    return found
                self._urls.append(self._urls.pop(0))
            self._backoff.failed(self._guard.retry_after_s)
            if once:
                break
            if attempts == len(self._urls):
                _LOG.warning(
                    "The schema registry %s does not answer the request for %s: %s. It is repeated for %.0f s.",
                    self.where,
                    question,
                    reason,
                    self._guard.left_s(),
                )
        where = ", ".join(map(shown_url, self._options.urls))
        raise unreachable(
            question,
            where,
            f"{attempts} {'attempt' if attempts == 1 else 'attempts'} within {self._timeout_ms} ms, the last: {reason}",
        )

    def _rest(self) -> bool:
        """Wait until the next request is allowed; return whether there is time left."""
        pause_s = self._backoff.wait_s()
        left_s = self._guard.left_s()
        if pause_s >= left_s:
            # After an outage one request is sent at the end, rather than none.
            pause_s = left_s / 2
        if pause_s > 0:
            time.sleep(pause_s)
        return self._guard.left_s() > 0

    def _attempt(self, question: str, request: Callable[[Any], _T]) -> _T:
        # Not in a hook of the request: failures there are judged as failures of the registry.
        token = None if self._options.bearer_token is None else _token(self._options.bearer_token)
        url = self._urls[0]
        built_at, client = self._clients.pop(url) if url in self._clients else self._access.clients.take_client(url)
        self._guard.watch(rest_of(client).session, token)
        failure: Exception
        try:
            found = request(client)
        except Exception as error:  # noqa: BLE001 - the client passes on errors of its libraries, and of nonsense
            failure = self._judge(question, error)
        else:
            self._clients[url] = built_at, client
            return found
        if isinstance(failure, UnknownSchemaError):
            self._clients[url] = built_at, client
        else:
            rest_of(client).session.close()
        # Raised here, so that it does not carry the frames of the client, which hold the password.
        raise failure

    def _judge(self, question: str, error: Exception) -> Exception:
        """Return the error that a failure of the client is."""
        status = getattr(error, "http_status_code", None)
        if isinstance(status, int):
            code, said = getattr(error, "error_code", None), getattr(error, "error_message", "")
            # With the code -1 the client quotes a body that is not a registry's: bytes, with escapes of their own.
            said = "" if code == -1 else shortened(self._hidden(str(said)))
            return judge_status(question, self.where, status, code, said)
        if isinstance(error, AnswerError):
            return answer_invalid(question, self.where, str(error))
        certificate = _certificate_fault(error)
        if certificate:
            return unreachable(
                question,
                self.where,
                f"its certificate was not accepted: {certificate}",
                hint="Set option 'schema.registry.ssl.ca.location' to the authority of the registry's certificate, and "
                "use a name that the certificate holds.",
                retriable=False,
            )
        if self._guard.was_cut:
            return _PassingError(f"no answer within {self._timeout_ms} ms")
        name = type(error).__name__
        bases = {each.__name__ for each in type(error).__mro__}
        if "TimeoutException" in bases:
            return _PassingError(f"no answer in time ({name})")
        if "LocalProtocolError" in bases:
            # Its text quotes the header that the library refuses to send.
            return _PassingError(f"the request could not be sent ({name})")
        if "TransportError" in bases or isinstance(error, OSError):
            return _PassingError(f"{name}: {shortened(self._hidden(str(error))) or 'the connection ended'}")
        # The client's errors for invalid JSON, or a response that is not a registry's.
        form = "JSON" if isinstance(error, ValueError) else "of the form that a registry's answers have"
        return answer_invalid(question, self.where, f"it is not {form} ({name})")

    def _hidden(self, text: str) -> str:
        """Return the message of a registry or a library, without any part of the login."""
        secrets = [self._options.basic_auth, self._options.bearer_token, self._options.key_password]
        for secret in filter(None, secrets):
            try:
                value = secret.reveal()
            except OptionError:
                return _STARS
            parts = [value]
            if secret is self._options.basic_auth:
                encoded = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
                # As it is sent, and the password alone.
                parts += [Revealed(encoded), Revealed(value.partition(":")[2])]
            for part in parts:
                text = _without(text, part)
        for login in _logins_in(self._options.urls):
            text = _without(text, login)
        return text


def _logins_in(urls: Iterable[str]) -> Iterator[str]:
    """Yield the logins in URLs: options have none there, but other programs may build them."""
    for url in urls:
        given = url.partition("://")[2].partition("/")[0].rpartition("@")[0]
        if given:
            user, _, password = given.partition(":")
            plain = f"{unquote(user)}:{unquote(password)}"
            encoded = base64.b64encode(plain.encode("utf-8", "surrogateescape")).decode()
            yield from filter(None, (given, plain, encoded, password, unquote(password)))


def _without(text: str, value: str) -> str:
    """Return a text with stars for a value, also without the blanks at its ends.

    Also as Python quotes it, as URLs and HTML have it, and read in the charset of old servers.
    """
    value = str(value)
    utf8 = value.encode("utf-8", "surrogatepass")
    forms = {value, value.strip(), repr(value)[1:-1], repr(utf8)[2:-1], html.escape(value), utf8.decode("latin-1")}
    for raw in (utf8, value.encode("latin-1", "ignore")):
        for form in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
            forms |= {form, _ESCAPED.sub(lambda found: found[0].lower(), form)}
    for form in sorted(forms, key=len, reverse=True):
        text = Secret(form).hidden_in(text)
    return text


def _token(secret: Secret) -> Revealed:
    """Return a token that a header can hold.

    Raises:
        OptionError: it is not there, or is none.
    """
    token = secret.reveal()
    if _TOKEN.fullmatch(token):
        return token
    reason = "begins or ends with a blank or a line end" if token != token.strip() else _UNSENDABLE
    raise login_unusable("schema.registry.bearer.auth.token", secret, reason if token else "is empty")


def judge_status(question: str, where: str, status: int, code: object, said: str) -> Exception:
    """Return the error for a response with an HTTP status. Pure.

    Args:
        question: the object of the request.
        where: the registry.
        status: of HTTP.
        code: of the registry, if its response has one.
        said: its message.
    """
    spoken = f"HTTP status {status}" + (f", code {code}" if _is_code(code) else "") + (f": {said}" if said else "")
    if status == 404 and code in _UNKNOWN:
        return UnknownSchemaError(_UNKNOWN[int(str(code))].format(where=where))
    if status in (401, 403):
        return login_refused(question, where, spoken)
    if status in _PASSING or status >= 500:
        return _PassingError(spoken)
    if status in (409, 422) and _is_code(code):
        return schema_rejected(question, where, spoken)
    if 300 <= status < 400:
        spoken = f"HTTP status {status}, which sends the question elsewhere; it is not followed, as the login would be"
    elif status == 404:
        spoken = f"{spoken}; a registry would have said which of its things is not there"
    return answer_invalid(question, where, spoken)


def _is_code(code: object) -> bool:
    return isinstance(code, int) and code > 0


def _certificate_fault(error: BaseException | None) -> str:
    """Return the fault of a certificate, if a connection failed because of it."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return shortened(error.verify_message or error)
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return shortened(error)
        error = error.__cause__ or error.__context__
    return ""
