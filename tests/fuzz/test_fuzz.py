"""Strange inputs of every kind: a few seconds here, as long as one likes with ``.ci/fuzz``."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz import targets
from fuzz.mutate import mutated
from fuzz.seeds import KINDS, seeds
from tiers import tried

COUNTS = {"rules": 20, "layers": 30, "sheet": 300, "settings": 200, "flags": 200}  # as fast as each is


@pytest.mark.parametrize("kind", KINDS)
def test_strange_inputs(kind):
    @settings(
        max_examples=tried(COUNTS.get(kind, 60), least=5),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(st.sampled_from(seeds(kind)), st.randoms(use_true_random=False))
    def holds(text, random):
        targets.tried(kind, mutated(random, kind, text))

    holds()


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_are_sound_and_changes_strange(kind):
    """What is mutated gets through to what is tested: a seed is no garbage, and its mutants are others."""
    random = Random(1)
    texts = seeds(kind)
    assert texts
    targets.tried(kind, random.choice(texts).encode())
    mutants = [mutated(random, kind) for _ in range(50)]
    assert sum(mutant.decode("utf-8", "replace") not in texts for mutant in mutants) > 40


def _endless():
    while True:
        pass


def test_an_endless_input_is_noticed():
    with pytest.raises(targets.Slow), targets.in_time(0.05):
        _endless()
