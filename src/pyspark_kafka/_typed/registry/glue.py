"""The schema registry of AWS Glue, through boto3 and the login that boto3 finds.

A subject is a schema of Glue by its name, an id is the UUID of a version, as text. Glue has no references.

Source: AWS Glue Web API, schema registry; `docs.aws.amazon.com/glue/latest/webapi`.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any, cast

from pyspark_kafka._client.options import check_reference
from pyspark_kafka._typed.codecs.schemas import RegisteredSchema, SchemaRegistry, UnknownSchemaError
from pyspark_kafka._typed.registry.answers import KINDS, check_number, check_size
from pyspark_kafka._typed.registry.backoff import RegistryBackoff
from pyspark_kafka._typed.registry.failures import (
    answer_invalid,
    login_refused,
    missing_package,
    schema_rejected,
    shortened,
    unreachable,
)
from pyspark_kafka.errors import OptionError

if TYPE_CHECKING:
    from pyspark_kafka._client.options import RegistryOptions
    from pyspark_kafka._typed.codecs.schemas import SchemaId, SchemaKind
    from pyspark_kafka.errors import RegistryError

_DEFAULT_NAME = "default-registry"
_MIN_ATTEMPTS = 3
_POLL_S = 0.2
_LOGIN_HINT = (
    "Check the login of AWS on this machine (environment variables, profile, or role of the instance), and that it may "
    "call glue:GetSchemaVersion, glue:GetSchemaByDefinition, and what else the text names."
)
_OUTAGE_HINT = (
    "Check that this machine, driver and executors alike, reaches AWS Glue, and check option 'schema.registry.region'."
)
_REFUSED = frozenset(
    {
        "AccessDeniedException",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationTokenException",
        "OptInRequired",
        "UnrecognizedClientException",
    }
)
_PASSING = frozenset(
    {
        # Another writer changes the same name at this moment.
        "ConcurrentModificationException",
        "InternalServiceException",
        "OperationTimeoutException",
        "RequestTimeout",
        "SlowDown",
    }
)
_REJECTED = frozenset(
    {
        "InvalidInputException",
        "ResourceNumberLimitExceededException",
        "ValidationException",
    }
)


class _NameTakenError(Exception):
    """A new name exists already: from another writer, or from an attempt whose response was lost."""


class GlueRegistry(SchemaRegistry):
    """The schema registry of AWS Glue; see `codecs.schemas.SchemaRegistry`.

    Runs on: driver and executor; each method blocks. No attempt begins after `timeout_ms`; the last one may end later:
    boto3 looks for a login, connects, and waits for bytes, each of the last two for a third of `timeout_ms` at most.
    Safe to use from threads.

    Args:
        options: the region, the registry's name, and the time for a request.
        client: of boto3; None: one is built when it is needed. Tests pass their own.
    """

    def __init__(self, options: RegistryOptions, client: Any = None) -> None:
        self._options = options
        self._name = options.registry_name or _DEFAULT_NAME
        self._where = f"AWS Glue, registry {self._name}" + (f" in {options.region}" if options.region else "")
        self._backoff = RegistryBackoff()
        self._lock = threading.Lock()
        self._client = client
        self._process_id = os.getpid()

    def schema_by_id(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return the schema version with a UUID."""
        question = f"schema {schema_id}"
        answer = self._ask(question, "get_schema_version", time.monotonic(), SchemaVersionId=str(schema_id))
        return self._read(answer, question)

    def schema_by_subject(self, subject: str, version: int | None = None) -> RegisteredSchema:
        """Return a version of a schema by its name, with its UUID; None: the latest."""
        question = f"schema '{subject}'" + ("" if version is None else f", version {version}")
        number = {"LatestVersion": True} if version is None else {"VersionNumber": version}
        answer = self._ask(
            question,
            "get_schema_version",
            time.monotonic(),
            SchemaId=self._place(subject),
            SchemaVersionNumber=number,
        )
        found = self._read(answer, question)
        number_found = check_number(answer.get("VersionNumber"), "version", question, self._where)
        return RegisteredSchema(found.kind, found.text, (), found.schema_id, subject, number_found)

    def find_id(self, subject: str, schema: RegisteredSchema) -> SchemaId | None:
        """Return the UUID of a schema under a name; None if the name does not have it, or is none."""
        question = f"the id of a schema in '{subject}'"
        try:
            answer = self._ask(
                question,
                "get_schema_by_definition",
                time.monotonic(),
                SchemaId=self._place(subject),
                SchemaDefinition=schema.text,
            )
        except UnknownSchemaError:
            return None
        return self._id(answer, question) if answer.get("Status") == "AVAILABLE" else None

    def incompatibilities(self, subject: str, schema: RegisteredSchema) -> list[str]:
        """Return the reason why a schema is not valid, or not a version for this name; empty if it may be one.

        Whether it is compatible Glue says only when it is registered. With compatibility DISABLED the name takes no
        further version.
        """
        began = time.monotonic()
        question = f"whether a schema fits '{subject}'"
        valid = self._ask(
            question,
            "check_schema_version_validity",
            began,
            DataFormat=schema.kind,
            SchemaDefinition=schema.text,
        )
        if valid.get("Valid") is not True:
            return [shortened(valid.get("Error") or "AWS Glue does not say why")]
        try:
            known = self._ask(question, "get_schema", began, SchemaId=self._place(subject))
        except UnknownSchemaError:
            return []
        if known.get("DataFormat") != schema.kind:
            return [f"the schemas of '{subject}' are in {shortened(known.get('DataFormat'))}, not in {schema.kind}"]
        if known.get("Compatibility") == "DISABLED":
            return [f"the compatibility of '{subject}' is DISABLED, which takes no further version"]
        return []

    def register(self, subject: str, schema: RegisteredSchema) -> SchemaId:
        """Make a schema the next version under a name, and return its UUID, once Glue has found it to be compatible.

        A name that is new gets compatibility BACKWARD, as on AWS's console. If another writer creates it at the same
        time, the schema becomes a version under it, or is found there.
        """
        began = time.monotonic()
        question = f"a new version of '{subject}'"
        try:
            answer, status = self._add_version(subject, schema, question, began)
        except UnknownSchemaError:
            try:
                answer, status = self._create(subject, schema, question, began)
            except _NameTakenError:
                answer, status = self._add_version(subject, schema, question, began)
        schema_id = self._id(answer, question)
        while status == "PENDING":
            if self._left_s(began) <= _POLL_S:
                raise unreachable(question, self._where, "it has not found out in time whether it is compatible")
            time.sleep(_POLL_S)
            status = self._ask(question, "get_schema_version", began, SchemaVersionId=schema_id).get("Status")
        if status != "AVAILABLE":
            raise schema_rejected(question, self._where, f"the version has the status {shortened(status)}")
        return schema_id

    def _add_version(
        self, subject: str, schema: RegisteredSchema, question: str, began: float
    ) -> tuple[dict[str, Any], object]:
        """Return the response and the status; a schema that the name has already is not added again."""
        place = self._place(subject)
        answer = self._ask(question, "register_schema_version", began, SchemaId=place, SchemaDefinition=schema.text)
        return answer, answer.get("Status")

    def _create(
        self, subject: str, schema: RegisteredSchema, question: str, began: float
    ) -> tuple[dict[str, Any], object]:
        answer = self._ask(
            question,
            "create_schema",
            began,
            RegistryId={"RegistryName": self._name},
            SchemaName=subject,
            DataFormat=schema.kind,
            Compatibility="BACKWARD",
            SchemaDefinition=schema.text,
        )
        return answer, answer.get("SchemaVersionStatus")

    def _place(self, subject: str) -> dict[str, str]:
        return {"RegistryName": self._name, "SchemaName": subject}

    def _id(self, answer: dict[str, Any], question: str) -> str:
        schema_id = answer.get("SchemaVersionId")
        if not isinstance(schema_id, str):
            raise answer_invalid(question, self._where, "it has no id", hint="")
        return schema_id

    def _read(self, answer: dict[str, Any], question: str) -> RegisteredSchema:
        kind, text, status = (answer.get(name) for name in ("DataFormat", "SchemaDefinition", "Status"))
        if status == "FAILURE":
            raise UnknownSchemaError(f"was not accepted by {self._where}")
        if kind not in KINDS or not isinstance(text, str):
            raise answer_invalid(question, self._where, "it has no schema", hint="")
        check_size(len(text), question, self._where)
        return RegisteredSchema(cast("SchemaKind", kind), text, (), self._id(answer, question))

    def _left_s(self, began: float) -> float:
        return self._options.timeout_ms / 1000 - (time.monotonic() - began)

    def _ask(self, question: str, operation: str, began: float, **parameters: Any) -> dict[str, Any]:
        """Return the response to a request; a request that may succeed later is repeated while there is time."""
        attempts = 0
        reason = "there was no time left for an attempt"
        while (left_s := self._left_s(began)) > 0:
            pause_s = self._backoff.wait_s()
            # After an outage one request is sent at the end, rather than none.
            time.sleep(pause_s if pause_s < left_s else left_s / 2)
            attempts += 1
            try:
                answer = getattr(self._open(), operation)(**parameters)
            except Exception as error:  # noqa: BLE001 - botocore's errors have many classes; each is judged
                failure = self._judge(question, operation, error)
                # Glue's response, not a failure of this machine or the network.
                answered = isinstance(getattr(error, "response", None), dict)
            else:
                self._backoff.answered()
                if not isinstance(answer, dict):
                    raise answer_invalid(question, self._where, "it has not the form of one", hint="")
                return answer
            if not isinstance(failure, str):
                if answered:
                    self._backoff.answered()
                raise failure
            reason = failure
            self._backoff.failed()
        raise unreachable(
            question,
            self._where,
            f"{attempts} {'attempt' if attempts == 1 else 'attempts'} within {self._options.timeout_ms} ms, the last: "
            f"{reason}",
            hint=_OUTAGE_HINT,
        )

    def _open(self) -> Any:
        """Return the client of this process: it has connections, which a forked child must not share."""
        with self._lock:
            if self._client is None or self._process_id != os.getpid():
                self._client = _build_client(self._options)
                self._process_id = os.getpid()
            return self._client

    def _judge(self, question: str, operation: str, error: Exception) -> Exception | str:
        """Return the error that a failure is, or its text if the request may succeed later."""
        answer = getattr(error, "response", None)
        if isinstance(error, (ImportError, OptionError)):
            return error
        if not isinstance(answer, dict):
            return self._judge_client(question, error)
        code = str(answer.get("Error", {}).get("Code", ""))
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        said = f"{operation}: {shortened(code)}: {shortened(answer.get('Error', {}).get('Message', ''))}"
        if code == "EntityNotFoundException":
            return UnknownSchemaError(f"is not in {self._where}")
        if code == "AlreadyExistsException":
            return _NameTakenError(said)
        if code in _REFUSED:
            return _with_hint(login_refused(question, self._where, said), _LOGIN_HINT)
        if code in _PASSING or "Throttl" in code or (isinstance(status, int) and status >= 500):
            return said
        if code in _REJECTED:
            return schema_rejected(question, self._where, said)
        return answer_invalid(question, self._where, said, hint="Look the code up in the documentation of AWS Glue.")

    def _judge_client(self, question: str, error: Exception) -> Exception | str:
        """Return the same for a failure without a response from Glue; the class is named, no message is repeated."""
        name = type(error).__name__
        if "Credential" in name or name in ("ProfileNotFound", "TokenRetrievalError", "UnauthorizedSSOTokenError"):
            return _with_hint(login_refused(question, self._where, f"there is no login of AWS ({name})"), _LOGIN_HINT)
        if name == "NoRegionError":
            return _with_hint(
                login_refused(question, self._where, "no region is set"), "Set option 'schema.registry.region'."
            )
        if name in ("ParamValidationError", "InvalidRegionError", "UnknownEndpointError", "SSLError"):
            return answer_invalid(question, self._where, f"{name}: {shortened(error)}", hint=_OUTAGE_HINT)
        return name


def _with_hint(error: RegistryError, hint: str) -> RegistryError:
    error.change_hint(hint)
    return error


def _build_client(options: RegistryOptions) -> Any:
    check_reference("identity", "aws", "schema.registry.region")
    try:
        import boto3  # noqa: PLC0415 - an extra, and slow to import
        from botocore.config import Config  # noqa: PLC0415
    except ImportError as error:
        raise missing_package("boto3", "glue", "The schema registry of AWS Glue") from error
    timeout_s = max(0.1, options.timeout_ms / 1000 / _MIN_ATTEMPTS)
    config = Config(
        connect_timeout=timeout_s,
        read_timeout=timeout_s,
        # Attempts are made here, with one pace for the process.
        retries={"total_max_attempts": 1, "mode": "standard"},
        user_agent_extra="pyspark-kafka",
    )
    # A session of its own: boto3's default one is not safe to share between threads.
    return boto3.session.Session().client("glue", region_name=options.region, config=config)
