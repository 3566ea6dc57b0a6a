"""The real server in a real browser: logging in, the Keys page, and chat beside keys."""

import json

import pytest
import support
from selenium.webdriver.common.keys import Keys

TOKEN = "correct-horse-battery"
DONE = ".turn-figures[data-answer=done]"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with an admin token."""
    running = support.Server(tmp_path_factory.mktemp("guarded"), token=TOKEN)
    try:
        running.load(nodes=1, model="synthetic")
        yield running
    finally:
        running.stop()


@pytest.fixture
def inside(page, guarded):
    """Logged in, on the Keys page, by the keyboard alone."""
    page.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    page.open(f"{guarded.url}/#/keys")
    page.wait("the log-in", lambda: page.find_all(".login"))
    page.driver.switch_to.active_element.send_keys(TOKEN, Keys.ENTER)
    page.wait_text("main h2", "API keys")
    yield page
    for key in guarded.get_json("/admin/keys")["keys"]:
        guarded.admin("DELETE", f"/keys/{key['id']}")


def requests_counted(server):
    return sum(row["requests"] for row in server.get_json("/admin/usage")["rows"])


def dialog_overflow(page):
    return page.driver.execute_script(
        "const d = document.querySelector('dialog'); return d.scrollWidth - d.clientWidth"
    )


def first_line(page, css):
    """What of a text stands in its first line."""
    return page.driver.execute_script(
        """const text = document.querySelector(arguments[0]).firstChild;
        const top = (at) => {
          const range = document.createRange();
          range.setStart(text, at);
          range.setEnd(text, at + 1);
          return range.getBoundingClientRect().top;
        };
        let end = 1;
        while (end < text.length && top(end) === top(0)) end += 1;
        return text.data.slice(0, end);""",
        css,
    )


def create(page, **fields):
    page.press("Create a key")
    for label, value in fields.items():
        page.field(label.replace("_", " ")).send_keys(value)
    page.press("Create", "dialog")
    page.wait_text("dialog h2", "The key")
    return page.text("dialog pre")


@pytest.mark.parametrize("dark", [False, True])
def test_who_is_not_logged_in_sees_the_log_in_and_nothing_else(page, guarded, dark):
    page.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    page.size(1360, 860, dark)
    page.open(f"{guarded.url}/#/chat")
    page.wait("the log-in", lambda: page.find_all(".login"))
    assert not page.find_all("nav.pages, .composer, .banner")
    assert page.field("Admin token", "main").get_attribute("type") == "password"
    assert page.complaints_of_axe() == []
    page.screenshots(f"login-{'dark' if dark else 'light'}")
    for width in (360, 2560):
        page.size(width, 900, dark)
        assert page.overflow() == 0, width


def test_one_is_back_where_one_was_and_logging_out_ends_it(page, guarded):
    page.driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    page.open(f"{guarded.url}/#/nodes")
    page.wait("the log-in", lambda: page.find_all(".login"))
    page.press("Log in", "main")
    page.wait_text("main .hint", "The token, please.")
    field = page.field("Admin token", "main")
    field.send_keys("wrong-horse-battery", Keys.ENTER)
    page.wait_text("main .hint", "This is not the admin token")
    assert field.get_attribute("aria-invalid") == "true"
    page.fill(field, TOKEN, Keys.ENTER)
    page.wait_text("main h2", "Nodes")
    page.wait_text("nav [aria-current]", "Nodes")
    page.driver.refresh()
    page.wait_text("main h2", "Nodes")
    assert page.driver.execute_script("return document.cookie") == ""
    page.press("Log out", "header")
    page.wait("the log-in", lambda: page.find_all(".login"))
    page.driver.refresh()
    page.wait("the log-in", lambda: page.find_all(".login"))


def test_a_log_in_that_ends_elsewhere_asks_again(inside, guarded):
    cookie = "; ".join(f"{c['name']}={c['value']}" for c in inside.driver.get_cookies())
    status, _, _ = guarded.call(
        "POST",
        "/admin/logout",
        {},
        {"Authorization": None, "Cookie": cookie, "Origin": guarded.url},
    )
    assert status == 204
    inside.wait("the log-in", lambda: inside.find_all(".login"))


def test_a_key_is_made_with_all_its_options_and_its_secret_shown_once(inside, guarded):
    inside.wait_text("main .panel", "There is no key")
    secret = create(
        inside,
        Name="build-server",
        Models="synthetic, other",
        Weight="2.5",
        Answers_at_once="4",
        Requests_a_minute="60",
        Tokens_a_minute="100000",
        Cache_group="team",
        Expires_in_days="30",
    )
    assert secret.startswith("fl-")
    # As on a page that came by http from another machine: there is no clipboard API.
    inside.driver.execute_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    inside.press("Copy the secret", "dialog")
    inside.wait_text("dialog .command", "Copied")
    inside.screenshots("keys-secret")
    assert inside.complaints_of_axe() == []
    inside.size(360, 800)
    assert dialog_overflow(inside) == 0
    assert len(first_line(inside, "dialog pre code")) > len("fl-")
    inside.size(1360, 860)
    inside.press("I have it", "dialog")
    inside.wait("no dialog", lambda: not inside.find_all("dialog"))
    inside.wait_text("[data-key=build-server]", "synthetic, other 2.5 60 100,000 4 team")
    assert secret not in inside.driver.page_source
    inside.press("Create a key")
    inside.field("Name").send_keys(Keys.CONTROL, "v")
    assert inside.field("Name").get_attribute("value") == secret, "what was copied"
    inside.press("Cancel", "dialog")
    (key,) = guarded.get_json("/admin/keys")["keys"]
    expected = {
        "name": "build-server",
        "models": ["synthetic", "other"],
        "weight": 2.5,
        "requests_per_min": 60,
        "tokens_per_min": 100_000,
        "max_in_flight": 4,
        "cache_group": "team",
    }
    assert key | expected == key
    assert 29 < (key["expires_unix_s"] - key["created_unix_s"]) / 86_400 < 31
    headers = {"Authorization": f"Bearer {secret}"}
    assert guarded.call("GET", "/v1/models", headers=headers)[0] == 200
    inside.screenshots("keys")


def test_wrong_values_are_told_at_the_field_and_a_key_is_removed_after_asking(inside, guarded):
    secret = create(inside, Name="first")
    for _ in range(3):
        inside.keys(Keys.ESCAPE)
    assert inside.text("dialog pre") == secret, "what is shown once stays until it is closed"
    inside.press("I have it", "dialog")
    inside.wait("the row", lambda: inside.find_all("[data-key=first]"))
    inside.press("Create a key")
    inside.press("Create", "dialog")
    inside.wait_text("dialog", "1 to 64 letters")
    inside.field("Name").send_keys("first")
    inside.wait_text("dialog", "There is a key 'first' already.")
    inside.field("Weight").send_keys("0")
    inside.field("Requests a minute").send_keys("many")
    inside.wait_text("dialog", "A number from 0.01 to 100.")
    assert "A whole number, or empty for no bound." in inside.text("dialog")
    assert inside.complaints_of_axe() == []
    inside.screenshots("keys-create")
    inside.size(360, 800)
    assert dialog_overflow(inside) == 0
    assert inside.overflow() == 0
    inside.size(1360, 860)
    inside.press("Cancel", "dialog")
    inside.press("Remove first")
    inside.wait_text("dialog", "refused from then on")
    assert "It is the last one" in inside.text("dialog")
    assert inside.complaints_of_axe() == []
    inside.press("Remove", "dialog")
    inside.wait_text("main .panel", "There is no key")
    assert guarded.get_json("/admin/keys")["keys"] == []


@pytest.mark.parametrize("narrow", [False, True])
def test_chat_works_beside_keys_and_its_use_is_counted(inside, guarded, narrow):
    create(inside, Name="somebody")
    inside.press("I have it", "dialog")
    body = {"model": "synthetic", "messages": [{"role": "user", "content": "x"}]}
    nobody = guarded.call("POST", "/v1/chat/completions", body, {"Authorization": None})
    assert nobody[0] == 401 and "API key" in json.loads(nobody[2])["error"]["message"]
    before = requests_counted(guarded)
    if narrow:
        inside.size(360, 800)
    inside.click("a[href='#/chat']")
    inside.field("Message", ".composer").send_keys("Hello", Keys.ENTER)
    inside.wait("an answer", lambda: inside.find_all(DONE), timeout=30)
    inside.wait("it is counted", lambda: requests_counted(guarded) == before + 1)
    inside.click("a[href='#/keys']")
    inside.wait_text("[data-usage='without a key'] td", str(before + 1))
    inside.press("By day")
    inside.wait("the day", lambda: inside.find_all("[data-usage^='20']"))
    assert inside.overflow() == 0
