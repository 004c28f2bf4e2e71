"""What runs inside the sandbox, without mleredux."""
