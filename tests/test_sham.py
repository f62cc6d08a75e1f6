"""The sham of a tool: the claim's own tokens over a donor's activations, beside the tool in one process."""

import asyncio
import json
from pathlib import Path

import pytest
import torch
from test_serve import ask, start

from claims.schema import UserError
from tests.tool_bench import readings_of, write_transcripts
from tools.donors import donors_sha256, read_donors
from tools.model import Loaded
from tools.registered import register
from tools.sham import ShamReadings, matched

SWAP = {"first": "second", "second": "first"}


@pytest.fixture(scope="module")
def transcripts(tmp_path_factory: pytest.TempPathFactory, tiny_gemma: Loaded) -> Path:
    return write_transcripts(tmp_path_factory.mktemp("transcripts"), tiny_gemma)


def test_a_token_gets_the_donors_token_of_its_role_and_rank() -> None:
    own = ("template", "user", "user", "user", "template", "response", "response")
    donor = ("template", "template", "user", "user", "template", "response", "response", "response")
    # user has two in the donor: the third starts again at the first; the second template token is the donor's second.
    assert matched(own, donor) == [0, 2, 3, 2, 1, 5, 6]


def test_a_role_that_the_donor_lacks_takes_its_tokens_in_order() -> None:
    assert matched(("system", "system", "user"), ("user", "response")) == [0, 1, 0]


def test_a_sham_shows_its_own_tokens_over_the_donors_activations(transcripts: Path, tiny_gemma: Loaded) -> None:
    true = readings_of(transcripts, tiny_gemma)
    sham = ShamReadings(true, SWAP)

    async def read() -> tuple[object, ...]:
        return await true.get("first"), await true.get("second"), await sham.get("first")

    own, donor, shown = asyncio.run(read())
    assert (shown.texts, shown.roles) == (own.texts, own.roles)
    assert torch.equal(shown.residual, donor.residual[matched(own.roles, donor.roles)])
    # The token before the response is the same token of the template in both: the last one.
    place = own.roles.index("response") - 1
    assert torch.equal(shown.residual[place], donor.residual[donor.roles.index("response") - 1])
    assert not torch.equal(shown.residual[place], own.residual[place])


def test_the_sham_and_the_tool_are_served_by_one_process_and_differ_in_activations_alone(
    transcripts: Path, tmp_path: Path
) -> None:
    donors = tmp_path / "donors.json"
    donors.write_text(json.dumps(SWAP), encoding="utf-8")
    with start("sae", "--target", "tiny-gemma", "--transcripts", str(transcripts), "--donors", str(donors)) as process:
        assert process.stdout is not None
        urls = json.loads(process.stdout.readline())
        true, sham = (json.loads(ask(urls[name], "about")[1]) for name in ("url", "sham_url"))
        said = [ask(urls[name], "read_features", transcript_id="first", positions=[14, 17]) for name in urls]
        listed = [json.loads(ask(urls[name], "list_tokens", transcript_id="first")[1])["tokens"] for name in urls]
        process.kill()
    assert true["donors_sha256"] is None
    assert sham["donors_sha256"] == donors_sha256(SWAP)
    assert {**true, "donors_sha256": None} == {**sham, "donors_sha256": None}
    assert listed[0] == listed[1]
    (_, real), (_, echoed) = said
    assert real != echoed
    assert [line.split('": ')[0] for line in real.splitlines()] == [
        line.split('": ')[0] for line in echoed.splitlines()
    ]


@pytest.mark.parametrize(
    ("donors", "found"),
    [
        ("[", "cannot be read as JSON"),
        ("[]", "does not name a donor"),
        ('{"first": "second"}', "does not name a donor"),
        ('{"first": "second", "second": "third"}', "does not name a donor"),
        ('{"first": "first", "second": "first"}', "makes 'first' its own donor"),
    ],
)
def test_a_file_of_donors_that_is_not_whole_is_refused(
    transcripts: Path, tmp_path: Path, donors: str, found: str
) -> None:
    path = tmp_path / "donors.json"
    path.write_text(donors, encoding="utf-8")
    with pytest.raises(UserError, match=found.replace("(", r"\(")):
        read_donors(path, register(transcripts))
