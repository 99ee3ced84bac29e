"""What the scripts of paper A's results (arXiv 2607.19580v1) share: data, sweeps over runs, figures."""
