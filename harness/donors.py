"""Which transcript lends its activations to which in a sham: the host's choice, for it alone knows the clusters.

Invariant: a donor is of another cluster, and the choice depends on the claims, the seed, and nothing else.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from claims.load import ClaimSet
from claims.schema import Transcript, UserError
from harness.seeding import digest
from tools.donors import donors_text


def choose_donors(claim_set: ClaimSet, *, seed: int) -> dict[str, str]:
    """A donor for every transcript of a claim set, drawn by the seed.

    Drawn among the transcripts of other clusters that are at least as long and whose messages have the same roles;
    where there is none, among those at least as long; where there is none of these either, the longest of another
    cluster.

    Args:
        claim_set: Holds transcripts and, through its claims, their clusters.
        seed: Of the run.

    Raises:
        UserError: All transcripts are of one cluster.
    """
    clusters = _clusters(claim_set)
    if len(set(clusters.values())) < 2:
        raise UserError(
            f"{claim_set.path} has one cluster only, and a sham shows activations of another cluster's transcript. "
            "Expected at least two clusters. Leave the sham out of --arms."
        )
    transcripts = claim_set.transcripts
    return {name: _donor(name, transcripts, clusters, seed) for name in transcripts}


def _clusters(claim_set: ClaimSet) -> dict[str, str]:
    """Cluster by transcript; a transcript without a claim is a cluster of its own."""
    named = {claim.transcript_id: claim.cluster_id for claim in claim_set.claims}
    return {name: named.get(name, f"\x00{name}") for name in claim_set.transcripts}


def _donor(name: str, transcripts: Mapping[str, Transcript], clusters: Mapping[str, str], seed: int) -> str:
    own = transcripts[name]
    others = [transcripts[other] for other in sorted(transcripts) if clusters[other] != clusters[name]]
    long_enough = [other for other in others if len(other.token_ids) >= len(own.token_ids)]
    alike = [other for other in long_enough if _roles(other) == _roles(own)]
    longest = [max(others, key=lambda other: len(other.token_ids))]
    return _drawn(alike or long_enough or longest, name, seed)


def _roles(transcript: Transcript) -> tuple[str, ...]:
    return tuple(message.role for message in transcript.messages)


def _drawn(among: Sequence[Transcript], name: str, seed: int) -> str:
    return among[digest("donor", seed, name) % len(among)].transcript_id


def donor_options(claim_set: ClaimSet, folder: Path, *, seed: int) -> list[str]:
    """Options that make a server serve the sham too; none where the claims are of one cluster."""
    if len(set(_clusters(claim_set).values())) < 2:
        return []
    path = folder / "donors.json"
    path.write_text(donors_text(choose_donors(claim_set, seed=seed)), encoding="utf-8")
    return ["--donors", str(path)]
