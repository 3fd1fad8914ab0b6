"""The site in a browser, as a reader meets it. Needs `make site` and Chromium: `make test-site` has both."""

from __future__ import annotations

import functools
import http.server
import json
import re
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import pytest

import command_line
from kit.browser import find_browser
from pyspark_kafka._client.options.catalogue import OPTIONS
from pyspark_kafka._ops.reference.conditions import read_entries
from pyspark_kafka.version import DOCUMENTATION, __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "build" / "site" / "html"
# Pages of each kind: entry, prose, wide tables, diagrams, docstrings.
PAGES = ("", "guides/bad-record/", "options/", "continuous/", "internals/life-of-a-record/", "api/pyspark_kafka/")
# The browser's own look-ups, which have nothing to do with the page.
_UNWANTED = ("quic", "background-networking", "component-update", "sync")
_FLAGS = ["--no-sandbox", *(f"--disable-{name}" for name in _UNWANTED)]

pytestmark = [pytest.mark.site, pytest.mark.timeout(300)]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the name is http.server's
        pass


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """Serve a directory, and return its address."""
    handler = functools.partial(_Quiet, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    assert (HTML / "index.html").is_file(), "the site is not built: make site"
    with served(HTML) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = find_browser()
    assert program is not None, "there is no Chromium: apt install chromium, or name one with PYSPARK_KAFKA_BROWSER"
    # Other runs of the tests collect this file, and have no such package.
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - see above

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=_FLAGS)
        yield started
        started.close()


@pytest.fixture(params=["light"])
def page(browser: Browser, address: str, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A page that fails the test on an error of the console, and on a request to any other host."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme=request.param)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened = context.new_page()
    errors: list[str] = []
    opened.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: errors.append(str(error)))
    own = (address, "data:", "blob:")
    opened.on("request", lambda request: None if request.url.startswith(own) else errors.append(request.url))
    yield opened
    context.close()
    assert errors == []


@pytest.mark.parametrize(
    ("page", "path"),
    [
        *(("light", path) for path in PAGES),
        ("dark", ""),
        ("dark", "guides/bad-record/"),
        ("dark", "api/pyspark_kafka/"),
    ],
    indirect=["page"],
)
def test_page_loads_from_the_site_alone_and_passes_accessibility_rules(page: Page, address: str, path: str) -> None:
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - as for the browser

    page.goto(address + path, wait_until="networkidle")

    results = Axe().run(page).response

    assert page.locator("h1").count() == 1
    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in results["violations"]] == []


def named_entries() -> list[tuple[str, str]]:
    """Return 20 options, 20 conditions and 20 commands, each with the address of its entry on the site."""
    kinds = [
        [(option.name, option.address.removeprefix(DOCUMENTATION)) for option in OPTIONS],
        [(entry.condition, entry.address.removeprefix(DOCUMENTATION)) for entry in read_entries()],
        [(name, f"command-line/#{name.replace(' ', '-')}") for name, _ in command_line.commands()],
    ]
    return [each for kind in kinds for each in kind[:: len(kind) // 20][:20]]


def test_search_shows_the_entry_of_a_name_first(page: Page, address: str) -> None:
    from playwright.sync_api import expect  # noqa: PLC0415 - as for the browser

    page.goto(address, wait_until="networkidle")
    page.keyboard.press("/")
    first = page.locator("a[role=option]").first
    names = named_entries()
    assert len(names) == 60

    for name, place in names:
        page.locator("input:focus").fill(name)
        # The theme adds what was asked for.
        expected = address + place.replace("#", f"?h={quote_plus(name)}#")
        expect(first).to_have_attribute("href", expected, timeout=60_000)

    first.click()
    page.wait_for_url(f"**/{place.partition('#')[0]}**")
    assert page.locator("h3", has_text=name).first.is_visible()


def test_search_has_the_pages_for_users_alone() -> None:
    searched = {item["location"].partition("#")[0] for item in json.loads((HTML / "search.json").read_text())["items"]}
    _, _, contributors = (HTML / "llms.txt").read_text().partition("\n## Contribute\n")
    pages = {link.partition("/pyspark-kafka/")[2] for link in re.findall(r"\]\((.*)\)", contributors)}
    assert {"house-style/", "CONTRIBUTING/", "decisions/codec/", "internals/soak/"} <= pages
    assert searched & pages == set()
    assert {"", "options/", "errors/", "operations/", "guides/bad-record/", "api/pyspark_kafka/"} <= searched


def test_program_of_the_entry_page_can_be_copied(page: Page, address: str) -> None:
    page.goto(address, wait_until="networkidle")

    page.locator("pre", has_text="EmbeddedKafka").get_by_title("Copy to clipboard").click()

    copied = page.evaluate("navigator.clipboard.readText()")
    programs = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "index.md").read_text(), re.DOTALL)
    assert copied.strip() in [program.strip() for program in programs]


def test_entry_page_shows_the_program_of_the_chosen_tab(page: Page, address: str) -> None:
    page.goto(address, wait_until="networkidle")
    batch, stream = page.locator("pre", has_text="read.load()"), page.locator("pre", has_text="processingTime")
    assert (batch.is_visible(), stream.is_visible()) == (True, False)

    page.locator(".tabbed-labels").get_by_text("Micro-batches", exact=True).click()

    stream.wait_for(state="visible", timeout=30_000)
    assert batch.is_hidden()


def test_pictures_of_the_entry_page_are_shown(page: Page, address: str) -> None:
    page.goto(address, wait_until="networkidle")
    widths = "all => all.map(each => [each.alt.length > 40, each.naturalWidth])"
    assert page.locator("article img").evaluate_all(widths) == [[True, 480], [True, 480]]


@pytest.mark.parametrize("path", ["", "guides/bad-record/"])
def test_page_has_a_card_and_a_mark(page: Page, address: str, path: str) -> None:
    page.goto(address + path, wait_until="networkidle")
    cards = "all => Object.fromEntries(all.map(each => [each.getAttribute('property'), each.content]))"
    card = page.locator("meta[property^='og:']").evaluate_all(cards)

    assert card["og:title"] == page.title().partition(" - ")[0]
    assert card["og:description"].startswith("Apache Kafka for PySpark")
    # The image is at the address at which the site is published.
    assert (HTML / card["og:image"].partition("/pyspark-kafka/")[2]).is_file()
    assert page.locator("header img").first.evaluate("mark => mark.naturalWidth") > 0
    assert page.locator("link[rel=icon]").get_attribute("href").endswith("images/mark.svg")


def test_reader_chooses_dark_pages(page: Page, address: str) -> None:
    page.goto(address, wait_until="networkidle")
    dark = page.locator("body[data-md-color-scheme=slate]")
    assert dark.count() == 0

    for _ in range(2):
        page.locator("[data-md-component=palette] label:visible").click()

    dark.wait_for(timeout=30_000)


def test_navigation_leads_from_the_entry_to_each_part(page: Page, address: str) -> None:
    page.goto(address, wait_until="networkidle")
    tabs = page.locator(".md-tabs__link")
    names = tabs.all_text_contents()
    assert len(names) >= 6

    for number in range(len(names)):
        page.locator(".md-tabs__link").nth(number).click()
        page.wait_for_load_state("networkidle")
        assert page.locator("h1").first.is_visible()


# The names that are divided where they should not be, each with its line ends as "|", and what the window cuts.
_BROKEN = """() => {
  const names = [...document.querySelectorAll(".md-content :not(pre) > code")].filter(
    (code) => /^[\\w.-]+$/.test(code.textContent));
  const lines = (name) => {
    const texts = document.createTreeWalker(name, NodeFilter.SHOW_TEXT);
    const range = document.createRange();
    let [shown, bottom] = ["", Infinity];
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      for (let at = 0; at < node.length; at++) {
        range.setStart(node, at);
        range.setEnd(node, at + 1);
        const box = range.getBoundingClientRect();
        shown += (box.top > bottom - 3 ? "|" : "") + node.data[at];
        bottom = box.bottom;
      }
    }
    return shown;
  };
  const broken = names.map(lines).filter((name) => /[^._]\\|/.test(name) || (name.includes("|") && name.length < 28));
  const cut = [...document.querySelectorAll(".md-content *")].filter(
    (each) => each.getBoundingClientRect().right > innerWidth);
  return [names.length, broken, cut.map((each) => each.outerHTML.slice(0, 80))];
}"""


@pytest.mark.parametrize("path", ["options/", "errors/"])
@pytest.mark.parametrize("width", [1280, 390])
def test_names_of_the_reference_are_whole_and_fit_the_window(
    browser: Browser, address: str, path: str, width: int
) -> None:
    """A name that is longer than a line ends it between two of its words."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(address + path, wait_until="load")

    names, broken, cut = page.evaluate(_BROKEN)

    assert names > 200
    assert (broken, cut) == ([], [])
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_page_fits_a_phone(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 800}, is_mobile=True)
    page = context.new_page()
    for path in PAGES:
        page.goto(address + path, wait_until="networkidle")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
    context.close()


def test_reader_chooses_a_version(browser: Browser, tmp_path: Path) -> None:
    """Built of a clone with a release, as they are published."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(clone)], check=True)
    subprocess.run(["git", "tag", "v9.9.9"], cwd=clone, check=True)
    subprocess.run([sys.executable, "tools/site_versions.py"], cwd=clone, check=True, timeout=250)
    with served(clone / "build" / "site" / "versions") as address:
        page = browser.new_page()
        page.goto(address, wait_until="networkidle")
        assert page.url == f"{address}9.9.9/"

        assert page.locator(".md-version__link").all_text_contents() == ["9.9.9", "main"]
        page.locator(".md-version__link", has_text="main").evaluate("link => link.click()")

        page.wait_for_url(f"{address}main/**")
        assert page.locator("h1").is_visible()
        page.close()


def test_each_public_module_has_a_page_of_its_names() -> None:
    from build_site import MODULES  # noqa: PLC0415 - it needs packages of the site's environment

    assert len(MODULES) > 9
    assert {module for module in MODULES if not (HTML / "api" / module / "index.html").is_file()} == set()


def test_header_and_titles_name_the_version(page: Page, address: str) -> None:
    page.goto(address, wait_until="networkidle")
    assert page.title() == f"Kafka for PySpark - pyspark-kafka {__version__}"
    assert page.locator(".md-header__topic").first.inner_text() == f"pyspark-kafka {__version__}"


@pytest.mark.parametrize("folder", ["api", "internals", "decisions"])
def test_folder_has_a_page_that_lists_its_pages(page: Page, address: str, folder: str) -> None:
    page.goto(f"{address}{folder}/", wait_until="networkidle")
    listed = page.locator(".md-content li a").evaluate_all("links => links.map((link) => link.href)")
    pages = {f"{address}{folder}/{place.name}/" for place in (HTML / folder).iterdir() if place.is_dir()}
    assert len(pages) > 9
    assert set(listed) == pages
    # The part of the navigation leads to it.
    links = page.locator("a.md-tabs__link, a.md-nav__link").evaluate_all("links => links.map((link) => link.href)")
    assert f"{address}{folder}/" in links


def test_pages_of_modules_are_listed_by_module_and_begin_with_the_common_names(page: Page, address: str) -> None:
    page.goto(f"{address}api/pyspark_kafka/", wait_until="networkidle")
    listed = page.locator(".md-nav--primary a[href*='../pyspark_kafka']").all_inner_texts()
    assert {"pyspark_kafka.testing", "pyspark_kafka.metrics"} <= {name.strip() for name in listed}
    names = page.locator(".md-content h3.doc-heading").evaluate_all("headings => headings.map((each) => each.id)")
    assert [name.rpartition(".")[2] for name in names[:4]] == ["prepare", "check", "lag", "dead_letters"]
    assert names[-1] != "pyspark_kafka.prepare"


def test_links_to_pages_have_their_titles() -> None:
    found = [
        f"{page.relative_to(HTML)}: {name}"
        for page in HTML.rglob("*.html")
        for name in re.findall(r"<a [^>]*>([\w/]+\.md)</a>", page.read_text())
    ]
    assert found == []


def test_list_for_language_models_names_existing_pages() -> None:
    text = (HTML / "llms.txt").read_text()
    links = [line.partition("](")[2].rstrip(")") for line in text.splitlines() if line.startswith("- [")]
    assert len(links) > 60
    for link in links:
        path = link.partition("/pyspark-kafka/")[2]
        assert (HTML / path / "index.html").is_file(), link
