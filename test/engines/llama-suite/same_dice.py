"""For pytest: tests that throw dice throw the same ones against the engine and through the gateway."""
import random

import pytest


@pytest.fixture(autouse=True)
def same_dice():
    random.seed(1)
