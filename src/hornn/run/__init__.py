"""A run: who it is, its folder, its training or counting, what it logs and keeps."""
