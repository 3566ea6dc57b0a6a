import os
import shutil
import subprocess

import pytest

from support import ALIAS, ROOT

PACKAGE = ROOT / "tests/typescript"


@pytest.fixture(scope="session")
def sdks(tmp_path_factory):
    """A folder with the pinned SDKs and our script."""
    folder = tmp_path_factory.mktemp("typescript")
    for name in ("package.json", "package-lock.json", "sdks.test.mjs"):
        shutil.copy(PACKAGE / name, folder)
    done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--omit=peer"],
                          cwd=folder, text=True, capture_output=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_sdks(place, sdks):
    done = subprocess.run(["node", "--test", "--test-reporter=tap", "sdks.test.mjs"], cwd=sdks, text=True, timeout=150,
                          capture_output=True, check=False,
                          env=os.environ | {"FLOTILLA_URL": place.url, "FLOTILLA_MODEL": ALIAS})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 7" in done.stdout and "# fail 0" in done.stdout, done.stdout
