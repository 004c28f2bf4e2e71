"""The protocols of what executes runs elsewhere, and of object stores; plugins implement them."""
