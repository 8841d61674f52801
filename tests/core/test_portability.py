"""Other machines, as far as one machine can stand in for them: many cores, one core, older processors."""

import json
import os
import platform
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gsnmf
from gsnmf.datasets import planted
from gsnmf.weights.optimality import DEFAULT_TOLERANCE

CHOICES = """
import json
import numpy as np
import gsnmf
from gsnmf.datasets import planted
M = planted((60, 50), 3, 2, noise_level=0.02, random_state=0).matrix
answers = {}
for method in %r:
    result = gsnmf.factorize(M, 5, method=method)
    answers[method] = [result.columns.tolist(), result.rows.tolist(), float(result.relative_error)]
print(json.dumps(answers))
"""
METHODS = ["auto", "gspa", "snpa", "xray", "convex"]


def child(environment, *arguments):
    """Output of a new Python in the present environment with changes."""
    command = [sys.executable, *arguments]
    outcome = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, encoding="utf-8")
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "environment",
    [
        pytest.param(
            {"OPENBLAS_CORETYPE": "Haswell"},
            id="BLAS without AVX-512",
            marks=pytest.mark.skipif(platform.machine() not in {"x86_64", "AMD64"}, reason="another kind of processor"),
        ),
        pytest.param({"GSNMF_NUM_THREADS": "64"}, id="64 threads"),
    ],
)
def test_choices_are_the_same_on_another_machine(environment):
    """The same columns and rows. Errors agree as far as weights are solved: iterations may take other paths."""
    answers = json.loads(child(environment, "-c", CHOICES % (METHODS,)))
    matrix = planted((60, 50), 3, 2, noise_level=0.02, random_state=0).matrix
    for method, (columns, rows, error) in answers.items():
        here = gsnmf.factorize(matrix, 5, method=method)
        assert np.array_equal(np.sort(columns), np.sort(here.columns)), method
        assert np.array_equal(np.sort(rows), np.sort(here.rows)), method
        assert_allclose(error, here.relative_error, rtol=DEFAULT_TOLERANCE, err_msg=method)
