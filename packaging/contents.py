#!/usr/bin/env python3
"""What a release is made of: each crate that its programs link, with version, licence and checksum, and their licence texts.

    packaging/contents.py sbom      CycloneDX 1.5 (ECMA-424) as JSON, on standard output
    packaging/contents.py licences  the texts, one after the other, on standard output

Reads `cargo metadata` and Cargo.lock; asks no network. Exit: 0 done, 1 a crate is not at hand or has no licence.
"""

import json
import os
import re
import subprocess
import sys
import uuid

# What cargo builds for a release. The lab is in the Debian package and the archive.
SHIPPED = (
    "pellucid-cli", "pellucid-extension", "pellucid-lab", "pellucid-plugin-pkcs11", "pellucid-plugin-tpm",
)
LOCKED = re.compile(r'name = "(.+)"\nversion = "(.+)"\nsource = ".+"\nchecksum = "([0-9a-f]{64})"')
TEXTS = re.compile(r"(?i)^(licen[cs]e|copying|copyright|notice|unlicense)([-._].*)?$")


def metadata():
    cargo = os.environ.get("CARGO", "cargo")
    host = next(
        line.split()[1] for line in run("rustc", "-vV").splitlines() if line.startswith("host:")
    )
    return json.loads(
        run(cargo, "metadata", "--format-version=1", "--locked", "--offline", f"--filter-platform={host}")
    )


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def linked(found):
    """The packages that what is shipped links, by id: normal and build dependencies, none of tests."""
    packages = {package["id"]: package for package in found["packages"]}
    nodes = {node["id"]: node for node in found["resolve"]["nodes"]}
    todo = [id for id, package in packages.items() if package["name"] in SHIPPED and package["source"] is None]
    if len(todo) != len(SHIPPED):
        sys.exit("contents: a crate that is shipped is not in the workspace")
    seen = {}
    while todo:
        id = todo.pop()
        if id in seen:
            continue
        needs = [
            dependency["pkg"]
            for dependency in nodes[id]["deps"]
            if any(kind["kind"] in (None, "build") for kind in dependency["dep_kinds"])
        ]
        seen[id] = needs
        todo += needs
    return {id: packages[id] for id in seen}, seen


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"


def sbom(found):
    packages, needs = linked(found)
    with open("Cargo.lock", encoding="utf-8") as lock:
        sums = {(name, version): checksum for name, version, checksum in LOCKED.findall(lock.read())}
    components = []
    for package in sorted(packages.values(), key=lambda one: (one["name"], one["version"])):
        component = {
            "type": "library",
            "bom-ref": purl(package),
            "name": package["name"],
            "version": package["version"],
            "purl": purl(package),
            "licenses": [{"expression": licence(package)}],
        }
        checksum = sums.get((package["name"], package["version"]))
        if checksum:
            component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        components.append(component)
    dependencies = [
        {"ref": purl(packages[id]), "dependsOn": sorted({purl(packages[need]) for need in needs[id]})}
        for id in sorted(packages, key=lambda id: purl(packages[id]))
    ]
    version = next(one["version"] for one in packages.values() if one["name"] == "pellucid-cli")
    # The same sources have the same number: two builds are equal bit for bit.
    number = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components, sort_keys=True))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{number}",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "bom-ref": "pellucid", "name": "pellucid", "version": version}
        },
        "components": components,
        "dependencies": dependencies,
    }


def licence(package):
    """An SPDX expression; crates of before SPDX 2.1 write `/` for OR."""
    expression = package["license"]
    if not expression:
        sys.exit(f"contents: {package['name']} {package['version']} names no licence")
    return re.sub(r"\s*/\s*", " OR ", expression)


def texts(found):
    packages, _ = linked(found)
    by_text = {}
    for package in sorted(packages.values(), key=lambda one: (one["name"], one["version"])):
        if package["source"] is None:
            continue
        folder = os.path.dirname(package["manifest_path"])
        if not os.path.isdir(folder):
            sys.exit(f"contents: the sources of {package['name']} are not at hand")
        name = f"{package['name']} {package['version']} ({licence(package)})"
        own = [entry for entry in sorted(os.listdir(folder)) if TEXTS.match(entry)]
        for entry in own:
            path = os.path.join(folder, entry)
            if os.path.isfile(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    by_text.setdefault(file.read().strip(), []).append(name)
        if not own:
            by_text.setdefault(f"Its package has no text of its licence: {licence(package)}.", []).append(name)
    for text, names in sorted(by_text.items(), key=lambda one: one[1]):
        print("=" * 80, *dict.fromkeys(names), "-" * 80, text, "", sep="\n")


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    match sys.argv[1:]:
        case ["sbom"]:
            json.dump(sbom(metadata()), sys.stdout, indent=1, sort_keys=True)
            print()
        case ["licences"]:
            texts(metadata())
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
