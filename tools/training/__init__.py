"""Training of what the tools ship for the local targets.

Invariant: everything a run reads is rebuilt from the installed environment and the target itself; nothing is
downloaded and no text of others is stored in the repository.
"""
