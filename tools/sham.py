"""The sham of a tool: the same server, words and format, but the activations behind them are another transcript's.

A claim's tokens stand where they stood; under each lies the activation of the donor's token of the same role and rank
(the fifth token of the user's is the donor's fifth token of the user's), so that a sham cannot be told from the tool
by its form. Which transcript is whose donor is the host's choice: it knows the clusters, a server does not.

Invariant: no activation of a sham comes from the transcript that it is asked about.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from tools.donors import donors_sha256
from tools.positions import masked_positions
from tools.readings import Reading, Readings


class ShamReadings(Readings):
    """The readings of every registered transcript, with a donor's activations."""

    def __init__(self, own: Readings, donors: Mapping[str, str]) -> None:
        """Stand beside the true readings, and read through them.

        Args:
            own: The true readings, whose activations are looked up and kept there.
            donors: The donor of each transcript, by transcript id, from `read_donors`.
        """
        self.loaded = own.loaded
        self.registered = own.registered
        self.layer = own.layer
        self.max_positions = own.max_positions
        self.show_masked = own.show_masked
        self.vllm = own.vllm
        self.donors_sha256 = donors_sha256(donors)
        self._own = own
        self._donors = donors

    async def get(self, transcript_id: str) -> Reading:
        """The tokens of one transcript over the activations of its donor.

        Raises:
            MCPError: No such transcript is registered.
        """
        self.n_tokens(transcript_id)
        own = await self._own.get(transcript_id)
        donor = await self._own.get(self._donors[transcript_id])
        residual = donor.residual[matched(own.roles, donor.roles)]
        masked = {} if self.show_masked else masked_positions(residual, has_bos=self.loaded.target.chat.bos)
        return Reading(own.texts, own.roles, residual, masked)


def matched(roles: Sequence[str], donor_roles: Sequence[str]) -> list[int]:
    """For each token, the donor's token of the same role and rank.

    A role of which the donor has fewer tokens starts again at its first; one that the donor lacks takes the donor's
    tokens in order, whatever their role.

    Args:
        roles: Of the tokens that are shown.
        donor_roles: Of the tokens whose activations are read; not empty.
    """
    places: dict[str, list[int]] = defaultdict(list)
    for place, role in enumerate(donor_roles):
        places[role].append(place)
    everywhere = list(range(len(donor_roles)))
    ranks: dict[str, int] = defaultdict(int)
    found = []
    for role in roles:
        same = places.get(role, everywhere)
        found.append(same[ranks[role] % len(same)])
        ranks[role] += 1
    return found
