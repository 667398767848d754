"""Many runs by one command: which ones there are, each in a process of its own, and what became of them."""
