"""Tabular data sets: small files of each layout, and the real ones where they are."""

from __future__ import annotations

import functools
import io
import math
import os
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from exactdp.mechanisms.public import feature_groups
from exactdp.train import data
from exactdp.train.data import criteo, split


def real(folder: str) -> None:
    root = os.environ.get("EXACTDP_DATA", "")
    if not root or not (Path(root) / folder).is_dir():
        pytest.skip(f"EXACTDP_DATA holds no {folder}")


# privacytrustlab


def write_archive(path: Path, *files: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for place, content in enumerate(files):
            member = tarfile.TarInfo(f"dataset_{place}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


@functools.cache
def purchase(num_records: int = 500, *, quote: str = "") -> tuple[np.ndarray, tuple[str, ...]]:
    bits = np.random.default_rng(0).integers(0, 2, (num_records, 600))
    lines = [f"{quote}{row % 100 + 1}{quote},{','.join(map(str, cells))}" for row, cells in enumerate(bits)]
    return bits, tuple(lines)


@pytest.mark.parametrize("quote", ["", '"'])
def test_purchase100(tmp_path: Path, quote: str) -> None:
    bits, lines = purchase(quote=quote)
    write_archive(tmp_path / "purchase100/dataset_purchase.tgz", "\n".join(lines).encode())
    loaded = data.load("purchase100", root=tmp_path)
    train, test = split.fixed(500)
    np.testing.assert_array_equal(loaded.x, bits[train])
    np.testing.assert_array_equal(loaded.x_test, bits[test])
    np.testing.assert_array_equal(loaded.y, train % 100)
    np.testing.assert_array_equal(loaded.y_test, test % 100)
    assert (loaded.num_classes, loaded.x.dtype, loaded.columns[599]) == (100, np.float32, "feature_599")


def test_other_archives_of_the_layout(tmp_path: Path) -> None:
    write_archive(tmp_path / "own/own.tgz", b"1,0,1\n2,1,1\n" * 5)
    loaded = data.load("privacytrustlab:own", root=tmp_path)
    assert loaded.x.shape == (8, 2) and loaded.num_classes == 2


@pytest.mark.parametrize(
    ("row", "line", "message"),
    [
        (3, "5,0,1", "records must have 600 features, record 3 has 2"),
        (499, "5," + "0," * 300, "records must have 600 features, record 499 has 301 .a file cut short"),
        (2, "5," + "0," * 599 + "nan", "features must be 0 or 1, feature 599 of record 2 is 'nan'"),
        (2, "5," + "0," * 599 + "2", "feature 599 of record 2 is '2'"),
        (2, "5,0;" + "0," * 598 + "0", "must have 600 features, record 2 has 599"),
        (7, "101," + "0," * 599 + "0", "labels must be whole numbers >= 1 and <= 100, record 7 has '101'"),
        (7, "0," + "0," * 599 + "0", "record 7 has '0'"),
        (7, "x," + "0," * 599 + "0", "record 7 has 'x'"),
    ],
)
def test_purchase_cells_refused(tmp_path: Path, row: int, line: str, message: str) -> None:
    lines = list(purchase()[1])
    lines[row] = line
    write_archive(tmp_path / "purchase100/dataset_purchase.tgz", "\n".join(lines).encode())
    with pytest.raises(ValueError, match=f"^purchase100: .*{message}"):
        data.load("purchase100", root=tmp_path)


def test_archives_refused(tmp_path: Path) -> None:
    path = tmp_path / "location30/dataset_location.tgz"
    with pytest.raises(
        ValueError, match="location30: the data root .* must hold location30/dataset_location.tgz"
    ):
        data.load("location30", root=tmp_path)
    write_archive(path, b"1,0\n", b"1,0\n")
    with pytest.raises(ValueError, match=f"{path} must be a whole .tgz of one file, got: it holds 2 files"):
        data.load("location30", root=tmp_path)
    write_archive(path, os.urandom(5000))
    whole = path.read_bytes()
    for blob in (whole[:2000], b"", b"text"):
        path.write_bytes(blob)
        with pytest.raises(ValueError, match=f"location30: {path} must be a whole .tgz"):
            data.load("location30", root=tmp_path)
    write_archive(path, b"")
    with pytest.raises(ValueError, match="location30: .* must hold at least one record"):
        data.load("location30", root=tmp_path)


def test_real_location30() -> None:
    real("location30")
    loaded = data.load("location30")
    assert loaded.x.shape == (4008, 446) and loaded.x_test.shape == (1002, 446)
    assert set(np.unique(loaded.x)) == {0.0, 1.0} and loaded.num_classes == 30
    assert "Foursquare" in loaded.source


# adult

ADULT = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male, 2174, 0, "
    "40, United-States, <=50K",
    "52, ?, 209642, HS-grad, 9, Married-civ-spouse, ?, Wife, Black, Female, 0, 1902, 45, ?, >50K",
)


def write_adult(root: Path, *, lines: tuple[str, ...] = ADULT) -> None:
    (root / "adult").mkdir(exist_ok=True)
    (root / "adult/adult.data").write_text("\n".join([*lines, "", ""]))
    (root / "adult/adult.test").write_text("\n".join(["|1x3 Cross validator", *(f"{a}." for a in ADULT), ""]))


def test_adult(tmp_path: Path) -> None:
    write_adult(tmp_path)
    loaded = data.load("adult", root=tmp_path)
    np.testing.assert_array_equal(loaded.x, loaded.x_test)
    assert loaded.y.tolist() == loaded.y_test.tolist() == [0, 1]
    first, second = (dict(zip(loaded.columns, row, strict=True)) for row in loaded.x.tolist())
    assert {k for k, v in first.items() if v == 1.0} == {
        "workclass=State-gov",
        "education=Bachelors",
        "marital-status=Never-married",
        "occupation=Adm-clerical",
        "relationship=Not-in-family",
        "race=White",
        "sex=Male",
        "native-country=United-States",
    }
    assert (first["age"], first["hours-per-week"]) == pytest.approx((0.39, 0.40))
    assert first["capital-gain"] == pytest.approx(math.log(2175) / math.log(100_000))
    assert second["capital-loss"] == pytest.approx(math.log(1903) / math.log(100_000))
    assert second["workclass=?"] == second["occupation=?"] == second["native-country=?"] == 1.0
    groups = feature_groups(loaded.columns)
    assert [len(groups[a]) for a in ("sex", "race", "education", "native-country", "age")] == [
        2,
        5,
        16,
        42,
        1,
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Male", "male", "sex must be one of Female, Male, record 0 of .*adult.data has 'male'"),
        ("39,", "nan,", r"age must be a whole number in 0 \.\.\. 100, record 0 of .* has 'nan'"),
        ("39,", "130,", "age must be .* has '130'"),
        ("2174", "-1", "capital-gain must be a whole number .* has '-1'"),
        ("40, United-States, <=50K", "40", "must have 15 cells a line, line 1 has 13 .a file cut short"),
        ("<=50K", "50K", "income must be one of <=50K, >50K, record 0 .* has '50K'"),
        ("<=50K", ">50K", "2 classes must have a training record, class 0 has none"),
    ],
)
def test_adult_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    write_adult(tmp_path, lines=(ADULT[0].replace(old, new), ADULT[1]))
    with pytest.raises(ValueError, match=f"^adult: .*{message}"):
        data.load("adult", root=tmp_path)


def test_adult_files_missing_or_empty(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="adult: the data root .* must hold adult, .*https"):
        data.load("adult", root=tmp_path)
    write_adult(tmp_path, lines=())
    with pytest.raises(ValueError, match="adult: .*adult.data must hold at least one record"):
        data.load("adult", root=tmp_path)
    write_adult(tmp_path)
    (tmp_path / "adult/adult.test").unlink()
    with pytest.raises(ValueError, match="adult: .* must hold adult.test, it does not"):
        data.load("adult", root=tmp_path)


def test_real_adult() -> None:
    real("adult")
    loaded = data.load("adult")
    # The counts that UCI's documentation gives: 32 561 and 16 281 records, 24.08 % and 23.62 % above 50K.
    assert (len(loaded.y), len(loaded.y_test)) == (32_561, 16_281)
    assert (int(loaded.y.sum()), int(loaded.y_test.sum())) == (7841, 3846)
    assert loaded.x.min() == 0.0 and loaded.x.max() == 1.0
    groups = feature_groups(loaded.columns)
    for attribute in ("workclass", "education", "race", "sex", "native-country"):
        assert (loaded.x[:, list(groups[attribute])].sum(axis=1) == 1.0).all()


# criteo

HEADER = ",".join(["Id", "Label", *(f"I{i}" for i in range(1, 14)), *(f"C{i}" for i in range(1, 27))])


def criteo_line(*, label: str = "1", count: str = "5", category: str = "68fd1e64") -> str:
    return ",".join(["10", label, count, "", *["0"] * 11, category, "", *["ab"] * 24])


def write_criteo(root: Path, lines: list[str], *, header: str = HEADER, file: str = "train.csv") -> None:
    (root / "criteo_sample").mkdir(exist_ok=True)
    (root / "criteo_sample" / file).write_text("\n".join([header, *lines, ""]))


@pytest.mark.parametrize("file", ["train.csv", "guestwalk_train.tiny.csv"])
def test_criteo(tmp_path: Path, file: str) -> None:
    lines = [criteo_line(label=str(place % 2), count="-2" if place % 2 else "5") for place in range(20)]
    write_criteo(tmp_path, lines, file=file)
    loaded = data.load("criteo_sample", root=tmp_path)
    assert loaded.x.shape == (16, 858) and loaded.x_test.shape == (4, 858)
    one = dict(zip(loaded.columns, loaded.x[loaded.y == 0][0].tolist(), strict=True))
    other = dict(zip(loaded.columns, loaded.x[loaded.y == 1][0].tolist(), strict=True))
    assert one["I1=count"] == pytest.approx(math.log(6) / 10) and one["I1=missing"] == 0.0
    assert other["I1=count"] == pytest.approx(-math.log(3) / 10)
    assert one["I2=count"] == 0.0 and one["I2=missing"] == 1.0
    assert {k for k, v in one.items() if v and k.startswith("C1=")} == {
        f"C1={zlib.crc32(b'C1=68fd1e64') % 32}"
    }
    assert not any(v for k, v in one.items() if k.startswith("C2="))
    groups = feature_groups(loaded.columns)
    assert (len(groups["I1"]), len(groups["C26"])) == (2, 32)


def test_criteo_buckets(tmp_path: Path) -> None:
    write_criteo(tmp_path, [criteo_line(label=str(place % 2)) for place in range(20)])
    loaded = criteo.load("criteo_sample", name="c", source="s", root=tmp_path, buckets=4)
    assert loaded.x.shape[1] == len(loaded.columns) == 26 + 26 * 4


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            criteo_line(count="nan"),
            "I1 must be empty or a whole number of size <= 1e.12, record 20 .* has 'nan'",
        ),
        (criteo_line(count="1.5"), "I1 must be .* has '1.5'"),
        (criteo_line(count="9" * 400), "I1 must be"),
        (criteo_line(label=""), "labels must be 0 or 1, record 20 of .* has ''"),
        (criteo_line(label="2"), "labels must be 0 or 1, record 20 of .* has '2'"),
        ("10,1,5", "must have 41 cells a line, record 20 has 3 .a file cut short"),
    ],
)
def test_criteo_refused(tmp_path: Path, line: str, message: str) -> None:
    write_criteo(tmp_path, [*(criteo_line(label=str(place % 2)) for place in range(20)), line])
    with pytest.raises(ValueError, match=f"^criteo_sample: .*{message}"):
        data.load("criteo_sample", root=tmp_path)


def test_criteo_missing_or_other_header(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="criteo_sample: .* must hold criteo_sample/train.csv or .*header"):
        data.load("criteo_sample", root=tmp_path)
    write_criteo(tmp_path, [criteo_line()], header="Id,Label")
    with pytest.raises(ValueError, match="criteo_sample: .* must open with the header .* got 'Id,Label'"):
        data.load("criteo_sample", root=tmp_path)
    write_criteo(tmp_path, [])
    with pytest.raises(ValueError, match="criteo_sample: .* must hold at least one record"):
        data.load("criteo_sample", root=tmp_path)


def test_real_criteo_sample() -> None:
    real("criteo_sample")
    loaded = data.load("criteo_sample")
    assert len(loaded.y) + len(loaded.y_test) == 1999
    assert np.isfinite(loaded.x).all() and np.abs(loaded.x).max() < 2.0
    assert set(np.unique(loaded.y)) == {0, 1}
