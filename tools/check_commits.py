"""Check the commits that the remote's main does not have: an imperative subject, short, with the reason in the body.

usage: check_commits.py [REVISION]

REVISION is the last commit that is not checked; by default the main of the remote. A clone without a remote has no
commits to check, and neither has a folder without git.
"""

from __future__ import annotations

import re
import subprocess
import sys

MAX_SUBJECT = 72
# Base forms that look like another form of a verb.
IMPERATIVES = {"Bring", "Embed", "Exceed", "Feed", "Need", "Proceed", "Seed", "Shed", "Speed", "String"}
NOT_A_VERB = {"A", "An", "The", "This", "These", "That", "What", "Where", "When"}


def faults_of(subject: str, body: str) -> list[str]:
    """Return the rules that a commit message breaks, as sentences."""
    first = re.split(r"[\s:]", subject, maxsplit=1)[0]
    faults = []
    if len(subject) > MAX_SUBJECT:
        faults.append(f"the subject has {len(subject)} characters, at most {MAX_SUBJECT} are allowed")
    if re.match(r"\w+:", subject):
        faults.append(f"the subject begins with a prefix: {first}:")
    elif not is_imperative(first):
        faults.append(f"the subject begins with {first!r}: an imperative such as Add, Fix or Move is expected")
    if ";" in subject or subject.endswith("."):
        faults.append("the subject is one phrase without a semicolon and a full stop")
    if not body.strip():
        faults.append("the body is empty: the reason is expected there")
    return faults


def is_imperative(word: str) -> bool:
    """Tell whether a word may be an imperative: capitalized, and neither a noun in the plural nor another verb form."""
    if word in IMPERATIVES:
        return True
    return (
        bool(re.fullmatch(r"[A-Z][a-z]+(-[a-z]+)?", word))
        and word not in NOT_A_VERB
        and not re.search(r"([^s]s|ed|ing)$", word)
    )


def commits_since(base: str) -> list[tuple[str, str, str]]:
    """Return hash, subject and body of each commit after a revision, merges left out."""
    log = git("log", "--no-merges", "--format=%h%x00%s%x00%b%x01", f"{base}..HEAD")
    commits = [commit.strip("\n").split("\0") for commit in (log or "").split("\1") if commit.strip("\n")]
    return [(commit, subject, body) for commit, subject, body in commits]


def git(*arguments: str) -> str | None:
    """Return the output of a git command; None if it fails or there is no git."""
    try:
        answer = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return answer.stdout if answer.returncode == 0 else None


def main() -> None:
    """Print the faults of each commit; exit with 1 if there is one."""
    base = sys.argv[1] if len(sys.argv) > 1 else "origin/main"
    if git("rev-parse", "--verify", "--quiet", f"{base}^{{commit}}") is None:
        if len(sys.argv) > 1:
            sys.exit(f"git knows no revision {base}")
        print("No commits to check: there is no origin/main")
        return
    found = [
        f"{commit} {subject}\n  {fault}"
        for commit, subject, body in commits_since(base)
        for fault in faults_of(subject, body)
    ]
    if found:
        sys.exit("\n".join([*found, "The rules are in CONTRIBUTING.md, Commits."]))


if __name__ == "__main__":
    main()
