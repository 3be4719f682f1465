"""The site that MkDocs makes: the first page, navigation, links to the repository, and search."""

from __future__ import annotations

import functools
import html
import http.server
import os
import re
import sys
import threading

import browser
import processes
import pytest
from blocks import DOCS, ROOT
from test_reference import load

ADDRESS = "https://example.org/owner/cyrt"
# Pages for those who change cyrt.
INSIDE = {"architecture", "contributing", "development", "releasing", "changelog"}


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site as of a repository whose remote has an address."""
    pytest.importorskip("mkdocs", reason="MkDocs is not installed: tools/run.py docs installs it")
    load("reference_stubs").write(ROOT / "build" / "reference")
    folder = tmp_path_factory.mktemp("site")
    done = processes.run(
        [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={
            **os.environ,
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "remote.origin.url",
            "GIT_CONFIG_VALUE_0": "git@example.org:owner/cyrt.git",
            "NO_MKDOCS_2_WARNING": "1",
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def text(page):
    """The text of a page, without tags."""
    content = re.search(r"<article.*?</article>", page.read_text(), re.DOTALL)[0]
    return html.unescape(re.sub(r"<[^>]*>", "", content))


def check_first_page(site):
    page = (site / "index.html").read_text()
    readme = (ROOT / "README.md").read_text()
    for title in re.findall(r"^## (.*)$", readme, re.MULTILINE):
        assert f">{title}<a" in page
    assert 'href="concepts/recording.html"' in page
    assert 'href="contributing.html"' in page
    assert 'src="images/how-it-works.svg"' in page
    assert f"{ADDRESS}/edit/main/README.md" in page


def check_pages_from_the_root(site):
    assert "Permission is hereby granted" in text(site / "license.html")
    assert "unreleased" in text(site / "changelog.html")
    assert 'href="architecture.html"' in (site / "contributing.html").read_text()
    assert "What counts as a vulnerability" in text(site / "security.html")


def check_navigation(site):
    page = (site / "concepts" / "replay.html").read_text()
    assert f'href="{ADDRESS}"' in page
    assert f'href="{ADDRESS}/edit/main/docs/concepts/replay.md"' in page
    assert 'rel="prev"' in page
    assert 'rel="next"' in page
    assert {"default", "slate"} == set(re.findall(r'data-md-color-scheme="(\w+)"', page))
    groups = re.findall(r'<input class="md-nav__toggle[^>]*id="__nav_\d+"[^>]*>', page)
    opened = [group for group in groups if "checked" in group]
    assert len(opened) == 1, "only the group of the page itself is open"
    assert len(groups) >= 6


def check_cuda_in_strings(site):
    for page in ("index.html", "reference/kernels.html"):  # a block, a docstring's example
        shown = (site / page).read_text()
        assert '<span class="kr">__global__</span>' in shown
        assert '<span class="nb">blockIdx</span>' in shown


def check_sentences_for_maintainers(site):
    for page in site.rglob("*.html"):
        if page.stem not in INSIDE:
            assert not re.search(r"written by `?python|is made from them", text(page)), page


def test_site(site):
    check_first_page(site)
    check_pages_from_the_root(site)
    check_navigation(site)
    check_cuda_in_strings(site)
    check_sentences_for_maintainers(site)


def check_search(page, address):
    """What one looks for is among the first results."""
    links = (
        "(found => found.length && found.map(each => new URL(each.href).pathname))"
        "([...document.querySelectorAll('.md-search-result__item > .md-search-result__link')])"
    )
    for query, target in (
        ("layer_norm", "/reference/nn.html"),
        ("cumsum", "/reference/reductions.html"),
        ("Kernel.tune", "/reference/kernels.html"),
        ("topology", "/concepts/recording.html"),
        ("CYRT_CHECK", "/environment.html"),
    ):
        found = page.wait_for(f"{address}/index.html?q={query}", links)
        assert target in found[:5], (query, found)


def check_widths(page, address, site):
    """On a phone no page is wider than the screen: what is wide scrolls in its box."""
    page.call(
        "Emulation.setDeviceMetricsOverride",
        width=400,
        height=800,
        deviceScaleFactor=1,
        mobile=True,
    )
    for path in sorted(site.rglob("*.html")):
        width = page.wait_for(
            f"{address}/{path.relative_to(site)}",
            "document.readyState === 'complete' && document.documentElement.scrollWidth",
        )
        assert width == 400, path


@pytest.mark.skipif(browser.PROGRAM is None, reason="no Chromium is installed")
def test_site_in_a_browser(site, tmp_path):
    handler = functools.partial(Quiet, directory=site)
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        browser.Browser(tmp_path) as page,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}"
        check_search(page, address)
        check_widths(page, address, site)
        server.shutdown()


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://example.org/owner/name.git", "https://example.org/owner/name"),
        ("https://token@example.org/owner/name", "https://example.org/owner/name"),
        ("ssh://git@example.org:22/owner/name.git", "https://example.org/owner/name"),
        ("git@example.org:owner/name.git", "https://example.org/owner/name"),
        ("/srv/name.git", None),
        ("", None),
    ],
)
def test_the_address_of_a_remote(remote, address):
    assert load("repository").web_address(remote) == address


def test_pages_are_in_the_navigation():
    """A page that is in no group cannot be reached by "next"."""
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert pages <= listed


@pytest.mark.parametrize(
    ("words", "explained"),
    [
        (r"topolog(?:y|ies)|patched|plans?", r"recording\.md|words\.svg|how-it-works\.svg"),
        (r"floors?|wall", r"times\.svg|launches\.md"),
    ],
)
@pytest.mark.parametrize(
    "page",
    [
        page
        for page in DOCS.rglob("*.md")
        # `floor` is a function's name in the first two; the architecture has floors of rooms.
        if not {"reference", "catalogue.md", "architecture.md"} & {*page.parts}
    ],
    ids=lambda page: str(page.relative_to(DOCS)),
)
def test_words_are_explained_before_they_are_used(page, words, explained):
    """By a picture, or by a link to the page that has it."""
    text = page.read_text()
    text = re.sub(r"<!--.*?-->|```.*?^```|`[^`\n]*`|^#.*?$", "", text, flags=re.M | re.S)
    # Words that are emphasised are introduced there.
    prose = re.sub(r"\[[^]]*\]\([^)]*\)|\*\w+\*", lambda link: " " * len(link[0]), text)
    used = re.search(rf"\b(?:{words})\b", prose)
    if used:
        found = re.search(explained, text)
        assert found, f"{used[0]}: link to the page that explains it"
        assert found.start() < used.start(), used[0]
