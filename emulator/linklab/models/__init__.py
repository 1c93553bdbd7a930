"""Contains the link models: functions of time, observed load and seed that give link states. Pure.

A link's model is a stack of layers over a constant base (`layer.py`). Each layer is one phenomenon
with its own file. The file describes it in one value of `model.Model`. `registry.py` lists them.
"""
