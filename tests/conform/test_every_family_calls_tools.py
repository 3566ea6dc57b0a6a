"""Tools, schemas and what users type with every chat template that the vendored library brings; ./test unit looks at one of each way."""

import os
import subprocess

import support


def test_every_template():
    program = support.BINARY.parent / "src/engine_test"
    done = subprocess.run([program, "--gtest_filter=ToolFamilies.*:SchemaFamilies.*:ReasoningFamilies.*:SystemFamilies.*"],
                          cwd=support.ROOT, env=os.environ | {"FLOTILLA_ALL_TEMPLATES": "1"}, text=True, errors="replace", capture_output=True,
                          timeout=170, check=False)
    assert done.returncode == 0 and "[  PASSED  ] 14 tests" in done.stdout, (done.stdout + done.stderr)[-4000:]
