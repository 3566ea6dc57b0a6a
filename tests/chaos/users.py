"""Clients that know what each answer must be, and clients that behave badly."""

import dataclasses
import http.client
import json
import random
import socket
import threading
import time
import urllib.parse

import questions
from support import ALIAS

ANSWER_S = 170  # a request that has no end by then is stuck
BROKEN = (OSError, http.client.HTTPException)


@dataclasses.dataclass
class Answer:
    since: float
    until: float
    status: int | None = None  # None: no head came
    raw: bytes = b""
    broken: str | None = None  # how the connection ended before the answer did


def connect(fleet):
    parts = urllib.parse.urlparse(fleet.server.url)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=ANSWER_S)


def ask(fleet, question, secret, read):
    """One request; `read(response, answer, socket)` takes its body."""
    answer = Answer(time.monotonic(), 0)
    connection = connect(fleet)
    try:
        connection.request("POST", question.path, json.dumps(question.body),
                           {"Content-Type": "application/json", "Authorization": f"Bearer {secret}"})
        wire = connection.sock
        response = connection.getresponse()
        answer.status = response.status
        read(response, answer, wire)
    except BROKEN as error:
        answer.broken = repr(error)
    finally:
        connection.close()
        answer.until = time.monotonic()
    return answer


def take(response, answer, most):
    """Some of the body; False: it is over. A body that is cut raises."""
    part = response.read1(most)
    answer.raw += part
    if not part and response.length:  # http.client itself sees it in chunked bodies only
        raise http.client.IncompleteRead(b"", response.length)
    return bool(part)


def read_all(response, answer, _):
    while take(response, answer, 65536):
        pass


class SlowReader:
    """Takes a little at a time, but all of it."""

    def __init__(self, pause):
        self.pause = pause

    def __call__(self, response, answer, wire):
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        while take(response, answer, 400):
            self.pause(0.05)


class Leaver:
    """Leaves after some of the answer: closes, or shuts its side and reads what still comes."""

    def __init__(self, after, shut):
        self.after, self.shut = after, shut

    def __call__(self, response, answer, wire):
        while len(answer.raw) < self.after:
            if not take(response, answer, self.after - len(answer.raw)):
                return
        if self.shut:
            wire.shutdown(socket.SHUT_WR)
            read_all(response, answer, wire)


class User:
    """One of many: a name, a key, a canary and questions whose answers are known."""

    def __init__(self, fleet, number, secret, canary):
        self.fleet, self.number, self.secret, self.canary = fleet, number, secret, canary
        self.name = f"user-{number}"
        self.questions = questions.questions_of(self.name, number, canary)
        self.wanted = {}

    def record(self):
        """Asked while nothing goes wrong: what each answer must be from here on."""
        for question in self.questions:
            answer = ask(self.fleet, question, self.secret, read_all)
            told = questions.read(question, answer.raw)
            assert answer.status == 200 and told.done and not told.error, (question.name, answer)
            self.wanted[question.name] = told


class Crowd:
    """All users. Each asks one question after the other until they are told to stop."""

    def __init__(self, fleet, users, seed, ledger, exact):
        self.fleet, self.users, self.seed, self.ledger, self.exact = fleet, users, seed, ledger, exact
        self.ended = threading.Event()
        self.threads = []

    def start(self, each=2):
        for user in self.users:
            for number in range(each):
                self._run(self._keep_asking, user, random.Random(f"{self.seed} {user.name} {number}"))
        self._run(self._keep_misbehaving, random.Random(f"{self.seed} bad requests"))

    def ask_many(self, pick):
        """Many at once, each once."""
        chance = random.Random(f"{self.seed} burst {pick}")
        for _ in range(40):
            user = chance.choice(self.users)
            self._run(self.ask_whole, user, chance.choice(user.questions), read_all)

    def stop(self):
        self.ended.set()
        for thread in self.threads:
            thread.join(ANSWER_S + 30)
            if thread.is_alive():
                self.ledger.blame("stuck", f"a client waits for more than {ANSWER_S} s")

    def _run(self, what, *arguments):
        self.threads = [thread for thread in self.threads if thread.is_alive()]
        self.threads.append(threading.Thread(target=what, args=arguments, daemon=True))
        self.threads[-1].start()

    def _keep_asking(self, user, chance):
        while not self.ended.is_set():
            question = chance.choice(user.questions)
            way = chance.random()
            if way < 0.75 or not question.streamed:
                self.ask_whole(user, question, read_all)
            elif way < 0.83:
                self.ask_whole(user, question, SlowReader(self.ended.wait))
            elif way < 0.96:
                self.leave(user, question, Leaver(chance.choice([1, 300, 2000, 6000]), shut=chance.random() < 0.3))
            else:
                self._half_a_request(user, question)

    # What a user does.

    def ask_whole(self, user, question, read):
        answer = ask(self.fleet, question, user.secret, read)
        self.ledger.count("asked")
        if self._sees_others(user, question, answer):
            return
        excuse = self.fleet.excuse(answer.since, answer.until, begun=answer.status == 200)
        if answer.broken or answer.status != 200:
            why = answer.broken or f"{answer.status} {questions.read_error(answer.raw)}"
            if excuse and (answer.broken or answer.status == 503):
                self.ledger.excuse(excuse)
                self.ended.wait(0.3)
            else:
                kind = "broken" if answer.broken else f"refused {answer.status}"
                self.ledger.blame(kind, self._detail(question, answer, why))
            return
        told, wanted = questions.read(question, answer.raw), user.wanted[question.name]
        wrong = questions.verdict(told, wanted, self.exact)
        if wrong == "error no_live_replica" and self.fleet.was_reloaded(answer.since, answer.until):
            self.ledger.excuse("lost while its generation went away")
        elif wrong:
            detail = {choice: (text[-160:], wanted.texts.get(choice, "")[max(0, len(text) - 160):])
                      for choice, text in told.texts.items() if text != wanted.texts.get(choice)}
            self.ledger.blame(wrong, self._detail(question, answer, f"{told.finish} {told.tokens} tokens of "
                                                  f"{wanted.tokens}; got and wanted: {detail}"))
        else:
            self.ledger.count("completed")
            if told.resumed:
                self.ledger.count("completed after a replica was lost")

    def leave(self, user, question, read):
        answer = ask(self.fleet, question, user.secret, read)
        self.ledger.count("left")
        if self._sees_others(user, question, answer) or answer.status != 200:
            return
        told = questions.read(question, answer.raw)
        wrong = questions.part_verdict(told, user.wanted[question.name]) if self.exact else None
        if wrong:
            self.ledger.blame(wrong, self._detail(question, answer, f"until it left: {told.texts}"))

    def _half_a_request(self, user, question):
        self.ledger.count("left before the request was whole")
        body = json.dumps(question.body)
        try:
            connection = connect(self.fleet)
            connection.connect()
            connection.sock.sendall((f"POST {question.path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
                                     f"{user.secret}\r\nContent-Length: {len(body)}\r\n\r\n" + body[:20]).encode())
            connection.close()
        except BROKEN:
            pass  # the gateway is away

    def _sees_others(self, user, question, answer):
        for other in self.users:
            if other is not user and other.canary.encode() in answer.raw:
                self.ledger.blame("crossed", self._detail(question, answer, f"shows what {other.name} said"))
                return True
        return False

    @staticmethod
    def _detail(question, answer, what):
        return f"{question.name}, {answer.until - answer.since:.1f} s: {what}"

    # Requests that no server may serve.

    def _keep_misbehaving(self, chance):
        key = f"Authorization: Bearer {self.users[0].secret}\r\n"
        while not self.ended.wait(0.3):
            name, wanted, raw = chance.choice(BAD_REQUESTS)
            since = time.monotonic()
            status, why = None, "no answer"
            try:
                status, why = self._talk(raw.replace(b"KEY\r\n", key.encode()))
            except BROKEN as error:
                why = repr(error)
            self.ledger.count("bad requests")
            if status in wanted:
                self.ledger.count("bad requests refused as they are to be")
            elif not self.fleet.excuse(since, time.monotonic(), begun=False):
                self.ledger.blame("bad request", f"{name}: {status} {why!r}, wanted {wanted}")

    def _talk(self, raw):
        connection = connect(self.fleet)
        connection.connect()
        wire = connection.sock
        try:
            try:
                wire.sendall(raw)
            except BROKEN:
                pass  # refused before all of it was sent: the answer is there
            response = http.client.HTTPResponse(wire)
            response.begin()
            return response.status, response.read(2000)
        finally:
            wire.close()


def bad_post(body, fields=""):
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = (f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nKEY\r\n"
            f"Content-Type: application/json\r\n{fields}Content-Length: {len(body)}\r\n\r\n")
    return head.encode() + body


def _chat(**options):
    return {"model": ALIAS, "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4} | options


# name, statuses that are right, bytes
BAD_REQUESTS = [
    ("garbage", {400}, bytes(range(1, 256)) + b"\r\n\r\n"),
    ("another protocol", {400}, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    ("torn JSON", {400}, bad_post(b'{"model": "x", "messages": [')),
    ("invalid UTF-8", {400}, bad_post(b'{"model":"\xff\xfe","messages":[]}')),
    ("a NUL", {400}, bad_post(b'{"model":"a\\u0000b","messages":[]}')),
    ("a key twice", {400}, bad_post(b'{"model":"a","model":"b","messages":[]}')),
    ("10,000 deep", {400}, bad_post(b'{"model":' + b"[" * 10000 + b"]" * 10000 + b"}")),
    ("a body of 100 MB", {413}, bad_post(b"").replace(b"Content-Length: 0", b"Content-Length: 100000000")),
    ("two lengths", {400}, bad_post(b"{}", "Content-Length: 3\r\n")),
    ("length and chunks", {400}, bad_post(b"{}", "Transfer-Encoding: chunked\r\n")),
    ("a header bomb", {431}, bad_post(b"{}", "".join(f"X-{n}: {'a' * 1000}\r\n" for n in range(100)))),
    ("an unknown model", {404}, bad_post(_chat(model="no-such-model"))),
    ("a prompt over the context", {400}, bad_post(_chat(messages=[{"role": "user", "content": "word " * 5000}]))),
    ("a schema bomb", {400}, bad_post(_chat(response_format={"type": "json_schema", "json_schema": {
        "name": "x", "schema": {"type": "array", "items": {"type": "string"}, "maxItems": 100000000}}}))),
    ("a grammar that is none", {400}, bad_post(_chat(grammar="root ::= " + "(" * 1000))),
    ("a number out of range", {400}, bad_post(_chat(temperature=99))),
]
