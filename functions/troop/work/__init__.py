"""Gives workers on nodes the tasks of their fleet's queue, and stores their results.

It needs only Python 3.9 and the standard library. A worker is a loop::

    from troop.work import tasks

    for task in tasks():
        with task:
            task.deliver(process(task.body))

Tasks are leased: a thread renews their leases while they are in hand. A task whose worker is lost comes back after its
lease. So a task can be worked on twice, but only one of its results is stored.
"""

from troop.work.errors import WorkError
from troop.work.task import Task
from troop.work.worker import tasks

__all__ = ["Task", "WorkError", "tasks"]
