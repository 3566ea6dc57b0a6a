from support import Server, run_command


def test_on_the_same_state(start):
    server = start(Server)
    second = run_command("serve", "--port", 0, "--state", server.state, timeout=20)
    assert second.returncode == 1
    assert f"pid {server.pid}, port {server.port}" in second.stderr
    assert str(server.state) in second.stderr and "another --state" in second.stderr
    assert server.get_json("/health")


def test_on_the_same_port(start, tmp_path):
    server = start(Server)
    second = run_command("serve", "--port", server.port, "--state", tmp_path / "other", timeout=20)
    assert second.returncode == 1
    assert f"127.0.0.1:{server.port}" in second.stderr and "another --port" in second.stderr
    assert server.get_json("/health")
