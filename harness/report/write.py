"""Write the report of a run.

Invariant: made again from the same files it is the same bytes; files of an earlier report do not stay behind.
"""

from pathlib import Path

from harness.files import write_text
from harness.report.figures import write_figures
from harness.report.page import pages
from harness.report.read import read_run
from harness.report.samples import read_explorer

LOGS = "logs"


def write_report(folder: Path) -> Path:
    """Write `report.html`, the claims' own pages when there are many, and `figures/` into a run's folder.

    Returns:
        The report.

    Raises:
        UserError: It is no run, or its tables were not made yet.
        DiskFullError: There is no room.
    """
    run = read_run(folder)
    written = set()
    for name, text in pages(run, read_explorer(folder / LOGS)):
        write_text(folder / name, text)
        written.add(folder / name)
    written.update(write_figures(run, folder / "figures"))
    for path in (*(folder / "report").glob("*.html"), *(folder / "figures").glob("*.*")):
        if path not in written:
            path.unlink()
    return folder / "report.html"
