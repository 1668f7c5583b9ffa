"""Registers of days, months and periods: their rows, their files, and the jobs that write them."""
