"""The compiled kernels, in the build that suits the processor best.

A wheel for x86-64 holds three builds of the same sources: `avx512`, `avx2` and `baseline`, which runs everywhere. A
checkout holds one, `machine`, for the processor it was built on. ``GSNMF_KERNELS`` names the build to use instead of
the best one.
"""

from __future__ import annotations

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

_BUILDS = ("machine", "avx512", "avx2", "baseline")
"""Names of builds, best first."""


def available_builds() -> list[str]:
    """Names of the builds that are installed and that this processor runs, best first."""
    installed = [build for build in _BUILDS if find_spec(f"gsnmf._kernels._{build}")]
    if "baseline" not in installed:
        return installed
    runs = import_module("gsnmf._kernels._baseline").processor_runs
    return [build for build in installed if build == "machine" or runs(build)]


def _load() -> tuple[str, Any]:
    available, requested = available_builds(), os.environ.get("GSNMF_KERNELS", "")
    if requested and requested not in available:
        raise ImportError(f"GSNMF_KERNELS must be one of {available} on this machine; got {requested!r}.")
    if not available:
        raise ImportError("gsnmf was installed without its compiled kernels; install it again with `pip install`.")
    build = requested or available[0]
    return build, import_module(f"gsnmf._kernels._{build}")


BUILD, _module = _load()
globals().update({name: value for name, value in vars(_module).items() if not name.startswith("__")})
