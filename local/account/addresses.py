"""Assigns addresses to instances: in 127.0.0.0/8, from a block that no other account on this machine uses, or in
10.0.0.0/8 for networks of their own.
"""

from __future__ import annotations

import itertools
import random
import socket

_RESERVATION_PORT = 45454


class AddressBlock:
    """A /16 block of the loopback network, which a socket reserves while the account runs."""

    def __init__(self) -> None:
        self._socket, self.second = self._reserve()
        self._numbers = itertools.count()

    @staticmethod
    def _reserve() -> tuple[socket.socket, int]:
        candidates = list(range(16, 250))
        random.shuffle(candidates)
        for second in candidates:
            held = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                held.bind((f"127.{second}.255.254", _RESERVATION_PORT))
            except OSError:
                held.close()
            else:
                return held, second
        raise RuntimeError("every block of 127.0.0.0/8 is taken by another local account")

    def take(self, closed: bool) -> str:
        """Returns an unused address, so that a replacement differs from its predecessor.

        Args:
            closed: whether it is for a network of its own, which has no loopback addresses.
        """
        number = next(self._numbers)
        third, fourth = divmod(number, 250)
        if third > 250:
            raise RuntimeError("the block of loopback addresses is used up")
        return f"{10 if closed else 127}.{self.second}.{third}.{fourth + 1}"
