#!/usr/bin/env python3
"""embed_cases.py OUT.cpp CASES.json...: the request cases as a C++ unit, one list of all files."""

import json
import pathlib
import sys

from embed_dashboard import literal


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    out, *sources = map(pathlib.Path, sys.argv[1:])
    cases = [case for source in sorted(sources) for case in json.loads(source.read_text())]
    ids = [case["id"] for case in cases]
    twice = sorted({name for name in ids if ids.count(name) > 1})
    if twice:
        print(f"embed_cases: ids of several cases: {', '.join(twice)}", file=sys.stderr)
        return 1
    data = json.dumps(cases, ensure_ascii=False, separators=(",", ":")).encode()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(
        "// Written by tools/embed_cases.py from tests/cases.\n"
        '#include "api/request_case.h"\n\n'
        "namespace flotilla::api {\nnamespace {\n\n"
        f"constexpr char kBytes[] =\n{literal(data)};\n\n"
        "}  // namespace\n\n"
        f"std::string_view request_cases_json() {{ return {{kBytes, {len(data)}}}; }}\n\n"
        "}  // namespace flotilla::api\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
