"""Cross-validated errors beside errors on new rows: of new patients, and of later days.

Rows of one patient are alike, and so are neighbouring days. Ordinary folds hold out rows that are
like training rows; folds of whole groups, or in the order of time, do not.

    python benchmarks/held_out.py [--draws 10]
"""

import argparse

import numpy as np
from sklearn.model_selection import TimeSeriesSplit

from entangled_kernels import EntangledKernelRidgeCV

from measure import print_table, write_json

PATIENTS, VISITS, INPUTS, TARGETS = 20, 6, 6, 3
DAYS, LATER = 120, 30


def visits(rng, law, n_patients):
    """Inputs that are alike in all visits of a patient, and targets with an effect of the patient."""
    patient = np.repeat(np.arange(n_patients), VISITS)
    X = rng.normal(size=(n_patients, INPUTS))[patient] + 0.3 * rng.normal(
        size=(len(patient), INPUTS)
    )
    effect = rng.normal(size=(n_patients, TARGETS))[patient]
    return X, np.tanh(X @ law) + effect + 0.2 * rng.normal(size=(len(patient), TARGETS)), patient


def days(rng, law):
    """Inputs and errors of targets that are random walks over days."""
    n = DAYS + LATER
    X = np.cumsum(rng.normal(size=(n, INPUTS)), axis=0) * 0.3
    wandering = np.cumsum(rng.normal(size=(n, TARGETS)), axis=0) * 0.3
    return X, np.tanh(X @ law) + wandering + 0.2 * rng.normal(size=(n, TARGETS))


def search(**settings):
    return EntangledKernelRidgeCV(random_state=0, **settings)


def fresh_error(model, X, Y, unit):
    """Mean over targets of the squared error on new rows over the variance of training rows."""
    return float(np.mean(np.mean((model.predict(X) - Y) ** 2, axis=0) / unit))


def of_patients(rng):
    law = rng.normal(size=(INPUTS, TARGETS)) / np.sqrt(INPUTS)
    X, Y, patient = visits(rng, law, PATIENTS)
    X_new, Y_new, _ = visits(rng, law, 200)
    models = {"ordinary folds": search().fit(X, Y), "of groups": search().fit(X, Y, groups=patient)}
    return {
        name: (model.cv_score_, fresh_error(model, X_new, Y_new, Y.var(axis=0)))
        for name, model in models.items()
    }


def of_days(rng):
    law = rng.normal(size=(INPUTS, TARGETS)) / np.sqrt(INPUTS)
    X, Y = days(rng, law)
    old, new = slice(0, DAYS), slice(DAYS, None)
    models = {"ordinary folds": search(), "in time": search(cv=TimeSeriesSplit(5))}
    return {
        name: (
            model.fit(X[old], Y[old]).cv_score_,
            fresh_error(model, X[new], Y[new], Y[old].var(axis=0)),
        )
        for name, model in models.items()
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10, help="simulated tables of each kind")
    n_draws = parser.parse_args().draws
    rows = []
    for kind, draw in (("patients", of_patients), ("days", of_days)):
        draws = [draw(np.random.default_rng([7, seed])) for seed in range(n_draws)]
        for name in draws[0]:
            cv, fresh = np.array([errors[name] for errors in draws]).T
            rows.append(
                {
                    "rows of": kind,
                    "folds": name,
                    "cv_score_": float(np.median(cv)),
                    "error on fresh rows": float(np.median(fresh)),
                    "cv_score_ over it": float(np.exp(np.mean(np.log(cv / fresh)))),
                }
            )
    print_table("Cross-validated nMSE and nMSE on new rows, median of draws", rows)
    write_json("held_out", {"held out": rows})


if __name__ == "__main__":
    main()
