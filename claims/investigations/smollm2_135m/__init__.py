"""Investigations of SmolLM2-135M-Instruct, one module a kind of cause.

Invariant: what stands here was committed before anything was sampled from it, and is not edited afterwards; an
investigation that fails falls out in the funnel of the build.
"""
