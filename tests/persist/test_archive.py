"""Damaged and dishonest files are refused before they cost memory."""

import zipfile

import numpy as np
import pytest
from forgery import envelope, estimator, forge, header_of, npy, refused
from toy_learners import fitted

from attnlab import __version__, persist
from attnlab.persist import BadFile, load, save


def test_the_file_is_an_npz_with_a_json_header_and_the_same_bytes_each_time(tmp_path):
    for name in ("a.npz", "b.npz"):
        save(fitted(weights_=np.arange(3.0)), tmp_path / name)
    header = header_of(tmp_path / "a.npz")
    assert (header["format"], header["version"], header["attnlab"]) == ("attnlab learner", 1, __version__)
    assert header["learner"]["class"] == "slr.Mean"
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_missing_header_and_a_missing_array_are_refused(tmp_path):
    forge(tmp_path / "bad.npz", **{"a0.npy": npy(np.zeros(2))})
    refused(tmp_path / "bad.npz", "'header.json' is missing")
    reference = {"$": "array", "name": "a0", "dtype": "<f8", "shape": [2]}
    forge(tmp_path / "bad.npz", envelope(estimator(fitted={"mean_": reference})))
    refused(tmp_path / "bad.npz", "'a0' is missing")
    twice = envelope(estimator(fitted={"mean_": reference, "more_": reference}))
    forge(tmp_path / "bad.npz", twice, **{"a0.npy": npy(np.zeros(2))})
    refused(tmp_path / "bad.npz", "used twice")


def test_members_that_the_header_does_not_mention_are_refused(tmp_path):
    forge(tmp_path / "bad.npz", envelope(estimator()), **{"a0.npy": npy(np.zeros(2))})
    refused(tmp_path / "bad.npz", "not mentioned")


@pytest.mark.parametrize(("dtype", "shape"), [("<f4", [2]), ("<f8", [1, 2]), ("<f8", ["2"]), ("float64", [2])])
def test_an_array_unlike_its_description_is_refused(dtype, shape, tmp_path):
    reference = {"$": "array", "name": "a0", "dtype": dtype, "shape": shape}
    forge(tmp_path / "bad.npz", envelope(estimator(fitted={"mean_": reference})), **{"a0.npy": npy(np.zeros(2))})
    refused(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    "name",
    ["../a0.npy", "/a0.npy", "a0.npy/", "C:a0.npy", "a0", "a00.npy", "a0.npy\0.txt", "evil.py", "A0.npy", "a٣.npy"],
)
def test_other_member_names_are_refused(name, tmp_path):
    forge(tmp_path / "bad.npz", envelope(estimator()), **{name: npy(np.zeros(2))})
    refused(tmp_path / "bad.npz")


def test_two_members_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "bad.npz", "w") as archive:
        archive.writestr("a0.npy", npy(np.zeros(1)))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("a0.npy", npy(np.ones(1)))
    refused(tmp_path / "bad.npz", "holds a member 'a0.npy'")


def preamble(descr: str, shape: str, length: int | None = None) -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + (length or len(text)).to_bytes(2, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        preamble("'<f8'", "(1000000000000,)") + bytes(16),
        preamble("'<f8'", "(3,)") + bytes(16),
        preamble("'<f8'", "(1,)") + bytes(16),
        preamble("'<f8'", "(-1, -2)") + bytes(16),
        preamble("'<f8'", "(4294967296, 4294967296, 4294967296)"),
        preamble("'<f8'", "(0, 9999999999999999999)"),
        preamble("'<U0'", "(1000000000000,)"),
        preamble("'<U999999999'", "(1,)") + bytes(16),
        preamble("'|O'", "(2,)") + bytes(16),
        preamble("'|V8'", "(2,)") + bytes(16),
        preamble("'<M8'", "(2,)") + bytes(16),
        preamble("[('a', '<f8')]", "(2,)") + bytes(16),
        preamble("__import__('os').getcwd()", "(2,)") + bytes(16),
        preamble("'<f8'", "(2,)", length=9) + bytes(16),
        preamble("'<f8'", "(" + "1" * 5000 + ",)") + bytes(16),
        preamble("'<f8'", "(" * 900 + ")" * 900) + bytes(16),
        preamble("'<f8'", "(2, )").replace(b"NUMPY\x01", b"NUMPY\x03") + bytes(16),
        b"\x93NUMPY",
        b"",
        bytes(200),
    ],
    ids=range(20),
)
def test_arrays_whose_claims_do_not_fit_their_bytes_are_refused_before_they_are_read(content, tmp_path, monkeypatch):
    claimed = [int(1e12)]
    reference = {"$": "array", "name": "a0", "dtype": "<f8", "shape": claimed}
    forge(tmp_path / "bad.npz", envelope(estimator(fitted={"mean_": reference})), **{"a0.npy": content})
    read, read_array = [], np.lib.format.read_array

    def watched(member, **options):
        read.append(member.name)
        return read_array(member, **options)

    monkeypatch.setattr(np.lib.format, "read_array", watched)
    refused(tmp_path / "bad.npz")
    assert read == ["header.json.npy"]


def test_the_largest_file_is_a_parameter(tmp_path):
    path = tmp_path / "learner.npz"
    save(fitted(weights_=np.zeros(1000)), path)
    size = path.stat().st_size
    assert load(path, max_bytes=size).weights_.shape == (1000,)
    refused(path, f"{size} bytes are more than max_bytes={size - 1}", max_bytes=size - 1)


def test_compressed_members_are_refused_so_that_no_file_unpacks_to_more_than_itself(tmp_path):
    reference = {"$": "array", "name": "a0", "dtype": "|u1", "shape": [10**7]}
    header = envelope(estimator(fitted={"mean_": reference}))
    forge(tmp_path / "bad.npz", header, compression=zipfile.ZIP_DEFLATED, **{"a0.npy": npy(np.zeros(10**7, np.uint8))})
    assert (tmp_path / "bad.npz").stat().st_size < 10**5
    refused(tmp_path / "bad.npz", "compressed")


def test_overlapping_members_are_refused(tmp_path):
    """Two entries of the directory that point at the same bytes, each as large as the file."""
    path = tmp_path / "bad.npz"
    forge(path, envelope(estimator()), **{"a0.npy": npy(np.zeros(1000)), "a1.npy": npy(np.zeros(1))})
    raw = bytearray(path.read_bytes())
    entry = raw.rindex(b"a1.npy") - 46
    first = raw.rindex(b"a0.npy") - 46
    raw[entry + 16 : entry + 28] = raw[first + 16 : first + 28]  # CRC and both sizes
    raw[entry + 42 : entry + 46] = raw[first + 42 : first + 46]  # offset
    path.write_bytes(raw)
    refused(path, "more bytes than the file has")


def test_a_long_header_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(persist, "MAX_HEADER", 100)
    forge(tmp_path / "bad.npz", envelope(estimator()))
    refused(tmp_path / "bad.npz", "at most 100")


def test_every_truncation_and_any_flipped_byte_of_the_data_is_noticed(tmp_path, seed):
    path = tmp_path / "learner.npz"
    weights = np.random.default_rng(seed).standard_normal(20)
    save(fitted(weights_=weights), path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        refused(path)
    start = whole.index(weights.tobytes())
    for place in range(start, start + weights.nbytes, 11):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        refused(path, "CRC")


def test_any_damage_ends_in_the_same_error_or_in_the_same_learner(tmp_path, seed):
    path = tmp_path / "learner.npz"
    save(fitted(weights_=np.arange(5.0), note_=["a", {"b": (1,)}]), path)
    whole, rng = path.read_bytes(), np.random.default_rng(seed)
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        try:
            learner = load(path)
        except BadFile:
            continue
        # Bytes that no reader looks at (time stamps, host system) may change.
        assert np.array_equal(learner.weights_, np.arange(5.0))
        assert learner.note_ == ["a", {"b": (1,)}]


def test_missing_files_and_folders_are_ordinary_errors(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "absent.npz")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    with pytest.raises(FileNotFoundError):
        save(fitted(), tmp_path / "absent" / "learner.npz")
