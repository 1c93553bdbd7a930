"""Tests the recipes of shipped traces with other seeds than theirs."""

import statistics
from dataclasses import replace

import pytest
from linklab.traces.generator import generate
from linklab.traces.recipes import SHIPPED, Shipped, figures


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda shipped: shipped.name)
def test_it_is_the_recipe_and_not_the_seed(shipped: Shipped) -> None:
    """Medians over other seeds are within the ranges too."""
    recipes = [replace(shipped.recipe, seed=seed) for seed in range(2, 7)]
    found = [figures(generate(recipe)) for recipe in recipes]
    for target in shipped.targets:
        assert target.holds(statistics.median(one[target.figure] for one in found)), target
