"""The playground: what a model says, who said it, how fast, and what happens when it goes wrong."""

import re

import pytest
from selenium.webdriver.common.keys import Keys
from stand_in import BROKEN, HOLD, cluster, last_chunks, pool, text_chunk
from support import ALIAS

TURN = ".chat-column:last-child .turn:last-child"
HOSTILE = """# Ships

- **Sloop**, one mast
- `brig`

| kind | masts |
|---|---|
| barque | 3 |

<script>document.title = "taken"</script>
<img src="https://elsewhere.invalid/a.png" onerror="document.title = 'taken'">
<p style="position:fixed" onclick="alert(1)">plain</p>

![a ship](https://elsewhere.invalid/b.png) [good](https://good.invalid) [bad](javascript:document.title='taken')
"""


def open_chat(page, stand_in, *pools):
    stand_in.show(cluster(pools=pools or [pool()]))
    page.open(stand_in.url + "/#/chat")
    page.wait("the playground", lambda: page.find_all(".composer"))


def say(page, words, *keys):
    page.field("Message", ".composer").send_keys(words, *keys)


def test_answer_is_markdown_without_anything_that_runs_or_loads(page, stand_in):
    stand_in.speech = [HOSTILE[:40], HOSTILE[40:], *last_chunks()]
    open_chat(page, stand_in)
    say(page, "Kinds of ships?", Keys.ENTER)
    page.wait_text(f"{TURN} .turn-figures", "replica local-1")
    assert page.text(f"{TURN} .markdown h1") == "Ships"
    assert page.text(f"{TURN} .markdown td") == "barque"
    inside = f"{TURN} .markdown "
    assert not page.find_all(f"{inside}:is(script, img, style, iframe, [style], [onclick])")
    links = [link.get_attribute("href") for link in page.find_all(f"{inside}a")]
    assert links == ["https://good.invalid/", None]
    assert "<script>" in page.text(f"{TURN} .markdown")
    assert "a ship" in page.text(f"{TURN} .markdown")
    assert page.driver.title == "Flotilla"


def test_answer_says_which_replica_gave_it_how_fast_and_what_was_cached(page, stand_in):
    stand_in.speech = ["One.", *last_chunks("length", queued_ms=12.2, resumed=True)]
    open_chat(page, stand_in)
    say(page, "Count", Keys.ENTER)
    page.wait_text(f"{TURN} .turn-figures", "cached 24")
    assert page.text(f"{TURN} .turn-figures") == (
        "replica local-1 TTFT 42 ms queued 12 ms tokens/s 87.3 tokens 31 in, 12 out cached 24 "
        "resumed on another replica ended by length"
    )


def test_reasoning_is_folded_whether_the_server_or_the_text_marks_it(page, stand_in):
    stand_in.speech = [text_chunk("", reasoning_content="Let me see."), "Four.", *last_chunks()]
    open_chat(page, stand_in)
    say(page, "2+2", Keys.ENTER)
    page.wait_text(f"{TURN} > .markdown", "Four.")
    assert not page.find(f"{TURN} .reasoning .markdown").is_displayed()
    page.click(f"{TURN} .reasoning summary")
    assert page.text(f"{TURN} .reasoning .markdown") == "Let me see."
    stand_in.speech = ["<think>I wonder", ".</think>\n\nFive.", *last_chunks()]
    say(page, "2+3", Keys.ENTER)
    page.wait_text(f"{TURN} > .markdown", "Five.")
    assert "I wonder" not in page.text(TURN)


def test_stop_keeps_what_was_said_and_lets_ask_again(page, stand_in):
    stand_in.speech = ["It was a ", HOLD, "dark night.", *last_chunks()]
    open_chat(page, stand_in)
    say(page, "Tell", Keys.ENTER)
    page.wait_text(TURN, "It was a")
    page.press("Stop")
    page.wait_text(f"{TURN} .turn-figures", "stopped after 1 token")
    assert "1 tokens" not in page.text(TURN)
    stand_in.go_on.set()
    say(page, "On", Keys.ENTER)
    page.wait_text(TURN, "dark night.")
    sent = stand_in.orders[-1][2]
    assert [m["content"].strip() for m in sent["messages"]] == ["Tell", "It was a", "On"]


def test_clearing_and_closing_ask_and_say_what_is_stopped(page, stand_in):
    stand_in.speech = ["It was a ", HOLD, "dark night.", *last_chunks()]
    open_chat(page, stand_in)
    page.press("Add a column")
    say(page, "Tell", Keys.ENTER)
    page.wait("both answer", lambda: len(page.find_all(".turn[data-answer=streaming]")) == 2)
    page.press("Close conversation 2")
    page.wait_text("dialog", "1 running answer is stopped. What was said is gone then")
    assert page.complaints_of_axe() == []
    page.press("Cancel", "dialog")
    page.wait("no dialog", lambda: not page.find_all("dialog"))
    assert len(page.find_all(".turn[data-answer=streaming]")) == 2
    page.press("Close conversation 2")
    page.press("Close", "dialog")
    page.wait("one column", lambda: len(page.find_all(".chat-column")) == 1)
    page.press("Stop")
    page.wait_text(TURN, "stopped after 1 token")
    page.press("Clear")
    page.wait_text("dialog", "No answer is running.")
    page.press("Clear", "dialog")
    page.wait("nothing said", lambda: not page.find_all(".turn"))
    assert not page.find_all("dialog")


@pytest.mark.parametrize("how", ["refused", "error", "broken"])
def test_error_stays_until_it_is_dismissed_and_can_be_copied(page, stand_in, how):
    words = {
        "refused": "The queue is full; try again in 2 s.",
        "error": "the replica was lost",
        "broken": "broke off",
    }[how]
    if how == "refused":
        body = {"error": {"message": words, "type": "x", "param": None, "code": None}}
        stand_in.answers[("POST", "/v1/chat/completions")] = (429, body, 0)
    elif how == "error":
        stand_in.speech = ["Once", {"error": {"message": words}}]
    else:
        stand_in.speech = ["Once", BROKEN]
    open_chat(page, stand_in)
    say(page, "Go", Keys.ENTER)
    page.wait_text(f"{TURN} [role=alert]", words)
    page.click("a[href='#/clusters']")
    page.click("a[href='#/chat']")
    page.wait_text(f"{TURN} [role=alert]", words)
    page.press("Copy the error", ".turn")
    page.wait_text(".turn-failure", "Copied")
    page.press("Dismiss", ".turn")
    page.wait("no turn", lambda: not page.find_all(".turn"))


def test_system_prompt_and_sampling_are_sent_and_wrong_values_are_shown_at_the_field(
    page, stand_in
):
    stand_in.speech = ["Aye.", *last_chunks()]
    open_chat(page, stand_in)
    page.click(".chat-settings summary")
    within = ".chat-settings"
    page.field("System prompt", within).send_keys("You are a sailor.")
    page.field("Temperature", within).send_keys("3")
    say(page, "Hello")
    page.wait_text(within, "A number from 0 to 2")
    assert not page.button("Send").is_enabled()
    page.field("Temperature", within).send_keys(Keys.BACKSPACE, "0.2")
    page.field("Seed", within).send_keys("7")
    page.press("Send")
    page.wait_text(TURN, "Aye.")
    _, _, sent = stand_in.orders[-1]
    assert (sent["temperature"], sent["seed"], sent["max_tokens"]) == (0.2, 7, 512)
    assert sent["messages"][0] == {"role": "system", "content": "You are a sailor."}
    assert "top_p" not in sent


def tokens_of(figures):
    """Of the question and of the answer."""
    told = re.search(r"tokens (\d+) in, (\d+) out", figures)
    return int(told[1]), int(told[2])


def test_four_columns_answer_at_once_each_with_its_own_model_and_history(page, server):
    server.load(nodes=2)
    page.open(server.url + "/#/chat")
    page.wait("the model", lambda: page.find("select").get_attribute("value") == ALIAS)
    for _ in range(3):
        page.press("Add a column")
    assert not page.button("Add a column").is_enabled()
    page.click(".chat-settings summary")
    most = page.field("Max tokens", ".chat-settings")
    page.fill(most, "60")
    page.click(".chat-settings summary")
    say(page, "Tell me a story about the sea.", Keys.ENTER)
    page.wait("4 answers under way", lambda: server.pool()["in_flight"] == 4)
    done = ".turn-figures[data-answer=done]"
    page.wait("4 answers", lambda: len(page.find_all(done)) == 4, timeout=60)
    figures = [" ".join(entry.text.split()) for entry in page.find_all(done)]
    assert {entry.split()[1] for entry in figures} == {"local-1", "local-2"}
    assert all("out cached" in entry and "tokens/s" in entry for entry in figures)
    page.wait_text('[data-part="together"]', "tokens/s together")
    page.screenshots("chat-four-columns")
    say(page, "And then?", Keys.ENTER)
    page.wait("4 more", lambda: len(page.find_all(done)) == 8, timeout=60)
    turns = page.find_all(".turn:last-child .turn-figures")
    again = [" ".join(entry.text.split()) for entry in turns]
    assert len(again) == 4
    for before, after in zip(map(tokens_of, figures), map(tokens_of, again), strict=True):
        assert after[0] > sum(before), "the first answer is part of the second question"
    cached = [int(entry.split("cached ")[1].split()[0]) for entry in again]
    assert max(cached) > 64, "what was said before is not computed twice"


@pytest.mark.parametrize("dark", [False, True])
def test_playground_is_accessible_and_fits_a_telephone(page, stand_in, dark):
    stand_in.speech = [text_chunk("", reasoning_content="Hm."), HOSTILE, *last_chunks()]
    page.size(1360, 860, dark)
    open_chat(page, stand_in, pool(), pool("other-model"))
    page.press("Add a column")
    page.click(".chat-settings summary")
    say(page, "Kinds of ships?", Keys.ENTER)
    page.wait_text(f"{TURN} .turn-figures", "cached")
    assert page.complaints_of_axe() == []
    page.screenshots("chat")
    page.size(360, 800, dark)
    assert page.overflow() == 0


@pytest.mark.parametrize("width", [390, 800, 950])
def test_four_columns_scroll_in_their_box_and_not_the_page(page, stand_in, width):
    page.size(width, 860)
    open_chat(page, stand_in)
    for _ in range(3):
        page.press("Add a column")
    page.wait("four columns", lambda: len(page.find_all(".chat-column")) == 4)
    assert page.overflow() == 0


def test_a_wrong_setting_is_told_beside_send_and_its_field_is_in_view(page, stand_in):
    open_chat(page, stand_in)
    say(page, "Hello")
    page.click(".chat-settings summary")
    page.field("Temperature", ".chat-settings").send_keys("9")
    page.click(".chat-settings summary")
    page.wait_text(".composer .wrong", "Temperature: A number from 0 to 2, or empty.")
    assert not page.button("Send").is_enabled()
    page.click("a[href='#/live']")
    page.wait_text("main h2", "Live")
    page.click("a[href='#/chat']")
    field = page.field("Temperature", ".chat-settings")
    assert field.is_displayed() and field.get_attribute("aria-invalid") == "true"
    page.fill(field, Keys.BACKSPACE)
    page.wait("no fault", lambda: not page.find_all(".composer .wrong"))
    page.press("Send")
    page.wait_text(TURN, "Hello.")
