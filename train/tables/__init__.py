"""Tables: their public domain, their text, and what is released of them."""
