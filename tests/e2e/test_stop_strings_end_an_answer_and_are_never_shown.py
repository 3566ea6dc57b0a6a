import pytest

from support import Stream, ask

PROMPT = "Write one long sentence about the sea and the ships."


@pytest.mark.parametrize("stop", [" the", "e", "ships", ["zzzz", " and"]])
def test_answer_is_cut_before_the_stop_string(client, stop):
    free = ask(client, PROMPT, temperature=0, max_tokens=60).choices[0].message.content
    stops = [stop] if isinstance(stop, str) else stop
    cut = min((free.find(text) for text in stops if text in free), default=-1)
    assert cut >= 0, f"the model does not say {stop}: choose another for this test"
    whole = ask(client, PROMPT, temperature=0, max_tokens=60, stop=stop).choices[0]
    assert whole.message.content == free[:cut]
    assert whole.finish_reason == "stop"
    assert Stream(client, PROMPT, temperature=0, max_tokens=60, stop=stop).end().text == free[:cut]


def test_beginning_of_a_stop_string_that_does_not_come_is_shown(client):
    free = ask(client, PROMPT, temperature=0, max_tokens=30).choices[0].message.content
    never = [free[10:20] + "\x01never", free[-4:] + "never"]
    assert ask(client, PROMPT, temperature=0, max_tokens=30, stop=never).choices[0].message.content == free
