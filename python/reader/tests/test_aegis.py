"""Goal: this reader's AEGIS-256X4 is that of the draft.

Method: the test vectors of draft-irtf-cfrg-aegis-aead, the same file that the Rust tests take; then each of them flipped.
"""

from __future__ import annotations

import json
import unittest
from pathlib import Path

from pellucid_reader.aegis import open_aegis

VECTORS = Path(__file__).resolve().parents[3] / "crates/pellucid-aegis/tests/draft-aegis-256x4.json"


class Draft(unittest.TestCase):
    def test_vectors(self) -> None:
        cases = [case for case in json.loads(VECTORS.read_text("utf-8")) if "ct" in case]
        self.assertEqual(len(cases), 2)
        for case in cases:
            names = ("key", "nonce", "ad", "ct", "tag128")
            words = [bytes.fromhex(case[name]) for name in names]
            self.assertEqual(open_aegis(*words), bytes.fromhex(case["msg"]))
            for number, word in enumerate(words):
                if word:
                    flipped = [*words[:number], bytes([word[0] ^ 1]) + word[1:], *words[number + 1 :]]
                    self.assertIsNone(open_aegis(*flipped), names[number])


if __name__ == "__main__":
    unittest.main()
