"""Link models: functions of time, observed load and seed that yield link states. Pure.

A model is a stack of layers over a constant base (`layer.py`). Each layer is one phenomenon
in a file of its own, which says all that others need in one value of `model.Model`;
`registry.py` lists them.
"""
