import json

import openai
import pytest

from support import ALIAS


def complete(place, prompt="Once upon a time", **options):
    options = {"model": ALIAS, "max_tokens": 20, "temperature": 0, "seed": 1} | options
    return place.sdk().completions.create(prompt=prompt, **options)


def tokens_of(place, text):
    status, _, answer = place.call("POST", "/tokenize", {"model": ALIAS, "content": text})
    assert status == 200, answer
    return json.loads(answer)["tokens"]


def test_whole_and_streamed_are_the_same(place):
    whole = complete(place)
    assert whole.object == "text_completion" and whole.id.startswith("cmpl-")
    assert whole.choices[0].text and whole.choices[0].finish_reason == "length"
    assert whole.usage.completion_tokens == 20
    chunks = list(complete(place, stream=True, stream_options={"include_usage": True}))
    assert "".join(chunk.choices[0].text for chunk in chunks if chunk.choices) == whole.choices[0].text
    assert chunks[-1].usage == whole.usage
    assert all(chunk.usage is None for chunk in complete(place, stream=True))


def test_no_template_touches_the_prompt(place):
    assert complete(place).usage.prompt_tokens == len(tokens_of(place, "Once upon a time"))


def test_tokens_are_the_text_that_they_are(place):
    tokens = tokens_of(place, "Once upon a time")
    assert complete(place, tokens).choices[0].text == complete(place).choices[0].text


def test_several_prompts_and_answers(place):
    prompts = ["Once upon a time", "The capital of France is"]
    both = complete(place, prompts, n=2, temperature=1)
    assert [choice.index for choice in both.choices] == [0, 1, 2, 3]
    for number, prompt in enumerate(prompts):
        alone = complete(place, prompt, n=2, temperature=1)
        assert [choice.text for choice in both.choices[2 * number:2 * number + 2]] == \
            [choice.text for choice in alone.choices]
    tokens = complete(place, [tokens_of(place, prompt) for prompt in prompts])
    assert tokens.choices[1].text == complete(place, prompts[1]).choices[0].text


def test_echo_comes_first(place):
    plain = complete(place).choices[0].text
    assert complete(place, echo=True).choices[0].text == "Once upon a time" + plain
    tokens = tokens_of(place, "Once upon a time")
    assert complete(place, tokens, echo=True).choices[0].text == "Once upon a time" + plain
    streamed = complete(place, echo=True, stream=True)
    assert "".join(chunk.choices[0].text for chunk in streamed) == "Once upon a time" + plain


def test_stop_strings_are_not_shown(place):
    word = complete(place).choices[0].text.split()[2]
    answer = complete(place, stop=[" " + word])
    assert word not in answer.choices[0].text.split()
    assert answer.choices[0].finish_reason == "stop"


@pytest.mark.parametrize("options, named", [
    ({"suffix": "the end"}, "suffix"),
    ({"best_of": 4}, "best_of"),
    ({"echo": True, "logprobs": 1}, "logprobs"),
    ({"logprobs": 100}, "logprobs"),
    ({"n": 1000}, "n"),
    ({"temperature": -1}, "temperature"),
    ({"extra_body": {"grammar": 'root ::= "x"'}}, "grammar"),
    ({"extra_body": {"response_format": {"type": "json_object"}}}, "response_format"),
    ({"extra_body": {"tools": [{"type": "function", "function": {"name": "f"}}]}}, "tools"),
])
def test_what_it_does_not_do_is_named(place, options, named):
    with pytest.raises(openai.BadRequestError) as caught:
        complete(place, **options)
    assert caught.value.param == named
    assert named in caught.value.message


def test_unknown_model(place):
    with pytest.raises(openai.NotFoundError) as caught:
        complete(place, model="no-such")
    assert caught.value.code == "model_not_found"
