import importlib
from decimal import Decimal, localcontext

import numpy as np
import pytest

from attnlab.rfa import Task, theory
from attnlab.rfa.sphere import harmonic_dimension
from attnlab.rfa.theory.spectrum import Spectrum, mode_eigenvalue, pair_parts, spectrum


def make(target, power, d=16, n_keys=16, **options):
    return Task(target, d=d, n_keys=n_keys, **{"q" if target == "corr_power" else "p": power}, **options)


def exact_half_angle(l, d, terms):
    """E[((1+t)/2)^k P_l(t)] for k < terms, fifty digits."""
    h, rows, base = Decimal(d - 1) / 2, [], Decimal(1)
    for k in range(terms):
        value = base
        for i in range(l):
            value *= Decimal(k - i) / (2 * h + k + i)
        rows.append(max(value, Decimal(0)))
        base *= (h + k) / (2 * h + k)
    return rows


def exact_pair(a, b, d, terms=200):
    """lam_ab by E[(1 + v) k0 P_a P_b] with 1 + v = 2 (1 + v)/2: shifted moments instead of a recursion."""
    pi = Decimal("3.14159265358979323846264338327950288419716939937510")
    c = [1 / (2 * pi), Decimal(1) / 4, 1 / (4 * pi), Decimal(0)]
    for k in range(2, terms):
        c += [c[k] * (k - 1) ** 2 / ((k + 2) * (k + 1)) if k % 2 == 0 else Decimal(0)]
    query, key = exact_half_angle(a, d, terms), exact_half_angle(b, d, terms + 1)
    return sum(c[k] * query[k] * 2 * key[k + 1] for k in range(terms))


@pytest.mark.parametrize("d", [8, 16, 64, 512, 2048])
def test_eigenvalues_in_extended_precision(d):
    with localcontext() as context:
        context.prec = 60
        for a, b in ((0, 0), (0, 1), (1, 0), (2, 2), (4, 3), (7, 9)):
            assert pair_parts(d, 10)[:, a, b].sum() == pytest.approx(float(exact_pair(a, b, d)), rel=1e-11)


@pytest.mark.parametrize("d", [8, 32, 128, 512, 2048])
def test_the_learning_curve_in_extended_precision(d):
    """Infinitely many heads, key_power with p = 1: one mode (0, 1), whose eigenvalue is found in sixty digits too."""
    n, n_keys, degree = 3 * d, 16, 4
    with localcontext() as context:
        context.prec = 60
        modes = [
            (exact_pair(a, b, d, 80) / (n_keys if b else 1), harmonic_dimension(a, d) * harmonic_dimension(b, d))
            for a in range(degree + 1)
            for b in range(degree + 1)
        ]
        tail = Decimal(theory.attention_trace(d, n_keys)) - sum(v * m for v, m in modes)
        low, high = Decimal(10) ** -40, Decimal(1)
        for _ in range(200):
            kappa = (low * high).sqrt()
            filled = sum(m * v / (v + kappa) for v, m in modes) + (n * Decimal("1e-6") + tail) / kappa
            low, high = (kappa, high) if filled > n else (low, kappa)
        spent = sum(m * (v / (v + kappa)) ** 2 for v, m in modes) / n
        bias = (kappa / (modes[1][0] + kappa)) ** 2
        expected = float(bias / (1 - spent))
    # modes of degree above four have eigenvalues far below kappa
    assert theory.learning_curve(make("key_power", 1, d), n).value == pytest.approx(expected, rel=1e-4)


def test_the_defect_at_dimension_512():
    curve = theory.learning_curve(make("key_power", 1, 512), 4096)
    assert curve.converged
    assert curve.value == pytest.approx(0.062, abs=5e-4)
    # a simulation of the exact kernel at N = 4, n = 1000 gave 0.386
    assert theory.learning_curve(make("key_power", 1, 512, 4), 1000).value == pytest.approx(0.386, rel=0.04)


def test_energies_of_high_powers_are_exact_in_high_dimension():
    # E t^20 = 19!! / (d (d+2) ... (d+18)); quadrature with weights of 1e-17 gives 1e15 times as much
    d, p = 2048, 10
    expected = np.prod([(2 * i + 1) / (d + 2 * i) for i in range(p)])
    assert sum(make("key_power", p, d).energies.values()) == pytest.approx(expected, rel=1e-10)


def test_a_list_of_modes_beyond_the_trace_is_not_converged(monkeypatch):
    module = importlib.import_module("attnlab.rfa.theory.learning_curve")
    bulk = spectrum(16, 16)
    wrong = Spectrum(bulk.degrees, bulk.multiplicity, 1.1 * bulk.parts, bulk.counts, bulk.traces)
    assert bulk.resolved
    assert not wrong.resolved
    monkeypatch.setattr(module, "spectrum", lambda *a: wrong)
    assert not theory.learning_curve(Task(), 512).converged


def test_a_list_of_modes_that_is_too_short_says_so():
    # on the circle the eigenvalues fall so slowly that degree 20 is not enough for ten million examples
    far, near = (theory.learning_curve(make("key_power", 2, 2, 2), n, ridge=0.0) for n in (10**7, 100))
    assert not far.converged
    assert near.converged
    assert far.error > 0.01 * far.value


def test_eigenvalue_of_a_mode_is_the_sum_over_its_classes():
    assert mode_eigenvalue(1, 2, 16, 4, "rfa") == pytest.approx(theory.pair_eigenvalue(1, 2, 16) / 4)
    assert mode_eigenvalue(1, 2, 16, 4, "rfmlp") == theory.mlp_eigenvalue((2, 1), 16, 4)
