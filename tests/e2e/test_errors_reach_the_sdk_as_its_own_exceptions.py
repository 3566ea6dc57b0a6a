import openai
import pytest

from support import ask


def test_unknown_model_names_what_is_ready(client):
    with pytest.raises(openai.NotFoundError) as caught:
        ask(client, model="gpt-9")
    assert caught.value.code == "model_not_found"
    assert "gpt-9" in caught.value.message and "smollm2-135m-instruct" in caught.value.message


@pytest.mark.parametrize("options, named", [
    ({"temperature": -1}, "temperature"),
    ({"top_p": 1.5}, "top_p"),
    ({"max_tokens": 0}, "max_tokens"),
    ({"n": 0}, "n"),
    ({"extra_body": {"top_k": "many"}}, "top_k"),
    ({"extra_body": {"modalities": ["audio"]}}, "modalities"),
])
def test_bad_value_is_refused_with_its_name(client, options, named):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, **options)
    assert caught.value.param == named
    assert named in caught.value.message


def test_prompt_over_the_context_says_both_numbers(client):
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, "word " * 9000)
    assert caught.value.code == "context_length_exceeded"
    assert "2048" in caught.value.message or "8192" in caught.value.message


def test_bad_value_of_a_stream_is_a_plain_status(client):
    with pytest.raises(openai.BadRequestError):
        ask(client, "word " * 9000, stream=True)


def test_server_goes_on_after_all_that(client):
    assert ask(client, "Say hi.", max_tokens=4).choices[0].message.content
