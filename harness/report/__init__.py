"""The report of a run: one page to look at, and the same figures for print."""

from harness.report.write import write_report

__all__ = ["write_report"]
