"""What can be wrong, by who must act; the kinds are those of vectors/README.md."""


class ReaderError(Exception):
    """Base of all; the exit status is the program's."""

    exit_status = 1


class Corrupt(ReaderError):
    """The structure is wrong; no key is needed to see it."""

    exit_status = 3


class Unauthentic(ReaderError):
    """A tag or signature does not match; no byte of the content is handed out."""

    exit_status = 3


class WrongKind(ReaderError):
    """The file is of another kind, and whole for all that is known: a wrong name."""


class Unsupported(ReaderError):
    """A newer version, an unknown id, or a cost that is refused."""


class MissingKey(ReaderError):
    """No key at hand opens it."""


class NotSealed(ReaderError):
    """A backup set in clear where a sealed one is expected, or without a signature behind a signed one."""


class LimitReached(ReaderError):
    """A stated limit is passed."""


class Replaced(ReaderError):
    """What is at a path is not what is expected there."""
