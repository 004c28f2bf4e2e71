"""Tasks whose submission is a program: code, a service, a model and a policy, on the data of other starter tasks."""
