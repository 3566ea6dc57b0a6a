"""What a test says about the page: what a person would look for, not how it is made."""

import pathlib

from selenium.common.exceptions import (
    NoSuchElementException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

RUN_AXE = """
const done = arguments[arguments.length - 1];
const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const words = (node) => `${node.target} ${node.failureSummary}`;
axe.run({runOnly: rules}).then((result) => done(result.violations.map(
  (v) => `${v.impact} ${v.id}: ${v.nodes.map(words).join(' | ')}`)));
"""
AXE = pathlib.Path(__file__).resolve().parents[2] / "dashboard/node_modules/axe-core/axe.min.js"


class Page:
    def __init__(self, driver, screenshots):
        self.driver = driver
        self._screenshots = screenshots

    def open(self, url):
        self.driver.get(url)
        return self

    def find(self, css):
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def find_all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def text(self, css):
        return " ".join(self.find(css).text.split())

    def wait(self, what, until, timeout=15):
        """until() is asked until it is true; `what` is what the failure says."""

        def ask(_):
            try:
                return until()
            except (NoSuchElementException, StaleElementReferenceException):
                return False

        return WebDriverWait(self.driver, timeout, poll_frequency=0.05).until(
            ask, f"not seen: {what}"
        )

    def wait_text(self, css, wanted, timeout=15):
        try:
            self.wait(f"{css} with '{wanted}'", lambda: wanted in self.text(css), timeout)
        except TimeoutException as late:
            late.msg += f"; the page then: {self.text('body')[:4000]}"
            raise

    def pills(self, alias):
        """The pills' own words, without what they say when pointed at."""
        pills = self.find_all(f'[data-pool="{alias}"] [data-part="pills"] .pill')
        return " ".join(pill.text for pill in pills)

    def wait_pills(self, alias, wanted, timeout=15):
        self.wait(
            f"pool {alias} with pills '{wanted}'", lambda: self.pills(alias) == wanted, timeout
        )

    def click(self, css):
        self.wait(f"{css} to click on", lambda: self.find(css).is_enabled())
        self.find(css).click()

    def button(self, words, within="body"):
        """The button that a person or a screen reader knows by these words."""

        def named():
            return [b for b in self.find_all(f"{within} button") if b.accessible_name == words]

        return self.wait(f"a button '{words}'", lambda: (named() or [None])[0])

    def press(self, words, within="body"):
        """As a person does: once the button can be pressed. A click on one that cannot says nothing."""

        def pressed():
            for button in self.find_all(f"{within} button"):
                if button.accessible_name == words and button.is_enabled():
                    button.click()
                    return True
            return False

        self.wait(f"a button '{words}' to press", pressed)

    def fill(self, field, *words):
        """As a person does: all of it marked, then typed over. What the driver clears no key has cleared, and the
        page puts it back when it is drawn next."""
        field.send_keys(Keys.CONTROL, "a", Keys.NULL, *words)

    def tab_to(self, words, backwards=False):
        """By the keyboard alone: on to what is known by these words."""
        for _ in range(120):
            here = self.driver.switch_to.active_element
            if here.accessible_name.startswith(words):
                return here
            here.send_keys(Keys.SHIFT + Keys.TAB if backwards else Keys.TAB)
        raise AssertionError(f"the Tab key does not lead to '{words}'")

    def focused(self):
        """The words by which what has the focus is known."""
        return self.driver.switch_to.active_element.accessible_name

    def keys(self, *keys):
        """To whatever has the focus."""
        self.driver.switch_to.active_element.send_keys(*keys)

    def field(self, label, within="dialog"):
        def named():
            return [
                f
                for f in self.find_all(f"{within} :is(input, select, textarea)")
                if f.accessible_name.startswith(label)
            ]

        return self.wait(f"a field '{label}'", lambda: (named() or [None])[0])

    def complaints_of_axe(self):
        """What keeps somebody from using the page as it is shown, in axe-core's words."""
        self.driver.execute_script(AXE.read_text())
        return self.driver.execute_async_script(RUN_AXE)

    def overflow(self):
        """By how many pixels something is wider than the window."""
        return self.driver.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )

    def size(self, width, height, dark=False):
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        self.driver.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {
                "features": [
                    {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                    {"name": "prefers-reduced-motion", "value": "reduce"},
                ]
            },
        )

    def screenshots(self, name):
        """Light and dark, wide and narrow, as NAME-light-wide.png and so on."""
        self._screenshots.mkdir(parents=True, exist_ok=True)
        for width, height, form in [(1360, 860, "wide"), (360, 1400, "narrow")]:
            for dark in (False, True):
                self.size(width, height, dark)
                self.driver.save_screenshot(
                    str(self._screenshots / f"{name}-{'dark' if dark else 'light'}-{form}.png")
                )
        self.size(1360, 860)
