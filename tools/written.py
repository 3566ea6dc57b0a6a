"""What the tools share that write a file of the repository from another one: TOOL.py [--check]."""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main(usage: str, source: pathlib.Path, target: pathlib.Path, text: str) -> int:
    """Writes the target; with --check only says whether it is current."""
    if sys.argv[1:] not in ([], ["--check"]):
        print(usage, file=sys.stderr)
        return 2
    if "--check" not in sys.argv:
        target.write_text(text)
    elif not target.exists() or target.read_text() != text:
        tool = pathlib.Path(sys.argv[0]).name
        print(f"{target.relative_to(ROOT)} is not that of {source.relative_to(ROOT)}: run tools/{tool}")
        return 1
    return 0
