"""A fake HTTP provider with realistic failures, for authors of adapters (docs/adapters.md "A provider that fails").
Plain asyncio, without dependencies beyond those of cambist."""
