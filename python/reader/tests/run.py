#!/usr/bin/env python3
"""Runs all tests of the reader; the last line has the shape of cargo's, which .ci/steps sums.

Arguments are names of tests, as for `python3 -m unittest`: tests.test_vectors, tests.test_flipped.Flipped.
"""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    sys.path[0] = str(HERE.parent)
    loader = unittest.defaultTestLoader
    if sys.argv[1:]:
        suite = loader.loadTestsFromNames(sys.argv[1:])
    else:
        suite = loader.discover(str(HERE), top_level_dir=str(HERE.parent))
    result = unittest.TextTestRunner(verbosity=1).run(suite)
    ignored = len(result.skipped)
    failed = len({test.id() for test, _ in result.failures + result.errors})
    passed = max(result.testsRun - ignored - failed, 0)
    ok = result.wasSuccessful() and passed > 0
    print(f"test result: {'ok' if ok else 'FAILED'}. {passed} passed; {failed} failed; {ignored} ignored;", flush=True)
    sys.exit(0 if ok else 1)
