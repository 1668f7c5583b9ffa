"""What both databases share: the schema, its revisions, statements and what is asked by them."""
