"""The driver, which runs inside the sandbox, without mleredux."""
