import os

import pytest

from gsnmf.datasets.paper import DATA_VARIABLE, PaperMatrix, missing_data, paper_matrix


@pytest.fixture(scope="session")
def paper():
    """Reader of the paper's matrices; tests that use it are skipped where the files are not at hand."""
    if not os.environ.get(DATA_VARIABLE):
        pytest.skip(f"the paper's data: {DATA_VARIABLE} names no folder")
    known: dict[str, PaperMatrix] = {}

    def read(name: str) -> PaperMatrix:
        if reason := missing_data(name):
            pytest.skip(reason)
        if name not in known:
            known[name] = paper_matrix(name)
        return known[name]

    return read
