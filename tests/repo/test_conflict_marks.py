"""No tracked file has the marks that git leaves where two changes conflict."""

from __future__ import annotations

import subprocess

from kit.pointers import REPO

# At the start of a line: both sides, their common ancestor, and what parts them.
MARKS = r"^(<{7}|>{7}|\|{7})( |$)|^={7}$"


def test_tracked_files_have_no_marks_of_conflicts() -> None:
    found = subprocess.run(["git", "grep", "-InE", MARKS], cwd=REPO, capture_output=True, text=True, check=False)
    # git returns 1 if nothing matches, and more if it cannot search.
    assert found.returncode == 1, found.stdout + found.stderr
