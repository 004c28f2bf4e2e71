"""The asynchronous client, from which the synchronous one (`mleredux_client._sync`) is generated."""
