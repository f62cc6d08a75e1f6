"""One prompt through the stages: sample, screen, classify, investigate, verify.

Invariant: every way out is an outcome with a reason; nothing is tried beyond its bound.
"""

from dataclasses import replace
from fractions import Fraction

from claims.build.wild.engine import PromptRefusedError
from claims.build.wild.investigate import Lab, investigate
from claims.build.wild.records import Investigated
from claims.build.wild.screen import screen
from claims.build.wild.verify import verify
from claims.prompts.record import Prompt


async def study(lab: Lab, prompt: Prompt) -> Investigated:
    """What comes of one prompt."""
    try:
        responses = await lab.engine.draw(prompt.messages, lab.regime.n, lab.seed)
    except PromptRefusedError as error:
        return Investigated(prompt, "refused", str(error))
    screening = await screen(lab.clerk, prompt, responses, lab.seed)
    if screening is None:
        return Investigated(prompt, "unscreened")
    if screening.interest < lab.regime.min_interest:
        return Investigated(prompt, "expected", screening=screening)
    baseline = await lab.classifier.judge(prompt.prompt_id, screening.classifier, responses)
    if baseline.rate is None or baseline.n < lab.regime.min_usable:
        return Investigated(prompt, "unmeasured", screening=screening, baseline=baseline)
    if baseline.rate < Fraction(lab.regime.min_rate_percent, 100):
        return Investigated(prompt, "rare", screening=screening, baseline=baseline)
    one = await investigate(lab, prompt, screening, baseline)
    return replace(one, scores=await verify(lab, one)) if one.outcome == "filed" else one
