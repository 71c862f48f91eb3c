import numpy as np
import pandas as pd
import pytest

from entangled_kernels import EntangledKernelRidge, OutputKernelRidge


@pytest.mark.parametrize("Estimator", [EntangledKernelRidge, OutputKernelRidge])
def test_predictions_have_the_dimensions_of_the_targets(make_rows, Estimator):
    X, Y = make_rows(20, 3, 1)
    assert Estimator().fit(X, Y).predict(X).shape == (20, 1)
    assert Estimator().fit(X, Y[:, 0]).predict(X).shape == (20,)
    with pytest.raises(ValueError, match="y must have at least one column"):
        Estimator().fit(X, np.empty((20, 0)))
    with pytest.raises(ValueError, match="requires y to be passed"):
        Estimator().fit(X, None)


def test_names_made_up_where_there_are_none(make_rows):
    X, Y = make_rows(20, 3, 2)
    model = EntangledKernelRidge().set_output(predict="pandas").fit(X, Y)
    assert list(model.predict(X).columns) == ["output0", "output1"]
    named = model.fit(X, pd.DataFrame(Y, columns=["load", "speed"]))
    assert list(named.predict(X).columns) == ["load", "speed"]


def test_complete_rows_of_weight_zero_are_kept_and_blank_ones_are_not(make_rows):
    X, Y = make_rows(20, 3, 2)
    weight = np.ones(20)
    weight[4] = 0.0
    assert np.shares_memory(OutputKernelRidge().fit(X, Y, weight).X_fit_, X)
    Y[4] = np.nan
    assert len(OutputKernelRidge().fit(X, Y).X_fit_) == 19
