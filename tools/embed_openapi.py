#!/usr/bin/env python3
"""embed_openapi.py OPENAPI.json VERSION OUT.cpp: the API's description as a C++ unit."""

import json
import pathlib
import sys

from embed_dashboard import literal


def main() -> int:
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    source, version, out = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    document = json.loads(source.read_text())
    document["info"]["version"] = version
    data = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(
        "// Written by tools/embed_openapi.py from src/api/openapi.json.\n"
        '#include "api/openapi.h"\n\n'
        "namespace flotilla::api {\nnamespace {\n\n"
        f"constexpr char kBytes[] =\n{literal(data)};\n\n"
        "}  // namespace\n\n"
        f"std::string_view openapi_json() {{ return {{kBytes, {len(data)}}}; }}\n\n"
        "}  // namespace flotilla::api\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
