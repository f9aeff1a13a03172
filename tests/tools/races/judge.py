"""The exchanges of a name, and what has to hold after each."""
import hashlib
import os
import shutil

from scenes import FOREIGN, MARKER, SECRET, USER


def to_link(target):
    """A symbolic link of the user's to a file of root's."""
    def exchange(place, path):
        os.symlink(os.path.join(place.root, target), path)
        os.lchown(path, USER, USER)
    return exchange


def to_name(target):
    """A second name (hard link) of a file of root's."""
    return lambda place, path: os.link(os.path.join(place.root, target), path)


def to_fifo(place, path):
    """A FIFO that nobody writes to or reads from."""
    os.mkfifo(path, 0o666)
    os.chown(path, USER, USER)


def to_other(place, path):
    """Another file of the user's."""
    with open(path, "wb") as file:
        file.write(b"nothing that anybody knows\n" * 400)
    os.chown(path, USER, USER)


def to_foreign(place, path):
    """The same content, of a third account."""
    if os.path.isfile(aside(path)):
        shutil.copyfile(aside(path), path)
    else:
        open(path, "wb").close()
    os.chown(path, FOREIGN, FOREIGN)


def to_folder(place, path):
    """The folder itself becomes a link to one of root's, in which files of root's have the same names."""
    os.symlink(os.path.join(place.root, "folder"), path)
    os.lchown(path, USER, USER)


EXCHANGES = {
    "link-text": to_link("text"), "link-database": to_link("database"), "link-sealed": to_link("sealed"),
    "name-text": to_name("text"), "name-database": to_name("database"), "name-sealed": to_name("sealed"),
    "fifo": to_fifo, "other": to_other, "foreign": to_foreign, "folder": to_folder,
}


def aside(path):
    """Where what had the name goes."""
    return path + ".aside"


def exchange(place, kind, path):
    """Puts something else under a name, as its directory's owner can."""
    if kind == "folder":
        path = place.folder
    if path == place.folder and kind != "folder":
        return False
    if os.path.dirname(path) == place.folder or path == place.folder:
        if not os.path.isdir(os.path.dirname(path)) or os.path.lexists(aside(path)):
            return False
        if os.path.lexists(path):
            os.rename(path, aside(path))
        EXCHANGES[kind](place, path)
        return True
    return False


def put_back(place, kind, path):
    """Puts back what had the name, if the name is still as it was exchanged."""
    if kind == "folder":
        path = place.folder
    if os.path.lexists(path):
        if os.path.isdir(path) and not os.path.islink(path):
            return
        os.unlink(path)
    if os.path.lexists(aside(path)):
        os.rename(aside(path), path)


def fill_folder(place, names):
    """Makes root's folder of the exchange `folder`: root's files under the names that the command uses."""
    folder = os.path.join(place.root, "folder")
    os.makedirs(folder, 0o700, exist_ok=True)
    for name in names:
        source = "database" if name.endswith(".db") else "text"
        shutil.copy(os.path.join(place.root, source), os.path.join(folder, name))


def secrets(place):
    """All that root's files are: content, owner, mode and names."""
    found = {}
    for directory, _, names in os.walk(place.root):
        for name in names:
            path = os.path.join(directory, name)
            stat = os.lstat(path)
            with open(path, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            found[os.path.relpath(path, place.root)] = (stat.st_uid, stat.st_gid, stat.st_mode, stat.st_ino, digest)
    return found


def content_of_users(place):
    """The user's regular files, by path, with their content; links are not followed, and root's own inodes are left out."""
    own = {stat.st_ino for stat in (os.lstat(os.path.join(d, n)) for d, _, names in os.walk(place.root) for n in names)}
    for directory, _, names in os.walk(place.user):
        for name in names:
            path = os.path.join(directory, name)
            stat = os.lstat(path)
            if os.path.isfile(path) and not os.path.islink(path) and stat.st_ino not in own:
                with open(path, "rb") as file:
                    yield path, file.read()


def faults(place, ended, before):
    """What went wrong in a run, as sentences; empty if nothing did."""
    wrong = []
    if ended.status is None:
        wrong.append("did not end in time")
    elif ended.status < 0 or ended.status in (101, 134, 139):
        wrong.append(f"ended by a signal or a panic ({ended.status})")
    if ended.status == 0 and place.scene.says and place.scene.says not in ended.said.decode(errors="replace"):
        wrong.append("ended with 0 and a wrong result")
    if SECRET.encode() in ended.said:
        wrong.append("root's file shows in the output")
    after = secrets(place)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            what = "was removed" if name not in after else "was made" if name not in before else "was changed"
            wrong.append(f"root's file {name} {what}")
    for path, content in content_of_users(place):
        shown = os.path.relpath(path, place.user)
        if SECRET.encode() in content:
            wrong.append(f"root's file lies in {shown}")
        if MARKER.encode() in content and not place.scene.clear:
            wrong.append(f"a row lies in clear in {shown}")
    return wrong
