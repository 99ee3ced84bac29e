"""Checks published privacy claims against certified intervals."""
