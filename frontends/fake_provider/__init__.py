"""A fake of a provider's HTTP interface that fails as providers do, for whoever writes an adapter (docs/adapters.md "A
provider that fails"). Plain asyncio: it needs nothing that cambist alone does not bring."""
