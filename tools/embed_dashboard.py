#!/usr/bin/env python3
"""embed_dashboard.py DIST OUT.cpp: the built dashboard as a C++ unit of gzip-compressed bytes.

The output depends on nothing but the files' bytes and names, so it is the same on every machine.
"""

import gzip
import hashlib
import pathlib
import sys

CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}


def literal(data: bytes) -> str:
    """data as adjacent string literals: they compile ten times faster than a list of numbers."""
    lines = []
    for at in range(0, len(data), 64):
        # Three octal digits always, so that a digit that follows is not taken into the escape.
        lines.append('    "' + "".join(f"\\{byte:03o}" for byte in data[at : at + 64]) + '"')
    return "\n".join(lines) or '    ""'


def request_path(file: pathlib.Path, dist: pathlib.Path) -> str:
    path = "/" + file.relative_to(dist).as_posix()
    return "/" if path == "/index.html" else path


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    dist, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    files = {request_path(file, dist): file for file in dist.rglob("*") if file.is_file()}
    if "/" not in files:
        print(
            f"embed_dashboard: {dist}/index.html is missing: run the Vite build first",
            file=sys.stderr,
        )
        return 1
    arrays, rows = [], []
    for index, (path, file) in enumerate(sorted(files.items())):
        content_type = CONTENT_TYPES.get(file.suffix)
        if content_type is None:
            known = " ".join(CONTENT_TYPES)
            print(
                f"embed_dashboard: {file}: no content type for '{file.suffix}' (known: {known})",
                file=sys.stderr,
            )
            return 1
        data = file.read_bytes()
        packed = gzip.compress(data, compresslevel=9, mtime=0)
        etag = hashlib.sha256(data).hexdigest()[:20]
        arrays.append(f"constexpr char kBytes{index}[] =\n{literal(packed)};\n")
        rows.append(
            f'    {{"{path}", "{content_type}", {{kBytes{index}, {len(packed)}}}, '
            f'"\\"{etag}\\""}},\n'
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(
        "// Written by tools/embed_dashboard.py from the built dashboard.\n"
        '#include "gateway/dashboard_assets.h"\n\n'
        "namespace flotilla::gateway {\nnamespace {\n\n"
        + "\n".join(arrays)
        + "\nconstexpr Asset kAssets[] = {\n"
        + "".join(rows)
        + "};\n\n"
        "}  // namespace\n\n"
        "std::span<const Asset> dashboard_assets() { return kAssets; }\n\n"
        "}  // namespace flotilla::gateway\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
