"""A browser without a screen, where the machine has one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SECONDS = 120
_ASKED = """<script>addEventListener("load", () => setTimeout(() => {
  const asked = document.createElement("pre");
  asked.id = "asked";
  asked.textContent = JSON.stringify(%s);
  parent.document.body.append(asked);
}, 500))</script></body>"""
# A window of Chromium is at least 500 pixels wide, a frame may be narrower.
_FRAME = """<html><head><meta charset="utf-8"></head><body style="margin: 0">
<iframe style="border: 0; width: %dpx; height: 2400px" srcdoc="%s"></iframe></body></html>"""
# The frame's text, in an attribute, has the same, with other quotes.
_ANSWER = re.compile(r'<pre id="asked">(.*?)</pre>', re.DOTALL)


def find_browser() -> str | None:
    """Return the program: what PYSPARK_KAFKA_BROWSER names, or what is on the path; None if there is none."""
    named = os.environ.get("PYSPARK_KAFKA_BROWSER")
    return named or next((found for name in _NAMES if (found := shutil.which(name))), None)


@dataclass(frozen=True)
class Browser:
    """Opens a page as a person would see it, and looks at it.

    Attributes:
        program: of Chromium, or what descends from it.
        width: of what the person sees, in pixels; 390 is a phone.
        dark: whether the person likes dark pages.
    """

    program: str
    width: int = 1000
    dark: bool = False

    def ask(self, page: Path, expression: str) -> str:
        """Return what an expression in JavaScript is in a page that is loaded, as JSON."""
        asking = page.with_name(f"asked-{page.name}")
        text = page.read_text(encoding="utf-8")
        before, end, after = text.rpartition("</body>")
        assert end, "the page has no end"
        framed = escape(before + _ASKED % expression + after)
        asking.write_text(_FRAME % (self.width, framed), encoding="utf-8")
        told = self._run("--dump-dom", asking.as_uri())
        answer = _ANSWER.search(told)
        assert answer is not None, f"the page did not load: {told[-2000:]}"
        return unescape(answer[1])

    def picture(self, page: Path, file: Path, height: int) -> None:
        """Write a picture of a page, as PNG."""
        self._run(f"--screenshot={file}", page.as_uri(), height=height)

    def _run(self, *arguments: str, height: int = 2400) -> str:
        command = [
            self.program,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--virtual-time-budget=10000",
            f"--window-size={max(self.width, 500)},{height}",
            # Chromium's own names: 0 is dark, 1 is light.
            f"--blink-settings=preferredColorScheme={0 if self.dark else 1}",
            *arguments,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout
