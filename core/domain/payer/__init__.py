"""Content of the hosted pages."""
