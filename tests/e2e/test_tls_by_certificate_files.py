import os
import signal
import socket
import ssl
import warnings

import pytest

from certificates import Authority
from support import Server, Stream, Talks, ask, run_command, wait_until


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(tmp_path_factory, authority):
    """Speaks TLS, with the made-up model at 10 ms a token."""
    certificate, key = authority.issue("first")
    server = Server(tmp_path_factory.mktemp("tls"), "--tls-cert", certificate, "--tls-key", key,
                    tls=authority.context(), environment={"FLOTILLA_SYNTHETIC_STEP_US": "10000"})
    server.certificate, server.key = certificate, key
    try:
        server.put_cluster(1)
        status, answer = server.admin("POST", "/clusters/local/load", {"model": "synthetic", "batch": True})
        assert status == 200, answer
        yield server
    finally:
        server.stop()


def shown_name(server, context=None):
    """Whose certificate a new connection is shown."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
        with (context or server.tls).wrap_socket(plain, server_hostname="localhost") as secure:
            return dict(pair[0] for pair in secure.getpeercert()["subject"])["commonName"]


def test_the_sdk_gets_whole_and_streamed_answers(server):
    assert server.url.startswith("https://")
    client = server.sdk()
    assert [model.id for model in client.models.list()] == ["synthetic"]
    whole = ask(client, model="synthetic", max_tokens=10)
    assert whole.choices[0].finish_reason == "length"
    stream = Stream(client, "Tell me a story about the sea.", model="synthetic", max_tokens=10, seed=1).end()
    assert stream.text == whole.choices[0].message.content and stream.pieces > 5


def test_a_large_body_passes(server):
    body = {"model": "synthetic", "max_tokens": 1, "metadata": {"x": "y" * 3_000_000},
            "messages": [{"role": "user", "content": "hi"}]}
    status, _, text = server.call("POST", "/v1/chat/completions", body)
    assert status == 200, text


def test_commands_and_the_servers_own_measurement_reach_it(server, authority):
    trusting = os.environ | {"FLOTILLA_SERVER": server.url, "SSL_CERT_FILE": str(authority.certificate)}
    listed = run_command("cluster", "list", env=trusting)
    assert listed.returncode == 0 and "local" in listed.stdout, listed.stderr
    doubting = run_command("cluster", "list", env=os.environ | {"FLOTILLA_SERVER": server.url})
    assert doubting.returncode == 1 and "certificate verify failed" in doubting.stderr
    status, report = server.admin("POST", "/bench", {"requests": 2, "max_tokens": 4})
    assert status == 200 and all(stream["whole"] for stream in report["streams"]), report


def test_a_client_that_goes_away_frees_its_place(server):
    connection = server.connection()
    body = b'{"model":"synthetic","stream":true,"max_tokens":5000,"messages":[{"role":"user","content":"hi"}]}'
    connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json"})
    assert connection.getresponse().read(20)
    connection.close()
    wait_until("its place is free", lambda: server.pool("synthetic")["in_flight"] == 0, 5)


def test_a_renewed_pair_is_taken_without_a_stream_ending(server, authority):
    assert shown_name(server) == "first"
    stream = Stream(server.sdk(), "A long story", model="synthetic", max_tokens=300,
                    extra_body={"ignore_eos": True})
    assert stream.begun.wait(30)
    stranger = authority.issue("stranger")[1]
    stranger.rename(server.key)
    server.signal(signal.SIGHUP)
    wait_until("the broken pair is told", lambda: "the certificate in use stays" in server.log(), 10)
    assert "is not the key of the certificate" in server.log()
    assert shown_name(server) == "first"
    authority.issue("second", server.certificate, server.key)
    server.signal(signal.SIGHUP)
    wait_until("the new pair is shown", lambda: shown_name(server) == "second", 10)
    seen = stream.pieces
    authority.issue("third", server.certificate, server.key)
    wait_until("a change is seen without a signal", lambda: shown_name(server) == "third", 10)
    stream.end()
    assert stream.pieces > seen and stream.finish == "length"
    assert ask(server.sdk(), model="synthetic", max_tokens=2).choices


def test_old_versions_of_tls_are_refused(server):
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError, match="(?i)protocol.version|unsupported.protocol"):
        shown_name(server, old)
    new = ssl.create_default_context(cafile=None)
    new.check_hostname, new.verify_mode = False, ssl.CERT_NONE
    new.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as plain:
        with new.wrap_socket(plain, server_hostname="localhost") as secure:
            assert secure.version() == "TLSv1.2"


def test_plain_http_is_told_what_to_do(server):
    talk = Talks()
    talk.url = server.url.replace("https://", "http://")
    status, headers, text = talk.call("GET", "/v1/models")
    assert status == 400 and "https://" in text
    assert headers["Content-Type"] == "application/json"


def test_what_cannot_be_used_at_start_is_named(tmp_path, authority):
    certificate, key = authority.issue("fourth")
    _, other_key = authority.issue("fifth")

    def refusal(*arguments):
        done = run_command("serve", "--port", 0, "--state", tmp_path / "state", *arguments, timeout=20)
        assert done.returncode == 1
        return done.stderr

    assert f"--tls-cert {certificate} needs --tls-key FILE" in refusal("--tls-cert", certificate)
    assert f"--tls-key {key} needs --tls-cert FILE" in refusal("--tls-key", key)
    missing = tmp_path / "nowhere.pem"
    said = refusal("--tls-cert", missing, "--tls-key", key)
    assert str(missing) in said and "No such file" in said and "give a PEM file" in said
    said = refusal("--tls-cert", certificate, "--tls-key", other_key)
    assert str(other_key) in said and 'not the key of the certificate for "fourth"' in said
