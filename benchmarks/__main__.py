"""List the benchmarks."""

from __future__ import annotations

from benchmarks import available

if __name__ == "__main__":
    print("\n".join(f"python -m benchmarks.{name}" for name in available()))
