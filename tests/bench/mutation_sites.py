"""Finds the places of Python files that `mutants` can change. mutation_sites.go does it for Go."""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_PAIRS = "Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, Add Sub, Mult Div, And Or"
OTHER: dict[type, Any] = {
    getattr(ast, one): getattr(ast, other)()
    for pair in _PAIRS.split(", ")
    for one, other in itertools.permutations(pair.split())
}


def sites(path: Path) -> Iterator[tuple[int, int, str, str]]:
    """Yields first and last byte, new text and kind of each change of a module."""
    content = path.read_bytes()
    starts = [*itertools.accumulate(map(len, content.splitlines(keepends=True)), initial=0)]

    def below(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
        for name, value in ast.iter_fields(node):
            for one in value if isinstance(value, list) else [value]:
                # Types are not executed. Positions in f-strings are wrong before Python 3.12.
                is_code = name not in ("annotation", "returns", "decorator_list")
                if is_code and isinstance(one, ast.AST) and not isinstance(one, ast.JoinedStr):
                    yield from below(one)
        match node:
            case ast.Compare(ops=[operator]) if type(operator) in OTHER:
                made = ast.Compare(node.left, [OTHER[type(operator)]], node.comparators)
                yield node, f"({ast.unparse(made)})", "comparison"
            case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in OTHER:
                other = copy.copy(node)
                other.op = OTHER[type(operator)]
                yield node, f"({ast.unparse(other)})", "operator"
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                yield node, f"({value!r} + 1)", "constant"
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield test, f"(not ({ast.unparse(test)}))", "negated"
            case (
                ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Break() | ast.Continue()
            ) | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield node, "pass", "deleted"

    for node, text, kind in below(ast.parse(content)):
        first = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 1) - 1] + (node.end_col_offset or 0)
        yield first, end, text, kind
