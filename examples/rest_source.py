"""A paginated REST API as a source, for batch, micro-batch and continuous queries.

    python examples/rest_source.py

starts an API on this machine (`rest_server.py`) that limits rates and fails at times, and shows its rows.

**What it promises.** Each item is a row of one micro-batch, once. The offset is the id of the last item and the number
of items up to there; a range that is read again has the same rows. A failed request is sent again until the deadline,
and never before the time that the API asks for. The token is in the header of requests to the API, and in no error.

**What the API must promise.** Items have one order that never changes, and new ones come at its end: an order by a time
that writers set, or by ids that are drawn before their transaction commits, loses items. An item does not change, and
stays for as long as a query may read it again. A cursor that the API does not know is an error, and not the beginning.
If a range has another number of items than before, or another last one, the query ends with an error, and not with
other rows. Changes inside of an item are not noticed.

**What it costs.** In a streaming query each page is asked for twice: by the driver, which must know where a micro-batch
ends, and by the task. One task reads a range, since APIs limit the rate by token. A look-up that finds nothing new is
one conditional request (`If-None-Match`), which many APIs do not count.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

import pyarrow as pa

import pyspark_kafka
from pyspark_kafka.connector import (
    Batch,
    ContinuousPartitionReader,
    ContinuousPartitionReaderFactory,
    ContinuousStream,
    InputPartition,
    MicroBatchStream,
    Offset,
    PartitionOffset,
    PartitionReaderFactory,
    ReadLimit,
    ReadMaxRows,
    RowPartitionReader,
    Scan,
    ScanBuilder,
    SupportsRead,
    SupportsTriggerAvailableNow,
    TableCapability,
)
from pyspark_kafka.errors import CheckpointError, ConnectorError, OptionError
from pyspark_kafka.toolkit import RetryPolicy, retry

if TYPE_CHECKING:
    from email.message import Message

SCHEMA = pa.schema(
    [pa.field("id", pa.string(), nullable=False), pa.field("station", pa.string()), pa.field("celsius", pa.float64())]
)
MAX_BODY_BYTES = 16 * 1024 * 1024
Item = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class RestOffset(Offset, PartitionOffset):
    """Behind which item, and how many rows there are up to there."""

    after: str | None = None
    rows: int = 0

    def json(self) -> str:
        return json.dumps({"after": self.after, "rows": self.rows})

    @classmethod
    def parse(cls, text: str) -> RestOffset:
        try:
            parsed = json.loads(text)
            return cls(parsed["after"], parsed["rows"])
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{text[:200]!r} is no offset of this source.", condition="REST_OFFSET") from error

    def behind(self, items: Sequence[Item]) -> RestOffset:
        """Return the offset behind further items."""
        return RestOffset(items[-1]["id"], self.rows + len(items)) if items else self


# Requests


class RestError(ConnectorError):
    """A request failed, or the API does not keep its promises."""

    def __init__(self, message: str, *, retriable: bool = False, pause_ms: float | None = None) -> None:
        super().__init__(message, condition="REST_API", retriable=retriable)
        self.pause_ms = pause_ms


def asked_pause_ms(error: BaseException) -> float | None:
    """Return how long the API asks to wait before the next attempt."""
    return error.pause_ms if isinstance(error, RestError) else None


def parse_retry_after(headers: Message) -> float | None:
    """Return the ms that a Retry-After asks for, in either form: seconds, or a date on the clock of the server."""
    asked = headers.get("Retry-After", "")
    if asked.isdecimal():
        return int(asked) * 1000
    try:
        until = parsedate_to_datetime(asked).timestamp()
        now = parsedate_to_datetime(headers["Date"]).timestamp() if headers.get("Date") else time.time()
    except (ValueError, TypeError):
        return None
    return max(0.0, until - now) * 1000


@dataclass
class RestApi:
    """The API, as one process sees it: plain data, which reaches the tasks. No text shows the token."""

    url: str
    token: str = field(repr=False)
    page_rows: int = 100
    timeout_s: float = 10.0
    deadline_s: float = 60.0
    # The last response that had an ETag: URL, ETag and items.
    cached: tuple[str, str, list[Item]] = field(default=("", "", []), init=False, repr=False)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> RestApi:
        """Check the options."""
        url, token = options.get("url", ""), options.get("token", "")
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or parts.query:
            raise OptionError(
                "Option 'url' must be an http or https URL, without user and query.",
                condition="REST_OPTION",
                hint="Set the credentials in option 'token'.",
            )
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise OptionError("Option 'token' has characters that no header can hold.", condition="REST_OPTION")
        numbers = [("pageRows", "100"), ("timeout", "10"), ("deadline", "60")]
        rows, timeout_s, deadline_s = (float(options.get(name, default)) for name, default in numbers)
        return cls(url, token, int(rows), timeout_s, deadline_s)

    def newest(self) -> str | None:
        """Return the id of the newest item; None if there is none."""
        items = self._get({"order": "desc", "limit": 1})
        return str(items[0]["id"]) if items else None

    def page(self, after: str | None, limit: int) -> list[Item]:
        """Return the items behind another one: some of them at least, if there are any."""
        return self._get({**({} if after is None else {"after": after}), "limit": limit})

    def pages(self, start: RestOffset, last: str | None, most: int = sys.maxsize) -> Iterator[list[Item]]:
        """Yield the pages behind `start`, up to the item `last` or to `most` items."""
        while start.after != last and most > 0:
            items = self.page(start.after, min(self.page_rows, most))
            if not items:
                return
            ids = [item["id"] for item in items]
            items = items[: ids.index(last) + 1] if last in ids else items
            yield items
            start, most = start.behind(items), most - len(items)

    def _get(self, query: Mapping[str, str | int]) -> list[Item]:
        url = f"{self.url}?{urlencode(query)}"
        policy = RetryPolicy(attempts=1000, deadline_ms=int(self.deadline_s * 1000), asked_pause_ms=asked_pause_ms)
        return retry(lambda: self._ask(url), what=f"GET {url}", policy=policy)

    def _ask(self, url: str) -> list[Item]:
        request = Request(url, headers={"Accept": "application/json"})  # noqa: S310 - the scheme is checked above
        # Not sent to where the API redirects.
        request.add_unredirected_header("Authorization", f"Bearer {self.token}")
        if self.cached[0] == url:
            request.add_header("If-None-Match", self.cached[1])
        # Errors of others end here: their texts may repeat what was sent.
        try:
            with urlopen(request, timeout=self.timeout_s) as response:  # noqa: S310
                items: list[Item] = json.loads(self._body(response))["items"]
                if response.headers.get("ETag"):
                    self.cached = (url, response.headers["ETag"], items)
                return items
        except HTTPError as error:
            error.close()
            if error.code == 304:
                return self.cached[2]
            passes = error.code in {408, 429} or error.code >= 500
            pause_ms = parse_retry_after(error.headers)
            raise RestError(f"the API answered {error.code}", retriable=passes, pause_ms=pause_ms) from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise RestError(f"no response: {type(reason).__name__}", retriable=True) from None
        except (ValueError, KeyError, TypeError) as error:
            raise RestError(f"the response is cut short or no page: {type(error).__name__}", retriable=True) from None

    def _body(self, response: HTTPResponse) -> bytes:
        """Return the body: bounded in size, and in time also if it arrives byte by byte."""
        end, body = time.monotonic() + self.timeout_s, b""
        while part := response.read1(65_536):
            body += part
            if len(body) > MAX_BODY_BYTES:
                raise RestError(f"the response has more than {MAX_BODY_BYTES:,} bytes; lower option 'pageRows'")
            if time.monotonic() > end:
                raise TimeoutError
        return body


# The table


class RestTable(SupportsRead):
    """The readings of an API. Options: `url`, `token`; `pageRows`, `maxRowsPerTrigger`, `timeout`, `deadline` (s)."""

    def name(self) -> str:
        return "rest_readings"

    def schema(self, options: Mapping[str, str]) -> pa.Schema:
        return SCHEMA

    def capabilities(self) -> frozenset[TableCapability]:
        return frozenset(
            {TableCapability.BATCH_READ, TableCapability.MICRO_BATCH_READ, TableCapability.CONTINUOUS_READ}
        )

    def newScanBuilder(self, options: Mapping[str, str]) -> ScanBuilder:
        return RestScan(options)


class RestScan(ScanBuilder, Scan):
    """One read; there is nothing to push down, so the builder is the scan."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._api = RestApi.of(options)
        self._max_rows = int(options.get("maxRowsPerTrigger", "1000"))
        self._poll_s = float(options.get("pollInterval", "1"))

    def build(self) -> Scan:
        return self

    def readSchema(self) -> pa.Schema:
        return SCHEMA

    def toBatch(self) -> Batch:
        return RestBatch(self._api)

    def toMicroBatchStream(self, checkpointLocation: str | None) -> MicroBatchStream:
        return RestMicroBatchStream(self._api, self._max_rows)

    def toContinuousStream(self, checkpointLocation: str | None) -> ContinuousStream:
        return RestContinuousStream(self._api, self._poll_s)


# Bounded reads


@dataclass(frozen=True)
class RestRange(InputPartition):
    """The items behind `start` up to `last`; `rows` of them, if somebody has counted them."""

    start: RestOffset
    last: str | None
    rows: int | None = None


@dataclass(frozen=True)
class RestReaders(PartitionReaderFactory):
    """Makes readers of ranges."""

    api: RestApi

    def createReader(self, partition: RestRange) -> RestReader:  # type: ignore[override]
        return RestReader(self.api, partition)


class RestReader(RowPartitionReader):
    """Reads one range, one page in memory."""

    def __init__(self, api: RestApi, wanted: RestRange) -> None:
        super().__init__(SCHEMA)
        self._api, self._range = api, wanted

    def rows(self) -> Iterator[tuple[Any, ...]]:
        wanted, at = self._range, self._range.start
        for items in self._api.pages(at, wanted.last, sys.maxsize if wanted.rows is None else wanted.rows):
            # A column that the API adds is left out, one that it drops is null.
            yield from (tuple(item.get(name) for name in SCHEMA.names) for item in items)
            at = at.behind(items)
        if at.after != wanted.last or wanted.rows not in {None, at.rows - wanted.start.rows}:
            raise RestError(
                f"the items behind {wanted.start.after!r} up to {wanted.last!r} are not those of before: expected "
                f"{wanted.rows}, found {at.rows - wanted.start.rows} up to {at.after!r}. Nothing was committed."
            )


class RestBatch(Batch):
    """All items that there are when the read is planned."""

    def __init__(self, api: RestApi) -> None:
        self._api = api

    def planInputPartitions(self) -> Sequence[InputPartition]:
        return [RestRange(RestOffset(), self._api.newest())]

    def createReaderFactory(self) -> PartitionReaderFactory:
        return RestReaders(replace(self._api))


class RestMicroBatchStream(MicroBatchStream, SupportsTriggerAvailableNow):
    """Micro-batches of at most `max_rows` items."""

    def __init__(self, api: RestApi, max_rows: int) -> None:
        self._api, self._max_rows = api, max_rows
        self._newest = api.newest

    def initialOffset(self) -> Offset:
        return RestOffset()

    def deserializeOffset(self, json: str) -> Offset:
        return RestOffset.parse(json)

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(self._max_rows)

    def prepareForTriggerAvailableNow(self) -> None:
        newest = self._api.newest()
        self._newest = lambda: newest

    def latestOffset(self, start: RestOffset, limit: ReadLimit) -> Offset:  # type: ignore[override]
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else sys.maxsize
        # Only the API knows which id is how far, so the driver walks the pages.
        for items in self._api.pages(start, self._newest(), most):
            start = start.behind(items)
        return start

    def planInputPartitions(self, start: RestOffset, end: RestOffset) -> Sequence[InputPartition]:  # type: ignore[override]
        return [RestRange(start, end.after, end.rows - start.rows)] if start != end else []

    def createReaderFactory(self) -> PartitionReaderFactory:
        return RestReaders(replace(self._api))

    def commit(self, end: Offset) -> None:
        """Nothing to release: the API keeps its items."""

    def stop(self) -> None:
        """Nothing to release."""


# Reads without an end


class RestContinuousStream(ContinuousStream):
    """One reader that asks for the next page as soon as it has read the last, and each `poll_s` at the end."""

    def __init__(self, api: RestApi, poll_s: float) -> None:
        self._api, self._poll_s = api, poll_s

    def initialOffset(self) -> Offset:
        return RestOffset()

    def deserializeOffset(self, json: str) -> Offset:
        return RestOffset.parse(json)

    def deserializePartitionOffset(self, text: str) -> PartitionOffset:
        return RestOffset.parse(text)

    def planInputPartitions(self, start: RestOffset) -> Sequence[InputPartition]:  # type: ignore[override]
        return [RestRange(start, None)]

    def createContinuousReaderFactory(self) -> ContinuousPartitionReaderFactory:
        return RestContinuousReaders(replace(self._api), self._poll_s)

    def mergeOffsets(self, offsets: Sequence[PartitionOffset]) -> Offset:
        (only,) = offsets
        assert isinstance(only, RestOffset)
        return only

    def commit(self, end: Offset) -> None:
        """Nothing to release: the API keeps its items."""

    def stop(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True)
class RestContinuousReaders(ContinuousPartitionReaderFactory):
    """Makes readers without an end."""

    api: RestApi
    poll_s: float

    def createReader(self, partition: RestRange) -> ContinuousPartitionReader:  # type: ignore[override]
        return RestContinuousReader(self.api, partition.start, self.poll_s)


class RestContinuousReader(ContinuousPartitionReader):
    """Follows the end of the API. Requests run on a thread, as their retries take a while; `next` waits for 0.1 s."""

    def __init__(self, api: RestApi, start: RestOffset, poll_s: float) -> None:
        self._api, self._poll_s = api, poll_s
        self._requests = ThreadPoolExecutor(1)
        self._page: Future[list[Item]] | None = None
        self._read, self._returned = start, start
        self._items: list[Item] = []
        self._due = 0.0

    def next(self) -> bool:
        pause_s = self._due - time.monotonic()
        time.sleep(min(max(pause_s, 0), 0.1))
        if pause_s > 0.1:
            return False
        if self._page is None:
            self._page = self._requests.submit(self._api.page, self._read.after, self._api.page_rows)
        if not wait([self._page], 0.1).done:
            return False
        page, self._page = self._page, None
        self._items = page.result()
        self._read = self._read.behind(self._items)
        if not self._items:
            self._due = time.monotonic() + self._poll_s
        return bool(self._items)

    def get(self) -> pa.RecordBatch:
        self._returned = self._read
        return pa.RecordBatch.from_pylist(self._items, schema=SCHEMA)

    def getOffset(self) -> PartitionOffset:
        return self._returned

    def close(self) -> None:
        """End the thread; a request that takes long is not waited for, and nobody reads its rows."""
        has_ended = self._page is None or bool(wait([self._page], 1).done)
        self._requests.shutdown(wait=has_ended, cancel_futures=True)


def main() -> None:
    """Read an API that answers 500 and 429 in between."""
    from itertools import cycle

    from pyspark.sql import SparkSession
    from rest_server import ReadingsServer

    pyspark_kafka.prepare()
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.dataSource.register(pyspark_kafka.as_data_source(RestTable()))
    with ReadingsServer("secret").start() as server:
        server.add(250)
        server.faults = cycle([None, "500", None, None, "429 1", None, "reset", None])
        options = {"url": server.url, "token": "secret", "maxRowsPerTrigger": "100"}
        spark.read.format("rest_readings").options(**options).load().groupBy("station").count().orderBy(
            "station"
        ).show()
        readings = spark.readStream.format("rest_readings").options(**options).load()
        readings.writeStream.foreachBatch(
            lambda rows, number: print(f"micro-batch {number}: {rows.count()} rows")
        ).trigger(availableNow=True).start().awaitTermination()
        print(f"{len(server.seen)} requests, {sum(status != 200 for _, status in server.seen)} of them failed")
    spark.stop()


if __name__ == "__main__":
    main()
