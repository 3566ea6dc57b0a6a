import gguf_file
from support import ALIAS, Server, Stream, wait_until


def crashing_model(folder):
    """The engine aborts on it while it loads: its recurrent layers have a width that it asserts."""
    facts = gguf_file.tiny_facts("jamba", ssm__conv_kernel=("u32", 4), ssm__inner_size=("u32", 100),
                                 ssm__state_size=("u32", 16), ssm__time_step_rank=("u32", 4))
    return gguf_file.write(folder / "crashing.gguf", facts, {"token_embd.weight": (64, 259)})


def test_only_its_own_runner_dies_and_the_reason_is_told(start, tmp_path):
    server = start(Server)
    server.load(nodes=1)
    runners = server.runners()
    stream = Stream(server.sdk(), "A long story", max_tokens=200, extra_body={"ignore_eos": True})
    stream.begun.wait(30)
    status, answer = server.admin("POST", "/clusters/local/load",
                                  {"model": str(crashing_model(tmp_path)), "alias": "crashing"})
    assert status in (422, 502), answer
    assert "SIGABRT" in answer["detail"], answer
    wait_until("the crashed pool is gone",
               lambda: [pool["alias"] for pool in server.get_json("/admin/clusters/local/status")["pools"]] == [ALIAS])
    assert server.runners() == runners
    assert stream.end().usage.completion_tokens == 200
