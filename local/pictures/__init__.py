"""Pictures for the documents: what a deployment on local AWS shows after it has been at work for some minutes.

:mod:`scene` brings that about, :mod:`seen` reads what dashboards show, :mod:`points` and :mod:`curves` do with metrics
what CloudWatch does with them, :mod:`board` lays a dashboard out by its definition, :mod:`camera` looks at it in a
browser, :mod:`take` is the command. Nothing in a picture is made up: what local AWS does not measure is empty.
"""
