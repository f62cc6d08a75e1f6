"""The fakes themselves: what they charge, proved by hand, and the faults they make on demand."""

import http.client
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.fakes import SENTINEL, FakeServer, Faults, Usage, serving
from tests.fakes.bill import BLOCK, LEAST, PromptCache, Segment, tokens
from tests.fakes.faults import parse_rates

CHAT = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}


def ask(fake: FakeServer, path: str = "/openai/v1/chat/completions", body: object = CHAT) -> tuple[int, dict, dict]:
    """Status, headers and JSON of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=5)
    try:
        connection.request("POST", path, json.dumps(body), {"authorization": f"Bearer {SENTINEL}"})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), json.loads(answer.read())
    finally:
        connection.close()


def test_a_token_is_four_bytes_rounded_up() -> None:
    assert [tokens(text) for text in ("", "a", "abcd", "abcde", "é")] == [0, 1, 1, 2, 1]


def test_an_automatic_cache_reads_the_longest_known_prefix_in_steps_of_128_tokens() -> None:
    cache = PromptCache()
    first = [Segment("a" * 5000)]
    assert cache.automatic("m", first) == Usage(uncached=1250)
    # 5,001 bytes with the separator hold nine whole blocks of 512: 9 · 128 = 1,152 tokens.
    again = cache.automatic("m", [*first, Segment("b" * 400)])
    assert (BLOCK, again) == (512, Usage(uncached=1350 - 1152, cache_read=1152))
    assert cache.automatic("other", first) == Usage(uncached=1250), "a model has a cache of its own"
    assert cache.automatic("m", [Segment("c" + "a" * 4999)]) == Usage(uncached=1250), "a prefix that differs early"
    short = [Segment("d" * 4 * (LEAST - 200))]
    assert cache.automatic("m", short) == cache.automatic("m", short), "too short to be cached"


def test_a_marked_cache_writes_up_to_its_last_mark_and_reads_what_was_written() -> None:
    cache = PromptCache()
    head, tail = Segment("a" * 8000, marked=True), Segment("b" * 400)
    assert cache.marked("m", [head, tail]) == Usage(uncached=100, cache_write=2000)
    assert cache.marked("m", [head, tail]) == Usage(uncached=100, cache_read=2000)
    # The next turn marks its own end: 2,000 are read, the 100 + 50 after them written.
    last = Segment("c" * 200, marked=True)
    assert cache.marked("m", [head, tail, last]) == Usage(cache_read=2000, cache_write=150)
    # A mark that has moved on leaves the prefix as it was.
    moved = [Segment(head.text), tail, last, Segment("d" * 40, marked=True)]
    assert cache.marked("m", moved) == Usage(cache_read=2150, cache_write=10)
    assert cache.marked("m", [Segment("e" * 400, marked=True)]) == Usage(uncached=100), "too short to be cached"


@pytest.mark.parametrize("kind", ["automatic", "marked"])
def test_no_token_is_counted_twice_or_lost(kind: str) -> None:
    cache = PromptCache()
    segments = [Segment(f"{number}" * 1700, marked=number % 2 == 0) for number in range(6)]
    for upto in (2, 4, 4, 6, 1, 6):
        usage = getattr(cache, kind)("m", segments[:upto])
        assert usage.read == sum(tokens(segment.text) for segment in segments[:upto])
        assert min(vars(usage).values()) >= 0


def test_the_bill_holds_every_reply_and_no_refusal() -> None:
    with serving("prose") as fake:
        assert ask(fake)[0] == 200
        assert ask(fake)[2]["id"] == ask(fake)[2]["id"], "the same body gets the same reply, ids and all"
        assert ask(fake, body={**CHAT, "messages": []})[0] == 400
        assert ask(fake, "/openai/v1/nowhere")[0] == 404
        records = fake.bill.records
        assert len(records) == 3
        assert len({record.body_sha256 for record in records}) == 1
        assert fake.counts == Counter(accepted=3, refused=1)
        # 10 tokens of JSON are the message; "I'd say 70%." are 12 bytes.
        (total,) = fake.bill.totals().values()
        assert total == Usage(uncached=3 * tokens(json.dumps(CHAT["messages"][0])), visible=9)


def test_faults_are_drawn_by_seed_and_rate_and_the_same_again() -> None:
    rates = {"429": 0.05, "500": 0.02, "reset": 0.01}
    drawn = [Faults(rates, seed=1).draw(number, "m") for number in range(20_000)]
    assert drawn == [Faults(rates, seed=1).draw(number, "m") for number in range(20_000)]
    assert drawn != [Faults(rates, seed=2).draw(number, "m") for number in range(20_000)]
    counts = Counter(drawn)
    # Five standard deviations of a binomial: 5 · sqrt(20,000 · 0.05 · 0.95) = 154.
    assert abs(counts["429"] - 1000) < 154
    assert abs(counts["500"] - 400) < 99
    assert abs(counts["reset"] - 200) < 71


def test_faults_in_order_come_first_and_unknown_ones_are_refused() -> None:
    faults = Faults(each=("500", ""), rates={"429": 1.0})
    faults.then("reset")
    assert [faults.draw(number, "a") for number in range(4)] == ["500", "", "reset", "429"]
    assert faults.draw(9, "b") == "500"
    with pytest.raises(AssertionError, match="unknown faults"):
        Faults({"flood": 0.1})
    assert parse_rates("429=0.05, reset=0.01") == {"429": 0.05, "reset": 0.01}


def test_free_faults_are_worded_as_the_family_does_and_paid_ones_are_billed() -> None:
    with serving("prose", faults=Faults(retry_after_s=7)) as fake:
        fake.faults.then("429", "429_day", "500", "malformed", "reset", "hang")
        status, headers, body = ask(fake)
        assert (status, headers["retry-after"], body["error"]["code"]) == (429, "7", "rate_limit_exceeded")
        status, headers, body = ask(fake)
        assert (status, body["error"]["code"], "retry-after" in headers) == (429, "insufficient_quota", False)
        assert ask(fake)[0] == 500
        assert fake.bill.records == []
        with pytest.raises(json.JSONDecodeError):
            ask(fake)
        with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
            ask(fake)
        connection = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=0.2)
        connection.request("POST", "/openai/v1/chat/completions", json.dumps(CHAT), {"authorization": "Bearer k"})
        with pytest.raises(TimeoutError):
            connection.getresponse()
        connection.close()
        assert [record.fault for record in fake.bill.records] == ["malformed", "reset", "hang"]


def test_the_program_says_where_it_is_and_ends_with_its_input() -> None:
    root = Path(__file__).parent.parent
    command = [sys.executable, "-m", "tests.fakes", "--script", "steady", "--faults", "500=0.5", "--seed", "3"]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        said = json.loads(process.stdout.readline())
        assert said["env"]["OPENAI_BASE_URL"] == f"{said['url']}/openai/v1"
        connection = http.client.HTTPConnection(said["url"].removeprefix("http://"), timeout=5)
        connection.request("GET", "/bill")
        assert json.loads(connection.getresponse().read()) == {"totals": {}, "records": [], "counts": {}}
        connection.close()
        process.stdin.close()
        assert process.wait(10) == 0
