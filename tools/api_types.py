#!/usr/bin/env python3
"""api_types.py [--check]: dashboard/src/api_schema.ts from the schemas of src/api/openapi.json.

With --check nothing is written, and a file that is not current fails. (openapi-typescript needs the
JavaScript interface of the TypeScript compiler, which TypeScript 7 no longer has.)
"""

import json
import re
import sys

from written import ROOT, main

SOURCE = ROOT / "src/api/openapi.json"
TARGET = ROOT / "dashboard/src/api_schema.ts"
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def object_type(schema, indent):
    lines, required = [], schema.get("required", [])
    for name, member in schema.get("properties", {}).items():
        if "description" in member:
            lines.append(f"{indent}  // {member['description']}")
        key = name if re.fullmatch(r"[A-Za-z_]\w*", name) else json.dumps(name)
        lines.append(f"{indent}  {key}{'' if name in required else '?'}: {type_of(member, indent + '  ')};")
    more = schema.get("additionalProperties")
    if not lines:
        return f"Record<string, {type_of(more, indent) if isinstance(more, dict) else 'unknown'}>"
    return "{\n" + "\n".join(lines) + f"\n{indent}}}"


def type_of(schema, indent=""):
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[1]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for union in ("oneOf", "anyOf"):
        if union in schema:
            return " | ".join(type_of(one, indent) for one in schema[union])
    kinds = schema.get("type", [])
    types = []
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "object":
            types.append(object_type(schema, indent))
        elif kind == "array":
            item = type_of(schema["items"], indent) if "items" in schema else "unknown"
            types.append(f"({item})[]" if " | " in item else f"{item}[]")
        else:
            types.append(PLAIN[kind])
    return " | ".join(types) or "unknown"


def written():
    schemas = json.loads(SOURCE.read_text())["components"]["schemas"]
    lines = ["// Written by tools/api_types.py from src/api/openapi.json; do not edit.", ""]
    for name, schema in schemas.items():
        lines += [f"// {schema['description']}"] if "description" in schema else []
        body = type_of(schema)
        lines += [f"export interface {name} {body}" if body.startswith("{\n") else f"export type {name} = {body};", ""]
    lines += ["export interface Schemas {", *(f"  {name}: {name};" for name in schemas), "}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main(__doc__, SOURCE, TARGET, written()))
