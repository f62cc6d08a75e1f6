"""The gallery in a browser, and hostile text in it."""

import json
import re
from pathlib import Path

import pytest
from test_gallery import folder_of, investigation

from claims.build.gallery import make_gallery
from claims.page import shown
from claims.page.html import policy
from tests.browser import ABSENT, CHROMIUM, CONTRAST, PHONE, Tab, browser

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "<style>*{display:none}</style></details></article>{{ 7*7 }}{% raw %} \u202eevil\u202c \x00 \u2028 \ud800 &amp; "
)
LONG = "x" * 20_000


def test_what_does_not_show_is_shown_as_its_code_point_and_markup_is_text() -> None:
    assert shown("a\u202eb") == 'a<span class="code-point">U+202E</span>b'
    assert shown("<b>\x00\ud800\n\té\u200d") == (
        '&lt;b&gt;<span class="code-point">U+0000</span><span class="code-point">U+D800</span>\n\té\u200d'
    )


def test_the_policy_allows_nothing_but_what_the_page_was_made_with() -> None:
    assert policy("a", "") == (
        "default-src 'none'; style-src 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='; "
        "base-uri 'none'; form-action 'none'"
    )
    assert "script-src 'sha256-" in policy("", "1")


def hostile_folder(path: Path) -> Path:
    bad = [{"response": HOSTILE, "reasoning": HOSTILE, "yes": True}, {"response": LONG, "yes": None}]
    row = investigation(
        HOSTILE,
        source=HOSTILE,
        cause=HOSTILE,
        outcome=HOSTILE,
        messages=[{"role": HOSTILE, "content": HOSTILE}, {"role": "user", "content": f"{LONG} {HOSTILE}"}],
        screening={"classifier": HOSTILE, "question": f"q {HOSTILE}"},
        baseline={"yes": 1, "n": 1, "unusable": 1, "responses": bad},
        experiments=[
            {
                "number": 1,
                "description": HOSTILE,
                "messages": [{"role": "user", "content": f"{LONG} {HOSTILE} added"}],
                **{"yes": 0, "n": 1, "unusable": 1, "responses": bad},
            }
        ],
        report={"observed": HOSTILE, "causes": [HOSTILE], "refuted": [HOSTILE], "answer": HOSTILE},
        claims=[{"claim_id": HOSTILE, "label": True, "experiment": 1, "text": HOSTILE, "confounded": True}],
    )
    folder = folder_of(path, row, investigation("tame"))
    (folder / "card.json").write_text(json.dumps({"target": HOSTILE}), encoding="utf-8")
    return folder


def test_hostile_text_is_escaped_everywhere(tmp_path: Path) -> None:
    page = make_gallery(hostile_folder(tmp_path)).html
    page.encode("utf-8")
    for markup in ("<script", "<img", "<style>*", "</details></article>{{"):
        assert markup not in page
    assert not re.search("[\x00\u202a-\u202e\u2028\ud800-\udfff]", page)
    assert "{{ 7*7 }}" in page


needs_browser = pytest.mark.skipif(CHROMIUM is None, reason=ABSENT)


@pytest.fixture(scope="module")
def tab() -> Tab:
    with browser() as opened:
        yield opened


@needs_browser
@pytest.mark.browser
def test_hostile_text_runs_nothing_loads_nothing_and_breaks_no_card(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(make_gallery(hostile_folder(tmp_path / "set")).html, encoding="utf-8")
    for size in (PHONE, (1280, 900)):
        tab.open(path, size=size)
        tab.run("for (const one of document.querySelectorAll('details')) one.open = true")
        assert tab.complaints() == []
        assert str(tab.run("document.title")).startswith("Investigations of </script>")
        assert tab.run("document.querySelectorAll('main > article').length") == 2
        assert tab.run("document.querySelectorAll('script, img, iframe, main style').length") == 0
        assert tab.run("document.documentElement.scrollWidth <= window.innerWidth")
        assert "evil" in str(tab.run("document.querySelector('#card-1').innerText"))


@needs_browser
@pytest.mark.browser
def test_the_gallery_works_without_script_by_keyboard_and_on_paper(tab: Tab, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(make_gallery(folder_of(tmp_path / "set", investigation())).html, encoding="utf-8")
    tab.open(path, script=False)
    tab.run("document.querySelector('.more > summary').focus()")
    assert tab.run("document.querySelector('.more').open") is False
    tab.press("Enter", 13, "\r")
    assert tab.run("document.querySelector('.more').open") is True
    names = [
        node["name"].get("value", "") for node in tab.send("Accessibility.getFullAXTree")["nodes"] if "name" in node
    ]
    assert "Original prompt: 4 of 4 responses show the behaviour" in names
    assert len(tab.printed()) > 5_000


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast_in_both_schemes(tab: Tab, tmp_path: Path, *, dark: bool) -> None:
    path = tmp_path / "page.html"
    path.write_text(make_gallery(folder_of(tmp_path / "set", investigation())).html, encoding="utf-8")
    tab.open(path, dark=dark)
    tab.run("for (const one of document.querySelectorAll('details')) one.open = true")
    assert tab.run(CONTRAST) == []
