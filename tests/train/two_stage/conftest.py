"""Runs here differ in little: what one has compiled the next takes from a folder."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import pytest

_SETTINGS = {
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": -1,
}


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    before = {name: getattr(jax.config, name) for name in ("jax_compilation_cache_dir", *_SETTINGS)}
    for name, value in {
        "jax_compilation_cache_dir": str(tmp_path_factory.mktemp("xla")),
        **_SETTINGS,
    }.items():
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)
