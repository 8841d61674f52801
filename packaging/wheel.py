"""Compiles the kernels while a wheel is built, if ``GSNMF_COMPILE=1``; otherwise one wheel suits all machines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LIBRARY = "src/gsnmf/_kernels/_ahead.*"
"""What `compile_kernels.py` writes; git ignores it."""


class CompiledKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling calls this before and after it builds a wheel."""

    def dependencies(self) -> list[str]:
        """What must be installed for it: everything that the package needs when it runs, and what links the library."""
        return [*self.metadata.core.dependencies, "setuptools>=70"] if _asked() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, include the library, and name the wheel after the machine and the version of Python."""
        if version == "standard" and _asked():
            script = Path(self.root, "packaging", "compile_kernels.py")
            paths = [str(Path(self.root, "src")), *sys.path]  # pip puts what a build needs on this one's path alone
            environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
            subprocess.run([sys.executable, script], env=environment, check=True)
            build_data["artifacts"].append(LIBRARY)
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Leave the sources as they were."""
        if version == "standard" and _asked():
            for library in Path(self.root).glob(LIBRARY):
                library.unlink()


def _asked() -> bool:
    return os.environ.get("GSNMF_COMPILE") == "1"
