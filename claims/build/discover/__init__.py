"""Investigations found by program: habits of a target's responses, and edits that change one thing.

Invariant: what is found depends on the prompts, the responses and the seed alone, and is written down before any edited
prompt is sampled; the responses that show a habit are never behind a label.
"""
