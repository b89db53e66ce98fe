"""What people, and AWS itself, do while Troop works: each change at a moment of its own choosing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.model.alarms import ALARM, MISSING, NAMES, OK, change_alarm
from tests.model.fleet import Group, Instance

if TYPE_CHECKING:
    from tests.model.world import World


class People:
    """Changes something, a bounded number of times; half of the time where a claim stands right now."""

    def __init__(self, world: World, most: int) -> None:
        self._world, self.left = world, most
        self.changes: tuple[Callable[[], str], ...] = (
            self.halt, self.halt, self.unhalt, self.leash, self.unleash, self.opt_out, self.opt_out, self.opt_in,
            self.improbable, self.more_healthy, self.fewer_healthy,
            self.tag_group, self.delete_group, self.replace_group,
            self.kill, self.kill, self.stop, self.standby, self.scale, self.put_back, self.take_out,
            self.alarm, self.alarm, self.silence, self.change_alarm, self.delete_alarm,
            self.suspend, self.refresh, self.protect, self.scale_in_protect, self.shield, self.hinder, self.move,
        )  # fmt: skip

    def change(self) -> None:
        """Somebody does something."""
        if self.left > 0:
            self.left -= 1
            self._world.say("PEOPLE " + self._world.dice.choice(self.changes)())

    # The switch

    def _switch(self, **values: bool) -> str:
        item = self._world.dynamo.item("State", "switch") | {k: {"BOOL": v} for k, v in values.items()}
        self._world.dynamo.write("State", item | {"key": {"S": "switch"}})
        return f"switch {values}"

    def halt(self) -> str:
        return self._switch(halted=True)

    def unhalt(self) -> str:
        """Resumes chaos, also after the deployment has halted itself."""
        self._world.checks.verdicts.resumed()
        for key in ("self-halt", "broken"):
            self._world.dynamo.drop("State", key)
        return self._switch(halted=False)

    def leash(self) -> str:
        return self._switch(leashed=True)

    def unleash(self) -> str:
        return self._switch(leashed=False)

    # Policy by hand

    def _item(self, **values: Any) -> str:
        unit = self._world.dice.choice(("web", "db", "api"))
        item = self._world.dynamo.item("GroupTags", unit) | values
        self._world.dynamo.write("GroupTags", item | {"unit": {"S": unit}})
        return f"policy of {unit}: {values}"

    def opt_out(self) -> str:
        return self._item(opt_out={"BOOL": True})

    def opt_in(self) -> str:
        return self._item(opt_out={"BOOL": False})

    def improbable(self) -> str:
        return self._item(probability={"N": "0"})

    def more_healthy(self) -> str:
        return self._item(min_healthy={"N": "3"})

    def fewer_healthy(self) -> str:
        return self._item(min_healthy={"N": "1"})

    def put_back(self) -> str:
        for (key,), item in list(self._world.dynamo.tables["State"].items()):
            if key.startswith("unit#") and "unrecovered" in item:
                self._world.checks.verdicts.returned(key.removeprefix("unit#"))
                left = {k: v for k, v in item.items() if k not in ("unrecovered", "left_for")}
                self._world.dynamo.write("State", left)
                return f"{key} put back"
        return "nothing to put back"

    def take_out(self) -> str:
        unit = self._world.dice.choice(("web", "db", "api"))
        item = self._world.dynamo.item("State", f"unit#{unit}")
        self._world.dynamo.write("State", item | {"key": {"S": f"unit#{unit}"}, "unrecovered": {"S": "by hand"}})
        return f"{unit} taken out"

    # Groups and instances

    def _victim(self) -> Instance | None:
        """An instance, that of an open claim half of the time."""
        dice, instances = self._world.dice, self._world.fleet.instances
        named = [c["instance_id"] for c in self._world.checks.claims.values() if c["instance_id"] in instances]
        if named and dice.random() < 0.5:
            return instances[named[-1]]
        living = [i for i in instances.values() if i.state == "running"]
        return dice.choice(living) if living else None

    def _group(self) -> Group | None:
        groups = list(self._world.fleet.groups.values())
        return self._world.dice.choice(groups) if groups else None

    def _instance(self, words: str, act: Callable[[Instance], None]) -> str:
        if instance := self._victim():
            act(instance)
        return f"{words} {instance.instance_id if instance else 'nothing'}"

    def kill(self) -> str:
        return self._instance("terminate", self._world.fleet.end)

    def stop(self) -> str:
        def act(instance: Instance) -> None:
            if instance.state == "running":
                self._world.fleet.end(instance, "stopped")

        return self._instance("stop", act)

    def standby(self) -> str:
        def act(instance: Instance) -> None:
            if instance.lifecycle == "InService":
                self._world.fleet.standby(instance)

        return self._instance("standby", act)

    def protect(self) -> str:
        return self._instance("tag protected", lambda i: setattr(i, "tagged_protected", True))

    def scale_in_protect(self) -> str:
        return self._instance("protect from scale-in", lambda i: setattr(i, "scale_in_protected", True))

    def shield(self) -> str:
        return self._instance(
            "protect from termination", lambda i: setattr(i, "termination_protected", not i.termination_protected)
        )

    def _on_group(self, words: str, act: Callable[[Group], None]) -> str:
        if group := self._group():
            act(group)
        return f"{words} {group.name if group else 'nothing'}"

    def tag_group(self) -> str:
        tags = (("troop:protected", "x"), ("troop:opt_out", "true"), ("troop:fleet", "r"))
        key, value = self._world.dice.choice(tags)
        return self._on_group(f"tag {key}", lambda g: g.tags.update({key: value}))

    def move(self) -> str:
        """To another unit, or back."""

        def act(group: Group) -> None:
            if not group.tags.pop("troop:unit", ""):
                group.tags["troop:unit"] = "moved"

        return self._on_group("move", act)

    def delete_group(self) -> str:
        return self._on_group("delete", lambda g: self._world.fleet.delete(g.name))

    def replace_group(self) -> str:
        def act(group: Group) -> None:
            self._world.fleet.delete(group.name)
            name = "web-v042" if group.name.startswith("web-v") else group.name
            self._world.fleet.add(Group(name, group.desired, group.tags, weight=group.weight))

        return self._on_group("replace", act)

    def scale(self) -> str:
        change = self._world.dice.choice((-1, 1))
        return self._on_group(f"scale {change}", lambda g: self._world.fleet.scale(g, max(1, g.desired + change)))

    def suspend(self) -> str:
        return self._on_group("suspend", lambda g: g.suspended.add("Launch"))

    def refresh(self) -> str:
        status = self._world.dice.choice(("InProgress", "Successful"))
        return self._on_group(f"refresh {status}", lambda g: setattr(g, "refresh", status))

    def hinder(self) -> str:
        return self._on_group("hinder", lambda g: setattr(g, "boots", False))

    def alarm(self) -> str:
        """Sets an alarm's state, for a while or for good."""
        world, dice = self._world, self._world.dice
        name, state = dice.choice(NAMES), dice.choice((ALARM, OK, MISSING))
        world.cloudwatch.set(name, state)
        if dice.random() < 0.5:
            world.stage.at(world.stage.now + dice.uniform(1, 300), partial(world.cloudwatch.set, name, OK))
        return f"alarm {name} {state}"

    def silence(self) -> str:
        """Stops a metric for a while."""
        world, dice = self._world, self._world.dice
        name = dice.choice(NAMES)
        world.cloudwatch.silence(name, True)
        world.stage.at(world.stage.now + dice.uniform(1, 600), partial(world.cloudwatch.silence, name, False))
        return f"silence {name}"

    def change_alarm(self) -> str:
        return f"change {change_alarm(self._world, self._world.dice.choice(NAMES))}"

    def delete_alarm(self) -> str:
        """Deletes an alarm; somebody may create it again."""
        world, dice = self._world, self._world.dice
        name = dice.choice(NAMES)
        world.cloudwatch.delete(name)
        if dice.random() < 0.7:
            world.stage.at(world.stage.now + dice.uniform(1, 300), partial(change_alarm, world, name))
        return f"delete {name}"
