"""Write docs/security-matrix.md from what became of the tests of tests/integration/security/test_matrix.py.

usage: security_matrix.py RESULTS docs/security-matrix.md

RESULTS is the file of `make security-matrix` or `make test-kerberos`, a JSON object a line. A row of which no case ran
stays as it is in the page; a case that did not run in another row is "not run".
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

# Way, use, kind of session; empty for what has no session.
Key = tuple[str, str, str]

HEAD = """\
# What works with which login

Each cell is a test against a real Apache Kafka broker with that listener. Certificates, users and tokens are made for
the run. The tests are [`test_matrix.py`](../tests/integration/security/test_matrix.py): `make security-matrix` runs all
of them and writes this page, `make test-all` some of each row and each column. How to connect: [security](security.md).

- **batch** reads a topic and writes another in one job; **stream** does it in micro-batches, **exactly once** with
  `deliveryGuarantee=exactly_once`, **continuous** with `pyspark_kafka.continuous`. These run with a classic session and
  with one of Spark Connect.
{legends}
"""
FOOT = """\
`SASL_SSL` is the listener of all rows with a mechanism of SASL. Kerberos (`GSSAPI`) needs the programs of MIT Kerberos:
`make test-kerberos` runs those rows where they are installed. AWS MSK IAM needs a cluster of AWS.
"""


def read_results(text: str) -> dict[Key, bool]:
    """Return what became of each case; of several runs of a case the last one counts."""
    found: dict[Key, bool] = {}
    for line in text.splitlines():
        case = json.loads(line)
        found[case["way"], case["use"], case["session"]] = case["passed"]
    return found


def cell(results: Mapping[Key, bool], way: str, use: str, sessions: Sequence[str]) -> str:
    """Return the text of one cell."""
    kinds = sessions or ("",)
    texts = {kind: _TEXTS[results.get((way, use, kind))] for kind in kinds}
    if len(set(texts.values())) == 1:
        return texts[kinds[0]]
    return ", ".join(f"{kind}: {text}" for kind, text in texts.items())


_TEXTS = {True: "yes", False: "**no**", None: "not run"}


def read_rows(page: str) -> dict[str, str]:
    """Return the rows of the table of a page, by way."""
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith(("| Login", "| ---"))]
    return {line.split(" | ", 1)[0].removeprefix("| "): line for line in rows}


def table(
    results: Mapping[Key, bool], ways: Sequence[str], uses: Mapping[str, Sequence[str]], kept: Mapping[str, str]
) -> str:
    """Return the table: a row for each way, a column for each use with its kinds of session.

    Args:
        results: what became of the cases.
        ways: in order.
        uses: in order, with the kinds of session of each.
        kept: the rows of the page as it was, for ways that have no result.
    """
    lines = [f"| Login | {' | '.join(uses)} |", f"| --- |{' --- |' * len(uses)}"]
    run = {way for way, _, _ in results}
    for way in ways:
        cells = " | ".join(cell(results, way, use, sessions) for use, sessions in uses.items())
        lines.append(kept[way] if way not in run and way in kept else f"| {way} | {cells} |")
    return "\n".join(lines) + "\n"


def page(
    results: Mapping[Key, bool],
    ways: Sequence[str],
    uses: Mapping[str, Sequence[str]],
    legends: Mapping[str, str],
    kept: Mapping[str, str],
) -> str:
    """Return the page, without the versions that it was made with."""
    text = "\n".join(f"- **{name}** {legend}" for name, legend in legends.items())
    return f"{HEAD.format(legends=text)}\n{table(results, ways, uses, kept)}\n{FOOT}"


def main(file: str, written: str) -> None:
    """Rewrite the page."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from kit import security_matrix  # noqa: PLC0415 - found by the line above
    from pyspark_kafka.testing.jars import DEFAULT_VERSION  # noqa: PLC0415 - only when it runs

    target = Path(written)
    text = page(
        read_results(Path(file).read_text()),
        [way.name for way in security_matrix.WAYS],
        {use.name: use.sessions for use in security_matrix.USES},
        {use.name: use.legend for use in security_matrix.USES if use.legend},
        read_rows(target.read_text()) if target.exists() else {},
    )
    target.write_text(f"{text}\nWritten with Apache Kafka {DEFAULT_VERSION} and PySpark {version('pyspark')}.\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
