"""The OpenAPI document, built from the operations with values, meanings and examples, and the pages of `/docs`."""
