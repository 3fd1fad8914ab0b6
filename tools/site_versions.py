"""Build the site of main and of each release, beside each other, into build/site/versions: readers choose one.

Each release is built from its tag, by its own build_site.py. The entry leads to the newest release, or to main if there
is none. Run from the root of the repository: python tools/site_versions.py
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "build" / "site" / "versions"
# The theme's script reads versions.json in the form of mike.
_ENTRY = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>pyspark-kafka</title>
<meta http-equiv="refresh" content="0; url={0}/"></head><body><a href="{0}/">pyspark-kafka {0}</a></body></html>
"""


def main() -> None:
    """Build all versions, the newest release first."""
    shutil.rmtree(OUT, ignore_errors=True)
    releases = git("tag", "--list", "v*", "--sort=-v:refname").split()
    build(ROOT, "main")
    for tag in releases:
        with tempfile.TemporaryDirectory() as place:
            git("worktree", "add", "--detach", place, tag)
            try:
                build(Path(place), tag.removeprefix("v"))
            finally:
                git("worktree", "remove", "--force", place)
    names = [*(tag.removeprefix("v") for tag in releases), "main"]
    entries = [{"version": name, "title": name, "aliases": ["latest"] if name == names[0] else []} for name in names]
    (OUT / "versions.json").write_text(json.dumps(entries))
    (OUT / "index.html").write_text(_ENTRY.format(names[0]))
    shutil.copy(OUT / names[0] / "llms.txt", OUT)
    print(f"The versions {', '.join(names)} are in {OUT.relative_to(ROOT)}")


def build(tree: Path, name: str) -> None:
    """Build the site of a work tree, and put it under its name."""
    path = os.pathsep.join(filter(None, [str(tree / "src"), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "tools/build_site.py", name]
    if subprocess.run(command, cwd=tree, env={**os.environ, "PYTHONPATH": path}, check=False).returncode != 0:
        sys.exit(f"The site of {name} could not be built: see above.")
    shutil.copytree(tree / "build" / "site" / "html", OUT / name)


def git(*arguments: str) -> str:
    """Run git in the repository and return what it prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
