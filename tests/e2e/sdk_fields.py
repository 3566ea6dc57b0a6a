"""The request types of the openai and anthropic SDKs, walked field by field beside a request that has them."""

import copy
import typing

import typing_extensions


class Field(typing.NamedTuple):
    """One field of a request type, and where it stands in a body that is right but for it."""
    label: str  # "messages[user].content[text].text": a part in brackets is the `type` or `role` of an object
    body: dict
    place: list  # keys and indexes
    values: list  # that the type knows
    wrong: object  # of a type that it does not know
    entered: bool = False  # it is, or holds, objects whose own fields come too
    is_kind: bool = False  # an object of a type or role that is not read


def parts(hint):
    """What a union, a list, an alias is made of, each with whether it stands in a list."""
    if isinstance(hint, typing_extensions.TypeAliasType):
        yield from parts(hint.__value__)
        return
    origin = typing.get_origin(hint)
    if origin is typing.Union or str(origin) == "<class 'types.UnionType'>":
        for one in typing.get_args(hint):
            yield from parts(one)
    elif origin is not None and origin is not typing.Literal and not issubclass(origin, dict):
        for one in typing.get_args(hint):
            for inner, _ in parts(one):
                yield inner, True
    else:
        yield hint, False


def is_mapping(hint):
    return typing_extensions.is_typeddict(hint) or hint is object or typing.get_origin(hint) is dict


def tags(kind):
    """The values of the member that tells an object of this type from others, or [""]."""
    hints = typing.get_type_hints(kind)
    for name in ("type", "role"):
        found = [value for hint, _ in parts(hints.get(name, str)) if typing.get_origin(hint) is typing.Literal
                 for value in typing.get_args(hint)]
        if found:
            return found
    return [""]


def known_values(hint, required):
    """Some that the type knows: each of those that are listed, or one of each sort."""
    out = [] if required else [None]
    for one, in_list in parts(hint):
        if typing.get_origin(one) is typing.Literal:
            some = list(typing.get_args(one))
        else:
            some = {bool: [True, False], str: ["x"], int: [1], float: [0.5]}.get(one, [])
        out += [[value] for value in some] if in_list else some
    return out


def wrong_value(hint):
    return 5 if any(is_mapping(one) and not in_list for one, in_list in parts(hint)) else {"not": "known"}


def at(body, place):
    for key in place:
        body = body[key]
    return body


def changed(body, place, value):
    body = copy.deepcopy(body)
    at(body, place[:-1])[place[-1]] = value
    return body


def path_of(place):
    """As errors name it."""
    out = ""
    for key in place:
        out += f"[{key}]" if isinstance(key, int) else ("." if out else "") + key
    return out


def is_required(kind, name):
    hint = typing_extensions.get_type_hints(kind, include_extras=True)[name]
    return typing.get_origin(hint) in (typing.Required, typing_extensions.Required) or (
        kind.__total__ and typing.get_origin(hint) not in (typing.NotRequired, typing_extensions.NotRequired))


def tag_name(kind):
    return "type" if any(typing.get_origin(hint) is typing.Literal
                         for hint, _ in parts(typing.get_type_hints(kind).get("type", str))) else "role"


def tag_of(item, kind):
    """An item may be without a type where all others have one."""
    name = tag_name(kind)
    return item.get(name, "" if is_required(kind, name) else tags(kind)[0])


class Walk:
    """`samples`: label -> an object of that kind, for those that the body has not. Fields of `leave_out` are not entered,
    nor objects whose type or role is not among `kinds`: the end of their label, "content[text]"."""

    def __init__(self, samples, kinds, leave_out):
        self.samples, self.known, self.leave_out, self.seen = samples, tuple(kinds), leave_out, set()

    def fields(self, kind, body, place=(), label=""):
        for name, hint in typing.get_type_hints(kind).items():
            mine = f"{label}.{name}" if label else name
            where = [*place, name]
            if mine not in self.seen:
                self.seen.add(mine)
                present = [at(body, where)] if name in at(body, place) else []
                values = present + [value for value in known_values(hint, is_required(kind, name)) if value not in present]
                entered = mine not in self.leave_out and any(typing_extensions.is_typeddict(one) for one, _ in parts(hint))
                yield Field(mine, body, where, values, wrong_value(hint), entered)
            if mine in self.leave_out:
                continue
            for one, in_list in parts(hint):
                if typing_extensions.is_typeddict(one):
                    yield from self.kinds(one, in_list, body, where, mine)

    def is_known(self, label):
        return not label.endswith("]") or label.endswith(self.known)

    def kinds(self, kind, in_list, body, place, label):
        for tag in tags(kind):
            mine = f"{label}[{tag}]" if tag else label
            if not self.is_known(mine):
                if mine not in self.seen:
                    self.seen.add(mine)
                    sample = {tag_name(kind): tag}
                    old = at(body, place[:-1]).get(place[-1]) or []
                    if in_list:
                        yield Field(mine, changed(body, place, [*old, None]), [*place, len(old)], [sample], sample,
                                    is_kind=True)
                    else:
                        yield Field(mine, body, place, [sample], sample, is_kind=True)
                continue
            inner, where = self.put(kind, tag, in_list, body, place, mine)
            yield from self.fields(kind, inner, where, mine)

    def put(self, kind, tag, in_list, body, place, label):
        """A body that has an object of the kind, and its place there."""
        old = at(body, place[:-1]).get(place[-1])
        if in_list:
            items = old if isinstance(old, list) else []
            for index, item in enumerate(items):
                if isinstance(item, dict) and tag_of(item, kind) == tag:
                    return body, [*place, index]
            return changed(body, place, [*items, self.sample(kind, tag, label)]), [*place, len(items)]
        if isinstance(old, dict) and (not tag or tag_of(old, kind) == tag):
            return body, place
        return changed(body, place, self.sample(kind, tag, label)), place

    def sample(self, kind, tag, label):
        return self.samples.get(label, {tag_name(kind): tag} if tag else {})
