"""
The digits of the paper
=======================

Four related tasks on small images: is it a 0, a 1, a 2, a 3? Every task is a target of -1 or +1. A
kernel learned from a few images, and the scalar kernel that is its partial trace, are compared with
plain kernel ridge on the same features. Each method selects its ridge penalty by five-fold
cross-validation on the training images.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV, train_test_split

from entangled_kernels import EntangledKernelRidge
from entangled_kernels.plotting import ProjectionDisplay

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
                EntangledKernelRidge(**settings),
                {"alpha": ALPHAS},
                scoring="neg_mean_squared_error",
            )
            model = search.fit(Phi_train, Y_train).best_estimator_
            prediction = model.predict(Phi_test)
            accuracy = np.mean(prediction.argmax(axis=1) == Y_test.argmax(axis=1))
            scores[name].append((model.alignment_, accuracy, nmse(Y_test, prediction)))
    return [(name, *np.mean(rows, axis=0)) for name, rows in scores.items()]


# %% With 40 images the three have the same accuracy, to a thousandth, though learned kernels are
# far better aligned with the targets: nothing is gained in prediction here.

if __name__ == "__main__":
    print("Digits 0-3, 40 training images, mean of 5 random splits")
    print(f"{'method':<15}{'alignment':>10}{'accuracy':>10}{'nMSE':>8}")
    for name, alignment, accuracy, error in compare(40, 5):
        print(f"{name:<15}{alignment:>10.3f}{accuracy:>10.3f}{error:>8.3f}")

# %% The learned kernel gives a picture of every task. Its first Kraus operators project an image to
# two numbers for each task, which separate the digit of the task from the others: training images,
# and 120 others.

if __name__ == "__main__":
    X, Y = load_tasks()
    model = EntangledKernelRidge(
        solver="ascent", rank=2, shrinkage=0.0, solver_params={"max_iter": 20}
    ).fit(X[:60], Y[:60])
    figure = plt.figure(figsize=(10, 3.4), layout="constrained")
    tasks = [f"is it {digit}?" for digit in range(4)]
    test = slice(60, 180)
    ProjectionDisplay.from_estimator(
        model, X[:60], Y[:60], X[test], Y[test], names=tasks, figure=figure
    )
    plt.show()
