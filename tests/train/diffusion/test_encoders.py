"""Encoders: the random one needs nothing, Inception's weights come from a file that is checked."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from exactdp.train.diffusion import Inception, RandomConvolution, inception, quality, weights

RNG = np.random.default_rng(11)
IMAGES = RNG.integers(0, 256, (70, 12, 9, 3)).astype(np.uint8)


def test_random_features_are_fixed_and_of_one_image_each() -> None:
    encoder = RandomConvolution(filters=4)
    features = encoder.features(IMAGES)
    # 12 x 9 and 6 x 4, of which the second has a side below 5: one scale.
    assert features.shape == (70, 48 + 16) and features.dtype == np.float64
    np.testing.assert_allclose(encoder.features(IMAGES[64:]), features[64:], rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(encoder.features(IMAGES), features)
    assert encoder.distance_name == "Frechet distance, random-convolution features"
    # The filters are a constant of the package: numbers of one release and the next are comparable.
    np.testing.assert_allclose(
        encoder.kernels(3)[0, 0, :, 0], [-0.01927798, 0.05118715, 0.17860228], rtol=1e-5
    )


def test_random_features_by_hand() -> None:
    encoder = RandomConvolution(filters=2, scales=2)
    image = IMAGES[:1, :10, :, :1][:, :, :9]
    pixels = image[0, :, :, 0] / 127.5 - 1.0
    found = encoder.features(image)[0]
    assert found.shape == (16 + 2 * 4,)
    rows, columns = (0, 2, 5, 8, 10), (0, 2, 4, 7, 9)
    colours = [
        pixels[a:b, c:d].mean()
        for a, b in zip(rows, rows[1:], strict=False)
        for c, d in zip(columns, columns[1:], strict=False)
    ]
    np.testing.assert_allclose(found[:16], colours, atol=1e-6)
    kernel = encoder.kernels(1)[:, :, 0, :2]
    np.testing.assert_allclose(kernel.sum((0, 1)), 0.0, atol=1e-5)
    np.testing.assert_allclose((kernel**2).sum((0, 1)), 1.0, rtol=1e-5)
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (5, 5))
    response = np.abs(np.einsum("hwab,abf->hwf", windows, kernel))
    cells = [response[a:b, c:d].mean((0, 1)) for a, b in ((0, 3), (3, 6)) for c, d in ((0, 2), (2, 5))]
    np.testing.assert_allclose(found[16:], np.concatenate(cells), rtol=1e-4)


def test_random_features_tell_noisier_and_duller_images_from_real_ones() -> None:
    base = np.kron(RNG.integers(60, 200, (80, 3, 3, 1)), np.ones((1, 4, 4, 1)))

    def noisy(std: float) -> np.ndarray:
        return np.clip(base + std * RNG.normal(size=base.shape), 0, 255).astype(np.uint8)

    encoder = RandomConvolution(filters=8)
    distances = [quality(noisy(5.0), noisy(std), encoder=encoder).distance for std in (5.0, 20.0, 60.0)]
    assert distances[0] < 0.2 * distances[1] < 0.1 * distances[2]
    dull = np.full_like(noisy(5.0), 128)
    found = quality(noisy(5.0), dull, encoder=encoder)
    assert found.recall < 0.05 and found.num_real == found.num_generated == 80
    assert found.distance_name == encoder.distance_name and "FID" not in found.distance_name


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (IMAGES[0], "images must be uint8"),
        (IMAGES.astype(np.float32), "images must be uint8"),
        (IMAGES[..., :2], "images must have one or three channels, got 2"),
        (IMAGES[:0], "images must be uint8"),
        (IMAGES[:, :4], "sides of images must be"),
    ],
)
def test_bad_images(images: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RandomConvolution().features(images)


def test_bad_settings_and_pairs() -> None:
    with pytest.raises(ValueError, match="filters must be"):
        RandomConvolution(filters=0)
    with pytest.raises(ValueError, match="scales must be"):
        RandomConvolution(scales=0)
    with pytest.raises(ValueError, match="generated must be of the shape of real"):
        quality(IMAGES, IMAGES[:, :9], encoder=RandomConvolution())


def write_safetensors(path: Path, tensors: Mapping[str, np.ndarray]) -> None:
    names = {np.dtype(np.float16): "F16", np.dtype(np.float32): "F32", np.dtype(np.int64): "I64"}
    header, start = {}, 0
    for name, value in tensors.items():
        place = [start, start + value.nbytes]
        header[name] = {
            "dtype": names[value.dtype],
            "shape": list(value.shape),
            "data_offsets": place,
        }
        start += value.nbytes
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    with path.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for value in tensors.values():
            stream.write(np.ascontiguousarray(value).tobytes())


def made_up_weights() -> dict[str, np.ndarray]:
    """Weights of the layout, from a stream that NumPy keeps for good, name by name in order."""
    state, tensors = np.random.RandomState(7), {}
    for name, shape in sorted(inception.tensor_shapes().items()):
        if name == "fc.weight":
            value = np.zeros(shape)
        elif name.endswith("conv.weight"):
            value = state.standard_normal(shape) * np.sqrt(2.0 / np.prod(shape[1:]))
        elif name.endswith("running_var"):
            value = 0.5 + state.random_sample(shape)
        elif name.endswith("bn.weight"):
            value = 0.8 + 0.2 * state.random_sample(shape)
        else:
            value = 0.1 * state.standard_normal(shape)
        tensors[name] = value.astype(np.float16)
    return tensors


@pytest.fixture(scope="module")
def made_up() -> dict[str, np.ndarray]:
    return made_up_weights()


EXPECTED = [0.0, 0.0989466, 0.310431, 0.177571, 0.0628834, 0.925889, 0.313204]


def test_inception_equals_the_network_of_the_port(made_up: dict[str, np.ndarray], tmp_path: Path) -> None:
    """With the same weights, torchvision 0.29's network with FID's poolings gave these features."""
    extra = {
        "Conv2d_1a_3x3.bn.num_batches_tracked": np.zeros((), np.int64),
        "fc.bias": np.zeros(1008, np.float16),
    }
    write_safetensors(tmp_path / "inception.safetensors", {**made_up, **extra})
    encoder = Inception(tmp_path / "inception.safetensors")
    image = np.random.RandomState(3).randint(0, 256, (1, 11, 14, 3)).astype(np.uint8)
    features = encoder.features(image)
    assert encoder.distance_name == "FID" and features.shape == (1, 2048)
    np.testing.assert_allclose(features[0, [319, 1000, 1087, 1088, 1800, 1856, 2047]], EXPECTED, rtol=2e-4)
    np.testing.assert_allclose(np.linalg.norm(features), 12.1571633, rtol=2e-5)


def test_the_network_has_its_published_size() -> None:
    """21.8 million weights before the classifier, in 94 convolutions."""
    shapes = inception.tensor_shapes()
    kernels = [shape for name, shape in shapes.items() if name.endswith("conv.weight")]
    assert len(kernels) == 94
    learned = sum(
        int(np.prod(shape)) for name, shape in shapes.items() if "running" not in name and name != "fc.weight"
    )
    assert learned == 21_785_568
    assert shapes["Mixed_6c.branch7x7dbl_3.conv.weight"] == (160, 160, 1, 7)
    assert shapes["Mixed_7c.branch3x3dbl_1.conv.weight"] == (448, 2048, 1, 1)


SMALL = {"a.weight": (2, 3), "b.bias": (2,)}
GOOD = {"a.weight": np.ones((2, 3), np.float32), "b.bias": np.arange(2, dtype=np.float32)}


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_tensors_are_read_by_name_and_refused_by_name(tmp_path: Path, suffix: str) -> None:
    def write(tensors: Mapping[str, np.ndarray]) -> Path:
        path = tmp_path / f"weights{suffix}"
        if suffix == ".npz":
            np.savez(path, **tensors)
        else:
            write_safetensors(path, tensors)
        return path

    found = weights.read(write({**GOOD, "more": np.zeros(3, np.float32)}), shapes=SMALL)
    assert set(found) == set(SMALL) and found["a.weight"].dtype == np.float32
    np.testing.assert_array_equal(found["b.bias"], [0.0, 1.0])
    refused = [
        ({"a.weight": GOOD["a.weight"]}, r"must have a tensor b.bias of shape \(2,\), it is missing"),
        ({**GOOD, "a.weight": np.ones((3, 2), np.float32)}, r"a.weight must be floating of shape \(2, 3\)"),
        ({**GOOD, "b.bias": np.arange(2)}, "b.bias must be floating"),
        ({**GOOD, "b.bias": np.array([0.0, np.nan], np.float32)}, "b.bias must be finite"),
    ]
    for tensors, message in refused:
        with pytest.raises(ValueError, match=message):
            weights.read(write(tensors), shapes=SMALL)
    path = write(GOOD)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ValueError, match="path must be a whole"):
        weights.read(path, shapes=SMALL)
    path.write_bytes(b"\x01\x02")
    with pytest.raises(ValueError, match="path must be a whole"):
        weights.read(path, shapes=SMALL)


def test_bfloat16_is_read(tmp_path: Path) -> None:
    """1.5 and -2 in bfloat16: the upper halves of their float32."""
    header = json.dumps({"w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    path = tmp_path / "w.safetensors"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\xc0\x3f\x00\xc0")
    np.testing.assert_array_equal(weights.read(path, shapes={"w": (2,)})["w"], [1.5, -2.0])


def test_files_that_are_no_weights_of_this_network(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="path must be a file"):
        Inception(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="path must end in .safetensors or .npz"):
        Inception(tmp_path / "weights.pth")
    # The network of torchvision has tensors of the same names, and a classifier of 1000 classes.
    np.savez(tmp_path / "imagenet.npz", **{"fc.weight": np.zeros((1000, 2048), np.float16)})
    with pytest.raises(ValueError, match=r"fc.weight must be floating of shape \(1008, 2048\)"):
        Inception(tmp_path / "imagenet.npz")
    np.savez(tmp_path / "rest.npz", **{"fc.weight": np.zeros((1008, 2048), np.float16)})
    with pytest.raises(ValueError, match="must have a tensor Conv2d_1a_3x3.conv.weight"):
        Inception(tmp_path / "rest.npz")
