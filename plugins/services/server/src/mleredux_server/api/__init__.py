"""The routes of `/v1`, one file a noun."""
