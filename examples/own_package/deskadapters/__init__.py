"""Adapters of one's own, as a package: its pyproject.toml declares them, its conftest.py plays their providers.

pip install -e '.[dev]'
pytest --pyargs cambist.conformance.rates cambist.conformance.kyc
"""
