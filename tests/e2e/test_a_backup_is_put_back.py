"""What docs/backup.md says: SQLite's own copy, made while the server serves, is all that another server needs."""

import contextlib
import shutil
import sqlite3

from support import Server, ask, wait_until


def test_a_copy_made_while_it_serves_is_what_another_server_goes_on_with(start, tmp_path):
    first = start(Server, token="first-token")
    first.load(nodes=1, model="synthetic", alias="m")
    secret = first.admin("POST", "/keys", {"name": "ann"})[1]["secret"]
    assert first.admin("PUT", "/settings", {"QUEUE_MAX": 77})[0] == 200
    ask(first.sdk(api_key=secret), model="m", max_tokens=4)
    copy = tmp_path / "flotilla-state.db"
    with contextlib.closing(sqlite3.connect(first.state / "state.db")) as state, \
            contextlib.closing(sqlite3.connect(copy)) as out:
        state.backup(out)
    first.admin("POST", "/keys", {"name": "after-the-copy"})
    assert first.stop() == 0

    folder = tmp_path / "restored"
    (folder / "state").mkdir(parents=True, mode=0o700)
    shutil.move(copy, folder / "state/state.db")
    second = start(Server, folder=folder, token="second-token")
    wait_until("it serves", lambda: [r for r in second.replicas("m") if r["live"]])
    assert [key["name"] for key in second.get_json("/admin/keys")["keys"]] == ["ann"]
    settings = {one["name"]: one["value"] for one in second.get_json("/admin/settings")["settings"]}
    assert settings["QUEUE_MAX"] == 77
    assert ask(second.sdk(api_key=secret), model="m", max_tokens=4).usage.completion_tokens == 4
