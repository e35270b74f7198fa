# SPDX-License-Identifier: LGPL-2.1 OR BSD-2-Clause
"""Writes the bill of materials of a static build as SPDX 2.3 JSON, on standard output.

sbom.py --name NAME --version VERSION --date SECONDS --map LINKER-MAP FILE...

FILEs are what is shipped, by paths relative to the current directory. The linker's map says which
archives are in the program; dpkg says of which package they are. Nothing of this run is in the
output (no time, no path of the build, no random number), so two builds give the same bytes.
"""
import argparse
import datetime
import hashlib
import json
import os
import re
import subprocess
import sys

NONE = "NOASSERTION"


def linked_files(path):
    """The archives that gave at least one member, and the start files, as real paths."""
    found = {}
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            line = line.rstrip("\n")
            # Alone in a line, a member that was included: "/usr/lib/…/libelf.a(elf_begin.o)".
            member = re.match(r"(/\S+\.a)\(([^)]+)\)$", line)
            if member:
                found.setdefault(os.path.realpath(member[1]), set()).add(member[2])
            start = re.match(r"LOAD (/\S+\.o)$", line)
            if start:
                found.setdefault(os.path.realpath(start[1]), set())
    return found


def query(*arguments):
    return subprocess.run(arguments, capture_output=True, text=True, check=False).stdout.strip()


def owner_of(path):
    """The Debian package of a file, as (name, version, source, source version, architecture)."""
    # dpkg has the path that the package has, which may be that of before /usr was merged.
    for name in (path, path.removeprefix("/usr")):
        package = query("dpkg-query", "-S", name).split(": ")[0].split(",")[0]
        if package:
            return tuple(query("dpkg-query", "-W", "-f",
                               "${Package}\t${Version}\t${source:Package}\t${source:Version}\t${Architecture}",
                               package).split("\t"))
    return None


def distribution():
    with open("/etc/os-release", encoding="utf-8") as lines:
        names = dict(line.strip().split("=", 1) for line in lines if "=" in line)
    return names.get("ID", "linux").strip('"'), names.get("VERSION_CODENAME", "").strip('"')


def static_packages(files):
    """An SPDX package for each Debian package that something was linked from."""
    owners = {}
    for path in files:
        owner = owner_of(path)
        if not owner:
            sys.exit(f"sbom: {path}: of no package that dpkg knows: the list would not be whole")
        owners.setdefault(owner, []).append(os.path.basename(path))
    vendor, codename = distribution()
    for (name, version, source, source_version, architecture), archives in sorted(owners.items()):
        escaped = version.replace(":", "%3A").replace("+", "%2B").replace("~", "~")
        yield {
            "SPDXID": "SPDXRef-" + re.sub("[^A-Za-z0-9.]", "-", name),
            "name": name,
            "versionInfo": version,
            "supplier": f"Organization: {vendor}",
            "downloadLocation": NONE,
            "filesAnalyzed": False,
            "licenseConcluded": NONE,
            "licenseDeclared": NONE,
            "copyrightText": NONE,
            "sourceInfo": f"statically linked: {', '.join(sorted(archives))}; "
                          f"built from the source package {source} {source_version}",
            "primaryPackagePurpose": "LIBRARY",
            "externalRefs": [{
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": f"pkg:deb/{vendor}/{name}@{escaped}?arch={architecture}&distro={codename}",
            }],
        }


def shipped_files(paths):
    for path in sorted(paths):
        with open(path, "rb") as file:
            data = file.read()
        yield {
            "SPDXID": "SPDXRef-File-" + re.sub("[^A-Za-z0-9.]", "-", path),
            "fileName": "./" + path,
            "checksums": [{"algorithm": name, "checksumValue": hashlib.new(name.lower(), data).hexdigest()}
                          for name in ("SHA1", "SHA256")],
            "fileTypes": ["BINARY"],
            "licenseConcluded": NONE,
            "licenseInfoInFiles": [NONE],
            "copyrightText": NONE,
        }


def main():
    parser = argparse.ArgumentParser()
    for name in ("name", "version", "map"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--date", required=True, type=int)
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()

    linked = linked_files(options.map)
    if not any(path.endswith("/libbpf.a") for path in linked):
        sys.exit(f"sbom: {options.map}: not the map of a static build")
    libraries = list(static_packages(linked))
    files = list(shipped_files(options.files))
    # SPDX 2.3, 7.9: the SHA1 of the sorted SHA1s.
    digest = hashlib.sha1("".join(sorted(file["checksums"][0]["checksumValue"] for file in files)).encode()).hexdigest()
    own = {
        "SPDXID": "SPDXRef-Package",
        "name": options.name,
        "versionInfo": options.version,
        "supplier": NONE,
        "downloadLocation": NONE,
        "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": digest},
        "hasFiles": [file["SPDXID"] for file in files],
        "licenseConcluded": NONE,
        "licenseDeclared": "LGPL-2.1-only OR BSD-2-Clause",
        "licenseInfoFromFiles": [NONE],
        "copyrightText": "Copyright 2026 the ferrum-bpftrace authors",
        "primaryPackagePurpose": "APPLICATION",
    }
    created = datetime.datetime.fromtimestamp(options.date, datetime.timezone.utc)
    json.dump({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{options.name}-{options.version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/{options.name}-{options.version}-{digest}",
        "creationInfo": {
            "created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: {options.name}-sbom"],
        },
        "packages": [own] + libraries,
        "files": files,
        "relationships":
            [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
              "relatedSpdxElement": "SPDXRef-Package"}] +
            [{"spdxElementId": "SPDXRef-Package", "relationshipType": "STATIC_LINK",
              "relatedSpdxElement": library["SPDXID"]} for library in libraries],
    }, sys.stdout, indent=1)
    print()


main()
