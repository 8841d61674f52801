"""Print the section of CHANGELOG.md about one version: ``python .github/release_notes.py 1.0.0``."""

import re
import sys
from pathlib import Path


def section(changelog: str, version: str) -> str:
    """What stands between the heading of a version and the next one."""
    found = re.search(rf"^## \[{re.escape(version)}\].*?\n(.*?)(?=^## |\Z)", changelog, flags=re.MULTILINE | re.DOTALL)
    if found is None or not found[1].strip():
        sys.exit(f"CHANGELOG.md has no section about {version}; add one before tagging.")
    return found[1].strip()


if __name__ == "__main__":
    changelog = Path(__file__).parents[1] / "CHANGELOG.md"
    print(section(changelog.read_text(encoding="utf-8"), sys.argv[1]))
