"""Goal: ML-KEM-768 is FIPS 203's. Method: keys and ciphertexts of the vectors, which aws-lc made; and of `cryptography`, where it has ML-KEM."""

from __future__ import annotations

import unittest

from pellucid_reader import mlkem
from tests.test_vectors import VECTORS, Case


class MlKem768(unittest.TestCase):
    def setUp(self) -> None:
        case = Case(VECTORS / "keyring_hybrid-certificate")
        self.public_key, self.private_key = case.bytes("companion"), case.bytes("companion-private-key")

    def test_both_halves_belong_together(self) -> None:
        self.assertEqual(mlkem.public_of(self.private_key), self.public_key)
        for number in range(3):
            secret, ciphertext = mlkem.encapsulate(self.public_key, bytes([number]) * 32)
            self.assertEqual(mlkem.decapsulate(self.private_key, ciphertext), secret)

    def test_garbage_gives_another_secret_and_no_error(self) -> None:
        secret, ciphertext = mlkem.encapsulate(self.public_key, bytes(32))
        for at in (0, 959, 960, 1087):
            changed = bytearray(ciphertext)
            changed[at] ^= 1
            found = mlkem.decapsulate(self.private_key, bytes(changed))
            self.assertNotEqual(found, secret)
            self.assertEqual(found, mlkem.decapsulate(self.private_key, bytes(changed)))

    def test_other_lengths_and_damaged_keys_are_refused(self) -> None:
        for private_key, ciphertext in (
            (self.private_key[1:], bytes(1088)),
            (self.private_key, bytes(1087)),
            (self.private_key[:1200] + bytes(1200), bytes(1088)),
        ):
            with self.assertRaises(ValueError):
                mlkem.decapsulate(private_key, ciphertext)

    def test_another_implementation_decapsulates_what_is_made_here(self) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric import mlkem as other
        except ImportError:
            self.skipTest("this `cryptography` has no ML-KEM; the vectors are another implementation's, too")
        key = other.MLKEM768PrivateKey.generate()
        secret, ciphertext = mlkem.encapsulate(key.public_key().public_bytes_raw(), bytes(range(32)))
        self.assertEqual(key.decapsulate(ciphertext), secret)


if __name__ == "__main__":
    unittest.main()
