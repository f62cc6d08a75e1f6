"""The size of the paper's evaluation is analysed in seconds, in little memory."""

import subprocess
import sys
import time

from harness.bench import BUDGETS, N_CLAIMS, analyse, paper_outcomes


def test_the_whole_analysis_of_the_papers_size_takes_less_than_ten_seconds() -> None:
    outcomes = paper_outcomes()
    start = time.process_time()
    results = analyse(outcomes)
    assert time.process_time() - start < 10
    assert len(results) == 4 + len(BUDGETS)
    assert sum(result.uplift is not None for result in results) == 3 + len(BUDGETS)
    assert results[0].auroc.n_claims == N_CLAIMS


def test_it_needs_less_than_a_gibibyte() -> None:
    code = (
        "import resource, sys; sys.modules['torch'] = None; import types;"
        "bench = types.ModuleType('tools.bench_sampling'); bench.RESULTS = bench.BenchRow = bench.save = object;"
        "sys.modules['tools.bench_sampling'] = bench;"
        "from harness.bench import analyse, paper_outcomes; analyse(paper_outcomes());"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1024
