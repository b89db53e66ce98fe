"""Takes the pictures of the documents from a deployment on local AWS after some minutes of work.

:mod:`scene` runs the deployment, :mod:`dashboard_sources` reads the data of dashboards, :mod:`points` and :mod:`curves`
compute metrics as CloudWatch does, :mod:`board` lays a dashboard out by its definition, :mod:`camera` takes screenshots
in a browser, :mod:`take` is the command. Nothing in a picture is invented: widgets without local data are empty.
"""
