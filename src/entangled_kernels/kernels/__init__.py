"""Operator-valued kernels."""
