"""The report in a browser: what it shows, how it is used, and that what it quotes cannot touch it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.report.numbers import flips
from harness.report.page import pages
from harness.report.read import RunFiles
from harness.report.samples import Explorer
from tests.browser import ABSENT, CHROMIUM, CONTRAST, DESKTOP, PHONE, Tab, browser
from tests.report_run import BASE, ORDER, SAE, explorer_of, run_of

pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason=ABSENT)]

HOSTILE = (
    "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"><!--<script>"
    "</details></main><style>*{display:none}</style>{{7*7}} \u202eevil\u202c \x00\u2028\ud800 <b>&amp;"
)
N = 40


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    with browser() as opened:
        yield opened


def written(folder: Path, run: RunFiles, explorer: Explorer, **options: int) -> Path:
    for name, text in pages(run, explorer, **options):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder / "report.html"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("report"), run_of(N), explorer_of(N))


def opened(tab: Tab, number: int) -> str:
    """The text of a claim after it was opened."""
    tab.run(
        f"new Promise(done => {{ const one = document.getElementById('claim-{number}'); one.open = true;"
        "const wait = () => one.querySelector('h3') ? done() : setTimeout(wait, 5); wait(); })"
    )
    return str(tab.run(f"document.getElementById('claim-{number}').innerText"))


def first_paint_ms(tab: Tab, path: Path) -> float:
    """How long a phone-sized window waits for the first text."""
    tab.open(path, size=PHONE)
    painted = "performance.getEntriesByName('first-contentful-paint').map(one => one.startTime)[0]"
    return float(str(tab.run(f"new Promise(done => setTimeout(() => done({painted}), 50))")))


def set_filter(tab: Tab, **values: str) -> int:
    """The number of claims listed under some filters."""
    for name, value in values.items():
        tab.run(
            f"(() => {{ const one = document.querySelector('#filters [name={name}]'); one.value = {value!r};"
            "one.dispatchEvent(new Event('input', { bubbles: true })); })()"
        )
    return int(str(tab.run("document.getElementById('count').textContent")).split()[0])


def test_what_is_quoted_runs_nothing_loads_nothing_and_breaks_nothing(tab: Tab, tmp_path: Path) -> None:
    run = run_of(headline=HOSTILE, verdicts=(HOSTILE,), about=HOSTILE)
    path = written(tmp_path, run, explorer_of(text=HOSTILE, transcript=HOSTILE + "x" * 20_000))
    for size in (PHONE, DESKTOP):
        tab.open(path, size=size)
        assert "evil" in opened(tab, 0)
        assert tab.complaints() == []
        assert str(tab.run("document.title")).startswith("Uplift of sae on tiny-gemma")
        assert tab.run("document.querySelectorAll('img, iframe, b:not(main b), main style, main script').length") == 0
        assert tab.run("document.querySelectorAll('script').length") == 3
        assert tab.run("document.querySelectorAll('#list > li').length") == 6
        assert tab.run("document.documentElement.scrollWidth <= window.innerWidth")
        assert "U+202E" in str(tab.run("document.querySelector('#claim-0').innerText"))


def test_filters_list_what_the_table_counts(tab: Tab, report: Path) -> None:
    tab.open(report)
    run = run_of(N)
    assert set_filter(tab) == N
    assert set_filter(tab, label="1") == N // 2
    counted = next(one for one in flips(run.answers, ORDER) if one.series == SAE)
    found = {kind: set_filter(tab, label="", arm="2", flip=kind) for kind in ("fixed", "broken", "both right")}
    assert found == {"fixed": counted.fixed, "broken": counted.broken, "both right": counted.both_right}
    assert set_filter(tab, flip="", kind="0") == N
    assert set_filter(tab, kind="4") == 0
    assert set_filter(tab, kind="", text="claim-0007 OUTPUT") == 1
    tab.run("document.querySelector('#filters [type=reset]').click(); new Promise(done => setTimeout(done, 20))")
    assert set_filter(tab) == N


def test_the_largest_gain_comes_first(tab: Tab, report: Path) -> None:
    tab.open(report)
    set_filter(tab, arm="2", order="gain")
    first = str(tab.run("document.querySelector('#list details').id"))
    answers = {(one.series, one.claim_id): one for one in run_of(N).answers}

    def gain(number: int) -> float:
        before, after = (answers[series, f"claim-{number:04}"] for series in (BASE, SAE))
        return (after.p_true - before.p_true) * (1 if after.label else -1)

    assert gain(int(first.removeprefix("claim-"))) == pytest.approx(max(map(gain, range(N))))


def test_a_claim_opens_by_keyboard_with_everything_that_was_said(tab: Tab, report: Path) -> None:
    tab.open(report)
    tab.run("document.querySelector('#claim-1 > summary').focus()")
    tab.press("Enter", 13, "\r")
    said = opened(tab, 1)
    for words in (
        "edit 1 output",
        "A prompt.",
        "sae 5x32: 0.510, wrong",
        "positions=[1]",
        "The tool answered",
        "response 1",
    ):
        assert words in said or words in str(tab.run("document.querySelector('#claim-1').textContent"))
    assert tab.run("[...document.querySelectorAll('#claim-1 mark')].map(one => one.textContent)") == ["output"]
    assert tab.run("document.querySelector('#claim-1 mark').title") == "token 1, user, read by sae 2x16, sae 5x32"
    link = str(tab.run("document.querySelector('#claim-1 a').href"))
    assert link == "http://127.0.0.1:7575/#/logs/log.eval/samples/sample/a%2Fb/1/"
    assert "inspect view --log-dir results/tiny-sae-local-12345678/logs" in said


def test_claims_in_pages_of_their_own_are_a_link_away(tab: Tab, tmp_path: Path) -> None:
    path = written(tmp_path, run_of(N), explorer_of(N), largest=5_000)
    tab.open(path)
    link = str(tab.run("document.querySelectorAll('#list a')[33].href"))
    assert link.endswith("#claim-33")
    tab.go(link)
    assert "edit 33 output" in opened(tab, 33)
    assert tab.run("document.querySelector('header a').getAttribute('href')") == "../report.html"


def test_five_thousand_claims_under_four_arms_stay_usable(tab: Tab, tmp_path: Path) -> None:
    path = written(tmp_path, run_of(5_000), explorer_of(5_000))
    assert path.stat().st_size < 15_000_000
    # A crowded machine may hold up one load: the best of three is the page's own time.
    assert min(first_paint_ms(tab, path) for _ in range(3)) < 2_000
    assert tab.run("document.querySelectorAll('#list > li').length") == 100
    tab.run("document.getElementById('more').click()")
    assert tab.run("document.querySelectorAll('#list > li').length") == 200
    assert tab.run("document.activeElement.parentElement.id") == "claim-100"
    assert set_filter(tab, text="claim-4999") == 1
    assert "edit 4999" in opened(tab, 4999)


@pytest.mark.parametrize("dark", [False, True])
def test_text_has_contrast_and_figures_have_names(tab: Tab, report: Path, *, dark: bool) -> None:
    tab.open(report, dark=dark)
    opened(tab, 1)
    assert tab.run(CONTRAST) == []
    names = [node.get("name", {}).get("value") for node in tab.send("Accessibility.getFullAXTree")["nodes"]]
    for start in (
        "Uplift with 95 % intervals. sae 2x16",
        "ROC curves. transcript: AUROC 0.700",
        "Calibration of sae 5x32",
    ):
        assert any(name and name.startswith(start) for name in names), start
    unnamed = (
        "[...document.querySelectorAll('input, select, button, svg[role=img]')].filter(one => !(one.labels?.length"
    )
    assert tab.run(f"{unnamed} || one.textContent.trim() || one.getAttribute('aria-label'))).length") == 0


def test_without_script_the_figures_stand_and_the_list_says_why_it_is_empty(tab: Tab, report: Path) -> None:
    tab.open(report, script=False)
    said = str(tab.run("document.body.innerText"))
    assert "needs JavaScript, which is off" in said
    assert "AUROC minus the transcript arm's" in said
    assert len(tab.printed()) > 20_000
