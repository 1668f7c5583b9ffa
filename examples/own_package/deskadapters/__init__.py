"""Custom adapters as a package: its pyproject.toml declares them, and its conftest.py simulates their providers.

pip install -e '.[dev]'
pytest --pyargs cambist.conformance.rates cambist.conformance.kyc
"""
