from support import ALIAS, Stream, ask


def test_whole_answer_has_text_usage_and_who_served_it(client):
    answer = ask(client, "What is the capital of France?", max_tokens=24)
    assert answer.object == "chat.completion"
    assert answer.model == ALIAS
    assert answer.id.startswith("chatcmpl-")
    choice = answer.choices[0]
    assert choice.message.role == "assistant"
    assert choice.message.content
    assert choice.finish_reason in ("stop", "length")
    usage = answer.usage
    assert usage.prompt_tokens > 5
    assert 1 <= usage.completion_tokens <= 24
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert answer.x_flotilla["node"] in ("local-1", "local-2")
    assert answer.x_flotilla["resumed"] is False


def test_streamed_answer_is_the_whole_one_in_pieces(client):
    whole = ask(client, seed=7)
    stream = Stream(client, "Tell me a story about the sea.", seed=7).end()
    assert stream.text == whole.choices[0].message.content
    assert stream.finish == whole.choices[0].finish_reason
    assert stream.usage.completion_tokens == whole.usage.completion_tokens
    assert stream.usage.prompt_tokens == whole.usage.prompt_tokens
    assert stream.pieces > 10
    assert stream.served["ttft_ms"] > 0


def test_stream_without_include_usage_has_none(client):
    chunks = list(ask(client, stream=True, max_tokens=5))
    assert all(chunk.usage is None for chunk in chunks)
    assert all(chunk.choices for chunk in chunks)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert {chunk.id for chunk in chunks} == {chunks[0].id}
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices[0].finish_reason] == ["length"]


def test_max_tokens_is_exact_when_the_end_of_text_is_ignored(client):
    answer = ask(client, "Say hi.", max_tokens=70, extra_body={"ignore_eos": True})
    assert answer.usage.completion_tokens == 70
    assert answer.choices[0].finish_reason == "length"


def test_models_list_names_the_pool(client):
    (model,) = client.models.list().data
    assert model.id == ALIAS
    assert model.x_flotilla["batch"] is True
    assert model.x_flotilla["supports_tools"] is model.x_flotilla["supports_json_schema"] is True
    assert model.x_flotilla["replicas_live"] == model.x_flotilla["replicas_total"] == 2
    assert client.models.retrieve(ALIAS).id == ALIAS
