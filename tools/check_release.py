"""Compare a tag with the version of the package and with the changelog. What a release begins with.

usage: check_release.py [TAG]

Without TAG, the tag that the version of the package asks for. Exits with 1 and one line for each difference.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pyspark_kafka.version import __version__

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Print what keeps the version from being released."""
    tag = sys.argv[1] if sys.argv[1:] else f"v{__version__}"
    found = problems(tag, __version__, (ROOT / "CHANGELOG.md").read_text())
    for problem in found:
        print(f"make check-release: {problem}", file=sys.stderr)
    if found:
        sys.exit(1)
    print(f"{tag} may be released")


def problems(tag: str, version: str, changelog: str) -> list[str]:
    """Return what is wrong, one sentence each."""
    found = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag}, and src/pyspark_kafka/version.py has {version}: expected v{version}.")
    sections = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    texts = {section.partition("\n")[0].strip(): section.partition("\n")[2].strip() for section in sections}
    dated = [title for title in texts if re.fullmatch(rf"{re.escape(version)} - \d{{4}}-\d\d-\d\d", title)]
    if not dated:
        found.append(f"CHANGELOG.md has no section '## {version} - YYYY-MM-DD'.")
    elif not texts[dated[0]]:
        found.append(f"the section {version} of CHANGELOG.md is empty.")
    if texts.get("Unreleased"):
        found.append("the section Unreleased of CHANGELOG.md is not empty: move it to the version.")
    return found


if __name__ == "__main__":
    main()
