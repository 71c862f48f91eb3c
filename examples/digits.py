"""Four related tasks on small images: which of the digits 0 to 3 is it?

Every task is a target of -1 or +1. A kernel learned from a few images, and the scalar kernel that is its
partial trace, are compared with plain kernel ridge on the same features. Each method gets the ridge penalty
that five-fold cross-validation on its training images likes best.
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV, train_test_split

from entangled_kernels import EntangledKernelRidge

ALPHAS = np.logspace(-3, 1, 9)
METHODS = {
    "kernel ridge": {"shrinkage": 1.0},
    "entangled": {"prediction": "entangled"},
    "partial trace": {"prediction": "partial_trace"},
}


def load_tasks(n_digits=4):
    """Images of the first digits scaled to [0, 1], and one target of -1 or +1 for each digit."""
    images, labels = load_digits(n_class=n_digits, return_X_y=True)
    return images / 16.0, np.where(labels[:, None] == np.arange(n_digits), 1.0, -1.0)


def nmse(Y, prediction):
    """Mean over outputs of the squared error divided by the variance of the output."""
    return float(np.mean(np.mean((Y - prediction) ** 2, axis=0) / np.var(Y, axis=0)))


def compare(n_train=40, n_splits=10):
    """Rows of (method, alignment, accuracy, nMSE), each a mean over random splits."""
    X, Y = load_tasks()
    scores = {name: [] for name in METHODS}
    for split in range(n_splits):
        X_train, X_test, Y_train, Y_test = train_test_split(
            X, Y, train_size=n_train, stratify=Y.argmax(axis=1), random_state=split
        )
        features = Nystroem(gamma=1 / 20, n_components=n_train, random_state=0)
        Phi_train, Phi_test = features.fit_transform(X_train), features.transform(X_test)
        for name, settings in METHODS.items():
            search = GridSearchCV(
                EntangledKernelRidge(**settings), {"alpha": ALPHAS}, scoring="neg_mean_squared_error"
            )
            model = search.fit(Phi_train, Y_train).best_estimator_
            prediction = model.predict(Phi_test)
            accuracy = np.mean(prediction.argmax(axis=1) == Y_test.argmax(axis=1))
            scores[name].append((model.alignment_, accuracy, nmse(Y_test, prediction)))
    return [(name, *np.mean(rows, axis=0)) for name, rows in scores.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--train", type=int, default=40, help="number of training images")
    parser.add_argument("--splits", type=int, default=10, help="number of random splits")
    options = parser.parse_args()
    print(f"Digits 0-3, {options.train} training images, mean of {options.splits} random splits")
    print(f"{'method':<15}{'alignment':>10}{'accuracy':>10}{'nMSE':>8}")
    for name, alignment, accuracy, error in compare(options.train, options.splits):
        print(f"{name:<15}{alignment:>10.3f}{accuracy:>10.3f}{error:>8.3f}")


if __name__ == "__main__":
    main()
