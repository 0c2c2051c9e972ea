"""YAML whose values know their lines. Only what JSON has is taken, and no key twice."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from ..shapes import inside

NODES_MAX = 100_000
PLAIN = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "seq", "map")}


class Loader(yaml.SafeLoader):
    """Takes dates as the texts that they are."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if not tag.endswith((":timestamp", ":value", ":merge"))]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class NotYaml(ValueError):
    """A text that is not YAML. `line`: where, from 1; 0 for nowhere."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


class Lines:
    """The lines of the values of a document, by their places."""

    def __init__(self) -> None:
        self.by_place: dict[str, int] = {}

    def of(self, place: str) -> int:
        """The line of a place, or of the nearest value around it."""
        while place and place not in self.by_place:
            place = place[: max(place.rfind("."), place.rfind("["), 0)]
        return self.by_place.get(place, 1)


def load(text: str) -> tuple[object, Lines]:
    """Returns the value of a document, and its lines. Raises NotYaml, also for what JSON does not have."""
    lines = Lines()
    try:
        loader = Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, lines
        for number, (place, one) in enumerate(_walk(node, "")):
            if number > NODES_MAX:
                raise NotYaml(0, f"the file has more than {NODES_MAX} values, with those of aliases")
            lines.by_place[place] = one
        return loader.construct_document(node), lines
    except yaml.MarkedYAMLError as error:
        raise NotYaml(error.problem_mark.line + 1 if error.problem_mark else 0, str(error.problem)) from None
    except yaml.YAMLError as error:
        raise NotYaml(0, " ".join(str(error).split())) from None
    except RecursionError:
        raise NotYaml(0, "the file is nested too deeply") from None


def _walk(node: yaml.Node, place: str, line: int | None = None) -> Iterator[tuple[str, int]]:
    """Yields the place and the line of each value; the line of a key's value is that of the key. Raises NotYaml."""
    here = node.start_mark.line + 1 if line is None else line
    yield place, here
    if node.tag not in PLAIN:
        raise NotYaml(here, f"{place}: a scenario has no values of the type {node.tag}")
    if isinstance(node, yaml.SequenceNode):
        for index, one in enumerate(node.value):
            yield from _walk(one, f"{place}[{index}]")
    elif isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, one in node.value:
            line = key.start_mark.line + 1
            if key.tag != "tag:yaml.org,2002:str":
                name = key.value if isinstance(key, yaml.ScalarNode) else "of several values"
                raise NotYaml(line, f"{place}: the key {name!r} must be a string; write it in quotes")
            if key.value in keys:
                raise NotYaml(line, f"{inside(place, key.value)}: is there twice")
            keys.add(key.value)
            yield from _walk(one, inside(place, key.value), line)
