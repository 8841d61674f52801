"""How many threads BLAS may take."""

from __future__ import annotations

from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@cache
def _thread_pools() -> ThreadpoolController:
    return ThreadpoolController()


def single_threaded_blas() -> Any:
    """Keep BLAS to one thread for a while: its waiting threads would take the cores from the compiled kernels."""
    return _thread_pools().limit(limits=1, user_api="blas")
