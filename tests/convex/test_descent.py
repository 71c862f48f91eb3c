import numpy as np

from entangled_kernels.convex.descent import minimise


def test_a_quadratic_of_any_unit(rng):
    A = np.diag([1.0, 10.0, 100.0])
    goal = rng.normal(size=(3, 2))
    for unit in (1e-30, 1.0, 1e30):
        calls = []

        def quadratic(X, unit=unit, calls=calls):
            calls.append(1)
            return unit * (1.0 + 0.5 * np.vdot(X - goal, A @ (X - goal))), unit * (A @ (X - goal))

        X, evaluations = minimise(quadratic, np.zeros((3, 2)), 60)
        np.testing.assert_allclose(X, goal, atol=1e-6)
        assert evaluations == len(calls)


def test_the_first_trial_is_newtons_step_where_the_hessian_is_the_identity(rng):
    goal, seen = 1e-3 * rng.normal(size=(3, 2)), []

    def bowl(X):
        seen.append(X)
        return 1.0 + 0.5 * np.vdot(X - goal, X - goal), X - goal

    X, evaluations = minimise(bowl, np.zeros((3, 2)), 5, whitened=True)
    np.testing.assert_allclose(seen[1], goal)
    np.testing.assert_allclose(X, goal)
    assert evaluations == len(seen)


def test_little_left_to_gain_ends_the_search(rng):
    goal = rng.normal(size=(3, 2))
    A = np.array([1.0, 1.5, 2.0])[:, None]

    def bowl(X):
        return 1.0 + 0.5 * np.sum(A * (X - goal) ** 2), A * (X - goal)

    rough, few = minimise(bowl, np.zeros((3, 2)), 50, whitened=True, tol=1e-3)
    exact, many = minimise(bowl, np.zeros((3, 2)), 50, whitened=True)
    assert few < many
    assert bowl(exact)[0] < bowl(rough)[0] <= 1.0 + 1e-2
    # From a start where little is left the search goes on to the end.
    again, _ = minimise(bowl, rough, 50, whitened=True, tol=1.0)
    assert bowl(again)[0] - 1.0 < 1e-12


def test_steps_are_bounded(rng):
    def valley(X):
        value = 100 * (X[1] - X[0] ** 2) ** 2 + (1 - X[0]) ** 2
        slope = [-400 * X[0] * (X[1] - X[0] ** 2) - 2 * (1 - X[0]), 200 * (X[1] - X[0] ** 2)]
        return value, np.array(slope)

    X, evaluations = minimise(valley, np.array([-1.2, 1.0]), 3)
    assert valley(X)[0] < valley(np.array([-1.2, 1.0]))[0]
    assert evaluations <= 26


def test_an_empty_array_is_at_its_minimum():
    X, evaluations = minimise(lambda X: (0.0, X), np.zeros((0, 2)), 5)
    assert X.shape == (0, 2)
    assert evaluations == 1
