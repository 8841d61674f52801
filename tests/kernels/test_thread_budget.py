"""Items shared out among threads: order, nesting, errors, and searches that do not depend on the number of threads."""

import threading
import time

import numpy as np
import pytest

from gsnmf import _parallel
from gsnmf._kernels.exchange import exchange_scores, positive_squares
from gsnmf._parallel import ThreadBudget, n_threads, parallel_map
from gsnmf.datasets import planted
from gsnmf.matrix import wrap
from gsnmf.search import candidates
from gsnmf.search.automatic import automatic_search


@pytest.fixture(params=[1, 2, 5])
def budget(request, monkeypatch):
    monkeypatch.setenv("GSNMF_NUM_THREADS", str(request.param))
    budget = ThreadBudget()
    with budget.limited_to(request.param):
        yield budget


def test_results_are_in_the_order_of_the_items(budget):
    assert budget.map(lambda number: number**2, range(50)) == [number**2 for number in range(50)]
    assert budget.map(abs, []) == []


def test_items_may_hand_out_items(budget):
    found = budget.map(lambda i: budget.map(lambda j: budget.map(lambda k: i + j + k, range(3)), range(4)), range(5))
    assert found == [[[i + j + k for k in range(3)] for j in range(4)] for i in range(5)]


def test_threads_work_at_the_same_time(monkeypatch):
    monkeypatch.setenv("GSNMF_NUM_THREADS", "3")
    budget, together = ThreadBudget(), threading.Barrier(3, timeout=60)
    with budget.limited_to(3):
        assert sorted(budget.map(lambda _: together.wait(), range(3))) == [0, 1, 2]


def test_an_item_has_one_thread(budget):
    assert set(budget.map(lambda _: n_threads(), range(20))) == {1}


def test_an_error_ends_the_work(budget):
    done = []

    def fail(number):
        done.append(number)
        if number == 3:
            raise KeyError(number)

    with pytest.raises(KeyError):
        budget.map(fail, range(1000))
    assert len(done) < 1000
    assert budget.map(abs, [-1, -2]) == [1, 2]


class Exhausted:
    """A pool that starts one thread and then no more, as where their number is limited."""

    def submit(self, function):
        threading.Thread(target=function).start()
        raise RuntimeError("can't start new thread")


def test_threads_that_cannot_be_started_are_done_without(monkeypatch):
    monkeypatch.setattr(_parallel, "_thread_pool", lambda n_threads: Exhausted())
    for _ in range(50):
        squares = parallel_map(lambda number: time.sleep(1e-4) or number**2, range(10), 4)
        assert squares == [number**2 for number in range(10)]


def test_without_running_the_caller_works_alone():
    names = ThreadBudget().map(lambda _: threading.current_thread().name, range(9))
    assert set(names) == {threading.current_thread().name}


@pytest.mark.parametrize("shape", [(7, 30), (150, 700), (3, 20_000), (0, 5), (4, 0)])
def test_sums_over_slopes_are_those_of_plain_numpy(budget, shape):
    rng = np.random.default_rng(0)
    products, coefficients = rng.normal(size=shape), rng.random((shape[0], 5))
    factors = rng.random((shape[1], 2)), rng.random((shape[1], 3))
    H = np.hstack(factors).T
    plain = np.ascontiguousarray(products - coefficients @ H)
    found = candidates.sums_over_slopes(products, coefficients, factors, exchange_scores, budget)
    np.testing.assert_allclose(found, exchange_scores(plain, coefficients, np.ascontiguousarray(H)), atol=1e-9)
    found = candidates.sums_over_slopes(
        products, coefficients, factors, lambda block, *_: positive_squares(block), budget
    )
    np.testing.assert_allclose(found, positive_squares(plain), atol=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_search_does_not_depend_on_the_number_of_threads(monkeypatch, sparse):
    data = planted((90, 70), 4, 3, density=0.5 if sparse else 1.0, noise_level=0.3, sparse=sparse, random_state=0)
    found = []
    for threads in (1, 2, 64):
        monkeypatch.setenv("GSNMF_NUM_THREADS", str(threads))
        found.append(automatic_search(wrap(data.matrix), 7, "fast"))
    first = found[0]
    for other in found[1:]:
        assert other.record == first.record
        assert other.state.squared_error == first.state.squared_error
        np.testing.assert_array_equal(other.state.columns.weights, first.state.columns.weights)
        np.testing.assert_array_equal(other.state.rows.weights, first.state.rows.weights)
