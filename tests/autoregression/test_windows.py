import numpy as np

from entangled_kernels.autoregression import lag_windows


def test_windows_hold_the_last_steps(rng):
    x = rng.normal(size=(9, 2))
    for lags in (1, 3):
        windows = lag_windows(x, lags)
        assert windows.shape == (10 - lags, 2, lags)
        for i, window in enumerate(windows):
            for k in range(lags):
                np.testing.assert_array_equal(window[:, k], x[i + lags - 1 - k])
