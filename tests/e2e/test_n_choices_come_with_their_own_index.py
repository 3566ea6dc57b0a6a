from support import ask


def test_choices_differ_and_usage_counts_them_all(client):
    answer = ask(client, "Name a colour and say why.", n=3, max_tokens=20, temperature=1,
                 extra_body={"ignore_eos": True})
    assert [choice.index for choice in answer.choices] == [0, 1, 2]
    assert len({choice.message.content for choice in answer.choices}) > 1
    assert answer.usage.completion_tokens == 60


def test_streamed_choices_are_the_whole_ones(client):
    whole = ask(client, "Name a colour.", n=2, max_tokens=16, seed=5)
    texts, finished = {}, {}
    for chunk in ask(client, "Name a colour.", n=2, max_tokens=16, seed=5, stream=True):
        for choice in chunk.choices:
            texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
            if choice.finish_reason:
                finished[choice.index] = choice.finish_reason
    assert texts == {choice.index: choice.message.content for choice in whole.choices}
    assert finished == {choice.index: choice.finish_reason for choice in whole.choices}


def test_each_choice_ends_at_its_own_stop_string(client):
    options = {"n": 3, "seed": 5, "temperature": 1, "max_tokens": 40}
    stops = [" a", " of"]
    free = [choice.message.content for choice in ask(client, "Name a colour and say why.", **options).choices]
    ends = [min((text.find(stop) for stop in stops if stop in text), default=len(text)) for text in free]
    assert any(end < len(text) for text, end in zip(free, ends)), "no choice has one: choose others for this test"
    held = ask(client, "Name a colour and say why.", stop=stops, **options)
    assert [choice.message.content for choice in held.choices] == [text[:end] for text, end in zip(free, ends)]
    streamed = ["", "", ""]
    for chunk in ask(client, "Name a colour and say why.", stop=stops, stream=True, **options):
        for choice in chunk.choices:
            streamed[choice.index] += choice.delta.content or ""
    assert streamed == [choice.message.content for choice in held.choices]
