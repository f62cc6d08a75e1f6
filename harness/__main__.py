"""`python -m harness`: the same as the console script `uplift`."""

from harness.cli import main

main()
