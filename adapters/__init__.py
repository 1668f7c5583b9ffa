"""Implementations of the ports: one folder per port, one file per implementation."""
