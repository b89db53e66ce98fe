"""The `troop` command: asks the deployed API for everything, with requests signed by the caller's AWS credentials.

It reads the pure core (keys of a policy and their parsers), and knows nothing of the tables behind the API.
"""
