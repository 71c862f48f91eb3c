from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from entangled_kernels.output_kernel import OutputKernelResult


def test_a_result_is_a_value():
    result = OutputKernelResult(
        np.zeros((2, 1)), np.eye(1), np.zeros(1), 1.0, 0.0, np.zeros((2, 1)), True, "fixed", 0, np.ones(1)
    )
    with pytest.raises(FrozenInstanceError):
        result.gap = 1.0
