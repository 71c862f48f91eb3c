import numpy as np
import pytest
from entangled_kernels.selection.errors import member_factors
from entangled_kernels.selection.weighted_sums import needs_few_alphas, sum_of_few_alphas

from entangled_kernels import EntangledKernelRidgeCV
from entangled_kernels.learning import Moments, SolverOptions, reduce_moments
from entangled_kernels.selection import Member
from entangled_kernels.selection import weighted_sums as module

MEMBERS = [member for member in EntangledKernelRidgeCV()._members() if member.shrinkage > 0.0]
RELATIVE_ALPHAS = np.logspace(-8, 3, 7)


def summed_one_by_one(problem, alphas, weights):
    """The sum from the coefficients of every member and alpha, in targets."""
    total = np.zeros((len(problem.scale), problem.n_outputs))
    for member, factor in member_factors(problem, list(weights), SolverOptions()):
        path = factor.coefficients(alphas) @ problem.outputs.T  # (alphas, m', p)
        total += np.einsum("ao,afo->fo", weights[member] * np.ones(problem.n_outputs), path)
    return total


@pytest.mark.parametrize("numbers", [1, 2**18])
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("shape", [(40, 6, 3), (12, 20, 4), (30, 5, 17), (25, 4, 1)])
def test_sum_is_that_of_the_coefficients(make_rows, rng, monkeypatch, shape, centred, apart, numbers):
    monkeypatch.setattr(module, "_STACK_NUMBERS", numbers)
    problem = reduce_moments(Moments.from_arrays(*make_rows(*shape)), centred=centred)
    alphas = RELATIVE_ALPHAS * problem.scale.mean()
    size = (len(MEMBERS), len(alphas), shape[2] if apart else 1)
    drawn = rng.uniform(size=size) * (rng.uniform(size=size[:2]) < 0.3)[..., None]
    weights = dict(zip(MEMBERS, drawn, strict=True))
    expected = summed_one_by_one(problem, alphas, weights)
    found = sum_of_few_alphas(problem, problem.outputs, alphas, weights)
    found = found if drawn.shape[2] > 1 else found @ problem.outputs.T
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max())


def test_short_axes_keep_their_coefficients(rng):
    """The coefficients of short axes are large, and rounding along long ones must not reach them."""
    Phi = rng.normal(size=(40, 6)) * 10.0 ** np.array([0.0, -1.0, -3.0, -5.0, -6.0, -7.0])
    Y = np.sin(Phi / Phi.std(axis=0)) @ rng.normal(size=(6, 4))
    problem = reduce_moments(Moments.from_arrays(Phi, Y), centred=True)
    alphas = RELATIVE_ALPHAS * problem.scale.mean()
    root = np.sqrt(problem.scale)[:, None]
    for member in MEMBERS:
        for place in range(len(alphas)):
            weights = {member: np.eye(len(alphas))[:, place : place + 1]}
            expected = root * summed_one_by_one(problem, alphas, weights)
            found = root * sum_of_few_alphas(problem, problem.outputs, alphas, weights) @ problem.outputs.T
            np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


def test_which_members_are_taken(make_rows):
    problem = reduce_moments(Moments.from_arrays(*make_rows(60, 30, 3)), centred=True)
    ridge, metric, operator, bare, tiny = (
        Member("closed-form", mix, shrinkage, 0.1, None, "entangled")
        for mix, shrinkage in ((0.0, 1.0), (0.5, 0.5), (1.0, 0.5), (0.5, 0.0), (0.5, 1e-6))
    )
    ranked, other = (Member(solver, 1.0, 0.5, 0.1, 2, "entangled") for solver in ("closed-form", "ascent"))
    members = [ridge, metric, operator, bare, tiny, ranked, other]
    one = dict.fromkeys(members, np.ones((1, 1)))
    assert needs_few_alphas(problem, one) == [ridge, metric, operator]
    many = dict.fromkeys(members, np.ones((10_000, 1)))
    assert needs_few_alphas(problem, many) == [ridge, operator]
    nothing = reduce_moments(Moments.from_arrays(make_rows(20, 4, 3)[0], np.zeros((20, 3))), centred=True)
    assert needs_few_alphas(nothing, one) == [ridge]
