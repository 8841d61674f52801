"""Speed and quality next to those of peers: one module per benchmark, with a function ``run(quick)``.

From the root of the repository, ``python -m benchmarks`` lists the benchmarks and ``python -m benchmarks.NAME --quick``
runs a short version of one. A module of this package is a benchmark unless its name begins with an underscore.
"""

from __future__ import annotations

import pkgutil


def available() -> list[str]:
    """Names of the benchmarks, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))
