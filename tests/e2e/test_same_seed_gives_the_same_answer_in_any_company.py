from support import Stream, ask


def test_alone_and_among_others(client):
    alone = ask(client, seed=42, max_tokens=60).choices[0].message.content
    assert ask(client, seed=43, max_tokens=60).choices[0].message.content != alone
    others = [Stream(client, f"Story number {number}", seed=number, max_tokens=60) for number in range(9)]
    among = [Stream(client, "Tell me a story about the sea.", seed=42, max_tokens=60) for _ in range(3)]
    assert [stream.end().text for stream in among] == [alone] * 3
    for stream in others:
        stream.end()


def test_temperature_zero_needs_no_seed(client):
    first = ask(client, temperature=0, seed=None).choices[0].message.content
    assert ask(client, temperature=0, seed=None).choices[0].message.content == first


def test_without_a_seed_answers_differ(client):
    texts = {ask(client, temperature=1, seed=None).choices[0].message.content for _ in range(3)}
    assert len(texts) > 1
