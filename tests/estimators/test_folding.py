import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.preprocessing import StandardScaler

from entangled_kernels import EntangledKernelRidge, EntangledKernelRidgeCV
from entangled_kernels.io import write_table
from entangled_kernels.selection import group_splits
from entangled_kernels.streams import read_batches
from entangled_kernels.streams.row_stream import group_folds

GRID = {
    "alphas": np.logspace(-6, 5, 9),
    "random_state": 0,
    "param_grid": {"shrinkage": (0.5, 1.0), "alignment_mix": (0.5,), "target_alpha": (0.1,)},
}


def search(feature_map=None, **settings):
    return EntangledKernelRidgeCV(feature_map, **GRID | settings)


@pytest.fixture
def rows(make_rows):
    X, Y = make_rows(60, 3, 2)
    return X, Y, np.repeat([f"patient {i}" for i in range(12)], 5)


def assert_same_errors(first, second, rtol=1e-9):
    for name, column in first.cv_results_.items():
        if name.endswith("test_score"):
            np.testing.assert_allclose(column, second.cv_results_[name], rtol=rtol)
    assert first.cv_score_ == pytest.approx(second.cv_score_, rel=rtol)
    np.testing.assert_allclose(first.coef_, second.coef_, rtol=1e-7, atol=1e-10)


class TestInMemory:
    def test_a_number_of_folds_keeps_groups_whole(self, rows):
        X, Y, groups = rows
        model = search(cv=4).fit(X, Y, groups=groups)
        assert model.n_splits_ == 12
        splits = group_splits(groups, 4, n_repeats=3, random_state=0)
        assert_same_errors(model, search(cv=splits).fit(X, Y))
        # As many folds as groups need no second round.
        model = search(cv=12).fit(X, Y, groups=groups)
        left_out = search(cv=LeaveOneGroupOut()).fit(X, Y, groups=groups)
        assert model.n_splits_ == left_out.n_splits_ == 12
        assert model.best_score_ == pytest.approx(left_out.best_score_)

    @pytest.mark.parametrize(("cv", "n_splits"), [(3, 12), (5, 10), (7, 14), (10, 10), (11, 11)])
    def test_few_folds_are_taken_twice_or_more(self, rows, cv, n_splits):
        X, Y, _ = rows
        assert search(cv=cv).fit(X, Y).n_splits_ == n_splits

    def test_groups_may_be_a_series_and_rows_may_lack_targets(self, rows):
        X, Y, groups = rows
        Y = Y.copy()
        Y[10:20] = np.nan
        kept = np.r_[:10, 20:60]
        for cv in (3, GroupKFold(3)):
            model = search(cv=cv).fit(X, Y, groups=pd.Series(groups, index=np.arange(60)[::-1]))
            assert_same_errors(model, search(cv=cv).fit(X[kept], Y[kept], groups=groups[kept]))

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            (["a"] * 60, "groups must hold at least 2 groups, got 1"),
            (["a", "b"] * 30, "cv must be at most the number of groups, 2, got 5"),
            ([None, *range(59)], "in row 1; fill it"),
            ([0.0, np.nan, *range(58)], "in row 2"),
            (pd.Series([pd.NA, *range(59)], dtype="Int64"), "in row 1"),
            (range(59), r"groups must hold one value for each of .*60 rows, got shape \(59,\)"),
        ],
    )
    def test_groups_that_cannot_be_folded(self, rows, groups, message):
        with pytest.raises(ValueError, match=message):
            search().fit(*rows[:2], groups=groups)

    @pytest.mark.parametrize("selection", ["average", "best", "one_se"])
    @pytest.mark.parametrize("maps", [None, [None, StandardScaler()]], ids=["one map", "two maps"])
    def test_time_order_counts_only_rows_that_were_predicted(self, rows, selection, maps):
        X, Y, _ = rows
        model = search(maps, cv=TimeSeriesSplit(4), selection=selection).fit(X, Y)
        found = model.model_.residuals
        assert sorted(set(found.row)) == list(range(12, 60))
        assert len(found.row) == 48
        error = np.mean(found.values**2, axis=0)
        assert model.cv_score_ == pytest.approx(np.mean(error / np.var(Y, axis=0)))
        np.testing.assert_allclose(model.cv_rmse_, np.sqrt(error))
        lower, upper = model.predict_interval(X, 0.9)
        assert np.mean((lower <= Y) & (upper >= Y)) > 0.8

    @pytest.mark.parametrize("feature_map", [None, StandardScaler()], ids=str)
    def test_later_rows_do_not_reach_predictions_of_earlier_ones(self, rows, feature_map):
        X, Y, _ = rows
        later = X.copy(), Y.copy()
        for table in later:
            table[48:] += 100.0
        # One candidate, so that nothing is left to choose.
        one = {"alphas": (1.0,), "selection": "best", "param_grid": {"shrinkage": (1.0,)}}
        model = search(feature_map, cv=TimeSeriesSplit(4), **one)
        found = [clone(model).fit(*table).model_.residuals for table in ((X, Y), later)]
        early = found[0].row < 48
        np.testing.assert_allclose(found[1].values[early], found[0].values[early], rtol=1e-9)
        assert (abs(found[1].values[~early] - found[0].values[~early]) > 50.0).all()

    def test_a_target_that_is_first_measured_later_is_not_judged_before(self, rows):
        X, Y, _ = rows
        Y = Y.copy()
        # The first fold, rows 12 to 23, has no cell of the target to learn from.
        Y[:20, 1] = np.nan
        for cv in (TimeSeriesSplit(4), [*TimeSeriesSplit(4).split(X)]):
            model = search(cv=cv).fit(X, Y)
            found = model.model_.residuals
            assert not np.isnan(found.values[:, 0]).any()
            np.testing.assert_array_equal(np.isnan(found.values[:, 1]), found.row < 24)
            assert np.isfinite(model.cv_score_)

    def test_splits_without_rows_to_learn_from(self, rows):
        X, Y, _ = rows
        for cv in (
            TimeSeriesSplit(5, test_size=11, max_train_size=1),
            [(np.arange(1), np.arange(1, 60))],
        ):
            with pytest.raises(
                ValueError, match="cv must leave at least 2 rows to learn from in every split"
            ):
                search(cv=cv).fit(X, Y)


class TestStreams:
    @pytest.mark.parametrize("sizes", [(60,), (7, 1, 30, 22)])
    def test_groups_are_folded_by_their_hash(self, rows, sizes):
        X, Y, groups = rows
        folds = group_folds(groups, 4)
        assert len(np.unique(folds)) > 2
        scaler = FrozenEstimator(StandardScaler().fit(X))
        expected = search(scaler, cv=PredefinedSplit(folds)).fit(X, Y)
        ends = np.cumsum(sizes)
        batches = [
            (X[a:b], Y[a:b], None, groups[a:b]) for a, b in zip(ends - sizes, ends, strict=True)
        ]
        assert_same_errors(search(StandardScaler(), cv=4).fit_batches(batches), expected, rtol=1e-7)
        model = search(StandardScaler(), cv=GroupKFold(4))
        for own, targets, weight, names in batches:
            model.partial_fit(own, targets, weight, groups=names)
        assert_same_errors(model.solve(), expected, rtol=1e-7)

    def test_folds_without_groups_are_left_out(self, rows):
        """Of three groups some of the folds have none; rows that were drawn are held out with their own."""
        X, Y, _ = rows
        groups = np.repeat([1, 2, 3], 20)
        folds = group_folds(groups, 9)
        assert len(np.unique(folds)) == 3
        model = search(cv=9).partial_fit(X, Y, groups=groups).solve()
        assert_same_errors(model, search(cv=PredefinedSplit(folds)).fit(X, Y), rtol=1e-7)

    @pytest.mark.parametrize("sizes", [(60,), (7, 1, 30, 22)])
    def test_time_ordered_blocks_are_those_of_memory(self, rows, sizes):
        X, Y, _ = rows
        scaler = FrozenEstimator(StandardScaler().fit(X))
        expected = search(scaler, cv=TimeSeriesSplit(4)).fit(X, Y)
        ends = np.cumsum(sizes)
        batches = [(X[a:b], Y[a:b]) for a, b in zip(ends - sizes, ends, strict=True)]
        model = search(StandardScaler(), cv=TimeSeriesSplit(4)).fit_batches(batches)
        assert model.n_splits_ == 4
        assert_same_errors(model, expected, rtol=1e-7)
        once = search(StandardScaler(), cv=TimeSeriesSplit(4)).fit_batches(iter(batches), n_rows=60)
        np.testing.assert_array_equal(once.coef_, model.coef_)
        assert sorted(set(expected.model_.residuals.row)) == list(range(12, 60))
        assert len(model.model_.residuals.row) == 48

    def test_a_map_is_chosen_on_the_first_rows_in_their_order(self, rows):
        X, Y, groups = rows
        maps = [None, StandardScaler()]
        batches = [(X[:40], Y[:40], None, groups[:40]), (X[40:], Y[40:], None, groups[40:])]
        model = search(maps, cv=TimeSeriesSplit(4)).fit_batches([batch[:2] for batch in batches])
        place = search(maps, cv=TimeSeriesSplit(4)).fit(X, Y).best_params_["feature_map"]
        assert (model.feature_map_ is None) == (place == 0)
        model = search(maps, cv=4).fit_batches(batches)
        folds = PredefinedSplit(group_folds(groups, 4))
        place = search(maps, cv=folds).fit(X, Y).best_params_["feature_map"]
        assert (model.feature_map_ is None) == (place == 0)
        with pytest.raises(ValueError, match="in at least 2 folds"):
            search(maps).fit_batches([(X, Y, None, np.ones(60))])

    def test_files_with_a_column_of_groups(self, rows, tmp_path):
        X, Y, groups = rows
        table = pd.DataFrame(np.hstack([X, Y]), columns=[*"abc", "y", "z"]).assign(who=groups)
        expected = search(cv=PredefinedSplit(group_folds(groups, 4))).fit(X, Y)
        for kind in ("csv", "parquet"):
            write_table(table, tmp_path / f"rows.{kind}")
            reader = read_batches(
                tmp_path / f"rows.{kind}", targets=["y", "z"], groups="who", batch_rows=7
            )
            assert reader.inputs == ("a", "b", "c")
            assert_same_errors(search(cv=4).fit_batches(reader), expected, rtol=1e-7)
            ordered = read_batches(
                tmp_path / f"rows.{kind}", inputs=[*"abc"], targets=["y", "z"], batch_rows=7
            )
            model = search(cv=TimeSeriesSplit(4)).fit_batches(ordered)
            assert_same_errors(model, search(cv=TimeSeriesSplit(4)).fit(X, Y), rtol=1e-7)
        frames = [table[:13], table[13:]]
        model = search(cv=4).fit_batches(frames, targets=["y", "z"], groups="who")
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        assert_same_errors(model, expected, rtol=1e-7)

    def test_a_checkpoint_goes_on_with_the_same_folds(self, rows, tmp_path):
        X, Y, groups = rows
        batches = [
            (X[a : a + 10], Y[a : a + 10], None, groups[a : a + 10]) for a in range(0, 60, 10)
        ]
        broken = [*batches[:4], (X[40:50, :2], Y[40:50], None, groups[40:50])]
        for cv, cut in ((4, 4), (TimeSeriesSplit(4), 2)):
            state = {"checkpoint": tmp_path / f"{cut}.state", "checkpoint_every": 1}
            model = search(cv=cv)
            settings = {} if cv == 4 else {"n_rows": 60}
            with pytest.raises(ValueError, match="batch 5"):
                model.fit_batches([batch[:cut] for batch in broken], **state, **settings)
            with pytest.raises(ValueError, match="is the checkpoint of another fit"):
                search(cv=5).fit_batches([batch[:2] for batch in batches], **state)
            resumed = search(cv=cv).fit_batches(
                [batch[:cut] for batch in batches], **state, **settings
            )
            quiet = search(cv=cv).fit_batches([batch[:cut] for batch in batches], **settings)
            np.testing.assert_array_equal(resumed.coef_, quiet.coef_)
            assert resumed.cv_score_ == quiet.cv_score_
        with pytest.raises(ValueError, match="the values are not those that were read"):
            search(cv=4).fit_batches(
                [batch[:2] for batch in batches], checkpoint=tmp_path / "4.state"
            )

    def test_blocks_in_the_order_of_time_need_the_number_of_rows(self, rows):
        X, Y, _ = rows
        ordered = search(cv=TimeSeriesSplit(4))
        with pytest.raises(ValueError, match="folds in the order of time"):
            ordered.partial_fit(X, Y)
        with pytest.raises(ValueError, match="n_rows must be given"):
            ordered.fit_batches(iter([(X, Y)]))
        for wrong in (59, 61):
            with pytest.raises(ValueError, match=f"n_rows must be .* 60, got {wrong}"):
                ordered.fit_batches([(X, Y)], n_rows=wrong)
        done = ordered.fit_batches([(X, Y)])
        with pytest.raises(ValueError, match="folds in the order of time"):
            done.merge(clone(ordered).fit_batches([(X, Y)]))
        with pytest.raises(ValueError, match="folds in the order of time"):
            done.partial_fit(X, Y)
        with pytest.raises(ValueError, match="at least 10 rows, got 9"):
            ordered.fit_batches([(X[:9], Y[:9])])

    @pytest.mark.parametrize(
        ("cv", "groups"),
        [
            (TimeSeriesSplit(4, gap=1), None),
            (LeaveOneGroupOut(), np.arange(60)),
            (ShuffleSplit(3), None),
            (GroupKFold(3), None),
        ],
        ids=lambda cv: type(cv).__name__,
    )
    def test_splitters_that_streams_cannot_use_are_refused(self, rows, cv, groups):
        with pytest.raises(ValueError, match="cv"):
            search(cv=cv).partial_fit(*rows[:2], groups=groups)

    def test_groups_come_with_every_batch_or_with_none(self, rows):
        X, Y, groups = rows
        model = search(cv=KFold(3)).partial_fit(X[:30], Y[:30], groups=groups[:30])
        with pytest.raises(ValueError, match="groups must be given with every batch"):
            model.partial_fit(X[30:], Y[30:])
        with pytest.raises(ValueError, match="must both have groups"):
            model.merge(search(cv=KFold(3)).partial_fit(X[30:], Y[30:]))
        with pytest.raises(ValueError, match="in row 2"):
            clone(model).partial_fit(X[:2], Y[:2], groups=["a", None])
        with pytest.raises(ValueError, match="at least 2 folds, got 1"):
            search().partial_fit(X, Y, groups=np.ones(60)).solve()
        with pytest.raises(ValueError, match="groups are for folds"):
            EntangledKernelRidge(None).fit_batches([(X, Y, None, groups)])

    def test_dask_tables_with_groups(self, rows):
        da = pytest.importorskip("dask.array")
        X, Y, groups = rows
        expected = search(cv=PredefinedSplit(group_folds(groups, 4))).fit(X, Y)
        chunks = ((20, 33, 7), 3)
        for own in (groups, da.from_array(groups, chunks=(20, 33, 7))):
            model = search(cv=4).fit(da.from_array(X, chunks=chunks), Y, groups=own)
            assert_same_errors(model, expected, rtol=1e-7)
        with pytest.raises(ValueError, match="folds in the order of time"):
            search(cv=TimeSeriesSplit(3)).fit(da.from_array(X, chunks=chunks), Y)
