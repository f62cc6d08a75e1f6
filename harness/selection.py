"""Which claims a run uses: all of them, or a part that keeps clusters whole and classes balanced.

Invariant: the choice depends on the claims, the limit and the seed, never on the order of lines.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from claims.labels import Label
from claims.schema import Claim, UserError
from harness.seeding import digest


def select_claims(
    claims: Sequence[Claim], labels: Mapping[str, Label], *, limit: int | None, seed: int
) -> tuple[Claim, ...]:
    """At most `limit` claims, as whole clusters, true and false as even as those allow.

    Clusters are put in an order drawn by the seed. Then the next one taken is always, among those that still fit, the
    first that leaves the two classes at most one apart, else the first that leaves them closest.

    Args:
        claims: All claims of the set.
        labels: By claim id.
        limit: Most claims; None takes all.
        seed: Moves the choice.

    Raises:
        UserError: The limit is below one, or smaller than every cluster.
    """
    if limit is None or limit >= len(claims):
        return tuple(claims)
    clusters: dict[str, list[Claim]] = defaultdict(list)
    for claim in claims:
        clusters[claim.cluster_id].append(claim)
    smallest = min(map(len, clusters.values()))
    if limit < smallest:
        raise UserError(
            f"--limit {limit} is less than the smallest cluster, which has {smallest} claims. "
            f"A limit takes whole clusters only: give at least {smallest}."
        )
    chosen = _choose(clusters, labels, limit, seed)
    return tuple(claim for claim in claims if claim.cluster_id in chosen)


def _choose(clusters: Mapping[str, Sequence[Claim]], labels: Mapping[str, Label], limit: int, seed: int) -> set[str]:
    waiting = sorted(clusters, key=lambda cluster: digest("limit", seed, cluster))
    surplus = {name: sum(1 if labels[claim.claim_id].label else -1 for claim in clusters[name]) for name in waiting}
    chosen: set[str] = set()
    room, balance = limit, 0
    while fitting := [name for name in waiting if len(clusters[name]) <= room]:
        # `min` keeps the first of equals, so the drawn order decides among them.
        name = min(fitting, key=lambda name: max(1, abs(balance + surplus[name])))
        waiting.remove(name)
        chosen.add(name)
        room -= len(clusters[name])
        balance += surplus[name]
    return chosen
