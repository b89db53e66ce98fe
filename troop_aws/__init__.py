"""The installed package: the command `troop` (:mod:`troop_aws.__main__`) and a construct for CDK apps
(:mod:`troop_aws.cdk`).

In a wheel, it contains the code of the other folders, whose own names are too common for an environment of others.
"""
