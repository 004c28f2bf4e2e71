"""Accounts: authentication, permissions, and the secrets that users give to runs.

| modules | contents |
|---|---|
| `identity`, `accounts` | generated ids and tokens; creating and changing users, projects and tokens |
| `security`, `limits` | a caller's token and permissions; rate limits before and after authentication |
| `vault`, `secrets`, `passed_secrets` | encrypting and storing users' secrets; the values that runs received |
"""
