"""Which inputs matter: effects of inputs on predictions, by gradients or permutations, beside noise."""

from .effects import gradient_effects, permutation_effects
from .measured import Mixture, measured_effects, mixtures
from .result import Explanation, noise_level, overall

__all__ = [
    "Explanation",
    "Mixture",
    "gradient_effects",
    "measured_effects",
    "mixtures",
    "noise_level",
    "overall",
    "permutation_effects",
]
