"""Investigations as data, one package a target: prompts, edits and checked programs, written before sampling."""
