"""Speed of accountants side by side: each query in a fresh process, at equal or smaller error."""
