"""Revisions. The number at the start of a file's name is its revision id; the highest is what this program needs."""
