"""Every Python example of docs/guide/large_data.md runs, in order.

The scheduler of a local cluster stands for the existing one.
"""

import re
from pathlib import Path

import pytest

distributed = pytest.importorskip("distributed")
pytest.importorskip("zarr")
pytest.importorskip("pyarrow")

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "large_data.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_examples_run(tmp_path, monkeypatch):
    assert len(BLOCKS) >= 5
    monkeypatch.chdir(tmp_path)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", cluster.scheduler_address)
        names = {"__name__": "example"}
        for block in BLOCKS:
            exec(compile(block, str(PAGE), "exec"), names)
        names["client"].close()
