"""State of an older program is taken over; a newer one's is refused with words that help."""

import sqlite3

from support import Server, run_command

# As the first program that kept a state wrote it.
FIRST = """
CREATE TABLE cluster (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
CREATE TABLE pool (
  alias TEXT PRIMARY KEY,
  cluster TEXT NOT NULL REFERENCES cluster(id) ON DELETE CASCADE,
  body TEXT NOT NULL,
  generation INTEGER NOT NULL) STRICT;
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO counter VALUES ('generation', 3);
INSERT INTO cluster VALUES ('local', '{"id":"local","nodes":[{"id":"local-1"}]}');
INSERT INTO pool VALUES ('synthetic', 'local', '{"model":"synthetic","alias":"synthetic"}', 3);
PRAGMA user_version = 1;
"""


def test_an_older_state_is_migrated_and_serves(tmp_path, start):
    folder = tmp_path / "server"
    (folder / "state").mkdir(parents=True)
    with sqlite3.connect(folder / "state/state.db") as database:
        database.executescript(FIRST)
    server = start(Server, folder=folder)
    server.wait_live(1, alias="synthetic")
    assert server.pool("synthetic")["generation"] == 3
    assert server.admin("PUT", "/settings", {"QUEUE_MAX": 5})[0] == 200
    assert "state.db.schema-1" in server.log()
    kept = sqlite3.connect(folder / "state/state.db.schema-1")
    assert kept.execute("PRAGMA user_version").fetchone() == (1,)


def test_a_newer_state_is_refused(tmp_path):
    (tmp_path / "state").mkdir()
    with sqlite3.connect(tmp_path / "state/state.db") as database:
        database.executescript(FIRST.replace("user_version = 1", "user_version = 4000"))
    done = run_command("serve", "--port", 0, "--state", tmp_path / "state", timeout=20)
    assert done.returncode == 1
    for word in ("schema 4000", "knows schemas up to ", "start the newer flotilla", str(tmp_path / "state/state.db")):
        assert word in done.stderr
    assert [file.name for file in (tmp_path / "state").glob("*broken*")] == []
