"""Goal: Argon2id in Python is RFC 9106's, whatever `cryptography` has.

Method: the RFC's own vector; then lanes and memory that leave a remainder, where both implementations are at hand.
"""

from __future__ import annotations

import unittest

from pellucid_reader import argon2id


class Argon2id(unittest.TestCase):
    def test_rfc_9106_5_3(self) -> None:
        tag = argon2id.in_python(
            password=bytes([1]) * 32,
            salt=bytes([2]) * 16,
            memory_kib=32,
            passes=3,
            lanes=4,
            secret=bytes([3]) * 8,
            associated=bytes([4]) * 12,
        )
        self.assertEqual(tag.hex(), "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659")

    def test_same_as_openssl(self) -> None:
        for memory_kib, passes, lanes in ((8, 1, 1), (67, 2, 2), (700, 1, 1), (203, 2, 3)):
            parameters = (b"correct horse", b"sixteen bytes ..", memory_kib, passes, lanes)
            with self.subTest(memory_kib=memory_kib, passes=passes, lanes=lanes):
                self.assertEqual(argon2id.derive(*parameters), argon2id.in_python(*parameters))
