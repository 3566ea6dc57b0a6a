import json
import os
import signal
import threading

import pytest

from support import ALIAS, Server, wait_until

LIST = {"type": "object", "additionalProperties": False, "required": ["words", "last"], "properties": {
    "words": {"type": "array", "minItems": 30, "maxItems": 40, "items": {"enum": ["sea", "ship", "storm"]}},
    "last": {"type": "boolean"}}}
TOOL = {"type": "function", "function": {"name": "note", "parameters": LIST}}


class Reader(threading.Thread):
    """One streamed answer: its text, its call's arguments and its logprobs, as they came."""

    def __init__(self, client, **options):
        super().__init__(daemon=True)
        self.client, self.options = client, options
        self.text, self.arguments, self.told, self.names = "", "", b"", []
        self.pieces, self.finish, self.error, self.served = 0, None, None, None
        self.start()

    def run(self):
        try:
            for chunk in self.client.chat.completions.create(
                    model=ALIAS, stream=True, max_tokens=400, temperature=0.9,
                    messages=[{"role": "user", "content": "List words."}], **self.options):
                self.served = getattr(chunk, "x_flotilla", None) or self.served
                for choice in chunk.choices:
                    self.pieces += 1
                    self.text += choice.delta.content or ""
                    for call in choice.delta.tool_calls or []:
                        self.arguments += call.function.arguments or ""
                        self.names += [call.function.name] if call.function.name else []
                    if choice.logprobs:
                        self.told += b"".join(bytes(token.bytes) for token in choice.logprobs.content)
                    self.finish = choice.finish_reason or self.finish
        except Exception as error:  # noqa: BLE001: whatever it is, the test shows it
            self.error = error


def check(value):
    assert 30 <= len(value["words"]) <= 40 and set(value["words"]) <= {"sea", "ship", "storm"}
    assert isinstance(value["last"], bool)


@pytest.fixture
def server(start):
    server = start(Server)
    server.load(nodes=2)
    return server


def test_grammar_tool_calls_and_logprobs_go_on_where_they_were(server):
    client = server.sdk()
    schema = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": LIST}}}
    tool = {"tools": [TOOL], "tool_choice": "required"}
    readers = [Reader(client, seed=seed, logprobs=seed % 2 == 0, **(schema if seed < 6 else tool))
               for seed in range(12)]
    wait_until("most stream", lambda: sum(reader.pieces > 12 for reader in readers) >= 8)
    os.kill(server.runners()[0], signal.SIGKILL)
    for reader in readers:
        reader.join(120)
        assert reader.error is None and reader.finish, reader.error
    assert any(reader.served["resumed"] for reader in readers)
    for reader in readers[:6]:
        check(json.loads(reader.text))
        if reader.told:
            assert reader.told.decode() == reader.text
    for reader in readers[6:]:
        assert reader.names == ["note"] and reader.finish == "tool_calls"
        check(json.loads(reader.arguments))
        if reader.told:
            assert reader.arguments in reader.told.decode()
