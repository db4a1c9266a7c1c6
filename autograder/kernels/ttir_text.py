"""Reads the text of a kernel in TTIR, the intermediate language of Triton's compiler.

Triton prints one operation a line; a line that ends in "{" opens a region. A text may come from an
untrusted process: nothing in it is evaluated, and what is not understood is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from autograder.kernels.faults import SourcePlace, Unreadable

_NAME = r"%[\w$.-]+(?:#\d+)?"
_NAMES = re.compile(_NAME)
_OPERATION = re.compile(
    r"(?:(?P<results>%[\w$.-]+(?:, %[\w$.-]+)*)(?::(?P<count>\d+))? = )?"
    r'"?(?P<name>[a-z_]+\.[\w.]+)"?(?P<rest>.*)$'
)
_FUNCTION = re.compile(
    r'tt\.func (?P<scope>public|private)? ?@(?P<name>"[^"]*"|[\w$.]+)\('
)
_LABEL = re.compile(r"\^(\w+)")
_LOCATION_AT_END = re.compile(r" loc\((#loc\d*|unknown)\)$")
_ALIAS = re.compile(r"(#loc\d*) = loc\((.*)\)$")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_MOST_DEEP = 64
_MOST_RESULTS = 1024


@dataclass(slots=True)
class Operation:
    """One operation.

    Attributes:
        name: with its dialect, such as "arith.addf".
        results: names of the values that the operation makes.
        operands: names of the values that it takes. For a loop, the initial values of what it
            carries stand last.
        text: everything between the name and the types: operands and attributes.
        types: the types after the last colon.
        regions: the code inside, as a list of blocks each.
        location: the alias of the place in the source.
        carried: for a loop, the names in the body of what it carries; its counter first.
    """

    name: str
    results: list[str]
    operands: list[str]
    text: str
    types: str
    location: str
    regions: list[list[CodeBlock]] = field(default_factory=list)
    carried: list[str] = field(default_factory=list)

    def number(self, attribute: str) -> int | None:
        """An attribute that is a number, such as `axis = 1 : i32`."""
        match = re.search(rf"\b{attribute} = (-?\d+)", self.text)
        return int(match[1]) if match else None

    def numbers(self, attribute: str) -> list[int]:
        """An attribute that is a list, such as `order = array<i32: 1, 0>`; [] where it is not
        there.
        """
        match = re.search(
            rf"\b{attribute} = array<i(?:32|64)(?:: ([-\d, ]*))?>", self.text
        )
        return [int(part) for part in match[1].split(",")] if match and match[1] else []

    def word(self, attribute: str) -> str:
        """An attribute that is a word, such as `rounding = rtne`; "" where it is not there."""
        match = re.search(rf"\b{attribute} = ([\w.]+)", self.text)
        return match[1] if match else ""

    def result_types(self) -> list[str]:
        """The types of the results, as the text has them after an arrow, or else the last type."""
        _, arrow, after = self.types.rpartition(" -> ")
        if not arrow:
            _, arrow, after = self.types.rpartition(" to ")
        text = after if arrow else self.types
        return split_types(text.strip().removeprefix("(").removesuffix(")"))


@dataclass(slots=True)
class CodeBlock:
    """Operations without a jump into their middle.

    Attributes:
        arguments: names of the values that a jump to this block hands over.
        types: the types of the arguments.
    """

    label: str
    arguments: list[str]
    types: list[str]
    operations: list[Operation]


@dataclass(slots=True)
class Function:
    """A function; its first block's arguments are the function's."""

    name: str
    is_public: bool
    blocks: list[CodeBlock]


@dataclass(slots=True)
class Module:
    """A kernel and the functions that it calls.

    Attributes:
        kernel: the public function.
        functions: all functions, by name.
    """

    kernel: Function
    functions: dict[str, Function]
    _aliases: dict[str, str]

    def place(self, location: str) -> SourcePlace | None:
        """The student's place that an operation comes from: of a function of Triton's library,
        the line that called it.
        """
        places = self._places(self._aliases.get(location, ""), 0)
        own = [place for place in places if not _is_library(place.file)]
        return next(iter(own or places), None)

    def _places(self, text: str, depth: int) -> list[SourcePlace]:
        """All places of a location, the innermost call first."""
        if depth > _MOST_DEEP:
            return []
        if match := re.fullmatch(r"(#loc\d*)", text):
            return self._places(self._aliases.get(text, ""), depth + 1)
        if match := re.fullmatch(r'"([^"]*)":(\d+):\d+', text):
            return [SourcePlace(match[1], int(match[2]))]
        if match := re.fullmatch(r"callsite\((.*) at (.*)\)", text):
            return self._places(match[1], depth + 1) + self._places(match[2], depth + 1)
        if match := re.fullmatch(r'"([^"]*)"\((.*)\)', text):
            places = self._places(match[2], depth + 1)
            return [SourcePlace(p.file, p.line, p.variable or match[1]) for p in places]
        if match := re.match(r"fused(?:<.*?>)?\[(.*)\]", text):
            return self._places(match[1].split(", ")[0], depth + 1)
        return []


def _is_library(file: str) -> bool:
    return "/triton/language/" in file or "/triton/experimental/" in file


def split_types(text: str) -> list[str]:
    """Types that commas separate; commas inside of angle brackets separate none."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "<([":
            depth += 1
        elif (
            letter == ")" or letter == "]" or (letter == ">" and text[place - 1] != "-")
        ):
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:place].strip())
            start = place + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def read_module(text: str) -> Module:
    """Read a text as `module.str()` prints it.

    Raises:
        Unreadable: the text is not TTIR.
    """
    aliases = {}
    lines = []
    for raw in text.splitlines():
        line = raw.strip()
        if match := _ALIAS.match(line):
            aliases[match[1]] = match[2]
        elif line:
            lines.append(line)
    functions = {}
    reader = _Reader(lines)
    while not reader.at_end:
        line = reader.next_line()
        if line.startswith("tt.func"):
            function = reader.read_function(line)
            functions[function.name] = function
    kernels = [function for function in functions.values() if function.is_public]
    if len(kernels) != 1:
        raise Unreadable(f"a text with {len(kernels)} kernels, and not one")
    return Module(kernels[0], functions, aliases)


class _Reader:
    """Goes through the lines of a text."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._next = 0
        self._depth = 0

    @property
    def at_end(self) -> bool:
        return self._next >= len(self._lines)

    def next_line(self) -> str:
        if self.at_end:
            raise Unreadable("the text ends in the middle")
        self._next += 1
        return self._lines[self._next - 1]

    def read_function(self, line: str) -> Function:
        match = _FUNCTION.match(line)
        if match is None:
            raise Unreadable(f"no function: {line[:80]}")
        names, types = _read_arguments(line[match.end() :])
        blocks, _ = self._read_region(names, types)
        return Function(match["name"].strip('"'), match["scope"] != "private", blocks)

    def _read_region(
        self, names: list[str], types: list[str]
    ) -> tuple[list[CodeBlock], str]:
        """The blocks up to the region's end, and the line that ends it."""
        self._depth += 1
        if self._depth > _MOST_DEEP:
            raise Unreadable("regions in regions, too many")
        blocks = [CodeBlock("bb0", names, types, [])]
        while True:
            line = self.next_line()
            if line.startswith("}"):
                self._depth -= 1
                return blocks, line
            if line.startswith("^"):
                block = _read_label(line)
                if blocks[-1].operations or len(blocks) > 1:
                    blocks.append(block)
                else:
                    blocks[0] = block  # a region may name its first block
            else:
                blocks[-1].operations.append(self._read_operation(line))

    def _read_operation(self, line: str) -> Operation:
        line, location = _without_location(line)
        match = _OPERATION.match(line)
        if match is None:
            raise Unreadable(f"no operation: {line[:80]}")
        rest = match["rest"].strip()
        opens = rest.endswith("{")
        text, types = _split_types_off(rest.removesuffix("{").strip(), match["name"])
        operation = Operation(
            match["name"],
            _result_names(match["results"], match["count"]),
            [],
            text,
            types,
            location,
        )
        operation.operands = _NAMES.findall(_STRING.sub('""', text))
        if operation.name == "scf.for":
            _split_for(operation)
        elif operation.name == "scf.while":
            _split_while(operation)
        while opens:
            blocks, line = self._read_region([], [])
            line, end = _without_location(line)
            operation.location = end or operation.location
            operation.regions.append(blocks)
            opens = line.endswith("{")
            if " : " in line:
                operation.types = line.split(" : ", 1)[1]
        return operation


def _result_names(name: str | None, count: str | None) -> list[str]:
    if name is None:
        return []
    if count is None:
        return name.split(", ")
    if int(count) > _MOST_RESULTS:
        raise Unreadable(f"an operation with {count} results")
    return [f"{name}#{number}" for number in range(int(count))]


def _without_location(line: str) -> tuple[str, str]:
    match = _LOCATION_AT_END.search(line)
    return (line[: match.start()], match[1]) if match else (line, "")


def _split_types_off(rest: str, name: str) -> tuple[str, str]:
    """Operands and attributes, and the types behind them."""
    if name in ("cf.br", "cf.cond_br"):  # types stand beside each list of arguments
        return rest, ""
    if name == "scf.for":
        return rest, ""
    if name == "scf.if":
        text, _, types = rest.partition(" -> ")
        return text, types
    if rest.startswith(": "):  # nothing but a type
        return "", rest[2:]
    bare = _STRING.sub(lambda match: "\0" * len(match[0]), rest)
    place = bare.rfind(" : ")
    depth_after = bare[place:].count("}") - bare[place:].count("{")
    if place < 0 or depth_after > 0:  # a colon of an attribute's type
        return rest, ""
    if name == "scf.while":
        place = bare.find(" : ")
    return rest[:place], rest[place + 3 :]


def _split_for(operation: Operation) -> None:
    """`%i = %low to %high step %step iter_args(%a = %b) -> (...)`."""
    head, _, carried = operation.text.partition("iter_args(")
    counter, *bounds = _NAMES.findall(head)
    pairs = re.findall(rf"({_NAME}) = ({_NAME})", carried)
    operation.carried = [counter, *(name for name, _ in pairs)]
    operation.operands = [*bounds, *(initial for _, initial in pairs)]
    if len(bounds) != 3:
        raise Unreadable(f"no loop: {operation.text[:80]}")


def _split_while(operation: Operation) -> None:
    pairs = re.findall(rf"({_NAME}) = ({_NAME})", operation.text)
    operation.carried = [name for name, _ in pairs]
    operation.operands = [initial for _, initial in pairs]


def _read_label(line: str) -> CodeBlock:
    """`^bb1(%a: f32 loc(...), %b: i32):  // pred: ^bb0`."""
    match = _LABEL.match(line)
    if match is None:
        raise Unreadable(f"no label: {line[:80]}")
    rest = line[match.end() :]
    names, types = _read_arguments(rest[1:]) if rest.startswith("(") else ([], [])
    return CodeBlock(match[1], names, types, [])


def _read_arguments(text: str) -> tuple[list[str], list[str]]:
    """Names and types of the arguments in a list that ends with the closing parenthesis."""
    inside = split_types(_up_to_closing(text))
    names, types = [], []
    for part in inside:
        name, _, kind = part.partition(": ")
        names.append(name.strip())
        types.append(
            re.sub(
                r" (loc\(.*\)|\{.*\})$", "", re.sub(r" loc\(.*\)$", "", kind)
            ).strip()
        )
    return names, types


def _up_to_closing(text: str) -> str:
    depth = 1
    quoted = False
    for place, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
            if depth == 0:
                return text[:place]
    raise Unreadable(f"a list without end: {text[:80]}")


def jump_targets(operation: Operation) -> list[tuple[str, list[str]]]:
    """The blocks that a jump may go to, each with the names of the values handed over."""
    targets = re.findall(r"\^(\w+)(?:\(([^:)]*)[^)]*\))?", operation.text)
    return [(label, _NAMES.findall(arguments)) for label, arguments in targets]
