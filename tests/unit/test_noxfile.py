"""Ctrl-C under nox: sessions that measure have time to remove their containers and to say how to continue."""

import ast
from pathlib import Path

TREE = ast.parse(Path(__file__).parents[2].joinpath("noxfile.py").read_text())
PROGRAMS = ({"runner"}, {"benchmarks.first_day"})


def test_sessions_that_measure_are_not_killed_half_a_second_after_an_interrupt() -> None:
    (patient,) = (
        node.value for node in TREE.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "PATIENT"
    )
    assert ast.literal_eval(patient) == {"interrupt_timeout": 60.0, "terminate_timeout": 60.0}
    options = {}
    for function in (node for node in TREE.body if isinstance(node, ast.FunctionDef)):
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "session.run":
                words = {word.value for word in call.args if isinstance(word, ast.Constant)}
                if any(program <= words for program in PROGRAMS) and "lock" not in words:
                    options[function.name] = [ast.unparse(keyword.value) for keyword in call.keywords]
    assert options == {"matrix": ["PATIENT"], "nightly": ["PATIENT"], "gpu": ["PATIENT"]}
