import numpy as np
import pytest

from attnlab.rfa import theory
from attnlab.rfa.bias import mean_matrix
from attnlab.rfa.features import AttentionFeatures
from attnlab.rfa.kernels import kernel
from attnlab.rfa.task import Task

# Independently computed tables, four digits.
BETA = [
    [4.412, 3.342, 12.87, 190.4, 6739, 2.628e4],
    [13.78, 6.436, 10.7, 90.13, 1574, 5528],
    [194.7, 63.48, 60.09, 146.7, 919.4, 2721],
    [8760, 1685, 786.9, 689.5, 1025, 2300],
    [2.92e4, 5256, 2211, 1632, 1840, 2801],
]
BETA_MLP = {
    (0, 0): 5.771,
    (0, 1): 69.54,
    (1, 0): 69.54,
    (0, 2): 4065,
    (0, 3): 3.939e6,
    (0, 4): 1.561e7,
    (1, 1): 2033,
    (1, 2): 1.313e6,
    (2, 3): 2.813e8,
    (3, 4): 4.321e10,
}
PAIR = {
    (0, 0): 0.2319,
    (0, 1): 1.882e-2,
    (0, 2): 5.472e-4,
    (0, 3): 5.95e-6,
    (1, 0): 4.902e-3,
    (1, 1): 6.148e-4,
    (1, 2): 4.076e-5,
    (2, 0): 4.312e-5,
    (2, 1): 7.379e-6,
}
KEY, CORR, QUERY = "key_power", "corr_power", "query_power"
# Squared norms at d = 16: attention, and the MLP at N = 4, 16, 64.
EXACT = [
    (KEY, 1, 3.32, (5.42, 4.35, 4.09)),
    (KEY, 2, 11.9, (104, 238, 801)),
    (KEY, 3, 146, (9.4e3, 2.0e5, 9.3e6)),
    (KEY, 4, 3067, (2.9e4, 6.8e5, 3.2e7)),
    (CORR, 1, 89.9, (3.2e4, 6.8e5, 3.1e7)),
    (CORR, 2, 6905, (3.9e6, 8.4e8, 5.3e11)),
    (CORR, 3, 1.8e5, (2.5e8, 5.8e11, 5e15)),
    (QUERY, 1, 12.8, (21.7, 69.5, 262)),
    (QUERY, 2, 151, (416, 3805, 5.1e4)),
    ("correlation", 2, 7858, (9.3e5, 2.2e7, 1e9)),
]


def close(value, expected):
    """Equal to the digits given (half a unit of the last one, two digits where few are given)."""
    digits = len(f"{expected:g}".split("e")[0].replace(".", "").strip("0"))
    assert abs(value / expected - 1) < 10.0 ** (1 - max(digits, 2)) * 0.55 + 1e-3


def test_beta_table():
    for r, row in enumerate(BETA):
        for s, expected in enumerate(row):
            assert theory.beta(r, s) == pytest.approx(expected, rel=6e-4)


def test_beta_table_of_the_mlp():
    for (r, s), expected in BETA_MLP.items():
        assert theory.beta_mlp(r, s, 16) == pytest.approx(expected, rel=6e-4)


def test_pair_eigenvalues():
    for (a, b), expected in PAIR.items():
        assert theory.pair_eigenvalue(a, b, 16) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("target", "power", "rfa", "mlp"), EXACT)
def test_exact_complexity_table(target, power, rfa, mlp):
    options = {"q" if target == CORR else "p": power}
    close(theory.complexity_exact(Task(target, d=16, **options)), rfa)
    for n_keys, expected in zip((4, 16, 64), mlp, strict=True):
        close(theory.complexity_exact(Task(target, d=16, n_keys=n_keys, **options), "rfmlp"), expected)


def test_closed_form_is_a_bound_that_tightens_with_the_dimension():
    for target, options in ((KEY, {"p": 2}), (KEY, {"p": 4}), (CORR, {"q": 1}), (CORR, {"q": 2})):
        ratios = []
        for d in (16, 64, 256):
            task = Task(target, d=d, **options)
            ratios.append(theory.complexity(task) / theory.complexity_exact(task))
            assert theory.complexity(task, "rfmlp") >= theory.complexity_exact(task, "rfmlp") * (1 - 1e-9)
        assert ratios[0] > ratios[1] > ratios[2] >= 1
    assert theory.complexity(Task(KEY, p=2, d=64)) == pytest.approx(12.87, rel=1e-3)
    assert theory.complexity(Task(CORR, q=1, d=64)) == pytest.approx(347.8, rel=1e-3)
    assert theory.complexity(Task(CORR, q=1, d=64), "rfmlp") == pytest.approx(2.667e6, rel=1e-3)


def test_complexity_doubles_q_times_when_the_dimension_doubles():
    for q in (1, 2, 3):
        for d in (32, 64):
            big, small = (theory.complexity_exact(Task(CORR, q=q, d=e)) for e in (2 * d, d))
            assert big / small == pytest.approx(2**q, rel=0.05)


def test_order_of_learning_and_trace():
    spectrum = theory.spectrum(16, 16)
    order = [(0, 0), (1, 0), (0, 1), (2, 0), (1, 1), (0, 2), (1, 2), (2, 1), (0, 3), (3, 0), (2, 2), (1, 3)]
    assert list(spectrum.degrees[:12]) == order
    assert list(np.cumsum(spectrum.multiplicity)[:10]) == [1, 17, 33, 168, 424, 559, 2719, 4879, 5679, 6479]
    assert spectrum.trace == pytest.approx(0.35912, abs=5e-6)
    assert 0 <= spectrum.tail < 1e-3


def test_trace_is_the_mean_diagonal_of_the_kernel():
    X = Task(d=7, n_keys=5).sample(300, seed=3)[0]
    diagonal = np.array([kernel(x[None])[0, 0] for x in X[:60]])
    # five standard errors of 60 diagonal entries
    assert abs(diagonal.mean() - theory.attention_trace(7, 5)) < 5 * diagonal.std() / np.sqrt(60)


@pytest.mark.parametrize("model", ["rfa", "rfmlp"])
def test_spectrum_is_that_of_a_sampled_kernel_matrix(model):
    d, n_keys, n = 6, 3, 800
    X = Task(d=d, n_keys=n_keys).sample(n, seed=1)[0]
    sampled = np.linalg.eigvalsh(kernel(X, kind=model, dtype="float32").astype(float) / n)
    spectrum = theory.spectrum(d, n_keys, model, degree=4)
    top = int(spectrum.multiplicity[1] + spectrum.multiplicity[2]) if model == "rfa" else int(spectrum.multiplicity[1])
    exact = np.repeat(spectrum.eigenvalue, spectrum.multiplicity.astype(int))[1 : 1 + top]
    # sampling spreads eigenvalues of equal size by sqrt(multiplicity/n), about 15 %; their sum by a few per cent
    assert sampled[-1] == pytest.approx(spectrum.eigenvalue[0], rel=0.05)
    assert sampled[-1 - top : -1].sum() == pytest.approx(exact.sum(), rel=0.08)


def test_exact_complexity_is_approached_from_below_by_dense_samples():
    task = Task(KEY, p=2, d=4, n_keys=2)
    values = []
    for n in (100, 400):
        X, y = task.sample(n, seed=0)
        values.append(theory.complexity_sampled(kernel(X), y, 1e-9))
    exact = theory.complexity_exact(task)
    assert values[0] < values[1] < exact * 1.001
    assert values[1] > 0.9 * exact


def test_cost_of_approximating_a_correlation_with_a_bias():
    table = {
        (1, 16): (17.5, 41, 653),
        (1, 64): (16.1, 31.6, 219),
        (1, 256): (15.8, 29.9, 55),
        (2, 16): (221, 662, 9.9e3),
        (2, 64): (194, 508, 2.6e3),
        (2, 256): (186, 471, 1.0e3),
        (3, 16): (1.3e3, 1.0e4, 1.4e5),
        (3, 256): (1.2e3, 6.9e3, 2.0e4),
    }
    for (q, d), costs in table.items():
        for eps, cost in zip((0.25, 0.10, 0.01), costs, strict=True):
            close(theory.complexity_approx(Task("correlation", p=q, d=d), "brfa", eps=eps), cost)


def test_shrinking_all_of_a_target_costs_at_most_the_square_of_what_is_kept():
    task = Task(CORR, q=1, d=16)
    for eps, cost in ((0.25, 22), (0.10, 42), (0.01, 73)):
        whole = (1 - np.sqrt(eps)) ** 2 * theory.complexity_exact(task)
        close(whole, cost)
        assert theory.complexity_approx(task, "rfa", eps=eps) <= whole * (1 + 1e-9)


def test_paper_coefficients():
    assert [theory.paper_coefficient(k) for k in range(6)] == pytest.approx([1, 4, 362, 8979, 1.31e5, 1.43e6], rel=5e-3)
    # (2k+2)!! 4^k
    assert [theory.paper_coefficient(k, "brfa") for k in range(3)] == [2, 32, 768]
    assert theory.complexity(Task(CORR, q=1), "brfa", form="paper") == 32**2


def test_a_constructive_witness_reaches_the_target_as_one_over_heads():
    d, b = 8, np.eye(8)[0]
    X, y = Task(lambda query, keys: ((keys @ b) ** 2).mean(axis=1), d=d, n_keys=4).sample(150, seed=1)
    Xt = np.concatenate([X, np.ones((*X.shape[:2], 1))], axis=2)
    for M in (1000, 10_000, 100_000):
        heads = AttentionFeatures(M, d, 5, mean_matrix(None, d))
        f, norm = np.zeros(len(y)), 0.0
        for index in range(len(heads.sizes)):
            W = heads.heads(index).astype(float)
            v = 8 * np.outer(W[:, d, :d] @ b, b)
            A = np.maximum(np.einsum("na,mab,nib->nmi", Xt[:, 0], W, Xt[:, 1:], optimize=True), 0)
            f += np.einsum("nmi,md,nid->n", A, v, X[:, 1:], optimize=True) / 4
            norm += np.sum(v**2)
        # one draw of a positive variable of order one: the band is two decades wide
        assert 0.01 < M * np.mean((f / M - y) ** 2) < 2
        if M >= 10_000:
            assert norm / M == pytest.approx(16, rel=0.15)
            assert np.mean((f / M - y) ** 2) < theory.heads_bound(Task(KEY, p=2, d=d), M)


def test_bounds_behave():
    task = Task(KEY, p=2)
    assert theory.witness_degree(0, 2) == (1, 16.0)
    assert theory.heads_bound(task, 2000) == pytest.approx(theory.heads_bound(task, 1000) / 2)
    assert theory.heads_bound(task, 1000) < theory.heads_bound(task, 1000, form="paper")
    M = int(theory.heads_for_bound(task, 0.1))
    assert theory.heads_bound(task, M) <= 0.1 < theory.heads_bound(task, M - 1)
    assert theory.excess_risk_bound(task, 400) == pytest.approx(2 * theory.excess_risk_bound(task, 1600))
    assert theory.excess_risk_bound(task, 400, 1000, form="paper") > theory.excess_risk_bound(task, 400, 1000)
    # one witness: its norm tends to that of infinitely many heads, its distance to zero
    few, many = theory.witness(task, 10**3), theory.witness(task, 10**9)
    assert many.radius == pytest.approx(4, rel=1e-3)
    assert many.trace == pytest.approx(theory.attention_trace(16, 16), rel=2e-3)
    assert few.radius > many.radius
    assert few.distance == pytest.approx(1000 * many.distance)
    assert theory.excess_risk_bound(task, 400, 10**9) > theory.excess_risk_bound(task, 400)
    n = int(theory.sample_size(task, 0.1))
    assert theory.sample_size(task, 0.1).status == theory.heads_bound(task, 10).status == "bound"
    assert theory.complexity_exact(task).status == "exact"
    assert theory.excess_risk_bound(task, n) <= 0.1 < theory.excess_risk_bound(task, n - 10)
    assert theory.sample_size(Task("correlation", p=1, d=256), 0.1, model="brfa") < theory.sample_size(
        Task("correlation", p=1, d=256), 0.1
    )


def test_the_excess_risk_bound_is_the_formula_of_its_form():
    task, n, M = Task(KEY, p=2, d=9, n_keys=5), 400, 1000
    B = float(theory.complexity(task, form="paper"))
    logs, terms = np.log(9 * M) * np.log(n * 5 * M), 81 + np.log(M)
    paper = theory.excess_risk_bound(task, n, M, form="paper", delta=0.2)
    assert paper == pytest.approx(np.sqrt(B) * (np.sqrt(logs / n) + np.sqrt(terms / (0.2 * M))))
    found = theory.witness(task, M, delta=0.2)
    explicit = 2 * found.radius * np.sqrt(found.trace / n) + found.distance
    assert theory.excess_risk_bound(task, n, M, delta=0.2) == pytest.approx(explicit)
    limit = 2 * np.sqrt(theory.complexity_exact(task) * theory.attention_trace(9, 5) / n)
    assert theory.excess_risk_bound(task, n) == pytest.approx(limit)
    aligned = Task("correlation", p=1, d=9)
    biased = 2 * np.sqrt(theory.complexity_approx(aligned, "brfa", eps=0.3) * theory.biased_trace_bound(9) / n)
    distance = np.sqrt(0.3 * sum(aligned.energies.values()))
    assert theory.excess_risk_bound(aligned, n, model="brfa", eps=0.3) == pytest.approx(biased + distance)
    assert all(np.isfinite(theory.excess_risk_bound(task, 1, 1, form=form)) for form in ("paper", "explicit"))
    with pytest.raises(ValueError, match="delta must be"):
        theory.excess_risk_bound(task, n, M, form="paper", delta=1.5)


def test_rademacher_bounds_hold_for_random_signs():
    X = Task(d=5, n_keys=4).sample(100, seed=0)[0]
    K = kernel(X)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(400, 100))
    average = np.mean(np.sqrt(np.einsum("si,ij,sj->s", signs, K, signs))) / 100
    assert average <= theory.rademacher_ball(K, 1.0)
    features = np.random.default_rng(1).standard_normal((100, 30, 4))
    largest = np.linalg.norm(np.einsum("sn,nmd->smd", signs, features), axis=2).max(axis=1).mean() / 100
    assert largest <= theory.rademacher_heads(features, 1.0)


def test_biased_trace_bound_holds():
    X = Task(d=6, n_keys=5).sample(40, seed=0)[0]
    diagonal = [kernel(x[None], kind="brfa", bias_scale=2.0)[0, 0] for x in X]
    assert np.mean(diagonal) < theory.biased_trace_bound(6, 2.0)


def test_what_is_not_known_is_refused():
    with pytest.raises(ValueError, match="not an average"):
        theory.complexity(Task("softmax"))
    with pytest.raises(ValueError, match="unit tokens"):
        theory.complexity(Task(KEY, token_law="gaussian"))
    with pytest.raises(ValueError, match="no closed form"):
        theory.complexity(Task(KEY), "brfa")
    with pytest.raises(ValueError, match="rfa' only"):
        theory.excess_risk_bound(Task(KEY), 10, 10, model="rfmlp")


def test_the_event_of_a_witness_has_the_probability_it_says():
    d, M, delta, b = 6, 40, 0.3, np.eye(6)[0]
    task = Task(KEY, p=2, d=d, n_keys=4)
    X = task.sample(400, seed=2)[0]
    Xt = np.concatenate([X, np.ones((*X.shape[:2], 1))], axis=2)
    y = ((X[:, 1:] @ b) ** 2).mean(axis=1)
    bound, failures = theory.witness(task, M, delta=delta), 0
    for seed in range(60):
        W = AttentionFeatures(M, d, seed, mean_matrix(None, d)).heads(0).astype(float)
        v = 8 * np.outer(W[:, d, :d] @ b, b)
        A = np.maximum(np.einsum("na,mab,nib->nmi", Xt[:, 0], W, Xt[:, 1:], optimize=True), 0)
        phi = np.einsum("nmi,nid->nmd", A, Xt[:, 1:]) / 4
        distance = np.sqrt(np.mean((np.einsum("nmd,md->n", phi[..., :d], v) / M - y) ** 2))
        trace = np.mean(np.sum(phi**2, axis=(1, 2))) / M
        norm = np.sqrt(np.sum(v**2) / M)
        failures += norm > bound.radius or distance > bound.distance or trace > bound.trace
    # three standard deviations of 60 draws above the share promised
    assert failures / 60 <= delta + 3 * np.sqrt(delta * (1 - delta) / 60)
