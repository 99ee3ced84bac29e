"""Public feature maps in words, as the command line takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from exactdp.mechanisms.public import columns, images
from exactdp.mechanisms.public.columns import Columns
from exactdp.mechanisms.public.input_map import Composed, Identity, InputMap
from exactdp.mechanisms.public.public import Public

FORMS = (
    "none, label, features, columns:0-99,age, private:sex,race (all other columns are public), "
    "region:top=0,bottom=8,left=0,right=8, blur:sigma=2, downsample:factor=4; +label for the label too, "
    "A>B for B of A"
)


def parse(
    text: str,
    *,
    num_columns: int = 0,
    names: Sequence[str] = (),
    label_prior: tuple[float, ...] | None = None,
) -> Public:
    """The public feature map that a text describes.

    Args:
      text: one of the forms in `FORMS`.
      num_columns: of the records, where they are tabular.
      names: of the columns, where they have any.
      label_prior: as `Public` takes it.

    Raises:
      ValueError: the text has another form, or names a column that is not there.
    """
    parts = text.strip().split("+")
    label = "label" in parts
    rest = [part for part in parts if part != "label"]
    if parts.count("label") > 1 or len(rest) > 1 or ("none" in rest and label):
        raise ValueError(f"public must be one map of the input, +label or not, got {text!r}")
    inputs = None if not rest or rest == ["none"] else _maps(rest[0], num_columns, names)
    return Public(inputs, label, label_prior)


def _maps(text: str, num_columns: int, names: Sequence[str]) -> InputMap:
    found = [_map(part, num_columns, names) for part in text.split(">")]
    whole = found[0]
    for then in found[1:]:
        whole = Composed(whole, then)
    return whole


def _map(text: str, num_columns: int, names: Sequence[str]) -> InputMap:
    kind, colon, inner = text.partition(":")
    if text == "features":
        return Identity()
    if not colon or not inner:
        raise ValueError(f"public must be one of the forms {FORMS}, got {text!r}")
    if kind in ("columns", "private"):
        words = [word for word in inner.split(",") if not word.startswith("fill=")]
        fill = [word.removeprefix("fill=") for word in inner.split(",") if word.startswith("fill=")]
        if len(fill) > 1:
            raise ValueError(f"fill must be given once, got {inner!r}")
        found = columns.named(words, names=names, num_columns=num_columns)
        if kind == "private":
            found = tuple(sorted(set(range(num_columns)) - set(found)))
        return Columns(found, *(_number("fill", value) for value in fill))
    made: Mapping[str, tuple[Callable[..., InputMap], Mapping[str, Callable[[str, str], Any]]]] = {
        "region": (
            images.Region,
            dict.fromkeys(("top", "bottom", "left", "right"), _whole) | {"fill": _number},
        ),
        "blur": (images.Blur, {"sigma": _number, "kernel": _word}),
        "downsample": (images.Downsample, {"factor": _whole}),
    }
    if kind not in made:
        raise ValueError(f"public must be one of the forms {FORMS}, got {text!r}")
    build, readers = made[kind]
    values: dict[str, Any] = {}
    for word in inner.split(","):
        name, equals, value = word.partition("=")
        if not equals or name not in readers or name in values:
            raise ValueError(f"{kind} must be given as {', '.join(f'{n}=X' for n in readers)}, got {word!r}")
        values[name] = readers[name](name, value)
    try:
        return build(**values)
    except TypeError:
        raise ValueError(
            f"{kind} must be given as {', '.join(f'{n}=X' for n in readers)}, got {inner!r}"
        ) from None


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {value!r}") from None


def _whole(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{name} must be a whole number, got {value!r}") from None


def _word(name: str, value: str) -> str:
    if not value:
        raise ValueError(f"{name} must not be empty, got an empty word")
    return value
