import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if "over_ssh" in item.path.parts:
            item.add_marker(pytest.mark.waits)
