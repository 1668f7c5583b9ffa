"""The HTTP application, made of the API, the payer's pages and the dashboard, and the server that runs it."""
