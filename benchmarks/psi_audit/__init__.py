"""Is a public feature map safe to call public: re-identification, Ball and Theorem 4 of arXiv 2506.19836."""
