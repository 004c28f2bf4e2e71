"""The web pages of `mleredux view` behind the accounts of this server, and a page about the server itself."""
