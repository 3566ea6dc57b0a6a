#!/usr/bin/env python3
"""api_page.py [--check]: docs/api.md, the API's reference, from src/api/openapi.json.

With --check nothing is written, and a page that is not current fails.
"""

import json
import sys

from written import ROOT, main

SOURCE = ROOT / "src/api/openapi.json"
TARGET = ROOT / "docs/api.md"
HEAD = """# API reference

Written by tools/api_page.py from src/api/openapi.json, which a running server shows at `/openapi.json`. Clients for
OpenAI's and Anthropic's APIs need nothing else than the base URL and a key; the routes below /admin are what the commands
and the dashboard use.

A request says who it is in one of these ways:

"""


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ").strip()


def link(reference):
    name = reference.rsplit("/", 1)[1]
    return f"[{name}](#{name.lower()})"


def bounds(schema):
    """What a value may be, in words."""
    least, most = schema.get("minimum", schema.get("minItems")), schema.get("maximum", schema.get("maxItems"))
    words = []
    if least is not None and most is not None:
        words.append(f"{least} to {most}")
    elif least is not None:
        words.append(f"from {least}")
    elif most is not None:
        words.append(f"up to {most}")
    if "maxLength" in schema:
        words.append(f"up to {schema['maxLength']} characters")
    if "pattern" in schema:
        words.append(f"`{schema['pattern']}`")
    if "default" in schema:
        words.append(f"default {json.dumps(schema['default'])}")
    return ", ".join(words)


def type_of(schema):
    if "$ref" in schema:
        return link(schema["$ref"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" if isinstance(value, str) else json.dumps(value) for value in schema["enum"])
    for union in ("oneOf", "anyOf"):
        if union in schema:
            return " or ".join(type_of(one) for one in schema[union])
    kinds = schema.get("type", "anything")
    words = []
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind == "array":
            words.append(f"list of {type_of(schema['items'])}" if schema.get("items") else "list")
        elif kind == "object" and isinstance(schema.get("additionalProperties"), dict):
            words.append(f"object whose values are {type_of(schema['additionalProperties'])}")
        else:
            words.append(kind)
    return " or ".join(words)


def fields(schema, before=""):
    """A row for each field; those of an object inside are named by their way."""
    rows = []
    required = schema.get("required", [])
    for name, member in schema.get("properties", {}).items():
        inner, way = member, before + name
        if member.get("type") == "array" and "properties" in member.get("items", {}):
            inner, way = member["items"], way + "[]"
        kind = ", ".join(part for part in (type_of(member), bounds(member)) if part)
        mark = "" if name in required else " (may be left out)"
        rows.append(f"| `{before}{name}`{mark} | {cell(kind)} | {cell(member.get('description', ''))} |")
        rows += fields(inner, way + ".") if "properties" in inner else []
    return rows


def parameters(document, operation):
    rows = []
    for one in operation.get("parameters", []):
        if "$ref" in one:
            one = document["components"]["parameters"][one["$ref"].rsplit("/", 1)[1]]
        kind = ", ".join(part for part in (type_of(one["schema"]), bounds(one["schema"])) if part)
        mark = "" if one.get("required") else " (may be left out)"
        rows.append(f"| `{one['name']}` in the {one['in']}{mark} | {cell(kind)} | {cell(one.get('description', ''))} |")
    return rows


def shapes(content):
    """Of a body: its kinds and what is in them."""
    return "; ".join(f"{kind}: {type_of(one.get('schema', {}))}" for kind, one in content.items())


def operation_lines(document, method, path, operation):
    lines = [f"### {method.upper()} {path}", "", operation["summary"], ""]
    if "description" in operation:
        lines += [operation["description"], ""]
    if rows := parameters(document, operation):
        lines += ["| Parameter | Value | What it is |", "|---|---|---|", *rows, ""]
    if "requestBody" in operation:
        lines += [f"- Body: {shapes(operation['requestBody']['content'])}"]
    refused = []
    for status, answer in operation["responses"].items():
        if "$ref" in answer:
            refused += [status] if status != "default" else []
            continue
        said = shapes(answer.get("content", {}))
        lines.append(f"- {status}: {answer['description']}" + (f" {said}" if said else ""))
    if refused:
        lines.append(f"- Errors: {', '.join(refused)}")
    return [*lines, ""]


def schema_lines(name, schema):
    lines = [f"### {name}", ""]
    if "description" in schema:
        lines += [schema["description"], ""]
    if rows := fields(schema):
        return [*lines, "| Field | Value | What it is |", "|---|---|---|", *rows, ""]
    return [*lines, cell(", ".join(part for part in (type_of(schema), bounds(schema)) if part)), ""]


def way_in(scheme):
    if scheme["type"] == "http":
        return f"`Authorization: {scheme['scheme'].capitalize()} …`"
    return f"the {scheme['in']} `{scheme['name']}`"


def written():
    document = json.loads(SOURCE.read_text())
    lines = []
    for scheme in document["components"]["securitySchemes"].values():
        lines.append(f"- {way_in(scheme)}" + (f": {scheme['description']}" if "description" in scheme else ""))
    lines.append("")
    for tag in document["tags"]:
        lines += [f"## {tag['name'].capitalize()}", "", tag["description"], ""]
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if isinstance(operation, dict) and operation.get("tags") == [tag["name"]]:
                    lines += operation_lines(document, method, path, operation)
    lines += ["## Objects", ""]
    for name, schema in document["components"]["schemas"].items():
        lines += schema_lines(name, schema)
    return HEAD + "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    sys.exit(main(__doc__, SOURCE, TARGET, written()))
