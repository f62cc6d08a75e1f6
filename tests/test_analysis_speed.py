"""The size of the paper's evaluation is analysed in seconds, in little memory."""

import subprocess
import sys

import pytest

from harness.bench import BUDGETS, N_CLAIMS

CODE = """
import resource, time
from harness.bench import analyse, paper_outcomes
outcomes = paper_outcomes()
start = time.process_time()
results = analyse(outcomes)
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
print(len(results), sum(result.uplift is not None for result in results), results[0].auroc.n_claims)
"""


@pytest.mark.slow
def test_the_whole_analysis_of_the_papers_size_takes_ten_seconds_and_a_gibibyte_at_most() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    seconds, megabytes = map(float, first.split())
    assert seconds < 10
    assert megabytes < 1024
    assert list(map(int, second.split())) == [4 + len(BUDGETS), 3 + len(BUDGETS), N_CLAIMS]
