"""GPT-2 in Flax: model, weights, tokeniser, generation."""
