"""Link models: functions of time, observed load and seed that yield link states. Pure.

A model is a stack of layers over a constant base (`layer.py`). Each layer is one phenomenon
in a file of its own; `factory.py` stacks them as a scenario asks for.
"""
