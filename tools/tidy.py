#!/usr/bin/env python3
"""Holds the sources to docs/style.md: what a compiler does not see.

  tidy.py              the checks that fail a build: includes between folders, outside libraries, bans, dead
                       headers, names of tests, tabs and line ends; then what is longer than good files are
  tidy.py --headers BUILD   each of our headers compiles alone, with the flags of that build folder
  tidy.py --self-test  each check finds what it is for
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Folder -> the folders that it may include, besides itself and base.
MAY_INCLUDE = {
    "base": set(),
    "platform": set(),
    "model": set(),
    "http": set(),
    "api": set(),
    "kernels": {"platform"},
    "engine": {"platform", "kernels"},
    "batch": {"engine"},
    "cluster": set(),
    "store": set(),
    "forms": {"http", "api"},
    "runner": {"platform", "model", "http", "api", "forms", "engine", "batch"},
    "agent": {"platform", "model", "http", "api"},
    "nodes": {"platform", "api"},
    "client": {"http", "api"},
    "config": {"api", "model"},
    "gateway": {"platform", "model", "http", "api", "forms", "cluster", "store", "nodes", "client"},
    "cli": {"platform", "model", "http", "api", "engine", "runner", "agent", "nodes", "client", "config",
            "gateway"},
    "sim": {"cluster", "batch", "engine"},
}
# Of these only the named headers may be seen from there.
ONLY = {("batch", "engine"): {"engine/engine.h"}}

# Outside library -> (include pattern, where it may be).
LIBRARIES = {
    "Boost.JSON": (r"<boost/json", r"src/api/"),
    "Boost.Beast": (r"<boost/beast", r"src/http/"),
    "llama.cpp": (r"[<\"](llama|ggml|gguf|common/|chat\.h|common\.h|llama-cpp\.h|jinja)", r"src/(engine|kernels)/"),
    "SQLite": (r"<(SQLiteCpp|sqlite3)", r"src/store/"),
    "CLI11": (r"<CLI/", r"src/cli/"),
    "yaml-cpp": (r"<yaml-cpp", r"src/config/"),
    "spdlog": (r"<spdlog", r"src/base/log\.cpp"),
    "prometheus": (r"<prometheus", r"src/gateway/metrics"),
    "OpenSSL": (r"<openssl", r"src/(http|base)/"),
}

# Words of the language that have a better place; where they may stand; what to take instead.
SECRET = r"\w*(secret|password|admin_token|api_key|_mac)\b"
BANS = [
    (rf"\b{SECRET}(\(\))?\s*([!=]=|\.compare\()|[!=]=\s*(\w+(\.|->|::))*{SECRET}", r"src/base/secret\.cpp",
     "same_secret() from base/secret.h, whose time tells nothing"),
    (r"= std::string(\(\)|\{\});", r"(?!)", "clear(), or std::string().swap(…) where memory is to be given back: this keeps it"),
    (r"::now\(", r"src/base/clock\.h", "a Clock& from base/clock.h"),
    (r"\b(s?rand|random_device|mt19937\w*)\b\s*[({]", r"src/base/random\.(h|cpp)", "Random from base/random.h"),
    (r"\bsleep_(for|until)\b|::u?sleep\(", r"(?!)", "a timer, or waiting for what is to happen"),
    (r"\b(std::system|w?popen|wordexp)\s*\(|(?<![\w.:>])(::)?system\s*\(", r"(?!)",
     "platform::Process: no shell stands between a request and a process"),
    (r"\bstd::async\b", r"(?!)", "a named thread that its owner joins"),
    (r"\.detach\(\)", r"(?!)", "a thread that its owner joins"),
    (r"\bstd::(endl|cout|cerr)\b", r"(?!)", "base/log.h, or fmt::print in cli/"),
    (r"\b(TODO|FIXME|XXX)\b", r"(?!)", "the work itself, or an issue"),
    (r"^\s*using namespace\b", r".*\.cpp$", "the names: a header's using reaches all who include it"),
]
# Threads of tests may wait by the wall clock; what they measure may not.
TEST_FREE = {r"::now\("}

LENGTHS = {"header": 200, "source": 400, "test": 600}
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"][^>"]+[>"])', re.M)


def without_comments(text: str) -> str:
    """Comments and string contents blanked, lines kept: what is said about code is not code."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((?:.*?)\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)

    def blank(match: re.Match) -> str:
        kept = match[0] if match[0][0] in "\"'" and "/" in match[0] and match[0].endswith('.h"') else ""
        return kept or re.sub(r"[^\n]", " ", match[0])

    return pattern.sub(blank, text)


class Source:
    def __init__(self, path: str, text: str):
        self.path = path
        self.text = text
        self.code = without_comments(text)
        parts = pathlib.PurePosixPath(path).parts
        self.folder = parts[1] if parts[0] == "src" else parts[0]
        self.is_test = path.endswith("_test.cpp") or pathlib.PurePosixPath(path).name.startswith("test_")
        self.kind = "test" if self.is_test else "header" if path.endswith(".h") else "source"
        self.includes = [match[1] for match in INCLUDE.finditer(text)]

    def line_of(self, position: int) -> int:
        return self.text.count("\n", 0, position) + 1


def ours(root: pathlib.Path) -> list[Source]:
    files = [file for folder in ("src", "sim") for file in (root / folder).rglob("*") if file.suffix in (".h", ".cpp")]
    return [Source(file.relative_to(root).as_posix(), file.read_text()) for file in sorted(files)]


def check_folders(sources: list[Source]):
    for source in sources:
        may = MAY_INCLUDE.get(source.folder)
        if may is None:
            yield source.path, 1, f"folder '{source.folder}' is not in the include table of docs/style.md"
            continue
        for match in INCLUDE.finditer(source.text):
            name = match[1][1:-1]
            target = name.split("/")[0]
            if match[1][0] != '"' or "/" not in name or target in (source.folder, "base"):
                continue
            only = ONLY.get((source.folder, target))
            if target in MAY_INCLUDE and target not in may:
                yield source.path, source.line_of(match.start()), f"{source.folder} may not include {target} ({name})"
            elif only and name not in only and not source.is_test:
                yield source.path, source.line_of(match.start()), f"{source.folder} sees of {target} only {', '.join(only)}"


def check_libraries(sources: list[Source]):
    for source in sources:
        for match in INCLUDE.finditer(source.text):
            for library, (pattern, place) in LIBRARIES.items():
                if re.match(pattern, match[1]) and not re.match(place, source.path):
                    if match[1][0] == '"' and "/" in match[1]:
                        continue  # a header of ours of that name
                    yield source.path, source.line_of(match.start()), f"{library} belongs to {place}"


def check_bans(sources: list[Source]):
    for source in sources:
        for pattern, place, instead in BANS:
            if re.match(place, source.path) or (source.is_test and pattern in TEST_FREE):
                continue
            text = source.text if "TODO" in pattern else source.code
            for match in re.finditer(pattern, text, re.M):
                yield source.path, source.line_of(match.start()), f"'{match[0].strip()}': take {instead}"


CONDITION = re.compile(r"\b(if|while|switch)\s*\(")


def check_awaits(sources: list[Source]):
    """g++ 12 destroys the temporaries of a co_await within a condition twice."""
    for source in sources:
        for match in CONDITION.finditer(source.code):
            depth, end = 1, match.end()
            while depth and end < len(source.code):
                depth += {"(": 1, ")": -1}.get(source.code[end], 0)
                end += 1
            if "co_await" in source.code[match.end():end]:
                yield source.path, source.line_of(match.start()), f"co_await within {match[1]} (…): name its result first"


def check_dead_headers(sources: list[Source]):
    included = {name[1:-1] for source in sources for name in source.includes}
    for source in sources:
        if source.kind != "header":
            continue
        name = source.path.removeprefix("src/")
        if name not in included and pathlib.PurePosixPath(name).name not in included:
            yield source.path, 1, "nobody includes it"


def check_shape(sources: list[Source]):
    for source in sources:
        if source.path.endswith(".h") and not source.text.startswith("#pragma once\n"):
            yield source.path, 1, "a header begins with #pragma once"
        if "\t" in source.text or "\r" in source.text:
            yield source.path, 1, "tabs or carriage returns"
        if not source.text.endswith("\n"):
            yield source.path, 1, "no line break at the end"


CHECKS = [check_folders, check_libraries, check_bans, check_awaits, check_dead_headers, check_shape]


def functions_over(source: Source, most: int):
    """Bodies that begin at column 0 and end with a brace there: our format makes that the rule."""
    start, name = None, ""
    for number, line in enumerate(source.code.split("\n"), 1):
        if start is None and line.endswith("{") and line[:1] not in (" ", "}", "") and "(" in line \
                and not line.startswith(("namespace", "struct", "class", "enum")):
            start, name = number, line.split("(")[0].split()[-1]
        elif line.startswith("}") and start is not None:
            if number - start > most:
                yield start, name, number - start
            start = None


def print_sizes(sources: list[Source]) -> None:
    """A smell detector, not a gate."""
    folders: dict[str, list[int]] = {}
    for source in sources:
        lines = source.text.count("\n")
        total = folders.setdefault(source.folder, [0, 0, 0])
        total[0] += 1
        total[2 if source.is_test else 1] += lines
        if lines > LENGTHS[source.kind]:
            print(f"long: {source.path}: {lines} lines, good ones have up to {LENGTHS[source.kind]}")
        for start, name, length in functions_over(source, 70):
            if not source.is_test:
                print(f"long: {source.path}:{start}: {name} has {length} lines")
        for number, line in enumerate(source.text.split("\n"), 1):
            if len(line) > 100:
                print(f"wide: {source.path}:{number}: {len(line)} columns")
    print(f"{'folder':<10}{'files':>6}{'lines':>8}{'tests':>8}")
    for folder, (files, lines, tests) in sorted(folders.items()):
        print(f"{folder:<10}{files:>6}{lines:>8}{tests:>8}")


def check_all(sources: list[Source]) -> list[str]:
    return [f"{path}:{line}: {words}" for check in CHECKS for path, line, words in check(sources)]


def check_headers(build: pathlib.Path) -> int:
    """Compiles a unit with nothing but the header, with a neighbour's flags."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["directory"], entry["file"]).resolve()
        if file.is_relative_to(ROOT / "src"):
            commands.setdefault(file.parent, entry["command"])
    headers = [file for file in sorted((ROOT / "src").rglob("*.h")) if file.parent in commands]

    def alone(header: pathlib.Path) -> tuple[pathlib.Path, str]:
        flags = shlex.split(commands[header.parent])
        words = [word for before, word in zip([""] + flags, flags)
                 if word.startswith(("-D", "-I", "-isystem", "-std")) or before == "-isystem"]
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder, "alone.cpp")
            unit.write_text(f'#include "{header}"\n')
            done = subprocess.run(["g++", "-fsyntax-only", *words, str(unit)], cwd=build, text=True, capture_output=True,
                                  check=False)
        return header, done.stderr if done.returncode else ""

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for header, error in pool.map(alone, headers):
            if error:
                failed += 1
                print(f"{header.relative_to(ROOT)} does not compile alone:\n{error}")
    print(f"headers: {len(headers) - failed} passed, {failed} failed")
    return 1 if failed else 0


# Path -> text of a file with one fault, and a part of what must be said of it; None: nothing.
FAULTS = [
    ("src/batch/a.cpp", '#include "http/server.h"\n', "batch may not include http"),
    ("src/batch/a.cpp", '#include "engine/tokenizer.h"\n', "batch sees of engine only"),
    ("src/gateway/a.cpp", '#include "runner/service.h"\n', "gateway may not include runner"),
    ("src/gateway/a.cpp", '#include "cluster/pool.h"\n', None),
    ("src/utils/a.cpp", "int a;\n", "'utils' is not in the include table"),
    ("src/gateway/a.cpp", "#include <boost/json.hpp>\n", "Boost.JSON belongs to"),
    ("src/runner/a.cpp", "#include <llama.h>\n", "llama.cpp belongs to"),
    ("src/engine/a.cpp", "#include <llama.h>\n", None),
    ("src/agent/a.cpp", "#include <spdlog/spdlog.h>\n", "spdlog belongs to"),
    ("src/agent/a.cpp", "#include <CLI/CLI.hpp>\n", "CLI11 belongs to"),
    ("src/cli/a.cpp", "#include <yaml-cpp/yaml.h>\n", "yaml-cpp belongs to"),
    ("src/agent/a.cpp", "auto t = std::chrono::steady_clock::now();\n", "take a Clock&"),
    ("src/agent/a.cpp", "// steady_clock::now() is not for us\n", None),
    ("src/agent/a.cpp", 'log("::now()");\n', None),
    ("src/agent/a.cpp", "int a = rand();\n", "take Random"),
    ("src/agent/a.cpp", "int a = brand(1);\n", None),
    ("src/agent/a.cpp", "std::this_thread::sleep_for(1s);\n", "take a timer"),
    ("src/agent/a.cpp", "std::system(words);\n", "no shell stands"),
    ("src/agent/a.cpp", "int a = ::system(words);\n", "no shell stands"),
    ("src/agent/a.cpp", "FILE* pipe = popen(words, mode);\n", "no shell stands"),
    ("src/agent/a.cpp", "boost::system::error_code error; message.system(role);\n", None),
    ("src/agent/a.cpp", "std::thread(work).detach();\n", "its owner joins"),
    ("src/agent/a.cpp", "auto f = std::async(work);\n", "its owner joins"),
    ("src/agent/a.cpp", "// TODO later\n", "the work itself"),
    ("src/agent/a.cpp", "if (const auto a = co_await f(g()); a) h();\n", "name its result first"),
    ("src/agent/a.cpp", "if (a()) co_await f();\n", None),
    ("src/agent/a.cpp", "if (policy.admin_token == given) open();\n", "take same_secret()"),
    ("src/agent/a.cpp", "if (given != policy_.own_secret) close();\n", "take same_secret()"),
    ("src/agent/a.cpp", "if (key->secret.compare(given) == 0) open();\n", "take same_secret()"),
    ("src/agent/a.cpp", "if (same_secret(secret, given) && !secret.empty()) open();\n", None),
    ("src/agent/a.cpp", "const bool kept = secrets == Secrets::Kept;\n", None),
    ("src/agent/a.cpp", "body = std::string();\n", "this keeps it"),
    ("src/agent/a.h", "using namespace boost;\n", "take the names"),
    ("src/agent/a.h", "#pragma once\n", "nobody includes it"),
    ("src/agent/a.h", "int a;\n", "begins with #pragma once"),
    ("src/agent/a.cpp", "\tint a;\n", "tabs"),
    ("src/agent/a.cpp", "int a;", "no line break"),
]


def self_test() -> int:
    failed = 0
    for path, text, wanted in FAULTS:
        found = check_all([Source(path, text)])
        right = not found if wanted is None else any(wanted in line for line in found)
        if not right:
            failed += 1
            print(f"{path} with {text!r}: found {found}, wanted {wanted!r}")
    body = "int f(int a) {\n" + "  a += 1;\n" * 80 + "}\n"
    if [found[1:] for found in functions_over(Source("src/agent/a.cpp", body), 70)] != [("f", 81)]:
        failed += 1
        print("a long function is not seen")
    print(f"self-test: {len(FAULTS) + 1 - failed} passed, {failed} failed")
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--headers", type=pathlib.Path, metavar="BUILD")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if options.headers:
        return check_headers(options.headers.resolve())
    sources = ours(ROOT)
    print_sizes(sources)
    wrong = check_all(sources)
    print(*wrong, sep="\n")
    print(f"tidy: {len(sources)} files, {len(wrong)} to mend")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
