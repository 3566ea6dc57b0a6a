#!/usr/bin/env python3
"""count_cases.py LOG: prints "PASSED FAILED", the sum over what ctest, pytest and our own tools counted."""

import re
import sys

CTEST = re.compile(r"^\d+% tests passed, (\d+) tests? failed out of (\d+)$", re.M)
PYTEST = re.compile(r"^(?:=+ )?\d+ (?:passed|failed|error|skipped).* in [\d.]+s.*$", re.M)
PLAIN = re.compile(r"^(?:\w+: )?(\d+) passed, (\d+) failed$", re.M)


def count(text: str) -> tuple[int, int]:
    passed = failed = 0
    for match in CTEST.finditer(text):
        passed += int(match[2]) - int(match[1])
        failed += int(match[1])
    for match in PYTEST.finditer(text):
        for number, word in re.findall(r"(\d+) (passed|failed|errors?)\b", match[0]):
            passed += int(number) if word == "passed" else 0
            failed += int(number) if word != "passed" else 0
    for match in PLAIN.finditer(text):
        passed += int(match[1])
        failed += int(match[2])
    return passed, failed


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
        print(*count(log.read()))
