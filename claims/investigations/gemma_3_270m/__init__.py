"""Investigations of gemma-3-270m, a base model that continues a plain dialogue; one module a kind of cause."""
