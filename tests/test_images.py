"""Pictures of every kind come in as what they show, and go out as what they are."""

import numpy as np
import pytest

from lucid_onnx import ArgumentError
from lucid_onnx.images import read_image, write_image

image = pytest.importorskip("PIL.Image", reason="pictures need Pillow")

PIXELS = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)


def save(path, pixels, mode=None, **keywords):
    picture = image.fromarray(pixels)
    (picture if mode is None else picture.convert(mode)).save(path, **keywords)
    return path


def test_rgb_runs_from_0_to_1(tmp_path):
    x = read_image(save(tmp_path / "p.png", PIXELS))
    assert (x.shape, x.dtype) == ((1, 3, 4, 6), np.float32)
    np.testing.assert_array_equal(x[0], np.moveaxis(PIXELS, -1, 0) / np.float32(255))


@pytest.mark.parametrize("mode", ["L", "P", "1", "CMYK", "RGBA", "LA"])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_any_mode_gives_the_channels_that_are_asked_for(tmp_path, mode, channels):
    path = save(tmp_path / ("p.tiff" if mode == "CMYK" else "p.png"), PIXELS, mode)
    x = read_image(path, channels)
    assert x.shape == (1, channels, 4, 6)
    assert 0 <= x.min() <= x.max() <= 1


def test_16_bits_keep_their_range(tmp_path):
    grey = np.linspace(0, 65535, 24).astype(np.uint16).reshape(4, 6)
    x = read_image(save(tmp_path / "p.png", grey))
    np.testing.assert_allclose(x[0], np.stack([grey / 65535] * 3), rtol=1e-6)
    assert (read_image(tmp_path / "p.png", 4)[0, 3] == 1).all()


def test_pixels_without_a_range_are_refused(tmp_path):
    path = save(tmp_path / "p.tiff", np.ones((4, 6), np.float32))
    with pytest.raises(ArgumentError, match="no fixed range"):
        read_image(path)


def test_a_phone_held_upright_is_upright(tmp_path):
    exif = image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees to see it right
    path = save(tmp_path / "p.jpg", PIXELS, exif=exif)
    assert read_image(path).shape == (1, 3, 6, 4)


def test_large_pictures_are_scaled_down_if_asked(tmp_path):
    path = save(tmp_path / "p.png", np.zeros((40, 100, 3), np.uint8))
    assert read_image(path, longest=50).shape == (1, 3, 20, 50)
    assert read_image(path, longest=200).shape == (1, 3, 40, 100)


def test_a_picture_that_would_fill_the_memory_is_refused(tmp_path, monkeypatch):
    path = save(tmp_path / "p.png", PIXELS)
    monkeypatch.setattr(image, "MAX_IMAGE_PIXELS", 5)
    with pytest.raises(ArgumentError, match="is not a picture that can be read"):
        read_image(path)


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 1, 1), (1, 1, 7), (1, 7, 1), (3, 1, 7), (3, 7, 1), (4, 1, 3), (3, 4, 5)]
)
def test_what_is_written_is_read_again(tmp_path, shape):
    pixels = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    for array in (pixels, pixels / np.float32(255), pixels / np.float64(255)):
        write_image(tmp_path / "p.png", array)
        with image.open(tmp_path / "p.png") as picture:
            assert picture.size == shape[:0:-1]
        again = np.rint(read_image(tmp_path / "p.png", shape[0])[0] * 255)
        np.testing.assert_array_equal(again, pixels)


def test_what_lies_outside_is_clipped_and_nan_is_black(tmp_path):
    write_image(tmp_path / "p.png", np.float32([[[-1, 0.5, 2, np.nan, np.inf]]]))
    assert np.rint(read_image(tmp_path / "p.png", 1) * 255).ravel().tolist() == [0, 128, 255, 0, 255]


@pytest.mark.parametrize(
    "array", [np.zeros((2, 3, 3)), np.zeros((3, 0, 3)), np.zeros((3, 3)), np.zeros((3, 3, 3), int)]
)
def test_what_is_no_picture_is_not_written(tmp_path, array):
    with pytest.raises(ArgumentError, match="a picture is"):
        write_image(tmp_path / "p.png", array)
    assert not list(tmp_path.iterdir())


def test_other_numbers_of_channels_are_refused(tmp_path):
    with pytest.raises(ArgumentError, match="cannot be read as 2"):
        read_image(save(tmp_path / "p.png", PIXELS), channels=2)
